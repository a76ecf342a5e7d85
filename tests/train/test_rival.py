"""Our loss and gradient against TRL 1.8.0's DPPO trainer, where that is installed."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from frognano.train.loss import dppo_keep

PERF = Path(__file__).resolve().parents[2] / "perf" / "update_step.py"
pytestmark = pytest.mark.optional


@pytest.fixture(scope="module")
def dppo():
    """TRL's module; skips with the reason when it is not there or does not load."""
    try:
        import trl
        from trl.experimental import dppo
    except ImportError as error:
        pytest.skip(f"TRL's DPPO trainer is not installed: {error}")
    if trl.__version__ != "1.8.0":
        pytest.skip(f"compared with TRL 1.8.0, and this is {trl.__version__}")
    return dppo


@pytest.fixture(scope="module")
def bench():
    """The benchmark script, whose two sides take the same trajectories."""
    spec = importlib.util.spec_from_file_location("update_step", PERF)
    module = importlib.util.module_from_spec(spec)
    sys.modules["update_step"] = module
    spec.loader.exec_module(module)
    return module


def test_gradient_norms_are_equal_over_two_steps(dppo, bench):
    case = bench.Case(128, 32, 48, 2, groups=2, group_size=4, length=64, micro_batch_tokens=256, rival_rows=4)
    ours, theirs = bench.ours(case, 2), bench.rival(case, 2)
    assert ours["norms"] == pytest.approx(theirs["norms"], rel=2e-3)


def test_the_mask_drops_the_same_tokens(dppo):
    rival = dppo.DPPOTrainer.__new__(dppo.DPPOTrainer)
    rival.divergence_type, rival.epsilon_low, rival.epsilon_high = "binary_tv", 0.2, 0.2
    torch.manual_seed(0)
    p, q = torch.rand(2, 64, 200)
    advantage = torch.randint(-1, 2, (64, 1)).float()
    theirs = rival._compute_divergence_mask(p.log(), q.log(), advantage, torch.ones_like(p))
    # Both get the probabilities through logarithms, so both round alike.
    ours = dppo_keep(p.log().exp(), q.log().exp(), advantage.expand_as(p), 0.2, 0.2)
    assert 0.1 < 1 - ours.float().mean() < 0.5
    assert torch.equal(ours.float(), theirs)
