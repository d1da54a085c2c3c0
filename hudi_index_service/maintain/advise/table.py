"""Collects the data on one table and computes the advice."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from hudi_index_service.build.executor import LocalExecutor
from hudi_index_service.build.record import BuildRecord
from hudi_index_service.build.sample import Sample
from hudi_index_service.config import Settings
from hudi_index_service.errors import EntryInvalid
from hudi_index_service.hudi.files.parquet_file import footers
from hudi_index_service.hudi.snapshot import BaseFile
from hudi_index_service.hudi.table import HudiTable
from hudi_index_service.index.metadata.column_fields import names_by_use
from hudi_index_service.index.metadata.definitions import IndexDefinition
from hudi_index_service.index.metadata.entry import EntryListing
from hudi_index_service.index.metadata.manifest import Manifest
from hudi_index_service.index.metadata.requirements import requirements
from hudi_index_service.maintain.advise import Advice
from hudi_index_service.maintain.advise.build_costs import BuildCosts
from hudi_index_service.maintain.advise.new_indexes import DefinedColumns, columns_to_index
from hudi_index_service.maintain.advise.unused_indexes import IndexInUse, unused_indexes
from hudi_index_service.maintain.advise.writing import measured_codecs, writer_settings
from hudi_index_service.optimizer.cost.constants import load_constants
from hudi_index_service.optimizer.history.history import History
from hudi_index_service.read.whole_snapshot import on_a_whole_snapshot


def advise(
    table: HudiTable,
    definitions: Sequence[IndexDefinition],
    records: Sequence[BuildRecord],
    history: History,
    settings: Settings,
) -> Advice:
    """The advice from the history of queries, the definitions, the entries and the base files'
    footers.

    Args:
        definitions: The live definitions.
        records: The table's builds, newest first.

    Raises:
        TableFeatureUnsupported: the table cannot be read completely here.
        PermissionDenied, StorageFailed, NeedsSpark: a base file's footer cannot be read.
        SnapshotChanged: see `HudiTable.snapshot`; or Hudi cleaned base files meanwhile, twice.
    """
    return on_a_whole_snapshot(lambda: _advice(table, definitions, records, history, settings))


def _advice(
    table: HudiTable,
    definitions: Sequence[IndexDefinition],
    records: Sequence[BuildRecord],
    history: History,
    settings: Settings,
) -> Advice:
    uri = table.storage.uri
    snapshot = table.snapshot()
    base_files = snapshot.base_files()
    shapes = history.shapes(uri)
    facts = footers(table.storage, base_files)
    constants = load_constants(settings)
    costs = BuildCosts(
        base_files,
        snapshot.schema,
        facts,
        requirements(definitions, snapshot.schema),
        records,
        Sample(table.storage, base_files, settings.build),
        LocalExecutor(settings.build.parallelism),
    )
    columns = {each.name: frozenset(names_by_use(each)[0]) for each in definitions}
    return Advice(
        uri,
        sum(each.queries for each in shapes),
        columns_to_index(shapes, snapshot.schema, DefinedColumns(columns), facts, costs, constants),
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
) -> Iterator[IndexInUse]:
    """The indexes that have entries for the present snapshot."""
    manifests: defaultdict[str, list[Manifest]] = defaultdict(list)
    for name in {name for each in definitions for name in each.index_types}:
        listing = EntryListing(table.storage, name)
        for base_file in base_files:
            try:
                manifests[name].append(listing.find(base_file).manifest)
            except EntryInvalid:
                continue
    for definition in definitions:
        columns = {column.name for column in definition.columns}
        covering = [
            manifest
            for name in definition.index_types
            for manifest in manifests[name]
            if all(manifest.column(column) is not None for column in columns)
        ]
        if covering:
            finish_times = [datetime.fromisoformat(each.build.finished) for each in covering]
            yield IndexInUse(
                definition.name,
                tuple(names_by_use(definition)[0]),
                max(each.timestamp() for each in finish_times),
                len(covering),
                sum(each.data.length for each in covering),
            )
