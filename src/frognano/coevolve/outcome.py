"""What a finished run leaves: the ladder as data and text, the final checkpoint, one solved episode to read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from frognano.coevolve.phases import held_out_phase, scope_of
from frognano.coevolve.workbench import Workbench
from frognano.leaf.transcript import episode_text_of
from frognano.records import Record
from frognano.rollout.evaluate import TaskScore
from frognano.rollout.ladder import Rung, histogram_text, ladder_text

SCORES = "scores.json"


class Outcome(Record):
    """A finished run."""

    folder: Path
    rungs: tuple[Rung, ...]
    checkpoint: Path
    """The best checkpoint of the last iteration."""
    paths: dict[str, Path]
    """What it wrote: what it is → where it lies."""
    solved: Path | None = None
    """Step log of one solved held-out episode."""

    def text(self) -> str:
        """The ladder, the paths, and one solved episode turn by turn."""
        width = max(map(len, self.paths))
        paths = "\n".join(f"{what:<{width}}  {place}" for what, place in self.paths.items())
        parts = [ladder_text(self.rungs), paths]
        if self.solved is not None:
            parts.append(f"One held-out episode that was solved ({self.solved}):\n{episode_text_of(self.solved)}")
        else:
            parts.append("No held-out episode was solved.")
        return "\n\n".join(parts)


def write_outcome(bench: Workbench, rungs: Sequence[Rung], checkpoint: Path) -> Outcome:
    """Write the report beside the run."""
    folder = bench.folder
    rates, refinement = bench.journal.values("rates"), bench.journal.values("refinement")
    histograms = [
        f"p̂ before iteration {number}\n{histogram_text(values)}\n{refinement[number]['text']}"
        for number, values in rates.items()
    ]
    _replace(folder / "ladder.json", json.dumps([row.model_dump(mode="json") for row in rungs], indent=1) + "\n")
    scores = {str(row.iteration): bench.journal.get("scores", held_out_phase(row.iteration)) for row in rungs}
    _replace(folder / SCORES, json.dumps(scores) + "\n")
    funnel = (bench.journal.get("phase", "synthesis") or {}).get("text", "")
    _replace(folder / "report.txt", "\n\n".join([ladder_text(rungs), *histograms, funnel]) + "\n")
    paths = {
        "report": folder / "report.txt",
        "ladder as data": folder / "ladder.json",
        "held-out scores": folder / SCORES,
        "final checkpoint": checkpoint,
        "tasks": bench.tasks,
        "calibrated tasks": folder / "tasks",
        "episodes": bench.logs,
        "journal": folder / "journal.sqlite",
        "resolved recipe": folder / "recipe.yaml",
    }
    solved = solved_episode(bench, rungs[-1].iteration if rungs else 0)
    return Outcome(folder=folder, rungs=tuple(rungs), checkpoint=checkpoint, paths=paths, solved=solved)


def read_scores(folder: Path) -> dict[int, list[TaskScore]]:
    """Iteration → held-out scores, of a finished run."""
    found = json.loads((folder / SCORES).read_text())
    return {int(number): [TaskScore.model_validate(row) for row in rows] for number, rows in found.items()}


def solved_episode(bench: Workbench, iteration: int) -> Path | None:
    """Step log of a solved held-out episode, of a task that the start solved least often."""
    before = {row["task_id"]: row["solved"] for row in bench.journal.get("scores", held_out_phase(0)) or ()}
    scope = scope_of(held_out_phase(iteration))
    solved = [entry for entry in bench.journal.episodes(scope) if entry.reward is not None and entry.reward >= 1.0]
    solved.sort(key=lambda entry: (before.get(entry.task_id, 0), entry.sampled))
    places = (bench.logs / scope / f"{entry.id}.jsonl" for entry in solved)
    return next((place for place in places if place.is_file()), None)


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
