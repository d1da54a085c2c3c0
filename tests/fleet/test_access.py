"""Tokens, their file, what a role may do, how often a wrong token is tried, and sessions."""

import logging

import pytest

from hudi_index_service.errors import ConfigInvalid
from hudi_index_service.fleet.web.access import (
    ALLOWED,
    Action,
    Attempts,
    Role,
    Token,
    Tokens,
    digest_of,
    parse_tokens,
)
from hudi_index_service.fleet.web.sessions import Sessions

DIGEST = digest_of("right")


def written(path, text, mode=0o600):
    """A file of tokens."""
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def path(tmp_path):
    return written(tmp_path / "tokens", f"ann operate {DIGEST}\n")


def test_each_role_may_do_this_and_nothing_else():
    assert {role: set(ALLOWED[role]) for role in Role} == {
        Role.NOTIFY: {Action.NOTIFY},
        Role.READ: {Action.SEE},
        Role.OPERATE: {Action.NOTIFY, Action.SEE, Action.OPERATE},
        Role.METRICS: {Action.SCRAPE},
    }


def test_a_line_names_a_token_its_role_hash_and_tables():
    text = f"# who may\n\nann operate {DIGEST.upper()} sales.* hr.people\nbo read {'0' * 64}\n"

    ann, bo = parse_tokens(text)

    assert ann == Token("ann", Role.OPERATE, DIGEST, ("sales.*", "hr.people"))
    assert bo.is_for_all
    assert not ann.is_for_all
    assert ann.covers("sales.orders")
    assert ann.covers("hr.people")
    assert not ann.covers("hr.people2")
    assert not ann.covers("SALES.orders")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("ann operate", "needs a name"),
        ("ann chief " + DIGEST, "a role: notify, read, operate, metrics"),
        ("a/b read " + DIGEST, "a name has"),
        ("ann read right", "64 hexadecimal digits"),
        ("ann metrics " + DIGEST + " sales.*", "for all tables"),
        ("zoe read " + DIGEST, "this name"),
        ("ann read " + "0" * 64, "this SHA-256"),
    ],
)
def test_a_wrong_line_is_named_by_its_number_alone(line, why):
    with pytest.raises(ValueError, match=r"^line 2: ") as caught:
        parse_tokens(f"zoe read {'0' * 64}\n{line}\n")

    assert why in str(caught.value)
    assert "right" not in str(caught.value)
    assert DIGEST not in str(caught.value)


def test_a_token_is_found_by_its_secret(path):
    tokens = Tokens(path, [Token("hook", Role.NOTIFY, digest_of("other"))])

    assert tokens.find("right").name == "ann"
    assert tokens.find("other").name == "hook"
    assert tokens.find("wrong") is None
    assert tokens.find("\ud800") is None
    assert Tokens(None).find("right") is None


def test_the_file_is_read_again_when_it_changes(path):
    tokens = Tokens(path)
    written(path, f"bo read {digest_of('new')}\n")

    assert tokens.find("right") is None
    assert tokens.find("new").name == "bo"


def test_a_link_that_is_swapped_is_followed(tmp_path, path):
    """Kubernetes gives a mounted secret new content so."""
    link = tmp_path / "link"
    link.symlink_to(path)
    tokens = Tokens(link)
    other = written(tmp_path / "other", f"bo read {digest_of('new')}\n")
    swapped = tmp_path / "swapped"
    swapped.symlink_to(other)
    swapped.replace(link)

    assert tokens.find("new").name == "bo"


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o620, 0o602])
def test_a_file_that_others_may_read_or_write_is_refused(path, mode):
    path.chmod(mode)

    with pytest.raises(ConfigInvalid, match="chmod 600"):
        Tokens(path)


@pytest.mark.parametrize("spoil", ["malformed", "readable", "gone", "binary"])
def test_a_file_that_goes_wrong_later_is_logged_once_and_the_last_one_stays(path, caplog, spoil):
    tokens = Tokens(path)
    if spoil == "gone":
        path.unlink()
    elif spoil == "binary":
        path.write_bytes(b"\xff\xfe")
    else:
        text = "canary-token read operate\n" if spoil == "malformed" else path.read_text()
        written(path, text, 0o644 if spoil == "readable" else 0o600)

    with caplog.at_level(logging.INFO):
        assert tokens.find("right").name == "ann"
        assert tokens.find("right").name == "ann"

    assert [each.levelname for each in caplog.records] == ["ERROR"]
    assert "stay valid" in caplog.text
    assert "canary" not in caplog.text


def test_an_absent_file_is_refused_at_start(tmp_path):
    with pytest.raises(ConfigInvalid, match="No such file"):
        Tokens(tmp_path / "none")


def test_an_address_waits_after_many_failures_and_others_do_not():
    now = [1000.0]
    attempts = Attempts(most=3, seconds=60, clock=lambda: now[0])
    for _ in range(3):
        assert attempts.wait("10.0.0.1") == 0
        attempts.failed("10.0.0.1")
        now[0] += 10

    assert attempts.wait("10.0.0.1") == 30
    assert attempts.wait("10.0.0.2") == 0
    now[0] += 30
    assert attempts.wait("10.0.0.1") == 0


def test_one_network_of_ipv6_is_one_client():
    attempts = Attempts(most=1)
    attempts.failed("2001:db8::1")

    assert attempts.wait("2001:db8::ffff") > 0
    assert attempts.wait("2001:db8:0:1::1") == 0


def test_a_session_ends_with_its_time_its_token_and_its_key(path):
    now = [0.0]
    tokens = Tokens(path)
    sessions = Sessions(tokens, seconds=100, clock=lambda: now[0])
    cookie = sessions.cookie(sessions.of(tokens.find("right")))

    assert sessions.token(sessions.read(cookie)).name == "ann"
    assert Sessions(tokens, seconds=100, clock=lambda: now[0]).read(cookie) is None
    for other in ("", ".", cookie[:-1], f"x{cookie}", cookie.replace(".", ".0"), "ä.ö"):
        assert sessions.read(other) is None
    now[0] = 100.0
    assert sessions.read(cookie) is None
    now[0] = 0.0
    written(path, f"ann operate {digest_of('new')}\n")
    assert sessions.token(sessions.read(cookie)) is None
    assert sessions.token(sessions.anonymous()) is None


def test_a_form_token_is_that_of_its_session(path):
    sessions = Sessions(Tokens(path), seconds=100)
    mine, other = sessions.anonymous(), sessions.anonymous()

    assert sessions.is_form_token(mine, sessions.form_token(mine))
    assert not sessions.is_form_token(mine, sessions.form_token(other))
    assert not sessions.is_form_token(mine, "")
