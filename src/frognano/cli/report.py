"""``frognano report``: what a run has come to, read from its folder without disturbing it."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from frognano.cli.errors import InputError
from frognano.cli.main import new_app

app = new_app("")
_HELD_OUT = re.compile(r"(?:start|iteration (\d+)): held-out")
"""Names of the phases that are rungs of the ladder."""


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    episode: Annotated[
        str, typer.Option(metavar="NAME", help="Show this episode turn by turn: part of its path.")
    ] = "",
    episodes: Annotated[bool, typer.Option("--episodes", help="List the episodes that have a log.")] = False,
) -> None:
    """What a run has come to: the ladder and the tasks, or one episode turn by turn. A run may still be going on."""
    if not (run / "journal.sqlite").is_file():
        raise InputError(f"{run} is not a run folder: it has no journal.sqlite")
    logs = sorted((run / "episodes").rglob("*.jsonl")) if (run / "episodes").is_dir() else []
    logs = [log for log in logs if not log.name.endswith(".tokens.jsonl")]
    if episodes:
        typer.echo("\n".join(str(log.relative_to(run / "episodes")) for log in logs))
        return
    if episode:
        typer.echo(_episode(run, logs, episode))
        return
    finished = run / "report.txt"
    typer.echo(finished.read_text() if finished.is_file() else _so_far(run))


def _episode(run: Path, logs: list[Path], wanted: str) -> str:
    found = [log for log in logs if wanted in str(log.relative_to(run / "episodes"))]
    if not found:
        raise InputError(f"no episode of {run} is named {wanted!r}; list them:  frognano report {run} --episodes")
    from frognano.leaf.transcript import episode_text_of

    return episode_text_of(found[0])


def _so_far(run: Path) -> str:
    """Of a run that is not finished: the phases that are, the ladder, the p̂ histograms."""
    from frognano.rollout.evaluate import TaskScore
    from frognano.rollout.ladder import histogram_text, ladder_text, rung

    with closing(sqlite3.connect(f"file:{run / 'journal.sqlite'}?mode=ro", uri=True)) as db:
        scores = {name: [TaskScore.model_validate(row) for row in rows] for name, rows in _facts(db, "scores")}
        done = [name for name, _ in _facts(db, "phase")]
        rates = dict(_facts(db, "rates"))
        episodes = db.execute("SELECT COUNT(*) FROM episodes").fetchone()[0]
    rungs = [
        rung(int(place[1] or 0), "", found)
        for name, found in scores.items()
        if (place := _HELD_OUT.fullmatch(name)) and any(score.rate is not None for score in found)
    ]
    parts = [f"{run}: not finished; {episodes} episodes. Done: {', '.join(done) or 'nothing yet'}"]
    parts.append(ladder_text(sorted(rungs, key=lambda row: row.iteration)))
    parts += [f"p̂ before iteration {number}\n{histogram_text(values)}" for number, values in rates.items()]
    return "\n\n".join(parts)


def _facts(db: sqlite3.Connection, kind: str) -> Iterator[tuple[str, Any]]:
    for key, value in db.execute("SELECT key, value FROM facts WHERE kind = ? ORDER BY at", (kind,)):
        yield key, json.loads(value)
