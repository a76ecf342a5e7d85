"""The update step: one optimizer step, batch-wide denominator, and nothing changed when a value is not finite."""

import copy
import threading

import pytest
import torch

from frognano.config.train import LossSettings, OptimizerSettings, TrainSettings
from frognano.train.batch import BatchError, make_group, rows_of
from frognano.train.update import Learner, UpdateError, UpdateStopped, make_optimizer


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(ours, theirs):
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def settings(**changes):
    return TrainSettings(optimizer=OptimizerSettings(lr=1e-3), **changes)


def plain_gradients(model, groups):
    """The batch's gradient by the formula with full logits, one row at a time."""
    rows = rows_of(groups)
    total = sum(row.targets.numel() for row in rows)
    for row in rows:
        logp = model(input_ids=row.ids[None]).logits[0].log_softmax(1)[row.targets - 1, row.ids[row.targets]]
        p, q = logp.exp(), row.logq.exp()
        up = row.advantage > 0
        keep = (p - q <= 0.2) if up else (p - q >= -0.2)
        (-(keep * row.advantage * p / q).sum() / total).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("kind", ["qwen3", "hybrid"])
@pytest.mark.parametrize("budget", [1, 60, 150, 10_000])
def test_the_gradient_is_the_formula_whatever_the_micro_batches(tiny_model, random_groups, kind, budget, monkeypatch):
    model, groups = tiny_model(kind), random_groups(2, 4)
    expected = plain_gradients(copy.deepcopy(model), groups)
    learner = Learner(model, settings(micro_batch_tokens=budget))
    seen = {}

    def remember(*_args, **_kwargs):
        seen.update({name: p.grad.clone() for name, p in model.named_parameters()})

    monkeypatch.setattr(learner.optimizer, "step", remember)
    report = learner.step(groups)
    norm = torch.stack([gradient.norm() for gradient in expected.values()]).norm().item()
    assert report.grad_norm == pytest.approx(norm, rel=1e-4)
    clipped = min(1.0, 1.0 / norm)
    for name, gradient in expected.items():
        torch.testing.assert_close(seen[name], gradient * clipped, atol=2e-6, rtol=1e-3)


def test_one_update_is_one_adamw_step(tiny_model, random_groups):
    model, groups = tiny_model(), random_groups()
    reference = copy.deepcopy(model)
    plain_gradients(reference, groups)
    torch.nn.utils.clip_grad_norm_(reference.parameters(), 1.0)
    make_optimizer(reference, OptimizerSettings(lr=1e-3)).step()
    learner = Learner(model, settings())
    assert learner.step(groups).version == learner.version == 1
    # Adam's first step is lr · sign(g): where g is nearly zero its sign is rounding, so compare all but a few.
    ours, theirs = (torch.cat([p.detach().flatten() for p in m.parameters()]) for m in (model, reference))
    assert ((ours - theirs).abs() < 1e-5).float().mean() > 0.999


def test_equal_inputs_give_bit_equal_weights_on_one_thread(tiny_model, random_groups):
    runs = []
    for _ in range(2):
        learner = Learner(tiny_model("hybrid"), settings())
        for seed in range(3):
            learner.step(random_groups(seed=seed))
        runs.append(weights(learner.model))
    assert same(*runs)


def test_the_learning_rate_is_constant_and_decay_spares_vectors(tiny_model):
    paper = make_optimizer(tiny_model(), OptimizerSettings())
    assert isinstance(paper, torch.optim.AdamW)
    assert [(g["lr"], g["betas"], g["weight_decay"]) for g in paper.param_groups] == [
        (1e-6, (0.9, 0.98), 0.1),
        (1e-6, (0.9, 0.98), 0.0),
    ]
    assert len(make_optimizer(tiny_model(), OptimizerSettings(decay_vectors=True)).param_groups) == 1
    coupled = make_optimizer(tiny_model(), OptimizerSettings(decoupled=False))
    assert not isinstance(coupled, torch.optim.AdamW)


def test_the_report_counts_tokens_and_masks(tiny_model, random_groups):
    groups = random_groups(2, 4)
    rows = rows_of(groups)
    report = Learner(tiny_model(), settings()).step(groups)
    assert report.rows == 8
    assert report.tokens == sum(row.ids.numel() for row in rows)
    assert report.trained == report.sums.tokens == sum(row.targets.numel() for row in rows)
    assert report.sums.positive + report.sums.negative == report.trained
    assert 0 < report.entropy < 4.2


def test_a_constant_member_counts_in_the_denominator_and_moves_nothing(tiny_model, trajectory):
    members = [trajectory(f"a-{i}", reward) for i, reward in enumerate([1.0, 1.0, 0.0])]
    cut = [*members[:2], members[2], trajectory("a-3", exit_reason="max_turns")]
    report = Learner(tiny_model(), settings()).step([make_group("g", "a", cut, settings())])
    assert report.trained == 4 * 3


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_bad_parameter_stops_the_update_before_it_begins(tiny_model, random_groups, value):
    model = tiny_model()
    with torch.no_grad():
        model.model.norm.weight[3] = value
    learner = Learner(model, settings())
    before = weights(model)
    with pytest.raises(UpdateError, match=r"model\.norm\.weight is not finite"):
        learner.step(random_groups())
    assert all(torch.equal(before[n].nan_to_num(), t.nan_to_num()) for n, t in model.state_dict().items())


