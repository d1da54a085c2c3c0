"""The completeness check on made-up listings: which files the slices may omit, and which not."""

import pytest

from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi import BaseFile, FileSlice
from hudi_index_service.hudi.completeness import Proof, classify
from hudi_index_service.hudi.timeline import parse_timeline
from hudi_index_service.storage.store import StoredFile

TIMELINE = parse_timeline(
    [
        "100_105.commit",
        "110_118.deltacommit",
        "120_125.replacecommit",
        "130_135.commit",
        "140_145.deltacommit",
        "150.deltacommit.requested",
    ]
)
VERSION_6_TIMELINE = parse_timeline(
    ["100.commit", "110.deltacommit", "130.commit", "140.compaction.requested", "145.deltacommit"]
)


def base(file_id, instant, partition="p"):
    return f"{partition}/{file_id}_0-1-2_{instant}.parquet"


def log(file_id, instant, partition="p", suffix=""):
    return f"{partition}/.{file_id}_{instant}.log.1_0-1-2{suffix}"


def slice_of(file_id, instant, *logs, partition="p"):
    path = base(file_id, instant, partition)
    return FileSlice(partition, file_id, BaseFile(path, partition, file_id, instant, 1), logs)


def check(paths, slices, *, replaced=None, pinned="140", version=9, archived=None):
    timeline = TIMELINE if version >= 8 else VERSION_6_TIMELINE
    markers = {f"{path.rpartition('/')[0]}/.hoodie_partition_metadata" for path in paths}
    listing = classify(StoredFile(path, 1, 0.0) for path in sorted(markers | set(paths)))
    Proof(timeline, version, pinned, replaced or {}, lambda: archived or {}).check(listing, slices)


def test_files_in_slices_or_older_than_their_slice_pass():
    check(
        [base("a", "130"), base("a", "100"), log("a", "110"), log("a", "140")],
        [slice_of("a", "130", log("a", "140"))],
    )


@pytest.mark.parametrize(
    "path",
    [
        base("a", "150"),  # in flight
        base("b", "115"),  # rolled back
        log("a", "150"),
        log("b", "115"),
        log("a", "140", suffix=".cdc"),
        base("r", "100"),  # replaced
        log("r", "110"),
    ],
)
def test_files_outside_the_table_are_ignored(path):
    check([base("a", "130"), path], [slice_of("a", "130")], replaced={("p", "r"): "120"})


@pytest.mark.parametrize(
    "path",
    [
        base("b", "130"),  # a whole file group is missing
        base("b", "090"),  # the same, of an archived instant
        log("b", "140"),  # a file group of log files only
        log("a", "140"),  # a log file of a known slice
        base("a", "140"),  # a newer base file of a known slice
        base("r", "130"),  # written to a file group after it was replaced
        base("r", "100", partition="q"),  # the same file id, but in another partition
        "p/part-0000.parquet",
    ],
)
def test_files_missing_from_the_slices_are_refused(path):
    with pytest.raises(TableFeatureUnsupported) as refusal:
        check([base("a", "130"), path], [slice_of("a", "130")], replaced={("p", "r"): "120"})
    assert path in refusal.value.message


def test_log_file_completed_after_the_base_files_instant_belongs_to_it():
    # Requested at 110, before the compaction of 115; completed at 118, after it.
    timeline = parse_timeline(["100_105.commit", "110_118.deltacommit", "115_117.commit"])
    listing = classify(
        StoredFile(path, 1, 0.0)
        for path in [base("a", "115"), log("a", "110"), "p/.hoodie_partition_metadata"]
    )
    proof = Proof(timeline, 9, "115", {}, dict)
    proof.check(listing, [slice_of("a", "115", log("a", "110"))])
    with pytest.raises(TableFeatureUnsupported, match=r"\.a_110"):
        proof.check(listing, [slice_of("a", "115")])


def test_log_files_of_archived_instants_are_placed_by_completion_time():
    paths, slices = [base("a", "130"), log("a", "090")], [slice_of("a", "130")]
    check(paths, slices, archived={"090": "095"})
    for unknown in ({"090": "131"}, {}):
        with pytest.raises(TableFeatureUnsupported, match=r"\.a_090"):
            check(paths, slices, archived=unknown)


def test_archive_is_read_once():
    reads = []
    paths = [base("a", "130"), log("a", "090"), log("a", "091"), "p/.hoodie_partition_metadata"]
    listing = classify(StoredFile(path, 1, 0.0) for path in paths)
    archived = {"090": "095", "091": "096"}
    proof = Proof(TIMELINE, 9, "140", {}, lambda: reads.append("") or archived)
    proof.check(listing, [slice_of("a", "130")])
    assert len(reads) == 1


def test_earlier_instant_does_not_include_later_files():
    paths = [base("a", "100"), base("a", "130"), base("b", "120"), log("a", "110")]
    check(paths, [slice_of("a", "100", log("a", "110"))], pinned="110")
    with pytest.raises(TableFeatureUnsupported, match="not of instant 110"):
        check(paths, [slice_of("a", "130")], pinned="110")


def test_slices_that_are_not_in_the_snapshot_are_refused():
    with pytest.raises(TableFeatureUnsupported, match="was replaced"):
        check([base("r", "100")], [slice_of("r", "100")], replaced={("p", "r"): "120"})
    with pytest.raises(TableFeatureUnsupported, match="is older than"):
        check([base("a", "130"), log("a", "110")], [slice_of("a", "130", log("a", "110"))])
    with pytest.raises(TableFeatureUnsupported, match="no base file"):
        check([log("a", "140")], [FileSlice("p", "a", None, (log("a", "140"),))])
    with pytest.raises(TableFeatureUnsupported, match="partition marker"):
        Proof(TIMELINE, 9, "140", {}, dict).check(
            classify([StoredFile(base("a", "130"), 1, 0.0)]), [slice_of("a", "130")]
        )


def test_version_6_log_files_have_their_base_files_instant():
    check(
        [base("a", "130"), log("a", "130"), log("a", "100"), base("a", "100")],
        [slice_of("a", "130", log("a", "130"))],
        version=6,
        pinned="145",
    )
    # Written by the completed delta commit 145, while the compaction of 140 is pending.
    with pytest.raises(TableFeatureUnsupported, match=r"\.a_140"):
        check([base("a", "130"), log("a", "140")], [slice_of("a", "130")], version=6, pinned="145")
