"""Does it learn? Three arms, three seeds, one base, tasks that no arm ever trained on.

    python perf/learning.py                                # everything; an hour or two on two cores
    python perf/learning.py --arm real --seed 0            # one arm, one seed; what is there already is taken
    python perf/learning.py --short                        # minutes: shows that the script works, proves nothing
    python perf/learning.py --table                        # the table of what is there

The short form works in its own folder.

Arms: ``real``; ``permuted``, in which rewards are shuffled within each group after the filter; ``random``, which trains
on as many valid tasks as calibration admits, drawn without regard to it. Each is one round of the recipe's loop over a
larger pool. The pool and the base's scores are shared. Every run is journaled: stopped or killed, the same command
goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frognano.report.arms import ArmResult
    from frognano.rollout.evaluate import TaskScore

ARMS = ("real", "permuted", "random")
LEAST_TASKS, LEAST_FUNCTIONS, LEAST_EPISODES, LEAST_SEEDS = 100, 20, 4, 3
FULL = [
    "taskpilot.synthesis.train_tasks=200",
    "taskpilot.synthesis.validation_tasks=20",
    "taskpilot.synthesis.held_out_tasks=120",
    "taskpilot.refinement.rounds=0",
    "taskpilot.admit=200",
    "train.updates=20",
    "train.validation_cadence=5",
    "train.optimizer.lr=4e-4",
    "evaluation.episodes=4",
    "evaluation.validation_episodes=4",
    "coevolve.iterations=1",
    "coevolve.tasks_per_iteration=200",
    "coevolve.budget_episodes=0",
]
SHORT = [
    "taskpilot.synthesis.train_tasks=6",
    "taskpilot.synthesis.validation_tasks=0",
    "taskpilot.synthesis.held_out_tasks=6",
    "taskpilot.synthesis.confirm_runs=1",
    "taskpilot.synthesis.baseline_runs=2",
    "taskpilot.synthesis.whole_suite=false",
    "taskpilot.calibration.episodes=4",
    "taskpilot.refinement.rounds=0",
    "train.updates=2",
    "train.groups=2",
    "train.group_size=4",
    "evaluation.episodes=2",
    "coevolve.iterations=1",
    "coevolve.tasks_per_iteration=6",
    "coevolve.budget_episodes=0",
]


def main() -> int:
    """Run what was asked for, print the table; 0 when every claim that could be checked holds."""
    options = _options()
    overrides = [*(SHORT if options.short else FULL), *options.set]
    if not options.table:
        base_scores(options, overrides)
        for seed in options.seed:
            for arm in options.arm:
                run_arm(options, overrides, arm, seed)
    return report(options.work, strict=not options.short)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--recipe", default="tadpole", help="recipe of every arm")
    parser.add_argument("--work", type=Path, default=Path("runs/learning"), help="folder of the experiment")
    parser.add_argument("--arm", action="append", choices=ARMS, help="arm to run; default all three")
    parser.add_argument("--seed", action="append", type=int, help="seed to run; default 0, 1 and 2")
    parser.add_argument("--set", action="append", default=[], help="a setting, section.key=value")
    parser.add_argument("--short", action="store_true", help="a few tasks and updates")
    parser.add_argument("--table", action="store_true", help="run nothing, print the table of what is there")
    options = parser.parse_args()
    options.arm, options.seed = options.arm or list(ARMS), options.seed or ([0] if options.short else [0, 1, 2])
    options.work /= "short" if options.short else "full"
    options.work.mkdir(parents=True, exist_ok=True)
    return options


def base_scores(options: argparse.Namespace, overrides: Sequence[str]) -> None:
    """The pool, and the starting checkpoint's scores: once for all arms."""
    from frognano.coevolve.pieces import evaluate_start
    from frognano.coevolve.progress import watching
    from frognano.config.recipe import load_recipe

    place = options.work / "base.json"
    recipe = load_recipe(options.recipe, overrides)
    with _timed(options.work / "base.seconds.json", done=place.exists()), watching(recipe) as watch:
        scores = evaluate_start(recipe, options.work / "base", options.work / "pool", watch=watch)
    _write(place, [score.model_dump() for score in scores])


def run_arm(options: argparse.Namespace, overrides: Sequence[str], arm: str, seed: int) -> None:
    """One arm with one seed: the whole loop, without the evaluation of the start."""
    from frognano.coevolve.loop import run
    from frognano.coevolve.progress import watching
    from frognano.config.recipe import load_recipe

    folder = options.work / f"{arm}-{seed}"
    print(f"\n== {arm}, seed {seed} ==", flush=True)
    chosen = [
        *overrides,
        f"coevolve.seed={seed}",
        f"train.seed={seed}",
        f"taskpilot.calibration.seed={seed}",
        f"coevolve.rewards={'permuted' if arm == 'permuted' else 'real'}",
        f"coevolve.tasks={'random' if arm == 'random' else 'calibrated'}",
        "evaluation.start=false",
    ]
    recipe = load_recipe(options.recipe, chosen)
    done = (folder / "scores.json").exists()
    with _timed(folder.with_suffix(".seconds.json"), done), watching(recipe) as watch:
        run(recipe, folder, watch=watch, pool=options.work / "pool")


