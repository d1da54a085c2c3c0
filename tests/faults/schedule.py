"""Several actors on one table, of whom only one runs at a time: a seed decides who makes the next
storage call."""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from threading import Condition, Thread
from typing import Any

from tests.faults.faulty_storage import Call, Gate, Work

PATIENCE = 120.0  # seconds without a move after which a schedule is abandoned


class Abandoned(BaseException):
    """The schedule was abandoned: actors that still wait for their turn end."""


class Schedule:
    """An interleaving of actors, each a thread (or several) whose calls pass through its gate.

    An actor has the turn from one call until its next call or its end. Everything that it does in
    between belongs to its turn.

    Args:
        seed: Decides the interleaving, including how likely an actor is to keep the turn, so that
            both fine and coarse interleavings occur.

    Attributes:
        moves: The calls in order, each with its actor.
        raised: The exceptions that actors ended with.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._keep = self._random.choice((0.0, 0.5, 0.9))
        self._changed = Condition()
        self._waiting: dict[str, deque[object]] = {}
        self._released: set[object] = set()
        self._turn: str | None = None
        self._given_up = False
        self.moves: list[tuple[str, Call]] = []
        self.raised: dict[str, BaseException] = {}

    def gate(self, actor: str) -> Gate:
        """Lets the actor's calls pass when it has the turn."""

        def gate(call: Call, work: Work) -> Any:
            self._wait(actor)
            self.moves.append((actor, call))
            try:
                return work()
            finally:
                self._let_others_in(actor)

        return gate

    def run(self, actors: Mapping[str, Callable[[], object]]) -> None:
        """Runs all actors to their end."""
        self._waiting = {actor: deque() for actor in actors}
        threads = [
            Thread(target=self._act, args=(actor, work), name=actor, daemon=True)
            for actor, work in actors.items()
        ]
        for thread in threads:
            thread.start()
        with self._changed:
            self._changed.wait_for(lambda: all(self._waiting.values()), PATIENCE)
            self._pass_on()
        for thread in threads:
            moves = -1
            while thread.is_alive() and moves < len(self.moves):
                moves = len(self.moves)
                thread.join(PATIENCE)
            assert not thread.is_alive(), f"{thread.name} hangs; the last moves: {self.story(20)}"

    def _act(self, actor: str, work: Callable[[], object]) -> None:
        with suppress(Abandoned):
            try:
                self._wait(actor)
                work()
            except Exception as error:  # noqa: BLE001 - judged by the test
                self.raised[actor] = error
        with self._changed:
            del self._waiting[actor]
            if self._turn == actor:
                self._turn = None
            self._pass_on()

    def _let_others_in(self, actor: str) -> None:
        """After a call: if another thread of the actor is waiting, passes the turn on, since this
        thread may make no further call at which to do so."""
        with self._changed:
            if self._waiting[actor]:
                self._give_up_turn(actor)

    def _give_up_turn(self, actor: str) -> None:
        if self._turn == actor:
            self._turn = None
            self._pass_on(actor)

    def _wait(self, actor: str) -> None:
        ticket = object()
        with self._changed:
            self._waiting[actor].append(ticket)
            self._give_up_turn(actor)
            self._changed.notify_all()
            if not self._changed.wait_for(
                lambda: ticket in self._released or self._given_up, PATIENCE
            ):
                self._given_up = True
                self._changed.notify_all()
            if self._given_up:
                raise Abandoned
            self._released.remove(ticket)

    def _pass_on(self, last: str | None = None) -> None:
        """Gives the turn to one of the waiting actors; called with the lock held."""
        ready = sorted(actor for actor, tickets in self._waiting.items() if tickets)
        if self._turn is not None or not ready:
            return
        chosen = self._random.choice(ready)
        if last in ready and self._random.random() < self._keep:
            chosen = last
        self._turn = chosen
        self._released.add(self._waiting[chosen].popleft())
        self._changed.notify_all()

    def present(self) -> set[str]:
        """The actors that have not ended."""
        with self._changed:
            return set(self._waiting)

    def story(self, last: int = 200) -> str:
        """The latest moves, one per line."""
        return "\n".join(f"{actor}: {call}" for actor, call in self.moves[-last:])
