"""Runs Qwen3 and Qwen3.5 text models over many conversations at once.

Every token is read in its own row at its own position: rows of different lengths share the products and never see
each other or any padding. Before it is used, its logits are compared with the model's own; where they differ, or for
any other architecture, ``make_runner`` falls back to one row at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from frognano.policy.fused_layers import DeltaNet, FullAttention, Joined, Mixer, Norm, Packed, Tick
from frognano.policy.generic_runner import GenericRunner
from frognano.policy.row_state import RowState, Runner

_FUSED = frozenset({"Qwen3ForCausalLM", "Qwen3_5ForCausalLM"})
_SEGMENT = 1024
_LEAST_REACH = 64
_TOLERANCE = 1e-3

_log = logging.getLogger(__name__)


def make_runner(model: Any) -> Runner:
    """The fastest runner that gives the model's own logits."""
    if type(model).__name__ in _FUSED and set(model.config.layer_types) <= {"full_attention", "linear_attention"}:
        runner = FusedRunner(model)
        gap = _gap(runner, model)
        if gap <= _TOLERANCE:
            return runner
        _log.warning("fused layers differ from %s by %.2g; running row by row", type(model).__name__, gap)
    return GenericRunner(model)


@torch.inference_mode()
def _gap(runner: Runner, model: Any) -> float:
    """Largest difference of logits over a short conversation of two rows, relative to their size."""
    size = model.config.vocab_size
    one, two = [(7 * n + 1) % size for n in range(70)], [(5 * n + 2) % size for n in range(9)]
    ids = torch.tensor([3 % size, 4 % size], device=model.device)
    found = [runner.join([None, None], [one, two]), runner.step(ids)]
    while runner.rows:
        runner.leave(0)
    gap = 0.0
    for row, text in enumerate((one, two)):
        whole = torch.tensor([[*text, int(ids[row])]], device=model.device)
        wanted = model(input_ids=whole, use_cache=False, logits_to_keep=2).logits[0].float()
        got = torch.stack([logits[row] for logits in found]).float()
        gap = max(gap, float((got - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6)))
    return gap if model.dtype == torch.float32 else gap / 30


class _Layer:
    def __init__(self, module: Any) -> None:
        self.mixer: Mixer
        if hasattr(module, "linear_attn"):
            self.mixer = DeltaNet(module.linear_attn)
        else:
            self.mixer = FullAttention(module.self_attn)
        self._before, self._after = Norm(module.input_layernorm), Norm(module.post_attention_layernorm)
        self._inward = Joined(module.mlp.gate_proj, module.mlp.up_proj)
        self._outward = Joined(module.mlp.down_proj)
        self._act = module.mlp.act_fn

    def refresh(self) -> None:
        self._before.refresh()
        self._after.refresh()
        self.mixer.refresh()

    def __call__(self, hidden: Tensor, place: Packed | Tick) -> Tensor:
        normed = self._before(hidden)
        mixed = self.mixer.step(normed, place) if isinstance(place, Tick) else self.mixer.read(normed, place)
        hidden = hidden + mixed
        gate, up = self._inward(self._after(hidden))
        return hidden + self._outward.whole(self._act(gate) * up)


