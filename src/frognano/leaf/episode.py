"""The episode: ask the model, run its calls, hand back the answers, until it ends.

A reply without a call ends it naturally. Every call gets exactly one answer, whatever happens; a reply cut by the
token limit never runs a call; wall time bounds the model request and the tool call in flight. Nothing here grades,
retries or opens the sandbox: the caller does. A failure is an exit reason; only cancellation is raised again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence

from frognano.config.leaf import LeafSettings
from frognano.leaf.policy import ContextOverflow, Policy, PolicyError, Sampling, Session
from frognano.leaf.profile import Profile, load_profile
from frognano.leaf.steplog import LogEnd, LogStart, StepLog
from frognano.leaf.tools import run_tool
from frognano.records import NO_VERDICT, ExitReason, Observation, Record, Reply, Step, ToolCall, Trajectory
from frognano.sandbox.contract import ChangesTooLarge, Sandbox, SandboxError


class EpisodeSpec(Record):
    """One episode to run."""

    id: str
    """Unique name of the trajectory."""
    task_id: str
    statement: str
    seed: int = 0
    workdir: str = "/app"
    """Where the repository stands in the sandbox."""
    settings: LeafSettings = LeafSettings()


class Ending(Record):
    """Why an episode stops."""

    reason: ExitReason
    error: str = ""
    final_message: str = ""


async def run_episode(spec: EpisodeSpec, policy: Policy, sandbox: Sandbox, log: StepLog | None = None) -> Trajectory:
    """Run one episode in an open ``sandbox`` and return it with its patch, ungraded.

    Raises CancelledError when cancelled, after the log has its last row; errors that are nobody's doing but ours
    propagate.
    """
    episode = _Episode(spec, policy, sandbox, log or StepLog())
    session, patch = None, ""
    ending = Ending(reason="internal_error")
    try:
        session = await episode.open()
        ending = await episode.act(session)
    except asyncio.CancelledError:
        ending = Ending(reason="cancelled")
    except ContextOverflow:
        ending = Ending(reason="max_context_len")
    except PolicyError as error:
        ending = Ending(reason="llm_query_error", error=str(error))
    finally:
        try:
            if ending.reason not in ("cancelled", "tool_error", "internal_error"):
                ended, ending = ending, Ending(reason="internal_error")
                ending, patch = await episode.collect(ended)
        except asyncio.CancelledError:
            ending = Ending(reason="cancelled")
        finally:
            try:
                trajectory = episode.close(session, ending, patch)
            finally:
                if session is not None:
                    await session.close()
    if ending.reason == "cancelled":
        raise asyncio.CancelledError
    return trajectory


class _Episode:
    """One running episode."""

    def __init__(self, spec: EpisodeSpec, policy: Policy, sandbox: Sandbox, log: StepLog) -> None:
        self.spec, self.policy, self.sandbox, self.log = spec, policy, sandbox, log
        self.settings = spec.settings
        base = load_profile(self.settings.profile)
        self.profile: Profile = base.model_copy(update={"bash_timeout_s": self.settings.bash_timeout_s})
        self.began = time.monotonic()
        self.steps: list[Step] = []

    async def open(self) -> Session:
        """Begin the log and the conversation."""
        spec, profile, settings = self.spec, self.profile, self.settings
        start = LogStart(
            id=spec.id,
            task_id=spec.task_id,
            seed=spec.seed,
            policy=self.policy.name,
            profile=profile.name,
            system=profile.system,
            statement=spec.statement,
            tools=profile.tools,
        )
        self.log.begin(start)
        sampling = Sampling(
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            max_tokens=settings.max_tokens_per_turn,
            seed=spec.seed,
        )
        return await self.policy.open(profile.system, spec.statement, profile.tools, sampling)

    async def act(self, session: Session) -> Ending:
        """The loop: one turn of the model and its calls at a time."""
        cut_in_a_row = 0
        for number in range(1, self.settings.max_turns + 1):
            left = self.time_left()
            if left <= 0:
                return Ending(reason="max_time")
            room = self.room(session.context_tokens)
            if room < min(self.settings.min_reply_tokens, self.settings.max_tokens_per_turn):
                return Ending(reason="max_context_len")
            began = time.monotonic()
            try:
                reply = await self.ask(session, room)
            except TimeoutError:
                if left <= self.settings.model_timeout_s:
                    return Ending(reason="max_time")
                return Ending(reason="llm_query_error", error="the model request timed out")
            cut_in_a_row = cut_in_a_row + 1 if reply.finish_reason == "length" else 0
            ending = self.natural_end(reply, room, cut_in_a_row)
            answers, stop = await self.answer(reply, refuse=bool(cut_in_a_row))
            if answers:
                session.observe(answers)
            self.record(session, number, reply, answers, began)
            ending = ending or stop or self.limit_after(session)
            if ending is not None:
                return ending
        return Ending(reason="max_turns")

    async def ask(self, session: Session, room: int) -> Reply:
        """The next reply; raises TimeoutError when the request or the episode runs out of time."""
        limit = min(self.time_left(), self.settings.model_timeout_s)
        # The second clock is for a policy that does not keep its own.
        async with asyncio.timeout(limit + 5.0):
            return await session.reply(room, limit)

    def natural_end(self, reply: Reply, room: int, cut_in_a_row: int) -> Ending | None:
        """The ending that a reply itself brings: it holds no call, or it was cut by a limit of tokens."""
        if not cut_in_a_row:
            return None if reply.calls else Ending(reason="agent", final_message=reply.content)
        if reply.calls and cut_in_a_row <= self.settings.length_retries:
            return None
        usage, settings = reply.usage, self.settings
        full = 0 < settings.max_context_tokens <= usage.prompt_tokens + usage.completion_tokens
        capped = usage.completion_tokens >= settings.max_tokens_per_turn or not usage.completion_tokens
        by_turn = capped and not full and room >= settings.max_tokens_per_turn
        return Ending(reason="max_tokens_per_turn" if by_turn else "max_context_len", final_message=reply.content)

    async def answer(self, reply: Reply, refuse: bool) -> tuple[list[Observation], Ending | None]:
        """Run the calls in order; one answer each, also when the sandbox is lost or the time is over midway."""
        answers: list[Observation] = []
        stop: Ending | None = None
        for call in reply.calls:
            if refuse:
                answers.append(_unrun(call, "the reply was cut at the limit of tokens; use smaller steps"))
                continue
            if stop is None and self.time_left() <= 0:
                stop = Ending(reason="max_time")
            if stop is not None:
                answers.append(_unrun(call, "the episode is over"))
                continue
            try:
                left = self.time_left() if self.settings.max_time_s else None
                answers.append(await run_tool(self.sandbox, call, self.profile, self.spec.workdir, left))
            except asyncio.CancelledError:
                stop = Ending(reason="cancelled")
                answers.append(_unrun(call, "cancelled"))
            except SandboxError as error:
                stop = Ending(reason="tool_error", error=str(error))
                answers.append(_unrun(call, "the sandbox was lost"))
            except Exception as error:  # a defect in a tool must not leave a call unanswered
                text = f"The tool failed: {type(error).__name__}: {error}"
                answers.append(Observation(call_id=call.id, tool=call.name, text=text, failed=True))
        return answers, stop

    def record(self, session: Session, number: int, reply: Reply, answers: Sequence[Observation], began: float) -> None:
        """Append the step to the log before anything else happens."""
        step = Step(
            step=number,
            reply=reply,
            observations=tuple(answers),
            context_tokens=session.context_tokens,
            elapsed_s=time.monotonic() - began,
        )
        self.steps.append(step)
        self.log.step(step, session.tokens())

    def limit_after(self, session: Session) -> Ending | None:
        """The ending that the answers bring: a full context, or turns that repeat."""
        if 0 < self.settings.max_context_tokens <= session.context_tokens:
            return Ending(reason="max_context_len")
        if 0 < self.settings.repeat_limit <= self.repeats():
            return Ending(reason="max_turns", error=f"the same turn {self.repeats()} times in a row")
        return None

    def repeats(self) -> int:
        """Number of equal turns with equal answers at the end of the episode."""
        last, count = _essence(self.steps[-1]), 0
        for step in reversed(self.steps):
            if _essence(step) != last:
                break
            count += 1
        return count

    def room(self, context_tokens: int) -> int:
        """Tokens the next reply may have."""
        settings = self.settings
        if self.profile.is_reference or not settings.max_context_tokens:
            return settings.max_tokens_per_turn
        return min(settings.max_tokens_per_turn, settings.max_context_tokens - context_tokens)

    def time_left(self) -> float:
        """Wall seconds that the episode still has."""
        limit = self.settings.max_time_s
        return math.inf if limit is None else limit - (time.monotonic() - self.began)

    async def collect(self, ending: Ending) -> tuple[Ending, str]:
        """The patch; where it cannot be had there must be no verdict."""
        try:
            return ending, (await self.sandbox.changes()).decode("utf-8", "surrogateescape")
        except ChangesTooLarge as error:
            # What cannot be handed in is not graded; the episode itself stands.
            return ending.model_copy(update={"error": str(error)}), ""
        except SandboxError as error:
            if ending.reason in NO_VERDICT:
                return ending, ""
            return Ending(reason="infrastructure_error", error=str(error), final_message=ending.final_message), ""

    def close(self, session: Session | None, ending: Ending, patch: str) -> Trajectory:
        """Write the last row and put the trajectory together."""
        elapsed = time.monotonic() - self.began
        context = session.context_tokens if session is not None else 0
        end = LogEnd(
            exit_reason=ending.reason,
            error=ending.error,
            final_message=ending.final_message,
            context_tokens=context,
            elapsed_s=elapsed,
            patch=patch,
        )
        self.log.end(end)
        return Trajectory(
            id=self.spec.id,
            task_id=self.spec.task_id,
            seed=self.spec.seed,
            policy=self.policy.name,
            profile=self.profile.name,
            messages=tuple(session.messages) if session is not None else (),
            steps=tuple(self.steps),
            exit_reason=ending.reason,
            error=ending.error,
            final_message=ending.final_message,
            context_tokens=context,
            elapsed_s=elapsed,
            patch=patch,
            tokens=session.tokens() if session is not None else None,
        )


def _unrun(call: ToolCall, why: str) -> Observation:
    return Observation(call_id=call.id, tool=call.name, text=f"Not run: {why}.", failed=True)


def _essence(step: Step) -> tuple[object, ...]:
    calls = tuple((call.name, repr(call.arguments), call.raw) for call in step.reply.calls)
    return calls, tuple(answer.text for answer in step.observations)
