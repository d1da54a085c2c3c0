"""The completeness check on made-up listings: which files the slices may omit, and which not; and
the names of files in a partition."""

import pytest

from hudi_index_service.errors import TableFeatureUnsupported
from hudi_index_service.hudi import BaseFile, FileSlice
from hudi_index_service.hudi.completeness import Proof, classify
from hudi_index_service.hudi.snapshot import ListedLogFile, OtherFile, parse_path
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
    """The slices of a table with these files are the given ones."""
    timeline = TIMELINE if version >= 8 else VERSION_6_TIMELINE
    markers = {f"{path.rpartition('/')[0]}/.hoodie_partition_metadata" for path in paths}
    listing = classify(StoredFile(path, 1, 0.0) for path in sorted(markers | set(paths)))
    proof = Proof(timeline, version, pinned, replaced or {}, lambda: archived or {})
    assert proof.slices(listing) == slices


def test_files_are_in_slices_or_older_than_their_slice():
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
    ("path", "slices"),
    [
        # A file group; one of an archived instant.
        (base("b", "130"), [slice_of("a", "130"), slice_of("b", "130")]),
        (base("b", "090"), [slice_of("a", "130"), slice_of("b", "090")]),
        # A log file, and a newer base file, of a known slice.
        (log("a", "140"), [slice_of("a", "130", log("a", "140"))]),
        (base("a", "140"), [slice_of("a", "140")]),
        # Written to a file group after it was replaced; the same file id in another partition.
        (base("r", "130"), [slice_of("a", "130"), slice_of("r", "130")]),
        (base("r", "100", "q"), [slice_of("a", "130"), slice_of("r", "100", partition="q")]),
    ],
)
def test_files_of_the_table_are_in_slices(path, slices):
    check([base("a", "130"), path], slices, replaced={("p", "r"): "120"})


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (log("b", "140"), "File group p/b .* no base file"),
        ("p/a_1-1-2_130.parquet", "p/a_1-1-2_130.* of the same instant"),
        ("p/part-0000.parquet", "p/part-0000.parquet looks like data"),
    ],
)
def test_files_that_fit_into_no_slice_are_refused(path, reason):
    with pytest.raises(TableFeatureUnsupported, match=reason):
        check([base("a", "130"), path], [])


def test_folder_without_a_partition_marker_is_refused():
    listing = classify([StoredFile(base("a", "130"), 1, 0.0)])
    with pytest.raises(TableFeatureUnsupported, match="partition marker"):
        Proof(TIMELINE, 9, "140", {}, dict).slices(listing)


def test_log_file_completed_after_the_base_files_instant_belongs_to_it():
    # Requested at 110, before the compaction of 115; completed at 118, after it.
    timeline = parse_timeline(["100_105.commit", "110_118.deltacommit", "115_117.commit"])
    listing = classify(
        StoredFile(path, 1, 0.0)
        for path in [base("a", "115"), log("a", "110"), "p/.hoodie_partition_metadata"]
    )
    proof = Proof(timeline, 9, "115", {}, dict)
    assert proof.slices(listing) == [slice_of("a", "115", log("a", "110"))]


def test_log_files_of_archived_instants_are_placed_by_completion_time():
    paths = [base("a", "130"), log("a", "090")]
    check(paths, [slice_of("a", "130")], archived={"090": "095"})
    check(paths, [slice_of("a", "130", log("a", "090"))], archived={"090": "131"})
    with pytest.raises(TableFeatureUnsupported, match=r"\.a_090"):
        check(paths, [], archived={})


def test_archive_is_read_once():
    reads = []
    paths = [base("a", "130"), log("a", "090"), log("a", "091"), "p/.hoodie_partition_metadata"]
    listing = classify(StoredFile(path, 1, 0.0) for path in paths)
    archived = {"090": "095", "091": "096"}
    proof = Proof(TIMELINE, 9, "140", {}, lambda: reads.append("") or archived)
    assert proof.slices(listing) == [slice_of("a", "130")]
    assert len(reads) == 1


def test_earlier_instant_does_not_include_later_files():
    paths = [base("a", "100"), base("a", "130"), base("b", "120"), log("a", "110")]
    check(paths, [slice_of("a", "100", log("a", "110"))], pinned="110")


def test_version_6_log_files_have_their_base_files_instant():
    paths = [base("a", "130"), log("a", "130"), log("a", "100"), base("a", "100")]
    check(paths, [slice_of("a", "130", log("a", "130"))], version=6, pinned="145")
    # Written by the completed delta commit 145, while the compaction of 140 is pending.
    paths = [base("a", "130"), log("a", "140")]
    check(paths, [slice_of("a", "130", log("a", "140"))], version=6, pinned="145")


FILE_ID = "64852660-6fa6-4253-bed1-97dc5257745e-0"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            f"{FILE_ID}_0-45-90_20261121034150789.parquet",
            (BaseFile, FILE_ID, "20261121034150789", 7),
        ),
        ("4c8e8448_0-724-1288_00000000000001.parquet", (BaseFile, "4c8e8448", "00000000000001", 7)),
        (f".{FILE_ID}_20261121.log.1_1-189-328", (ListedLogFile, FILE_ID, "20261121", 1, False)),
        (f".{FILE_ID}_20261121.log.12", (ListedLogFile, FILE_ID, "20261121", 12, False)),
        (f".{FILE_ID}_20261121.log.1_0-421-790.cdc", (ListedLogFile, FILE_ID, "20261121", 1, True)),
        (".hoodie_partition_metadata", OtherFile.PARTITION_MARKER),
        (".hoodie_partition_metadata.parquet", OtherFile.PARTITION_MARKER),
        # They look like data, but their names have no file group or no instant.
        ("part-00000.parquet", OtherFile.UNKNOWN_DATA),
        (f"{FILE_ID}_0-45-90_20261121034150789.orc", OtherFile.UNKNOWN_DATA),
        (f".{FILE_ID}.log.1", OtherFile.UNKNOWN_DATA),
        # Files that Hudi's readers ignore.
        (f".{FILE_ID}_0-45-90_20261121034150789.parquet.crc", None),
        ("_SUCCESS", None),
        ("notes.txt", None),
    ],
)
@pytest.mark.parametrize("partition", ["", "a=1/b=2"])
def test_paths_are_parsed(partition, name, expected):
    path = f"{partition}/{name}" if partition else name
    if isinstance(expected, tuple):
        kind, *rest = expected
        expected = kind(path, partition, *rest)
    assert parse_path(path, 7) == expected
