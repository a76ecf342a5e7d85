"""Which group may start, and which groups the next update takes: pure rules that keep the lag bound.

With B groups per update and lag bound S, at most (S + 1)·B groups are open at once (running, waiting, or in the
update that is being computed), so each can be trained on within S updates of its start. An update takes finished
groups oldest first; it passes over an unfinished older one only while every open group can still be trained on in
time, and waits otherwise. Nothing started is ever thrown away for its age.

Source: admission by capacity, as in asynchronous trainers that pace generation (accepted + running ≤ (S + step)·B).
Departure: those let a slow group be overtaken without limit; ``choose`` bounds it, so the lag never exceeds S.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """One open group."""

    seq: int
    version: int
    """Policy version when it started."""
    finished: bool


def capacity(groups: int, max_lag: int, updates_left: int) -> int:
    """How many groups may be open at once; towards the end no more than the updates left can train on."""
    return min(max_lag + 1, updates_left) * groups


def choose(slots: Sequence[Slot], version: int, groups: int, max_lag: int) -> list[int] | None:
    """Sequence numbers the update of ``version`` takes, oldest first; None while it has to wait."""
    ordered = sorted(slots, key=lambda slot: (slot.version, slot.seq))
    taken = [slot for slot in ordered if slot.finished][:groups]
    if len(taken) < groups:
        return None
    left = [slot for slot in ordered if slot not in taken]
    for later in range(max_lag + 1):
        # After this update, ``later`` more follow before a group started at this version would be too old.
        due = sum(slot.version + max_lag <= version + later for slot in left)
        if due > later * groups:
            return None
    return [slot.seq for slot in taken]


def task_at(tasks: Sequence[str], seq: int, seed: int) -> str:
    """Task of the ``seq``-th group: every task once, in seeded order, then again in another order."""
    epoch, place = divmod(seq, len(tasks))
    order = list(tasks)
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order[place]
