"""Answers a query of a table's page in a child: the number of matching rows, or how they would be
read. What the query asks for is in no log."""

from hudi_index_service.cancellation import Cancellation
from hudi_index_service.config import Settings
from hudi_index_service.errors import IndexServiceError
from hudi_index_service.fleet.builds.child import Progress
from hudi_index_service.fleet.builds.messages import Ended, Order
from hudi_index_service.fleet.observation import Refusal
from hudi_index_service.table import open_table

_MOST_CHARACTERS = 50_000


def run(order: Order, progress: Progress) -> Ended:
    """Carries out an order to ``count`` or ``explain``; the answer is `Ended.summary`.

    Raises:
        KeyboardInterrupt: it was cancelled.
        MemoryError: there is no more.
    """
    try:
        with (
            Cancellation(order.seconds),
            open_table(
                order.table,
                storage_options=order.storage_options or None,
                settings=Settings(**order.settings),
            ) as table,
        ):
            scan = table.scan(order.where or None)
            answer = f"{scan.count():,}" if order.action == "count" else str(scan.explain())
    except IndexServiceError as error:
        return Ended(order.request, "failed", Refusal.of(error))
    except Exception as error:  # noqa: BLE001 - its text may hold what the log must not
        message = f"The query failed: {type(error).__name__}: {error}"
        remedy = "Run it with `hudi-index query`, and report what it says."
        return Ended(order.request, "failed", Refusal(IndexServiceError.code, message, remedy))
    if len(answer) > _MOST_CHARACTERS:
        answer = f"{answer[:_MOST_CHARACTERS]}\n…"
    return Ended(order.request, "finished", summary=answer)
