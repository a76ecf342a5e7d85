"""The synthesis loop: a repository goes in, validated tasks come out.

baseline → coverage → splits → (candidates → screening → facts → building → validation) until every split has what
was asked for, or nothing is left to try. Each step is a named call; finished work is journaled beside the pool and
not repeated. Calibration and refinement come after, in ``refine``: they need a policy.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from frognano.config.taskpilot import SynthesisSettings
from frognano.records import Runtime
from frognano.sandbox.contract import SandboxBackend
from frognano.taskpilot.baseline import Baseline, measure_baseline
from frognano.taskpilot.bench import open_benches
from frognano.taskpilot.build import Builder
from frognano.taskpilot.candidates import propose
from frognano.taskpilot.coverage_map import map_coverage
from frognano.taskpilot.funnel import Funnel
from frognano.taskpilot.ground import Ground, Modules
from frognano.taskpilot.journal import FileJournal, pin
from frognano.taskpilot.partition import partition
from frognano.taskpilot.progress import Progress, Timer, silent
from frognano.taskpilot.quota import Quota
from frognano.taskpilot.report import SynthesisReport
from frognano.taskpilot.repository import Repository
from frognano.taskpilot.screen import screen
from frognano.taskpilot.workshop import Workshop
from frognano.tasks.grader import Grader, open_grader
from frognano.tasks.snapshot import SnapshotStore


async def synthesise(
    repository: Repository,
    settings: SynthesisSettings,
    backend: SandboxBackend,
    store: SnapshotStore,
    pool_dir: Path,
    *,
    progress: Progress = silent,
    grader: Grader | None = None,
) -> SynthesisReport:
    """Make validated tasks from ``repository`` below ``pool_dir``; called again, it goes on where it stopped.

    Raises BaselineError for a suite that cannot serve, ConfigError for settings other than the pool's own, and
    SandboxError when sandboxes are lost for good.
    """
    if grader is None:
        async with open_grader(backend, store) as opened:
            return await synthesise(repository, settings, backend, store, pool_dir, progress=progress, grader=opened)
    journal = FileJournal(pool_dir / "journal.jsonl")
    base = store.add(repository.folder)
    pin(journal, {**settings.model_dump(exclude={"workers", "screen_batch"}), "base": base})
    runtime = Runtime(pythonpath=repository.pythonpath)
    timer, funnel, quota = Timer(progress), Funnel(), Quota(settings)

    with timer.phase("baseline"):
        kept = journal.get("baseline", base)
        baseline = Baseline.model_validate(kept) if kept else None
        if baseline is None:
            baseline = await measure_baseline(grader, base, runtime, repository, settings)
            journal.put("baseline", base, baseline.model_dump())

    async with open_benches(backend, store.path(base), repository, settings.workers) as benches:
        with timer.phase("coverage"):
            coverage = await map_coverage(benches, baseline, settings, journal)
            modules = Modules(repository, coverage)
            splits = partition(modules.parsed, repository.pythonpath, settings.shares(), settings.seed)
            ground = Ground(repository, store, base, runtime, baseline, modules)
            waiting = propose(ground, splits, settings, funnel)
        shop = Workshop(grader, ground, Builder(ground), settings, journal, pool_dir, funnel, quota, timer)
        screened_so_far: Counter[str] = Counter()
        while wave := quota.next_wave(waiting, screened_so_far):
            with timer.phase("screen"):
                screened = await screen(benches, wave, baseline, settings, journal=journal, done=timer.of(len(wave)))
                picked = shop.pick(wave, screened)
            with timer.phase("facts"):
                built = await shop.build(benches, picked, screened)
            with timer.phase("validate"):
                await shop.validate(built, screened)
    shop.list_tasks()
    return shop.report()
