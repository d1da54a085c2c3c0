"""What the pages show, who may send their forms, and that names are shown as text."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from hudi_index_service.fleet.observation import EndedBuild, Refusal
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.fleet.web.application import HEADERS
from hudi_index_service.fleet.web.page.words import age, bytes_in_units, duration, percent
from hudi_index_service.fleet.web.table_view import Button, button_of
from hudi_index_service.index.metadata.build_records import FailedEntry
from tests.fleet.memory_fleet import NOW, FakeReason, MemoryFleet, seen, status_of
from tests.fleet.served import ORIGIN, SALES_SECRET, SECRETS, Browser, served


@pytest.fixture
def fleet():
    fleet = MemoryFleet()
    fleet.add(
        seen("sales.orders", owner="Ann", group="sales", status=status_of("/o", covered=5)),
        seen("sales.items", owner="Bo", group="sales", status=status_of("/i", lag_seconds=90.0)),
        seen("hr.people", owner="Bo", group="hr", priority=5),
    )
    fleet.reasons["sales.orders"] = [
        FakeReason("BUILDS_FAIL", 2, "Two builds failed.", "hudi-index build /o --strategy all"),
        FakeReason("ORPHANS", 4, "Much is orphaned.", "hudi-index clean /o"),
    ]
    fleet.reasons["hr.people"] = [FakeReason("UNREACHABLE", 1, "No answer.", "hudi-index doctor")]
    return fleet


@pytest.fixture
def service(fleet, tmp_path):
    return served(tmp_path, fleet)


@pytest.fixture
def browser(service):
    return service.browser()


def names(page):
    """The tables of a list, in order."""
    return re.findall(r'<th scope="row"><a href="/tables/([^"]+)"', page.text)


def test_who_is_not_signed_in_signs_in_first_and_goes_on_there(service):
    browser = Browser(service.client())
    answer = browser.get("/tables/hr.people?x=1")
    assert answer.status_code == 303
    login = answer.headers["location"]
    assert login == "/login?next=%2Ftables%2Fhr.people%3Fx%3D1"

    page = browser.get(login)
    assert 'name="next" value="/tables/hr.people?x=1"' in page.text
    answer = browser.post(
        "/login", page=login, token=SECRETS[Role.READ], next="/tables/hr.people?x=1"
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/tables/hr.people?x=1")
    assert browser.get("/tables/hr.people").status_code == 200


@pytest.mark.parametrize("target", ["//evil.org", "https://evil.org", "/\\evil", "/\n/x", ""])
def test_signing_in_leads_to_no_other_site(service, target):
    answer = Browser(service.client()).post(
        "/login", page="/login", token=SECRETS[Role.READ], next=target
    )

    assert answer.headers["location"] == "/"


def test_the_cookie_is_kept_from_scripts_and_other_sites(service, tmp_path):
    cookie = Browser(service.client()).sign_in(SECRETS[Role.READ]).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie

    encrypted = served(tmp_path, origins=["https://indexes.example"])
    cookie = encrypted.client().get("/login").headers["set-cookie"]
    assert cookie.startswith("__Host-hudi-index-login=")
    assert "Secure" in cookie


def test_a_link_of_another_site_neither_signs_in_anew_nor_out(service, browser):
    """A browser sends no SameSite=Strict cookie with it, but keeps those that it gets."""
    stranger = service.client()
    answer = stranger.get("/tables/hr.people", headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0">' in answer.text
    assert "hr.people" not in answer.text
    given = stranger.get("/login", headers={"sec-fetch-site": "cross-site"}).cookies
    assert given
    assert not set(given) & set(browser.client.cookies.keys()) - {"hudi-index-login"}


@pytest.mark.parametrize("role", [Role.NOTIFY, Role.METRICS])
def test_tokens_of_machines_do_not_sign_in(service, role):
    answer = Browser(service.client()).sign_in(SECRETS[role])

    assert answer.status_code == 403
    assert "is not for people" in answer.text


def test_wrong_tokens_are_slowed_down_then_even_right_ones(service):
    browser = Browser(service.client())
    for _ in range(10):
        answer = browser.sign_in("wrong")
        assert (answer.status_code, "The token is wrong" in answer.text) == (401, True)
    answer = browser.sign_in(SECRETS[Role.READ])

    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0


def test_problems_of_the_service_are_shown_to_those_who_see_all_tables(service, browser):
    service.problems.append(Refusal("STORAGE_FAILED", "<b>The disk is full.</b>", "Free space."))
    page = browser.get("/").text
    assert "<b>STORAGE_FAILED</b> &lt;b&gt;The disk is full.&lt;/b&gt; Free space." in page

    of_sales = Browser(service.client())
    of_sales.sign_in(SALES_SECRET)
    assert "The disk is full." not in of_sales.get("/").text

    service.problems.clear()
    assert "STORAGE_FAILED" not in browser.get("/").text


def test_signing_out_ends_the_session(browser):
    assert browser.post("/logout").headers["location"] == "/login"
    assert browser.get("/").status_code == 303


def test_a_token_that_is_taken_away_ends_its_sessions(service, browser, tmp_path):
    (tmp_path / "tokens").write_text("")

    assert browser.get("/").status_code == 303


def test_the_list_is_ordered_by_attention_and_says_why(browser):
    page = browser.get("/")

    assert names(page) == ["hr.people", "sales.orders", "sales.items"]
    assert "3 tables, 2 to attend to, 0 building." in page.text
    assert "Two builds failed." in page.text
    assert 'action="/tables/sales.orders/build"' in page.text
    assert 'name="strategy" value="all"' in page.text
    assert 'action="/tables/sales.orders/clean"' in page.text
    assert 'action="/tables/hr.people/' not in page.text  # its remedy is run elsewhere


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort=name", ["hr.people", "sales.items", "sales.orders"]),
        ("sort=-name", ["sales.orders", "sales.items", "hr.people"]),
        ("sort=owner", ["sales.orders", "hr.people", "sales.items"]),
        ("sort=coverage", ["sales.orders", "sales.items", "hr.people"]),
        ("sort=lag", ["sales.items", "hr.people", "sales.orders"]),
        ("sort=none", ["hr.people", "sales.orders", "sales.items"]),
        ("text=ORDER", ["sales.orders"]),
        ("owner=Bo&sort=name", ["hr.people", "sales.items"]),
        ("group=sales&owner=Bo", ["sales.items"]),
        ("text=none", []),
        ("page=7&sort=name", ["hr.people", "sales.items", "sales.orders"]),
    ],
)
def test_the_list_is_sorted_and_filtered_by_its_address(browser, query, expected):
    assert names(browser.get(f"/?{query}")) == expected


def test_paused_tables_come_last(browser, fleet):
    fleet.add(seen("a.paused", enabled=False, priority=9))

    assert names(browser.get("/"))[-1] == "a.paused"


def test_a_long_list_has_pages_that_keep_the_filter(browser, fleet):
    fleet.add(*(seen(f"big.t{number:04d}") for number in range(501)))
    page = browser.get("/?text=big&sort=name")

    assert len(names(page)) == 250
    following = re.search(r'rel="next" href="([^"]+)"', page.text).group(1).replace("&amp;", "&")
    page = browser.get(following)
    assert (names(page)[0], "Page 2 of 3" in page.text) == ("big.t0250", True)


def test_a_table_shows_its_builds_failures_plan_and_coverage(browser, fleet):
    failing = FailedEntry("day=1/a.parquet", "lucene", ("msg",), 3, NOW.isoformat(), "It is cut.")
    later = NOW + timedelta(minutes=2)
    error = Refusal("BUILD_FAILED", "3 base files failed.", "Mend them.")
    fleet.change(
        "sales.orders",
        status=status_of("/o", partitions=[f"day={day}" for day in range(20)], failing=[failing]),
        ended=(EndedBuild("b1", "poll", NOW, later, "failed", error, 7),),
        plan=("Index by_city is created: 12 base files.",),
        drift=("by_old",),
        clash=Refusal("CLASH", "Another owner has by_text.", "Rename it."),
    )
    text = browser.get("/tables/sales.orders").text

    for words in (
        *("3 base files failed.", "Mend them.", "BUILD_FAILED", "after 2 min", "7 entries built"),
        *("Index by_city is created: 12 base files.", "by_old", "Another owner has by_text."),
        *("day=1/a.parquet", "It is cut.", "failed 3 times", "8 more partitions", "day=19"),
        *("by_text", "8 of 10", "hudi-index build /o --strategy all"),
    ):
        assert words in text, words


def test_a_running_build_shows_how_far_it_is_and_is_cancelled(browser, fleet):
    answer = browser.post("/tables/hr.people/build", strategy="refresh")
    assert answer.headers["location"] == "/tables/hr.people?done=build"
    assert "The build is requested." in browser.get("/tables/hr.people?done=build").text
    assert fleet.calls == [("build", "hr.people", "operater", "refresh")]
    fleet.begin("r1", 43)
    text = browser.get("/tables/hr.people").text
    for words in ("43 %, 43 of 100 entries", "1,000 rows/s", "57 s", "of operater"):
        assert words in text, words

    answer = browser.post("/builds/r1/cancel")
    assert answer.headers["location"] == "/tables/hr.people?done=cancel"
    assert "cancelled" in browser.get("/tables/hr.people").text


def test_a_running_build_is_not_asked_for_again_but_cancelled(browser, fleet):
    fleet.reasons["hr.people"] = [
        FakeReason("hung_build", 2, "It hangs.", "hudi-index cancel /p"),
        FakeReason("lag", 3, "It waits.", "hudi-index build /p"),
    ]
    assert 'action="/tables/hr.people/build"' in browser.get("/?text=people").text
    assert "/cancel" not in browser.get("/").text
    browser.post("/tables/hr.people/build")
    fleet.begin("r1")
    text = browser.get("/?text=people").text
    assert 'action="/tables/hr.people/build"' not in text
    assert 'action="/builds/r1/cancel"' in text


def test_a_form_that_is_sent_twice_is_one_request(browser, fleet):
    for _ in range(2):
        browser.post("/tables/hr.people/build", key="once")

    assert len(fleet.calls) == 1


@pytest.mark.parametrize(
    ("path", "fields", "call"),
    [
        ("clean", {"dry_run": "on"}, ("clean", "hr.people", "operater", True)),
        ("clean", {}, ("clean", "hr.people", "operater", False)),
        ("verify", {}, ("verify", "hr.people", "operater")),
        ("verify", {"repair": "on"}, ("verify", "hr.people", "operater", "repair")),
        ("approve", {"plan": "p1"}, ("approve", "hr.people", "operater", "p1")),
        ("mute", {"code": "lag", "days": "9"}, ("mute", "hr.people", "operater", "lag", 9)),
        ("unmute", {"code": "lag"}, ("unmute", "hr.people", "operater", "lag")),
    ],
)
def test_forms_do_what_they_say(browser, fleet, path, fields, call):
    answer = browser.post(f"/tables/hr.people/{path}", **fields)

    assert answer.status_code == 303
    assert fleet.calls == [call]


def test_an_unknown_reason_cannot_be_hidden(browser, fleet):
    answer = browser.post("/tables/hr.people/mute", code="lagg", days="9")

    assert answer.status_code == 400
    assert "Did you mean lag" in answer.text
    assert fleet.calls == []


def test_hidden_reasons_are_listed_with_a_button(browser, fleet):
    until = datetime.now(UTC) + timedelta(days=3)
    fleet.change("hr.people", muted={"lag": until})
    page = browser.get("/tables/hr.people").text

    assert f"Hidden until {until:%Y-%m-%d}" in page
    assert 'action="/tables/hr.people/unmute"' in page
    fleet.change("hr.people", muted={"lag": datetime.now(UTC)})
    assert "Hidden until" not in browser.get("/tables/hr.people").text


def test_a_paused_table_has_no_buttons_to_build(browser, fleet):
    fleet.add(seen("hr.paused", enabled=False))

    assert 'id="build"' not in browser.get("/tables/hr.paused").text
    assert browser.post("/tables/hr.paused/build").status_code == 409


FORMS = ["/tables/hr.people/build", "/tables/hr.people/mute", "/builds/r1/cancel", "/logout"]


@pytest.mark.parametrize("path", [*FORMS, "/login"])
@pytest.mark.parametrize(
    "forged",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://testserver:81"},
        {"origin": "https://testserver"},
        {"origin": "null"},
        {"origin": None},
        {"form_token": ""},
        {"form_token": "0" * 64},
    ],
    ids=str,
)
def test_a_forged_form_is_refused(browser, fleet, path, forged):
    answer = browser.post(path, **forged)

    assert answer.status_code == 403
    assert fleet.calls == []
    assert browser.get("/").status_code == 200


def test_a_form_token_of_another_session_is_refused(service, browser, fleet):
    other = service.browser().form_token("/")

    assert browser.post("/tables/hr.people/build", form_token=other).status_code == 403
    assert fleet.calls == []


def test_a_form_that_a_browser_calls_foreign_is_refused(browser, fleet):
    browser.client.headers["sec-fetch-site"] = "same-site"

    assert browser.post("/tables/hr.people/build").status_code == 403
    assert fleet.calls == []


def test_an_origin_of_the_settings_is_let_in(tmp_path, fleet):
    service = served(tmp_path, fleet, origins=["http://indexes.example:8080"])
    answer = service.browser().post("/tables/hr.people/build", origin="http://indexes.example:8080")

    assert answer.status_code == 303


@pytest.mark.parametrize("path", FORMS[:3])
def test_a_reader_sees_no_buttons_and_may_send_none(service, fleet, path):
    reader = service.browser(Role.READ)
    page = reader.get("/").text + reader.get("/tables/sales.orders").text

    assert re.findall(r'method="post" action="([^"]+)"', page) == ["/logout"] * 2
    answer = reader.post(path)
    assert (answer.status_code, "ACCESS_DENIED" in answer.text) == (403, True)
    assert fleet.calls == []


def test_a_token_for_some_tables_sees_no_other(service):
    browser = Browser(service.client())
    browser.sign_in(SALES_SECRET)

    assert names(browser.get("/")) == ["sales.orders", "sales.items"]
    assert browser.get("/tables/hr.people").status_code == 404
    assert browser.post("/tables/hr.people/build").status_code == 404


def test_errors_are_shown_with_code_and_remedy(browser, fleet):
    fleet.busy = True
    answer = browser.post("/tables/hr.people/build")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "Too many requests wait." in answer.text
    assert "CALLBACK_REFUSED" in answer.text
    for path in ("/tables/none", "/none", "/static/none", "/static/..%2Fpages.py"):
        answer = browser.get(path)
        assert (answer.status_code, "text/html" in answer.headers["content-type"]) == (404, True)


def test_a_failure_of_the_service_tells_nothing_of_itself(service, fleet, monkeypatch):
    def broken():
        raise RuntimeError("the inside")

    browser = service.browser()
    monkeypatch.setattr(fleet, "tables", broken)
    with pytest.raises(RuntimeError, match="the inside"):
        browser.get("/")
    client = type(browser.client)(service.application.app, raise_server_exceptions=False)
    client.cookies = browser.client.cookies
    answer = client.get("/", headers={"host": "testserver"})
    assert answer.status_code == 500
    assert "the inside" not in answer.text


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}",
    "javascript:alert(1)",
    "\ud800 lone",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_values_of_any_kind_are_text(browser, fleet, text):
    name = f"t{text}"
    failing = FailedEntry(text, text, (text,), 1, NOW.isoformat(), text)
    error = Refusal(text, text, text)
    fleet.add(
        seen(
            name,
            uri=f"/{text}",
            owner=text,
            group=text,
            labels={text: text},
            status=status_of("/x", columns=[text], partitions=[text, "b"], failing=[failing]),
        )
    )
    fleet.change(
        name,
        ended=(EndedBuild(text, text, NOW, NOW, text, error, requested_by=text),),
        plan=(text,),
        drift=(text,),
        clash=error,
        error=error,
    )
    fleet.reasons[name] = [FakeReason(text, 1, text, f"hudi-index build {text}", value=text)]
    listed = browser.get("/").text
    link = re.search(r'<th scope="row"><a href="(/tables/t[^"]+)"', listed).group(1)
    pages = (
        listed
        + browser.get(
            "/",
        ).text
    )
    if "\ud800" not in text:  # no address has it
        pages += browser.get(link.replace("&amp;", "&")).text

    tags = Tags(pages)
    assert tags.names <= KNOWN_TAGS
    assert not [name for name in tags.attributes if name.startswith("on") or name == "style"]
    assert all(target.startswith(("/", "#")) for target in tags.targets)
    assert tags.scripts == {"/static/live.js"}
    assert "7 * 7" in pages or "7" not in text


KNOWN_TAGS = {
    *("html", "head", "meta", "title", "link", "script", "body", "header", "main", "nav"),
    *("a", "img", "form", "label", "input", "select", "option", "button", "span", "div", "p"),
    *("h1", "h2", "h3", "section", "strong", "code", "ul", "ol", "li", "dl", "dt", "dd"),
    *("table", "thead", "tbody", "tr", "th", "td", "progress", "details", "summary"),
}


class Tags(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: set[str] = set()
        self.scripts: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.names.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in ("href", "src", "action"):
                self.targets.add(value)
        if tag == "script":
            self.scripts.add(dict(attrs).get("src"))


def test_every_answer_has_the_headers_of_safety(service, browser):
    client = service.client()
    for answer in (
        *(browser.get(path) for path in ("/", "/tables/hr.people", "/none", "/static/live.js")),
        *(client.get(path) for path in ("/login", "/healthz", "/api/v1/tables", "/metrics")),
        browser.post("/tables/hr.people/build", origin=None),
    ):
        kept = "/static/" in str(answer.url)
        expected = {n: v for n, v in HEADERS.items() if not (kept and n == "Cache-Control")}
        assert expected.items() <= {n: answer.headers.get(n) for n in expected}.items()


def test_pages_hold_no_script_or_style_of_their_own_and_nothing_of_another_host(browser):
    for path in ("/", "/tables/sales.orders", "/none"):
        text = browser.get(path).text
        assert re.findall(r"<script[^>]*>", text) == ['<script src="/static/live.js" defer>']
        assert "<style" not in text
        assert not re.search(r"\s(?:style|on\w+)=", text)
        assert "http:" not in text
        assert "https:" not in text
    for name in ("style.css", "live.js"):
        assert "//" not in re.sub(
            r"^//.*|^ +//.*", "", browser.get(f"/static/{name}").text, flags=re.M
        )


@pytest.mark.parametrize(
    ("remedy", "button"),
    [
        ("hudi-index build s3://a/b", Button("build")),
        ("hudi-index build '/a b' --strategy all", Button("build", "all")),
        ("hudi-index fleet clean --match a", Button("clean")),
        ("hudi-index verify /a --repair", Button("verify", repair=True)),
        ("hudi-index doctor /a", None),
        ("rm -rf /", None),
        ("hudi-index build 'x", None),
        ("", None),
    ],
)
def test_a_remedy_is_a_button_if_the_service_can_do_it(remedy, button):
    assert button_of(remedy) == button


def test_numbers_are_shown_in_units():
    assert [percent(each) for each in (None, 0.0, 0.5, 0.9999, 1.0)] == [
        *("–", "0 %", "50 %", "99.9 %", "100 %")
    ]
    assert [duration(each) for each in (None, 0.4, 61, 3600, 90_061)] == [
        *("–", "0 s", "1 min 1 s", "1 h", "1 d 1 h")
    ]
    assert [bytes_in_units(each) for each in (0, 1023, 1536, 5 * 2**40)] == [
        *("0 B", "1,023 B", "1.5 KiB", "5.0 TiB")
    ]
    assert age(NOW, NOW + timedelta(seconds=3700)) == "1 h ago"


def test_the_host_of_a_form_may_have_a_port(service):
    client = service.client()
    client.base_url = f"{ORIGIN}:7052"
    browser = Browser(client)
    answer = browser.post(
        "/login", page="/login", origin=f"{ORIGIN}:7052", token=SECRETS[Role.READ]
    )

    assert answer.status_code == 303
