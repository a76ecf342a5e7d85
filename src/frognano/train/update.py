"""One update: kept groups in, one optimizer step, a report out.

One epoch, one step, gradients accumulated over micro-batches with the whole batch's token count as denominator;
groups that the filter dropped are not part of the batch, so neither of its denominator.
Values that are not finite stop the update BEFORE the optimizer step, so weights and optimizer stay as they were;
the error names the row. With one thread equal inputs give bit-equal weights. It does not decide which groups to
train on, does not write checkpoints, and does not undo a step that was finite and bad.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from frognano.config.train import OptimizerSettings, TrainSettings
from frognano.train.batch import Group, MicroBatch, Row, micro_batches, pad_rows, rows_of, trainable_tokens
from frognano.train.lean import LeanBackbone, lean_norms
from frognano.train.logprobs import mean_entropy, split_model, token_logprobs
from frognano.train.loss import TokenSums, TokenTerms, dppo_loss, token_sums


class UpdateError(RuntimeError):
    """The update was stopped before its optimizer step; the message names the cause and the row."""


class UpdateStopped(UpdateError):
    """The update was asked to stop between two micro-batches; nothing was changed."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one update did."""

    version: int
    """Version of the weights after it."""
    rows: int
    tokens: int
    """Tokens read, padding excluded."""
    trained: int
    """T: sampled tokens, masked ones included."""
    micro_batches: int
    loss: float
    grad_norm: float
    """Norm before clipping."""
    entropy: float
    sums: TokenSums
    seconds: float
    cpu_seconds: float
    """Processor time of the updating thread."""


