"""A trace goes on from a request's header to the build that it asks for, and into its process."""

import logging
import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hudi_index_service.fleet import tracing
from hudi_index_service.fleet.task import Task
from hudi_index_service.fleet.tracing import Span, traceparent
from hudi_index_service.fleet.web.access import Role
from hudi_index_service.hook.write_options import SECRET_HEADER
from tests.fleet.conftest import ended, is_covered, seen
from tests.fleet.memory_fleet import MemoryFleet
from tests.fleet.memory_fleet import seen as in_memory
from tests.fleet.served import CALLBACK_SECRET, CANARY, SECRETS, Browser, served

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture
def spans():
    """The spans that end during the test."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    exporter = InMemorySpanExporter()
    trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter.get_finished_spans
    exporter.shutdown()


@pytest.fixture
def service(tmp_path):
    fleet = MemoryFleet()
    fleet.add(in_memory(f"sales.{CANARY}"))
    return served(tmp_path, fleet)


def id_of(span) -> str:
    """The span's trace, as logs name it."""
    return f"{span.context.trace_id:032x}"


def test_request_of_the_api_is_a_span_of_its_callers_trace(service, spans):
    api = service.api(SECRETS[Role.OPERATE])
    path = f"/api/v1/tables/sales.{CANARY}/builds?text={CANARY}"
    answer = api.post(path, headers={"traceparent": PARENT}, json={"strategy": "all"})
    assert answer.status_code == 202

    (span,) = spans()

    assert (span.name, span.kind.name) == ("POST /api/v1/tables/{name}/builds", "SERVER")
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert id_of(span) == TRACE
    assert dict(span.attributes) == {
        "http.request.method": "POST",
        "http.route": "/api/v1/tables/{name}/builds",
        "http.response.status_code": 202,
    }
    assert CANARY not in span.to_json()
    assert {type(each) for each in span.attributes.values()} == {str, int}


class TracedFleet(MemoryFleet):
    """Notes the span to which a callback belongs."""

    def callback(self, uri):
        self.calls.append((traceparent(),))
        return super().callback(uri)


def test_callback_is_a_span_and_what_it_wakes_belongs_to_it(tmp_path, spans):
    fleet = TracedFleet()
    fleet.add(in_memory(f"sales.{CANARY}"))
    headers = {SECRET_HEADER: CALLBACK_SECRET, "traceparent": PARENT}
    body = {"basePath": f"/data/sales.{CANARY}"}

    answer = served(tmp_path, fleet).client().post("/hudi/commit", json=body, headers=headers)

    (span,) = spans()
    assert answer.status_code == 202
    assert span.name == "POST /hudi/commit"
    assert fleet.calls == [(f"00-{TRACE}-{span.context.span_id:016x}-01",)]
    assert CANARY not in span.to_json()


def test_pages_health_and_metrics_are_no_spans(service, spans):
    Browser(service.client()).sign_in(SECRETS[Role.READ])
    client = service.api(SECRETS[Role.METRICS])
    for path in ("/", "/healthz", "/readyz", "/metrics", "/tables/x"):
        client.get(path)
    assert spans() == ()


@pytest.mark.parametrize("header", ["", "junk", PARENT.replace("b7", "zz"), f"00-{'0' * 32}-1-01"])
def test_wrong_header_begins_a_trace(service, spans, header):
    service.api("wrong").get("/api/v1/tables", headers={"traceparent": header})
    (span,) = spans()
    assert (span.parent, span.attributes["http.response.status_code"]) == (None, 401)


def test_unknown_paths_and_methods_make_no_names(service, spans):
    service.client().request("BREW", f"/api/{CANARY}")
    (span,) = spans()
    assert (span.name, span.attributes["http.request.method"]) == ("unknown", "unknown")


def test_error_is_told_by_its_code_alone(spans):
    span = Span("build", links=[PARENT, ""], table="t")
    with pytest.raises(ValueError, match="secret"), span.present():
        raise ValueError("secret")
    span.end("BUILD_HUNG", built=3)
    (found,) = spans()
    assert dict(found.attributes) == {
        "hudi_index.table": "t",
        "hudi_index.built": 3,
        "error.type": "BUILD_HUNG",
    }
    assert (found.status.is_ok, found.events, len(found.links)) == (False, (), 1)


def test_without_the_api_nothing_is_traced_and_nothing_fails(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
        monkeypatch.setitem(sys.modules, name, None)
    alone = module_from_spec(spec_from_file_location("tracing_alone", tracing.__file__))
    alone.__spec__.loader.exec_module(alone)

    span = alone.Span("build", parent=PARENT, table="t")
    with span.present():
        assert alone.traceparent() == ""
    span.set(built=1)
    span.end("CODE")
    alone.flush(1)

    assert (alone.HAS_API, span.traceparent, span.trace) == (False, PARENT, TRACE)


@pytest.mark.slow
def test_builds_belong_to_what_asked_for_them_also_in_their_process(
    supervising, policy, spans, caplog
):
    table = policy("traced")
    with caplog.at_level(logging.INFO, "hudi_index_service.fleet"):
        fleet = supervising(table)
        seen(fleet, "traced", lambda now: now.ended and not now.running)
        asking = Span("asks", parent=PARENT)
        with asking.present():
            request = fleet.ask("traced", Task("build"))
        inside = ended(fleet, request.id).summary

    build = next(each for each in spans() if each.attributes.get("hudi_index.build") == request.id)
    assert inside == f"00-{TRACE}-{build.context.span_id:016x}-01"
    assert dict(build.attributes) == {
        "hudi_index.table": "traced",
        "hudi_index.build": request.id,
        "hudi_index.trigger": "request",
        "hudi_index.outcome": "finished",
        "hudi_index.built": 0,
    }
    lines = [each for each in caplog.records if getattr(each, "build", "") == request.id]
    assert {(each.trace, each.trigger, each.table) for each in lines} == {
        (TRACE, "request", table.uri)
    }


@pytest.mark.slow
def test_only_polls_that_find_something_due_are_spans(supervising, policy, spans):
    fleet = supervising(policy())
    covered = seen(fleet, "orders", lambda now: is_covered(now) and not now.running)
    looks = {covered.at}
    seen(fleet, "orders", lambda now: looks.add(now.at) or len(looks) > 4)

    named = [each.name for each in spans()]
    assert named.count("poll") == named.count("build") == 1
    (poll,) = (each for each in spans() if each.name == "poll")
    (build,) = (each for each in spans() if each.name == "build")
    assert build.parent.span_id == poll.context.span_id
