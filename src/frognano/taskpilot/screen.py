"""Screening: which candidates break which tests, by forks of an interpreter that holds the clean repository.

Only tests that reach the change are run. Most candidates are tried by swapping the changed function's code; those
that need it are imported afresh. A screening verdict never decides alone: what passes here is confirmed cold by the
grader, and what the swap cannot see (results computed at import) is only lost, never admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Record
from frognano.taskpilot.baseline import Baseline
from frognano.taskpilot.bench import Answer, Bench, Benches
from frognano.taskpilot.candidates import Candidate
from frognano.taskpilot.funnel import Code
from frognano.taskpilot.journal import Journal

STAGE = "screen"
_START_S = 120.0
"""Wall seconds for one bench program to collect the suite."""


class Screened(Record):
    """What the tests that reach a candidate did."""

    key: str
    state: Literal["ran", "hang", "import", "died", "cold"]
    broken: tuple[str, ...] = ()
    """Tests that failed or could not be set up, sorted."""
    signature: str = ""
    """Function, failing tests and what was observed: equal for near duplicates."""
    detail: str = ""

    def rejection(self, baseline: Baseline, settings: SynthesisSettings) -> Code | None:
        """Why the candidate ends here, or None."""
        codes = {"hang": Code.HANG, "import": Code.IMPORT, "died": Code.CRASH, "cold": Code.CRASH}
        if self.state in codes:
            return codes[self.state]
        if not self.broken:
            return Code.GREEN
        if len(self.broken) > settings.max_broken_share * len(baseline.stable):
            return Code.TOO_BROAD
        return None


async def screen(
    benches: Benches,
    candidates: Sequence[Candidate],
    baseline: Baseline,
    settings: SynthesisSettings,
    *,
    journal: Journal,
    done: Callable[[int], None],
) -> dict[str, Screened]:
    """What every candidate breaks; finished batches come from the journal."""
    found: dict[str, Screened] = {}
    waiting: list[Candidate] = []
    for candidate in candidates:
        kept = journal.get(STAGE, candidate.key)
        if kept is None:
            waiting.append(candidate)
        else:
            found[candidate.key] = Screened.model_validate(kept)
    done(len(found))
    size = max(1, min(settings.screen_batch, -(-len(waiting) // settings.workers)))
    batches = [waiting[start : start + size] for start in range(0, len(waiting), size)]

    async def work(bench: Bench, batch: Sequence[Candidate]) -> list[Screened]:
        return await screen_batch(bench, batch, baseline, settings)

    async for _, results in benches.each(batches, work):
        for result in results:
            journal.put(STAGE, result.key, result.model_dump())
            found[result.key] = result
        done(len(found))
    return found


async def screen_batch(
    bench: Bench, batch: Sequence[Candidate], baseline: Baseline, settings: SynthesisSettings
) -> list[Screened]:
    """Screen one batch: by swapped code where possible, else by a fresh import."""
    by_key = {candidate.key: candidate for candidate in batch}
    hot = [candidate for candidate in batch if not candidate.at_import]
    answers = {answer["id"]: answer for answer in await _ask(bench, "hot", hot, baseline, settings)}
    cold = [c for c in batch if c.at_import or answers.get(c.key, {"state": "cold"})["state"] == "cold"]
    answers.update({answer["id"]: answer for answer in await _ask(bench, "cold", cold, baseline, settings)})
    stable = set(baseline.stable)
    return [_screened(candidate, answers[key], stable) for key, candidate in by_key.items() if key in answers]


async def _ask(
    bench: Bench, mode: str, batch: Sequence[Candidate], baseline: Baseline, settings: SynthesisSettings
) -> list[Answer]:
    if not batch:
        return []
    asked = [
        {
            **candidate.span(),
            "id": candidate.key,
            "tests": list(candidate.tests),
            "timeout_s": _limit(candidate, baseline, settings) + (_START_S / 10 if mode == "cold" else 0.0),
        }
        for candidate in batch
    ]
    total = _START_S + baseline.suite_s + sum(_limit(candidate, baseline, settings) + 15.0 for candidate in batch)
    return await bench.ask(mode, total, candidates=asked, left_out=list(baseline.set_aside))


def _limit(candidate: Candidate, baseline: Baseline, settings: SynthesisSettings) -> float:
    usual = sum(baseline.seconds.get(test, 0.0) for test in candidate.tests)
    return settings.time_floor_s + settings.time_factor * usual


def _screened(candidate: Candidate, answer: Answer, stable: set[str]) -> Screened:
    broken = {test: outcome for test, outcome in answer.get("broken", {}).items() if test in stable}
    messages = answer.get("messages", {})
    seen = ";".join(f"{test}={broken[test]}:{messages.get(test, '')}" for test in sorted(broken))
    return Screened(
        key=candidate.key,
        state=answer["state"],
        broken=tuple(sorted(broken)),
        signature=f"{candidate.place};{seen}",
        detail=str(answer.get("detail", ""))[:300],
    )
