"""Calls of tools: who calls, in which thread the answer is worked out, and what is logged of it,
which is neither a condition nor a value.

A tool's text says only what became of a call. Everything that comes from tables or from an error's
message is in the structured part of an answer, where a client knows it to be data.
"""

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from anyio import (
    CapacityLimiter,
    create_task_group,
    get_cancelled_exc_class,
    sleep_forever,
    to_thread,
)
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, ValidationError

from hudi_index_service.cancellation import Cancellation
from hudi_index_service.errors import IndexServiceError, RequestInvalid
from hudi_index_service.mcp.answers import Answers
from hudi_index_service.mcp.changes import Changes
from hudi_index_service.wording import first_mistake, shortened

log = logging.getLogger(__name__)

SECONDS = 60.0
"""For a call."""

PLACES = 4
"""Calls that are worked out at a time; others wait."""


@dataclass(frozen=True, slots=True)
class Agent:
    """Who calls, and what it may.

    Attributes:
        changes: None if it may change nothing.
        caller: For the log; "" for the user of this process.
    """

    answers: Answers
    changes: Changes | None = None
    caller: str = ""


AnyContext = Context[Any, Any]

AgentOf = Callable[[AnyContext | None], Agent]
"""Who sends a request."""

_calling: ContextVar[Agent] = ContextVar("agent")


class AgentServer(MCPServer[Any]):
    """A server whose calls are logged, those that are refused too.

    Args:
        instructions: What it is for.
        places: Limits the calls that are worked out at a time.
    """

    def __init__(self, instructions: str, agent_of: AgentOf, places: CapacityLimiter) -> None:
        super().__init__(
            "hudi-index",
            version=version("hudi-index-service"),
            instructions=instructions,
            log_level="WARNING",
            subscriptions=False,  # nothing changes of which a client would have to be told
        )
        self._agent_of, self._places = agent_of, places

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: AnyContext | None = None
    ) -> CallToolResult:
        """Calls a tool. What the SDK would tell of a mistake quotes the arguments: here it is an
        error with a code, like every other."""
        agent = self._agent_of(context)
        _calling.set(agent)
        try:
            result = await super().call_tool(name, arguments, context)
        except ToolError as error:
            result = refused(_mistake(error))
        except get_cancelled_exc_class():
            _log(agent, name, arguments, "CANCELLED")
            raise
        assert isinstance(result, CallToolResult)
        _log(agent, name, arguments, result)
        return result

    async def told(self, work: Callable[[Agent], BaseModel]) -> CallToolResult:
        """The answer to the present call, worked out in a thread. Work ends if the call is
        cancelled, or takes longer than `SECONDS`; until then it keeps its place."""
        agent, cancellation = _calling.get(), Cancellation(SECONDS)

        def answered() -> CallToolResult:
            with cancellation:
                try:
                    return _result("Done.", work(agent).model_dump(mode="json"))
                except IndexServiceError as error:
                    return refused(error)

        async def cancel_with_the_call() -> None:
            try:
                await sleep_forever()
            finally:
                cancellation.cancel()

        async with create_task_group() as group:
            group.start_soon(cancel_with_the_call)
            result = await to_thread.run_sync(answered, limiter=self._places)
            group.cancel_scope.cancel()
        return result


def refused(error: IndexServiceError) -> CallToolResult:
    """The answer to a call that is refused."""
    said = {"code": error.code, "message": error.message, "remedy": error.remedy}
    return _result(f"Refused: {error.code}.", said, is_error=True)


def _result(text: str, content: Mapping[str, object], *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=dict(content),
        is_error=is_error,
    )


def _mistake(error: ToolError) -> IndexServiceError:
    """What the SDK refuses: arguments, or the tool itself; or what broke."""
    if isinstance(error, UnexpectedToolError):
        log.error("A call broke off.", exc_info=error.__cause__)
        return IndexServiceError(f"The call failed: {type(error.__cause__).__name__}.")
    if isinstance(error.__cause__, ValidationError):
        return RequestInvalid(
            f"The arguments are wrong: {first_mistake(error.__cause__)}.",
            remedy="The list of tools has the schema of each.",
        )
    return RequestInvalid("There is no such tool.", remedy="Ask for the list of tools.")


def _log(agent: Agent, tool: str, arguments: Mapping[str, Any], end: CallToolResult | str) -> None:
    """One line for a call. Of the arguments, it has the table and the id of a dry run; of the
    answer, the code of a refusal, or that id."""
    answer: Mapping[str, Any] = {}
    if isinstance(end, CallToolResult):
        answer = end.structured_content or {}
        end = answer["code"] if end.is_error else "done"
    named = {
        name: shortened(value)
        for name in ("table", "plan", "request")
        if isinstance(value := arguments.get(name) or answer.get(name), str)
    }
    log.info(
        "Agent's call: %s%s%s: %s.",
        shortened(tool) if tool.isidentifier() else repr(shortened(tool)),
        "".join(f", {name} {value!r}" for name, value in named.items()),
        f", by {agent.caller}" if agent.caller else "",
        end,
    )
