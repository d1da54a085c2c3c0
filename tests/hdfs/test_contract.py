"""The tests for every kind of store, run on a real HDFS."""

# Collected here too, with this folder's fixture `storage`.
from tests.storage.test_storage import (  # noqa: F401
    test_a_full_disk_is_named,
    test_a_root_exists_once_it_has_files,
    test_a_storage_is_pickled_as_its_address,
    test_absent_files_and_folders_are_reported,
    test_create_never_replaces,
    test_delete_ignores_absent_files,
    test_listings_are_limited_to_their_folder,
    test_one_of_many_concurrent_creators_wins,
    test_paths_with_dots_or_empty_segments_are_refused,
    test_ranges_are_returned_in_the_requested_order,
    test_ranges_beyond_the_end_of_a_file_are_refused,
    test_replace_replaces,
    test_upload_and_download,
)