class Learner:
    """A model, its optimizer, and the version of its weights."""

    def __init__(self, model: Any, settings: TrainSettings, version: int = 0, pad_id: int = 0) -> None:
        self.model = model
        self.settings = settings
        self.version = version
        self.pad_id = pad_id
        backbone, self.head = split_model(model)
        self.backbone = LeanBackbone(backbone, whole=settings.activation_checkpointing)
        self.optimizer = make_optimizer(model, settings.optimizer)
        self._stop = threading.Event()
        _prepare(model, settings)

    def stop(self) -> None:
        """Ask a running ``step`` to raise UpdateStopped at its next micro-batch."""
        self._stop.set()

    def state(self) -> dict[str, Any]:
        """Everything but the weights that the next update depends on."""
        return {"version": self.version, "optimizer": self.optimizer.state_dict(), "rng": torch.get_rng_state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a ``state``; the weights are loaded apart."""
        self.version = int(state["version"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])

    def step(self, groups: Sequence[Group]) -> UpdateReport:
        """One update on ``groups``, which the caller has filtered. Raises UpdateError, or BatchError for a bad row."""
        torch.set_num_threads(self.settings.threads)
        wall, cpu = time.perf_counter(), time.thread_time()
        rows = rows_of(groups)
        if not rows:
            raise UpdateError("an update needs at least one trajectory with a verdict and sampled tokens")
        total = trainable_tokens(rows)
        _check_parameters(self.model)
        self.optimizer.zero_grad(set_to_none=True)
        try:
            with lean_norms(self.model):
                loss, sums, entropy, batches = self._accumulate(rows, total)
            norm = float(nn.utils.clip_grad_norm_(self._trained(), self.settings.optimizer.clip))
            self.optimizer.step()
        finally:
            self.optimizer.zero_grad(set_to_none=True)
        self.version += 1
        return UpdateReport(
            version=self.version,
            rows=len(rows),
            tokens=sum(row.ids.numel() for row in rows),
            trained=total,
            micro_batches=batches,
            loss=loss,
            grad_norm=norm,
            entropy=entropy,
            sums=sums,
            seconds=time.perf_counter() - wall,
            cpu_seconds=time.thread_time() - cpu,
        )

    def _accumulate(self, rows: Sequence[Row], total: int) -> tuple[float, TokenSums, float, int]:
        loss, sums, entropy, measured = 0.0, TokenSums(), 0.0, 0
        batches = micro_batches(rows, self.settings.micro_batch_tokens, self.pad_id)
        for batch in batches:
            if self._stop.is_set():
                self._stop.clear()
                raise UpdateStopped("the update was stopped before its optimizer step")
            hidden, terms = self._forward(batch)
            share = self._loss(terms, total)
            _check_forward(batch, terms, share)
            share.backward()  # type: ignore[no-untyped-call]
            if not _gradients_finite(self._trained()):
                raise UpdateError(self._blame_gradient(batch, total))
            loss += float(share.detach())
            sums += token_sums(terms, self.settings.loss.delta_high, self.settings.loss.delta_low)
            some = hidden[: -(-self.settings.loss.entropy_tokens // len(batches))]
            entropy += some.shape[0] * self._entropy(some)
            measured += some.shape[0]
        return loss, sums, entropy / max(measured, 1), len(batches)

    def _forward(self, batch: MicroBatch) -> tuple[Tensor, TokenTerms]:
        """Hidden states at the predicting positions [K, H], and the loss terms."""
        device = self.head.weight.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self.settings.dtype == "bfloat16"):
            hidden = self.backbone(batch.ids.to(device), batch.predicting.to(device))
        rule = self.settings.loss
        targets = batch.targets.to(device)
        logp = token_logprobs(hidden, self.head, targets, temperature=rule.temperature, chunk=rule.chunk_tokens)
        return hidden, TokenTerms(logp, batch.logq.to(logp), batch.advantage.to(logp))

    def _loss(self, terms: TokenTerms, total: int) -> Tensor:
        rule = self.settings.loss
        return dppo_loss(terms, total, rule.delta_high, rule.delta_low, rule.ratio_cap)

    def _entropy(self, hidden: Tensor) -> float:
        rule = self.settings.loss
        return mean_entropy(hidden, self.head, rule.temperature, rule.chunk_tokens)

    def _trained(self) -> list[nn.Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _blame_gradient(self, batch: MicroBatch, total: int) -> str:
        """Find the row by going through the failed micro-batch alone, row by row."""
        for row in batch.rows:
            self.optimizer.zero_grad(set_to_none=True)
            single = pad_rows([row], self.pad_id)
            self._loss(self._forward(single)[1], total).backward()  # type: ignore[no-untyped-call]
            if not _gradients_finite(self._trained()):
                return f"the gradient of {row.name} is not finite"
        names = "; ".join(row.name for row in batch.rows)
        return f"the gradient is not finite after the micro-batch of {names}"


def make_optimizer(model: Any, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """AdamW (or Adam with coupled decay) over everything that asks for a gradient."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim > 1 or settings.decay_vectors]
    vectors = [parameter for parameter in trained if parameter.ndim <= 1 and not settings.decay_vectors]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    kind = torch.optim.AdamW if settings.decoupled else torch.optim.Adam
    return kind(
        [group for group in groups if group["params"]],
        lr=settings.lr,
        betas=(settings.beta1, settings.beta2),
        eps=settings.eps,
    )


def _prepare(model: Any, settings: TrainSettings) -> None:
    if not settings.activation_checkpointing:
        # Nothing but dropout tells the modes apart, and rollouts are sampled without dropout.
        model.eval()
        return
    for module in model.modules():
        if isinstance(module, nn.Dropout) and module.p > 0:
            raise ValueError("activation checkpointing needs training mode, and this model has dropout; set it to 0")
    model.train()
    model.activation_checkpointing_enable()


def _check_parameters(model: Any) -> None:
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and not bool(torch.isfinite(parameter).all()):
            raise UpdateError(f"the parameter {name} is not finite before the update")


def _check_forward(batch: MicroBatch, terms: TokenTerms, share: Tensor) -> None:
    ratio = (terms.logp.detach() - terms.logq).exp()
    for what, values in (("log-probability", terms.logp.detach()), ("ratio p/q", ratio)):
        bad = ~torch.isfinite(values)
        if bool(bad.any()):
            first = int(bad.nonzero()[0])
            row = batch.rows[int(batch.row_of[first])]
            raise UpdateError(f"{what} of {row.name} is {float(values[first])}")
    if not bool(torch.isfinite(share)):
        names = "; ".join(row.name for row in batch.rows)
        raise UpdateError(f"the loss of the micro-batch of {names} is {float(share.detach())}")


def _gradients_finite(parameters: Sequence[nn.Parameter]) -> bool:
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return bool(torch.isfinite(torch.stack(torch._foreach_norm(gradients))).all()) if gradients else True
