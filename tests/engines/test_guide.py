"""The guide's examples run as they stand, from the first to the last."""

from hudi_index_service import open_table
from tests.docs.markdown import code_blocks


def test_the_guide_to_polars_and_duckdb(golden, tmp_path, capsys):
    path = golden("rfc_messages").put(tmp_path / "messages")
    with open_table(path) as table:
        table.create_index("i", ["id", "sender", "msg"], using="btree")
        table.build(strategy="all").raise_for_failures()
    names = {}
    for block in code_blocks("docs/guides/polars_duckdb.md", "python"):
        exec(block.replace("/data/messages", str(path)), names)
    shown = capsys.readouterr().out
    assert names["found"].select("msg").collect()["msg"].to_list() == ["Buying a new car"]
    assert "where    `id` = '2'" in shown
    assert "where    `sender` = 'UserA'" in shown
    assert len(names["frame"]) == names["messages"].count_rows() - 1
