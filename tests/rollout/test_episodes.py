"""An episode from sandbox to verdict, and what happens when parts of it fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.leaf.steplog import read_step_log
from frognano.policy.contract import PolicyError, Sampling
from frognano.policy.scripted import ScriptedPolicy, say
from frognano.rollout.episodes import Attempt
from frognano.rollout.grading import Gradings
from frognano.sandbox.contract import SandboxError

Attempts = Callable[..., list[Attempt]]
RIGHT = say("", ("Edit", {"file_path": "pad.py", "old_string": "n - 1", "new_string": "n + 1"}))
WRONG = say("", ("Edit", {"file_path": "pad.py", "old_string": "n - 1", "new_string": "n + 2"}))


class Flaky:
    """A backend or policy whose ``open`` fails the first ``times``."""

    def __init__(self, inner: Any, times: int, error: Exception) -> None:
        self._inner, self.left, self._error = inner, times, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def open(self, *arguments: Any) -> Any:
        if self.left > 0:
            self.left -= 1
            raise self._error
        return await self._inner.open(*arguments)


def test_a_right_edit_is_solved_a_wrong_one_is_not(world: Any, attempts: Attempts) -> None:
    solved = world.wait(world.runner([RIGHT]).run(attempts()[0]))
    failed = world.wait(world.runner([WRONG]).run(attempts()[0]))
    assert solved.verdict.passed
    assert solved.verdict.reason == "passed"
    assert (failed.verdict.reward, failed.exit_reason) == (0.0, "agent")


def test_an_episode_that_changes_nothing_is_a_zero_without_a_graded_run(world: Any, attempts: Attempts) -> None:
    runner = world.runner([say("I see nothing wrong.")])
    found = world.wait(runner.run(attempts()[0]))
    assert (found.verdict.reward, found.verdict.reason, runner.gradings.runs) == (0.0, "empty_patch", 0)


def test_equal_patches_share_one_graded_run(world: Any, attempts: Attempts) -> None:
    runner = world.runner([RIGHT])

    async def several() -> list[Any]:
        return list(await asyncio.gather(*(runner.run(one) for one in attempts(4))))

    assert all(found.verdict.passed for found in world.wait(several()))
    assert (runner.gradings.runs, runner.gradings.reused) == (1, 3)


def test_sharing_can_be_turned_off(world: Any, attempts: Attempts) -> None:
    runner = world.runner([RIGHT], gradings=Gradings(world.grader, reuse=False))
    for one in attempts(2):
        assert world.wait(runner.run(one)).verdict.passed
    assert runner.gradings.runs == 2


def test_a_lost_sandbox_is_tried_again_and_counted_apart(world: Any, attempts: Attempts) -> None:
    backend = Flaky(world.backend, 2, SandboxError("the slot is gone"))
    runner = world.runner([RIGHT], backend=backend, retries=2)
    assert world.wait(runner.run(attempts()[0])).verdict.passed
    assert dict(runner.retried) == {"infrastructure_error": 2}


def test_tries_are_bounded_and_the_last_one_has_no_verdict(world: Any, attempts: Attempts) -> None:
    policy = Flaky(ScriptedPolicy([RIGHT]), 9, PolicyError("no answer"))
    runner = world.runner(policy, retries=1)
    found = world.wait(runner.run(attempts()[0]))
    assert policy.left == 7
    assert (found.exit_reason, found.verdict.reward) == ("llm_query_error", None)


def test_an_episode_that_ended_by_its_budget_is_graded_and_not_repeated(world: Any, attempts: Attempts) -> None:
    looking = say("", ("Read", {"file_path": "pad.py"}))
    policy = ScriptedPolicy([RIGHT, looking, looking, looking, looking])
    found = world.wait(world.runner(policy).run(attempts()[0]))
    assert (found.exit_reason, found.verdict.passed, len(policy.sessions)) == ("max_turns", True, 1)


def test_no_more_sandboxes_are_open_than_admitted(world: Any, attempts: Attempts) -> None:
    class Counting(Flaky):
        now = most = 0

        async def open(self, *arguments: Any) -> Any:
            sandbox = await super().open(*arguments)
            Counting.now += 1
            Counting.most = max(Counting.most, Counting.now)
            async with asyncio.timeout(60):
                while Counting.most < 2:  # the first waits for the second, so that the count does not hang on speed
                    await asyncio.sleep(0.01)
            close = sandbox.close

            async def closing() -> None:
                Counting.now -= 1
                await close()

            sandbox.close = closing
            return sandbox

    runner = world.runner([WRONG], backend=Counting(world.backend, 0, ValueError()), concurrency=2)

    async def several() -> None:
        await asyncio.gather(*(runner.run(one) for one in attempts(6)))

    world.wait(several())
    assert (Counting.now, Counting.most) == (0, 2)


def test_the_step_log_lies_in_the_run_folder(world: Any, attempts: Attempts, tmp_path: Path) -> None:
    runner = world.runner([RIGHT], logs=tmp_path)
    world.wait(runner.run(attempts(scope="g7")[0]))
    logged = read_step_log(tmp_path / "g7" / "g7-0.jsonl")
    assert [step.reply.calls[0].name for step in logged.steps if step.reply.calls] == ["Edit"]
    assert logged.end is not None
    assert "n + 1" in logged.end.patch


def test_in_lock_step_conversations_open_in_order_and_speak_when_all_are_open(world: Any, attempts: Attempts) -> None:
    opened: list[int] = []

    class Watching(ScriptedPolicy):
        async def open(self, system: str, user: str, tools: Any, sampling: Sampling) -> Any:
            opened.append(sampling.seed)
            return await super().open(system, user, tools, sampling)

    def script(messages: Any) -> Any:
        assert len(opened) == 5
        return say("Done.")

    found = world.wait(world.runner(Watching(script)).run_together(attempts(5)))
    assert opened == [0, 1, 2, 3, 4]
    assert [one.id for one in found] == [f"g-{n}" for n in range(5)]


def test_in_lock_step_a_member_that_cannot_open_does_not_hold_up_the_others(world: Any, attempts: Attempts) -> None:
    backend = Flaky(world.backend, 1, SandboxError("lost"))
    found = world.wait(world.runner([RIGHT], backend=backend, retries=0).run_together(attempts(3)))
    assert sorted(one.exit_reason for one in found) == ["agent", "agent", "infrastructure_error"]


def test_what_an_episode_raises_ends_its_fellows(world: Any, attempts: Attempts) -> None:
    policy = Flaky(ScriptedPolicy([RIGHT]), 1, ZeroDivisionError("a defect of ours"))
    with pytest.raises(ZeroDivisionError):
        world.wait(world.runner(policy).run_together(attempts(3)))
