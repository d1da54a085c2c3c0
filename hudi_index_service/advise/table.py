"""The advice on one table, from everything that is known of it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from hudi_index_service.advise import Advice
from hudi_index_service.advise.build_costs import BuildCosts
from hudi_index_service.advise.footers import footers
from hudi_index_service.advise.new_indexes import Definitions, columns_to_index
from hudi_index_service.advise.unused_indexes import BuiltIndex, unused_indexes
from hudi_index_service.advise.writing import measured_codecs, writer_settings
from hudi_index_service.build.record import BuildRecord
from hudi_index_service.config import Settings
from hudi_index_service.definitions import IndexDefinition
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.index.entry import EntryListing
from hudi_index_service.index.manifest import Manifest
from hudi_index_service.optimizer.cost.constants import load_constants
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.table.protocol import BaseFile, HudiTable


def advise(
    table: HudiTable,
    definitions: Sequence[IndexDefinition],
    records: Sequence[BuildRecord],
    history: History,
    settings: Settings,
) -> Advice:
    """What the history of queries advises.

    Args:
        definitions: Those that are live.
        records: The table's builds, newest first.

    Raises:
        TableFeatureUnsupported: the table cannot be read whole here.
        PermissionDenied, StorageFailed, NeedsSpark: a base file's footer cannot be read.
        SnapshotChanged: see `HudiTable.snapshot`.
    """
    uri = table.storage.uri
    snapshot = table.snapshot()
    base_files = snapshot.base_files()
    shapes = history.shapes(uri)
    facts = footers(table.storage, base_files)
    constants = load_constants(settings)
    costs = BuildCosts(base_files, snapshot.schema, facts, records, settings.build.parallelism)
    columns = {each.name: frozenset(column.name for column in each.columns) for each in definitions}
    return Advice(
        uri,
        sum(each.queries for each in shapes),
        columns_to_index(shapes, snapshot.schema, Definitions(columns), facts, costs, constants),
        unused_indexes(
            _built(table, definitions, base_files),
            shapes,
            lambda since: history.queries_since(uri, since),
        ),
        writer_settings(
            shapes,
            facts,
            constants,
            lambda codecs: measured_codecs(table.storage, facts, codecs),
        ),
    )


def _built(
    table: HudiTable, definitions: Sequence[IndexDefinition], base_files: Sequence[BaseFile]
) -> Iterator[BuiltIndex]:
    """The indexes of which something is built for the present snapshot."""
    manifests: defaultdict[str, list[Manifest]] = defaultdict(list)
    for name in {name for each in definitions for name in each.index_types}:
        listing = EntryListing(table.storage, name)
        for base_file in base_files:
            try:
                manifests[name].append(listing.find(base_file).manifest)
            except EntryInvalid:
                continue
    for definition in definitions:
        columns = tuple(column.name for column in definition.columns)
        serving = [
            manifest
            for name in definition.index_types
            for manifest in manifests[name]
            if all(manifest.column(column) is not None for column in columns)
        ]
        if serving:
            finished = [datetime.fromisoformat(each.build.finished) for each in serving]
            yield BuiltIndex(
                definition.name,
                columns,
                max(each.timestamp() for each in finished),
                len(serving),
                sum(each.data.length for each in serving),
            )
