"""The episode loop: one answer for every call, every budget, every ending, whatever the model or the sandbox does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frognano.config.leaf import LeafSettings
from frognano.leaf.episode import EpisodeSpec, run_episode
from frognano.leaf.steplog import StepLog, read_step_log
from frognano.policy.contract import ContextOverflow, PolicyError
from frognano.records import Reply, TokenRow, ToolCall, Trajectory

Says = Callable[..., Reply]


@pytest.fixture
def play(sandbox: Any, work: Path, scripted: Callable[..., Any]) -> Callable[..., tuple[Trajectory, Any]]:
    """``play(reply, …, max_turns=3)`` → the trajectory and the session."""

    def run(
        *script: Any, sandbox: Any = sandbox, log: StepLog | None = None, **settings: Any
    ) -> tuple[Trajectory, Any]:
        policy = scripted(*script)
        spec = EpisodeSpec(
            id="e1", task_id="t1", statement="Fix it.", workdir=str(work), settings=LeafSettings.parse(settings)
        )
        return asyncio.run(run_episode(spec, policy, sandbox, log)), policy.session

    return run


def answered(session: Any) -> list[str]:
    return [answer.call_id for answers in session.observed for answer in answers]


def test_a_reply_without_a_call_ends_it_naturally(play: Any, says: Says, work: Path) -> None:
    write = says("", ("Write", {"file_path": "a", "content": "x\n"}))
    trajectory, session = play(write, says("All done."))
    assert (trajectory.exit_reason, trajectory.final_message, trajectory.error) == ("agent", "All done.", "")
    assert (work / "a").read_text() == "x\n"
    assert trajectory.patch == "the patch"
    assert [step.step for step in trajectory.steps] == [1, 2]
    assert trajectory.messages[1] == {"role": "user", "content": "Fix it."}
    assert session.closed == 1


def test_several_calls_of_one_reply_run_in_order(play: Any, says: Says, work: Path) -> None:
    calls = [("Bash", {"command": f"echo {number} >> log"}) for number in range(4)]
    _, session = play(says("", *calls), says("done"))
    assert (work / "log").read_text() == "0\n1\n2\n3\n"
    assert answered(session) == ["call-0", "call-1", "call-2", "call-3"]


def test_a_malformed_call_and_an_unknown_tool_are_answered_and_never_run(play: Any, says: Says, work: Path) -> None:
    broken = ToolCall(id="b", name="Bash", raw='{"command": "touch ran', error="the JSON ends inside a string")
    unknown = ToolCall(id="u", name="Grep", arguments={"pattern": "x"})
    good = ToolCall(id="g", name="Bash", arguments={"command": "echo fine"})
    trajectory, session = play(says("", broken, unknown, good), says("done"))
    texts = [answer.text for answer in trajectory.steps[0].observations]
    assert texts[0] == "The call could not be read and was not run: the JSON ends inside a string"
    assert texts[1] == "Unknown tool: Grep. The tools are Read, Write, Edit, Glob, Bash."
    assert texts[2].startswith("Exit code: 0")
    assert answered(session) == ["b", "u", "g"]
    assert not (work / "ran").exists()


def test_the_reference_answers_a_malformed_call_as_the_published_harness(play: Any, says: Says) -> None:
    broken = ToolCall(id="b", name="Read", error="no JSON")
    trajectory, _ = play(says("", broken), says("done"), profile="reference")
    assert trajectory.steps[0].observations[0].text == "ValueError: file_path is required"
    assert trajectory.profile == "reference"


def test_turns_are_a_budget(play: Any, says: Says) -> None:
    forever = [says("", ("Bash", {"command": "ls"})) for _ in range(10)]
    trajectory, session = play(*forever, max_turns=3)
    assert trajectory.exit_reason == "max_turns"
    assert len(trajectory.steps) == len(session.asked) == 3
    assert trajectory.truncated


def test_each_reply_gets_the_room_that_the_context_leaves(play: Any, says: Says) -> None:
    read = says("", ("Bash", {"command": "head -c 500 /dev/zero | tr '\\0' x"}), tokens=50)
    trajectory, session = play(read, read, read, max_context_tokens=1200, max_tokens_per_turn=800)
    assert trajectory.exit_reason == "max_context_len"
    asked = [room for room, _ in session.asked]
    assert asked[0] == 800
    assert asked[1] == 1200 - trajectory.steps[0].context_tokens


def test_an_answer_that_fills_the_context_ends_it(play: Any, says: Says) -> None:
    trajectory, _ = play(says("", ("Bash", {"command": "seq 1000"})), max_context_tokens=2000, max_tokens_per_turn=100)
    assert trajectory.exit_reason == "max_context_len"
    assert trajectory.steps[0].observations[0].text.startswith("Exit code: 0")
    assert trajectory.patch == "the patch"


def test_an_overflow_told_by_the_server_ends_it_graded(play: Any, says: Says) -> None:
    trajectory, _ = play(ContextOverflow("too long"))
    assert (trajectory.exit_reason, trajectory.error, trajectory.patch) == ("max_context_len", "", "the patch")


def test_a_failing_model_is_no_zero(play: Any, says: Says) -> None:
    trajectory, session = play(says("", ("Bash", {"command": "true"})), PolicyError("503 three times"))
    assert (trajectory.exit_reason, trajectory.error) == ("llm_query_error", "503 three times")
    assert len(trajectory.steps) == 1
    assert session.closed == 1


@pytest.mark.parametrize(
    "case",
    [
        (8192, 100, "max_tokens_per_turn"),
        (500, 65_100, "max_context_len"),
        (500, 100, "max_context_len"),
        (0, 0, "max_tokens_per_turn"),
    ],
)
def test_a_cut_reply_never_runs_a_call(play: Any, says: Says, work: Path, case: tuple[int, int, str]) -> None:
    tokens, prompt, reason = case
    cut = says("I will", ("Bash", {"command": "touch ran"}), finish="length", tokens=tokens, prompt=prompt)
    trajectory, session = play(cut)
    assert trajectory.exit_reason == reason
    assert not (work / "ran").exists()
    assert answered(session) == ["call-0"]
    assert "cut at the limit of tokens" in trajectory.steps[0].observations[0].text


def test_cut_replies_may_be_answered_a_bounded_number_of_times(play: Any, says: Says, work: Path) -> None:
    cut = says("", ("Bash", {"command": "touch ran"}), finish="length", tokens=8192)
    good = says("", ("Bash", {"command": "true"}))
    trajectory, session = play(cut, good, cut, cut, cut, length_retries=1)
    assert trajectory.exit_reason == "max_tokens_per_turn"
    assert len(trajectory.steps) == 4
    assert len(answered(session)) == 4
    assert not (work / "ran").exists()


def test_wall_time_bounds_the_call_in_flight_and_answers_the_rest(play: Any, says: Says, work: Path) -> None:
    calls = [("Bash", {"command": "echo begun; sleep 1000"}), ("Bash", {"command": "touch ran"})]
    trajectory, session = play(says("", *calls), max_time_s=1.0)
    assert trajectory.exit_reason == "max_time"
    first, second = trajectory.steps[0].observations
    assert first.text.startswith(("Timed out after 1.0s\nSTDOUT:\nbegun", "Timed out after 0."))
    assert second.text == "Not run: the episode is over."
    assert len(answered(session)) == 2
    assert not (work / "ran").exists()
    assert trajectory.patch == "the patch"


def test_wall_time_bounds_the_model_request(play: Any, says: Says) -> None:
    async def slow(session: Any) -> Reply:
        await asyncio.sleep(session.asked[-1][1])
        raise TimeoutError

    trajectory, session = play(slow, max_time_s=0.3)
    assert trajectory.exit_reason == "max_time"
    assert session.asked[0][1] <= 0.3


def test_a_request_that_is_too_slow_for_itself_is_the_models_fault(play: Any) -> None:
    async def slow(session: Any) -> Reply:
        raise TimeoutError

    trajectory, _ = play(slow, model_timeout_s=0.2)
    assert (trajectory.exit_reason, trajectory.error) == ("llm_query_error", "the model request timed out")


def test_a_tool_that_raises_is_answered_and_the_episode_goes_on(
    play: Any, says: Says, sandbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sandbox.ask

    def broken(op: str, args: dict[str, Any]) -> dict[str, Any]:
        if op == "glob":
            raise KeyError("files")
        return real(op, args)

    monkeypatch.setattr(sandbox, "ask", broken)
    trajectory, session = play(says("", ("Glob", {"pattern": "*"}), ("Bash", {"command": "true"})), says("done"))
    assert trajectory.steps[0].observations[0].text == "The tool failed: KeyError: 'files'"
    assert trajectory.exit_reason == "agent"
    assert len(answered(session)) == 2


def test_a_lost_sandbox_ends_it_without_a_verdict(play: Any, says: Says, own_sandbox: Any) -> None:
    kill = ("Bash", {"command": "kill -9 $PPID"})
    trajectory, session = play(says("", kill, ("Bash", {"command": "true"})), sandbox=own_sandbox)
    assert (trajectory.exit_reason, trajectory.error, trajectory.patch) == ("tool_error", "the runner is gone", "")
    assert [answer.text for answer in session.observed[0]] == [
        "Not run: the sandbox was lost.",
        "Not run: the episode is over.",
    ]


def test_a_patch_that_cannot_be_had_leaves_no_verdict(play: Any, says: Says, own_sandbox: Any) -> None:
    own_sandbox.process.kill()
    own_sandbox.process.wait()
    trajectory, _ = play(says("done"), sandbox=own_sandbox)
    assert (trajectory.exit_reason, trajectory.error) == ("infrastructure_error", "the runner is gone")


@pytest.mark.parametrize("when", ["model", "tool"])
def test_cancelling_answers_the_calls_closes_the_log_and_raises(
    sandbox: Any, work: Path, scripted: Any, says: Says, when: str
) -> None:
    log_path = work.parent / "log.jsonl"

    async def endless(session: Any) -> Reply:
        await asyncio.sleep(3600)
        raise AssertionError

    first = endless if when == "model" else says("", ("Bash", {"command": "sleep 2"}), ("Bash", {"command": "true"}))
    policy = scripted(first)
    spec = EpisodeSpec(id="e", task_id="t", statement="s", workdir=str(work))

    async def main() -> None:
        task = asyncio.create_task(run_episode(spec, policy, sandbox, StepLog(log_path)))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    logged = read_step_log(log_path)
    assert logged.end is not None
    assert logged.end.exit_reason == "cancelled"
    assert policy.session.closed == 1
    if when == "tool":
        texts = [answer.text for answer in logged.steps[0].observations]
        assert texts == ["Not run: cancelled.", "Not run: the episode is over."]


def test_a_defect_of_ours_is_raised_and_the_log_says_so(play: Any, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        play(ZeroDivisionError("bug"), log=StepLog(tmp_path / "log.jsonl"))
    end = read_step_log(tmp_path / "log.jsonl").end
    assert end is not None
    assert end.exit_reason == "internal_error"


def test_equal_turns_are_allowed_unless_a_limit_is_set(play: Any, says: Says) -> None:
    same = [says("", ("Bash", {"command": "ls"})) for _ in range(6)]
    free, _ = play(*same)
    assert (free.exit_reason, len(free.steps)) == ("agent", 7)
    bounded, _ = play(*same, repeat_limit=3)
    assert (bounded.exit_reason, len(bounded.steps)) == ("max_turns", 3)
    assert bounded.error == "the same turn 3 times in a row"


def test_polling_is_no_repetition(play: Any, says: Says) -> None:
    poll = [says("", ("Bash", {"command": "echo x >> log; cat log"})) for _ in range(6)]
    trajectory, _ = play(*poll, repeat_limit=3)
    assert trajectory.exit_reason == "agent"


def test_tokens_of_the_session_are_in_the_trajectory(play: Any, says: Says) -> None:
    row = TokenRow(ids=(1, 2), mask=(0, 1), logprobs=(0.0, -0.5))

    async def turn(session: Any) -> Reply:
        session.row = row
        return says("done")

    trajectory, _ = play(turn)
    assert trajectory.tokens == row


def test_sampling_comes_from_the_settings(play: Any, says: Says) -> None:
    _, session = play(says("done"), temperature=0.6, top_p=0.95, top_k=20, max_tokens_per_turn=77)
    sampling = session.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.max_tokens) == (0.6, 0.95, 20, 77)


def test_the_default_bash_timeout_is_a_setting(play: Any, says: Says) -> None:
    trajectory, _ = play(says("", ("Bash", {"command": "sleep 1000"})), says("done"), bash_timeout_s=0.3)
    assert trajectory.steps[0].observations[0].text.startswith("Timed out after 0.3s")