def break_row(model, token):
    """Make one token's embedding overflow on the way through, so that only rows that read it break."""
    model.model.embed_tokens.register_forward_hook(
        lambda _module, inputs, output: torch.where((inputs[0] == token)[..., None], output * float("inf"), output)
    )


def test_bad_logits_name_the_task_and_trajectory_and_change_nothing(tiny_model, trajectory):
    model = tiny_model()
    break_row(model, 60)
    good = trajectory("a-0", 0.0)
    bad = trajectory("a-1", 1.0, ids=(5, 60, 7, 8, 9, 10))
    learner = Learner(model, settings())
    before = weights(model)
    with pytest.raises(UpdateError, match="log-probability of task a, trajectory a-1 is nan"):
        learner.step([make_group("g", "a", [good, bad], settings())])
    assert same(before, weights(model))
    assert learner.version == 0
    assert not learner.optimizer.state


def test_a_bad_gradient_names_the_row_and_changes_nothing(tiny_model, trajectory):
    model = tiny_model()

    def poison(_module, inputs, output):
        if output.requires_grad:
            output.register_hook(lambda g: torch.where((inputs[0] == 60)[..., None], g * float("nan"), g))

    model.model.embed_tokens.register_forward_hook(poison)
    members = [trajectory("a-0", 0.0), trajectory("a-1", 1.0, ids=(5, 60, 7, 8, 9, 10)), trajectory("a-2", 0.0)]
    learner = Learner(model, settings())
    before = weights(model)
    with pytest.raises(UpdateError, match="gradient of task a, trajectory a-1"):
        learner.step([make_group("g", "a", members, settings())])
    assert same(before, weights(model))
    assert all(parameter.grad is None for parameter in model.parameters())


def test_an_overflowing_ratio_names_the_row(tiny_model, trajectory):
    members = [trajectory("a-0", 0.0), trajectory("a-1", 1.0, logprobs=(0.0, 0.0, -200.0, -4.0, 0.0, -4.0))]
    with pytest.raises(UpdateError, match="ratio p/q of task a, trajectory a-1 is inf"):
        Learner(tiny_model(), settings()).step([make_group("g", "a", members, settings())])


def test_after_a_stopped_update_the_next_one_works(tiny_model, random_groups, trajectory):
    learner = Learner(tiny_model(), settings())
    broken = make_group("g", "a", [trajectory("a-0", 0.0, mask=(1,) * 6), trajectory("a-1")], settings())
    with pytest.raises(BatchError):
        learner.step([broken])
    reference = Learner(tiny_model(), settings())
    learner.step(random_groups())
    reference.step(random_groups())
    assert same(weights(learner.model), weights(reference.model))


def test_a_running_update_can_be_stopped(tiny_model, random_groups):
    learner = Learner(tiny_model(), settings(micro_batch_tokens=1))
    before = weights(learner.model)
    learner.stop()
    with pytest.raises(UpdateStopped):
        learner.step(random_groups())
    assert same(before, weights(learner.model))
    assert learner.step(random_groups()).version == 1


def test_an_update_runs_in_any_thread(tiny_model, random_groups):
    results = []
    learner, reference = (Learner(tiny_model(), settings()) for _ in range(2))
    thread = threading.Thread(target=lambda: results.append(learner.step(random_groups())))
    thread.start()
    thread.join()
    assert results[0].loss == reference.step(random_groups()).loss
    assert same(weights(learner.model), weights(reference.model))


@pytest.mark.parametrize("kind", ["qwen3", "hybrid"])
def test_recomputing_activations_changes_no_gradient(tiny_model, random_groups, kind):
    plain = Learner(tiny_model(kind), settings()).step(random_groups())
    recomputed = Learner(tiny_model(kind), settings(activation_checkpointing=True)).step(random_groups())
    assert recomputed.grad_norm == pytest.approx(plain.grad_norm, rel=1e-5)


def test_bfloat16_is_near_and_keeps_float32_weights(tiny_model, random_groups):
    exact = Learner(tiny_model(), settings()).step(random_groups())
    learner = Learner(tiny_model(), settings(dtype="bfloat16"))
    assert learner.step(random_groups()).grad_norm == pytest.approx(exact.grad_norm, rel=0.05)
    assert all(parameter.dtype == torch.float32 for parameter in learner.model.parameters())


def test_temperature_and_cap_reach_the_loss(tiny_model, random_groups):
    base = Learner(tiny_model(), settings()).step(random_groups())
    warm = Learner(tiny_model(), settings(loss=LossSettings(temperature=0.5))).step(random_groups())
    capped = Learner(tiny_model(), settings(loss=LossSettings(ratio_cap=0.5))).step(random_groups())
    assert warm.entropy < base.entropy
    assert capped.grad_norm < base.grad_norm
