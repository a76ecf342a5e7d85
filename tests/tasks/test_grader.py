"""Grading: the oracle scores 1, nothing else does; what cannot be graded has no verdict."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_gold_patch_scores_one_in_any_order_and_hash_seed(case: Any, seed: int) -> None:
    verdict = case.grade(case.gold, order_seed=seed, hash_seed=seed)
    assert verdict.detail == ""
    assert (verdict.reward, verdict.reason) == (1.0, "passed")
    assert verdict.outcomes == dict.fromkeys(case.task.tests.f2p + case.task.tests.p2p, "passed")


def test_the_empty_patch_scores_zero(case: Any) -> None:
    verdict = case.grade(b"")
    assert (verdict.reward, verdict.reason) == (0.0, "failed")
    assert {test for test, outcome in verdict.outcomes.items() if outcome != "passed"} == set(case.task.tests.f2p)