class FusedRunner:
    """All rows in one batch; buffers grow as rows come and conversations lengthen, and are kept between steps."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._body = model.model
        self._layers = [_Layer(module) for module in self._body.layers]
        self._norm = Norm(self._body.norm)
        self._lengths: list[int] = []
        self._slots = 0
        self._reach = 0
        self._device = model.device
        self._cos = self._sin = torch.empty(0)
        self._mask = torch.empty((0, 0))
        self._places = torch.empty(0, dtype=torch.long)

    @property
    def rows(self) -> int:
        return len(self._lengths)

    def refresh(self) -> None:
        self._norm.refresh()
        for layer in self._layers:
            layer.refresh()

    # Rows

    def join(self, states: Sequence[RowState | None], ids: Sequence[Sequence[int]]) -> Tensor:
        first, longest = self.rows, max(map(len, ids))
        if len(ids) > 1 and longest > _SEGMENT:
            raise ValueError(f"rows that join together may read at most {_SEGMENT} tokens each")
        self._add(states, ids)
        logits = torch.empty(0)
        for low in range(0, longest, _SEGMENT):
            logits = self._read(first, [new[low : low + _SEGMENT] for new in ids])
        self._remark(first)
        return logits

    def adopt(self, states: Sequence[RowState]) -> None:
        first = self.rows
        self._add(states, [()] * len(states))
        self._remark(first)

    def _add(self, states: Sequence[RowState | None], ids: Sequence[Sequence[int]]) -> None:
        first = self.rows
        pasts = [0 if state is None else state.length for state in states]
        self._room(first + len(ids), max(past + len(new) for past, new in zip(pasts, ids, strict=True)))
        self._lengths += pasts
        for slot, state in enumerate(states, first):
            for number, layer in enumerate(self._layers):
                layer.mixer.load(slot, None if state is None else state.layers[number])

    def state(self, row: int) -> RowState:
        length = self._lengths[row]
        return RowState(length, tuple(layer.mixer.save(row, length) for layer in self._layers))

    def leave(self, row: int) -> None:
        last = self.rows - 1
        if row != last:
            for layer in self._layers:
                layer.mixer.move(last, row, self._lengths[last])
            self._lengths[row] = self._lengths[last]
            self._mask[row] = self._mask[last]
            self._places[row] = self._places[last]
        self._lengths.pop()

    def _room(self, rows: int, reach: int) -> None:
        if rows <= self._slots and reach <= self._reach:
            return
        if rows > self._slots:
            self._slots = 1 << (rows - 1).bit_length()  # a single long conversation pays for one
        if reach > self._reach:
            self._reach = -(-(reach + reach // 4) // _LEAST_REACH) * _LEAST_REACH
        for layer in self._layers:
            layer.mixer.resize(self._slots, self._reach)
        grid = torch.arange(self._reach, device=self._device)[None, :]
        probe = torch.zeros((1, 1, 1), dtype=self._model.dtype, device=self._device)
        cos, sin = self._body.rotary_emb(probe, grid[None] if self._has_three_grids() else grid)
        self._cos, self._sin = cos.reshape(self._reach, 1, -1), sin.reshape(self._reach, 1, -1)
        self._mask = torch.full((self._slots, self._reach), float("-inf"), device=self._device)
        self._places = torch.zeros(self._slots, dtype=torch.long, device=self._device)
        self._remark(0)

    def _has_three_grids(self) -> bool:
        return hasattr(self._body.rotary_emb, "mrope_section")

    def _remark(self, first: int) -> None:
        """Mask and places of the rows from ``first`` on, after their lengths changed by more than a step."""
        if first >= self.rows:
            return
        lengths = torch.tensor(self._lengths[first:], device=self._device)
        seen = torch.arange(self._reach, device=self._device)[None, :] < lengths[:, None]
        self._mask[first : self.rows] = torch.where(seen, 0.0, float("-inf"))
        self._places[first : self.rows] = lengths

    # Forward passes

    def _read(self, first: int, ids: Sequence[Sequence[int]]) -> Tensor:
        new = [len(each) for each in ids]
        past = self._lengths[first:]
        packed = self._packed(first, past, new)
        flat = torch.tensor([number for each in ids for number in each], device=self._device)
        hidden = self._through(flat, packed)
        for row, count in enumerate(new):
            self._lengths[first + row] += count
        ends = packed.new.cumsum(0) - 1
        return self._logits(hidden[ends])

    def _packed(self, first: int, past: Sequence[int], new: Sequence[int]) -> Packed:
        device, width = self._device, max(new)
        reach = max(before + count for before, count in zip(past, new, strict=True))
        counts, before = torch.tensor(new, device=device), torch.tensor(past, device=device)
        row = torch.repeat_interleave(torch.arange(len(new), device=device), counts)
        column = torch.cat([torch.arange(count, device=device) for count in new])
        places = before[row] + column
        looking = before[:, None] + torch.arange(width, device=device)  # [count, width]
        mask = torch.arange(reach, device=device) <= looking[:, None, :, None]
        return Packed(
            first=first,
            count=len(new),
            row=row,
            column=column,
            width=width,
            past=before,
            new=counts,
            reach=reach,
            cos=self._cos[places],
            sin=self._sin[places],
            mask=mask,
        )

    def step(self, ids: Tensor) -> Tensor:
        rows = self.rows
        reach = max(self._lengths) + 1
        self._room(rows, reach)
        places, slots = self._places[:rows], torch.arange(rows, device=self._device)
        self._mask[slots, places] = 0.0
        tick = Tick(
            rows=rows,
            slots=slots,
            places=places,
            reach=reach,
            cos=self._cos[places],
            sin=self._sin[places],
            mask=self._mask[:rows, None, :reach],
        )
        logits = self._logits(self._through(ids, tick))
        self._places[:rows] += 1
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def _through(self, ids: Tensor, place: Packed | Tick) -> Tensor:
        hidden = F.embedding(ids, self._body.embed_tokens.weight)
        for layer in self._layers:
            hidden = layer(hidden, place)
        return hidden

    def _logits(self, hidden: Tensor) -> Tensor:
        return F.linear(self._norm(hidden), self._model.lm_head.weight)