@contextmanager
def _timed(place: Path, done: bool) -> Iterator[None]:
    """Adds the wall seconds of a block to those of earlier starts, every few seconds, so that a kill loses few; nothing
    where the block only opens again what was done."""
    if done:
        yield
        return
    before, began, ended = _seconds(place), time.monotonic(), threading.Event()

    def keep() -> None:
        _write(place, before + time.monotonic() - began)

    def ticking() -> None:
        while not ended.wait(5.0):
            keep()

    thread = threading.Thread(target=ticking, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        keep()


def _seconds(place: Path) -> float:
    return float(json.loads(place.read_text())) if place.exists() else 0.0


def _write(place: Path, value: Any) -> None:
    partial = place.with_name(f".{place.name}.partial")
    partial.write_text(json.dumps(value))
    os.replace(partial, place)


def report(work: Path, strict: bool) -> int:
    """The table, the differences, the claims, the plot."""
    from frognano.report.arms import arm_result, arms_text, difference
    from frognano.rollout.evaluate import TaskScore
    from frognano.rollout.ladder import interval_of

    if not (work / "base.json").exists():
        print("nothing there yet")
        return 1
    base = [TaskScore.model_validate(row) for row in json.loads((work / "base.json").read_text())]
    after, results = {}, []
    for arm in ARMS:
        folders = {
            int(p.name.removeprefix(f"{arm}-")): p for p in work.glob(f"{arm}-*") if (p / "scores.json").exists()
        }
        if folders:
            after[arm] = {seed: _last_scores(folders[seed]) for seed in sorted(folders)}
            seconds = {seed: _seconds(folder.with_suffix(".seconds.json")) for seed, folder in folders.items()}
            trained = {seed: [row["trained_on"] for row in _ladder(folder)] for seed, folder in folders.items()}
            results.append(arm_result(arm, base, after[arm], seconds, trained))
    start = interval_of(base)
    text = arms_text(start, results)
    for other in ("permuted", "random"):
        if "real" in after and other in after:
            text += f"\nreal − {other}: {difference(after['real'], after[other]).signed()} points"
    text += f"\nbase evaluation: {_seconds(work / 'base.seconds.json') / 60:.1f} min, pool included; {_machine()}"
    by_name: dict[str, ArmResult] = {result.name: result for result in results}
    held = claims(base, after, by_name)
    text += "\n" + "\n".join(f"{'holds ' if fine else 'FAILS '} {claim}" for claim, fine in held.items())
    print(f"\n{text}")
    (work / "table.txt").write_text(text + "\n")
    plot(work, start.mean, results)
    return 0 if not strict or (set(after) == set(ARMS) and all(held.values())) else 1


def claims(
    base: Sequence[TaskScore], after: Mapping[str, Mapping[int, Sequence[TaskScore]]], arms: Mapping[str, ArmResult]
) -> dict[str, bool]:
    """What must hold of the experiment, as far as its arms have run; ``after`` is arm → seed → held-out scores."""
    measured = [base, *(scores for seeds in after.values() for scores in seeds.values())]
    found = {
        f"at least {LEAST_TASKS} held-out tasks of {LEAST_FUNCTIONS} functions, {LEAST_EPISODES} episodes each": all(
            len(scores) >= LEAST_TASKS
            and len({(score.module, score.function) for score in scores}) >= LEAST_FUNCTIONS
            and min(score.episodes for score in scores) >= LEAST_EPISODES
            for scores in measured
        )
    }
    for name, result in arms.items():
        found[f"{name}: at least {LEAST_SEEDS} seeds"] = len(result.seeds) >= LEAST_SEEDS
    if "real" in arms:
        found["the lift's interval is above 0"] = arms["real"].lift.low > 0
    if "permuted" in arms:
        lift = arms["permuted"].lift
        found["the interval with permuted rewards contains 0"] = lift.low <= 0 <= lift.high
        if "real" in arms:
            found["the interval with permuted rewards lies below the real lift"] = lift.high < arms["real"].lift.mean
    return found


def _ladder(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / "ladder.json").read_text())
    return rows


def _last_scores(folder: Path) -> Sequence[Any]:
    from frognano.coevolve.outcome import read_scores

    scores = read_scores(folder)
    return scores[max(scores)]


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def plot(work: Path, base: float, results: Sequence[Any]) -> None:
    """Held-out solve rate by iteration, one line for each seed; left out without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("no plot: matplotlib is not installed (pip install 'frognano[report]')")
        return
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for result, colour in zip(results, ("tab:green", "tab:red", "tab:blue"), strict=False):
        for number, seed in enumerate(result.seeds):
            rows = _ladder(work / f"{result.name}-{seed}")
            points = [(0, base)] + [(row["iteration"], row["interval"]["mean"]) for row in rows]
            label = f"{result.name}: {result.lift.signed()}" if not number else None
            axes.plot(*zip(*points, strict=True), color=colour, alpha=0.7, marker="o", label=label)
    axes.set(xlabel="iteration", ylabel="held-out solve rate", title="Held-out tasks, temperature 1; lift in points")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    figure.tight_layout()
    figure.savefig(work / "learning.png", dpi=150)
    print(f"plot: {work / 'learning.png'}")


if __name__ == "__main__":
    sys.exit(main())
