"""A process ends in order while its daemon threads query, open and build."""

import pytest

from tests.indexed import GoldenIndex
from tests.programs import ended

CALL_FOR_EVER = """
import sys
from threading import Semaphore, Thread
from hudi_index_service import open_table

path, kind = sys.argv[1:]
table = open_table(path)
calls = {
    "rows": lambda: table.scan("name = 'a%b' OR id > '3'").to_arrow(),
    "batches": lambda: list(table.scan("name = 'a%b' OR id > '3'").to_batches()),
    "some": lambda: next(table.scan("id > '3'").to_batches()),
    "scan": lambda: table.scan("name LIKE '%a%'", use_index="never").count(),
    "open": lambda: open_table(path).scan("name = 'a%b'").row_ids(),
    "build": lambda: open_table(path).build(strategy="all", dry_run=True),
}
done = Semaphore(0)

def repeat(call):
    while True:
        call()
        done.release()

for call in calls.values() if kind == "all" else [calls[kind]] * 3:
    Thread(target=repeat, args=(call,), daemon=True).start()
for _ in range(20):
    done.acquire()
"""

OTHERS = (("batches", "btree"), ("build", "lucene"))

FORK_DURING_A_CALL = """
import os, sys
from threading import Event, Thread
from hudi_index_service import process

begun = Event()

@process.awaited
def never_ends():
    begun.set()
    Event().wait()

Thread(target=never_ends, daemon=True).start()
begun.wait()
child = os.fork()
if child == 0:
    sys.exit(0)  # the child has no such call to wait for
status = os.waitpid(child, 0)[1]
print("forked", flush=True)
process._MOST_SECONDS = 0.01
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize(
    ("kind", "using"),
    [
        *(("all", "lucene"), ("all", "btree"), ("batches", "lucene"), ("build", "btree")),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in OTHERS),
    ],
)
def test_daemon_threads_do_not_abort_the_process(
    golden_index: GoldenIndex, kind: str, using: str
) -> None:
    path = golden_index("awkward_clustered", ["name", "id"], using=using)
    done = ended(CALL_FOR_EVER, path, kind)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_exit_waits_for_no_call_of_a_forks_parent_and_not_for_ever() -> None:
    done = ended(FORK_DURING_A_CALL)
    assert (done.returncode, done.stdout) == (0, "forked\n")
    assert done.stderr == "The process ends while calls are running: 1.\n"
