"""How many out-of-band tasks refinement brings into the band, on episodes that the refinement never saw.

    python perf/refinement.py                        # pond's train tasks under the recipe's checkpoint
    python perf/refinement.py --pool runs/quickstart/pool

Every train task of the pool is measured; every one outside the band is refined (the statement alone changes), and each
version is measured on fresh episodes. Exit code 1 when fewer than 40 tasks were refined. Stopped, the same command
goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

LEAST = 40


def main() -> int:
    """Measure, refine, measure again, print the counts."""
    from frognano.coevolve.making import make_tasks
    from frognano.coevolve.pieces import calibrate
    from frognano.coevolve.progress import watching
    from frognano.config.recipe import load_recipe

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--recipe", default="tadpole")
    parser.add_argument("--work", type=Path, default=Path("runs/refinement"))
    parser.add_argument("--pool", type=Path, help="pool to take; one is made in the work folder otherwise")
    options = parser.parse_args()
    whole = ["taskpilot.refinement.max_tasks=0", "coevolve.tasks_per_iteration=10000", "coevolve.budget_episodes=0"]
    recipe = load_recipe(options.recipe, whole)
    pool = options.pool or options.work / "pool"
    began = time.monotonic()
    with watching(recipe) as watch:
        if options.pool is None:
            asyncio.run(make_tasks(recipe, pool, watch))
        outcome = calibrate(recipe, options.work / "run", pool, watch=watch)
    print(f"{outcome.text()}\n{(time.monotonic() - began) / 60:.1f} min")
    return 0 if outcome.refined >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
