"""Joins the indexes of a base file's parts without reading the base file again."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from hudi_index_service.index.btree.writing.merge import MergeSource, merge
from hudi_index_service.index.contract import FileRange, PackedIndex


def combine(parts: Sequence[PackedIndex], folder: Path) -> Mapping[str, Path | FileRange]:
    """See `hudi_index_service.index.contract.IndexType.combine`. Merges all leaves in the order of
    their keys, some of each part at a time."""
    with ExitStack() as stack:
        sources = []
        for part in parts:
            sources.append(MergeSource.of_part(part))
            stack.callback(sources[-1].close)
        return merge(sources, folder, restarts=True)[0]
