"""The layers of Qwen3 and Qwen3.5 text models over a batch of rows, with their memory in place.

The same mathematics as the model's own modules, arranged for generation: the projections of a layer are one product,
the memory of all rows lies in one buffer per layer and is changed where it lies, and rows of different lengths are
read together without padding inside a row. Each class serves every row of the batch; a row is a slot in its buffers.

What it relies on: the weights of the model's modules, which it re-lays as slices of joined ones (same values, same
names). What it does NOT do: gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from frognano.policy.delta_rule import delta_rule


@dataclass(frozen=True)
class Packed:
    """New tokens of the rows ``first`` … ``first + count - 1``, laid end to end (N tokens, no padding).

    ``row``, ``column``: [N] row (from ``first`` on) and place within the row's new tokens. ``width``: most new tokens
    of a row. ``past``, ``new``: [count] tokens remembered and added. ``reach``: longest row afterwards.
    ``cos``, ``sin``: [N, 1, rotary]. ``mask``: [count, 1, width, reach], True where a token may look.
    """

    first: int
    count: int
    row: Tensor
    column: Tensor
    width: int
    past: Tensor
    new: Tensor
    reach: int
    cos: Tensor
    sin: Tensor
    mask: Tensor

    def pad(self, packed: Tensor) -> Tensor:
        """[N, …] → [count, width, …], zeros where a row has no token."""
        if packed.shape[0] == self.count * self.width:
            return packed.view(self.count, self.width, *packed.shape[1:])
        padded = packed.new_zeros((self.count, self.width, *packed.shape[1:]))
        padded[self.row, self.column] = packed
        return padded

    def pack(self, padded: Tensor) -> Tensor:
        """[count, width, …] → [N, …]."""
        if self.row.shape[0] == self.count * self.width:
            return padded.reshape(-1, *padded.shape[2:])
        return padded[self.row, self.column]


@dataclass(frozen=True)
class Tick:
    """One step of all ``rows``: ``places`` [rows] positions of the new tokens, ``slots`` [rows] = 0, 1, …

    ``reach``: longest row after the step. ``cos``, ``sin``: [rows, 1, rotary]. ``mask``: [rows, 1, reach], added.
    """

    rows: int
    slots: Tensor
    places: Tensor
    reach: int
    cos: Tensor
    sin: Tensor
    mask: Tensor


class Mixer(Protocol):
    """Token mixing of one layer, and its memory."""

    def resize(self, rows: int, reach: int) -> None:
        """Make room for ``rows`` slots of ``reach`` tokens; what is remembered stays."""
        ...

    def load(self, slot: int, memory: tuple[Tensor, ...] | None) -> None: ...

    def save(self, slot: int, length: int) -> tuple[Tensor, ...]: ...

    def move(self, source: int, target: int, length: int) -> None: ...

    def refresh(self) -> None: ...

    def read(self, hidden: Tensor, packed: Packed) -> Tensor: ...

    def step(self, hidden: Tensor, tick: Tick) -> Tensor: ...


class Joined:
    """Linear maps of one input as one product; their weights become slices of a joined one, laid out [in, out].

    A product with few rows is up to twice as fast with that layout, and the modules see the same values as before.
    """

    def __init__(self, *maps: nn.Linear) -> None:
        self._sizes = [each.out_features for each in maps]
        self.weight = torch.cat([each.weight.data.t() for each in maps], dim=1)
        self._bias = torch.cat([each.bias.data for each in maps]) if maps[0].bias is not None else None
        at = 0
        for each, size in zip(maps, self._sizes, strict=True):
            each.weight.data = self.weight[:, at : at + size].t()
            if self._bias is not None:
                each.bias.data = self._bias[at : at + size]
            at += size

    def whole(self, hidden: Tensor) -> Tensor:
        """[N, in] → [N, all outputs]."""
        return torch.mm(hidden, self.weight) if self._bias is None else torch.addmm(self._bias, hidden, self.weight)

    def __call__(self, hidden: Tensor) -> tuple[Tensor, ...]:
        parts: tuple[Tensor, ...] = torch.split(self.whole(hidden), self._sizes, dim=-1)
        return parts


class Norm:
    """RMS normalisation; Qwen3.5 keeps its weight minus one."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._from_one = type(module).__name__ == "Qwen3_5RMSNorm"
        self._eps: float = module.eps if self._from_one else module.variance_epsilon
        self.refresh()

    def refresh(self) -> None:
        weight = self._module.weight.data
        self._weight = weight + 1.0 if self._from_one else weight
        self._shape = tuple(weight.shape)

    def __call__(self, hidden: Tensor) -> Tensor:
        return F.rms_norm(hidden, self._shape, self._weight, self._eps)


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding on the first ``cos.shape[-1]`` entries of each head."""
    size = cos.shape[-1]
    turned, rest = heads[..., :size], heads[..., size:]
    half = size // 2
    swapped = torch.cat((-turned[..., half:], turned[..., :half]), dim=-1)
    rotated = torch.addcmul(turned * cos, swapped, sin)
    return torch.cat((rotated, rest), dim=-1) if rest.shape[-1] else rotated


class FullAttention:
    """Softmax attention, gated or not; remembers keys [rows, key heads, head, reach] and values [.., reach, head]."""

    def __init__(self, module: Any) -> None:
        self._head: int = module.head_dim
        self._keys_of = module.k_proj.out_features // self._head
        self._heads = module.o_proj.in_features // self._head
        self._gated = module.q_proj.out_features == 2 * self._heads * self._head
        self._scale: float = module.scaling
        self._inward = Joined(module.q_proj, module.k_proj, module.v_proj)
        self._outward = Joined(module.o_proj)
        self._norms = Norm(module.q_norm), Norm(module.k_norm)
        self._keys = self._inward.weight.new_zeros((0, self._keys_of, self._head, 0))
        self._values = self._inward.weight.new_zeros((0, self._keys_of, 0, self._head))

    def refresh(self) -> None:
        for norm in self._norms:
            norm.refresh()

    def resize(self, rows: int, reach: int) -> None:
        self._keys = _grown(self._keys, (rows, self._keys_of, self._head, reach))
        self._values = _grown(self._values, (rows, self._keys_of, reach, self._head))

    def load(self, slot: int, memory: tuple[Tensor, ...] | None) -> None:
        if memory is not None:
            keys, values = memory
            self._keys[slot, :, :, : keys.shape[2]] = keys
            self._values[slot, :, : values.shape[1]] = values

    def save(self, slot: int, length: int) -> tuple[Tensor, ...]:
        return self._keys[slot, :, :, :length].clone(), self._values[slot, :, :length].clone()

    def move(self, source: int, target: int, length: int) -> None:
        self._keys[target, :, :, :length] = self._keys[source, :, :, :length]
        self._values[target, :, :length] = self._values[source, :, :length]

    def _project(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """[N, width] → query [N, heads, head], key and value [N, key heads, head], gate [N, heads × head] or None."""
        query, key, value = self._inward(hidden)
        gate = None
        if self._gated:
            both = query.view(-1, self._heads, 2 * self._head)
            query, gate = both[..., : self._head], both[..., self._head :].reshape(hidden.shape[0], -1)
        query = self._norms[0](query.reshape(-1, self._heads, self._head))
        key = self._norms[1](key.reshape(-1, self._keys_of, self._head))
        turned = _rotate(torch.cat((query, key), dim=1), cos, sin)
        value = value.reshape(-1, self._keys_of, self._head)
        return turned[:, : self._heads], turned[:, self._heads :], value, gate

    def _out(self, mixed: Tensor, gate: Tensor | None) -> Tensor:
        return self._outward.whole(mixed if gate is None else mixed * gate.sigmoid())

    def read(self, hidden: Tensor, packed: Packed) -> Tensor:
        query, key, value, gate = self._project(hidden, packed.cos, packed.sin)
        slots, places = packed.row + packed.first, packed.past[packed.row] + packed.column
        self._keys[slots, :, :, places] = key
        self._values[slots, :, places] = value
        rows = slice(packed.first, packed.first + packed.count)
        mixed = F.scaled_dot_product_attention(
            packed.pad(query).transpose(1, 2),
            self._keys[rows, :, :, : packed.reach].transpose(2, 3).contiguous(),
            self._values[rows, :, : packed.reach],
            attn_mask=packed.mask,
            scale=self._scale,
            enable_gqa=True,
        )
        return self._out(packed.pack(mixed.transpose(1, 2)).reshape(hidden.shape[0], -1), gate)

    def step(self, hidden: Tensor, tick: Tick) -> Tensor:
        query, key, value, gate = self._project(hidden, tick.cos, tick.sin)
        self._keys[tick.slots, :, :, tick.places] = key
        self._values[tick.slots, :, tick.places] = value
        groups = self._heads // self._keys_of
        query = (query * self._scale).reshape(tick.rows * self._keys_of, groups, self._head)
        keys = self._keys[: tick.rows].flatten(0, 1)[:, :, : tick.reach]  # views of [rows × key heads, ..]
        values = self._values[: tick.rows].flatten(0, 1)[:, : tick.reach]
        scores = torch.bmm(query, keys).view(tick.rows, self._keys_of * groups, -1)
        weights = scores.add_(tick.mask).softmax(dim=-1, dtype=torch.float32).to(values.dtype)
        mixed = torch.bmm(weights.view(-1, groups, tick.reach), values)
        return self._out(mixed.view(tick.rows, -1), gate)


class DeltaNet:
    """Gated DeltaNet; remembers the last inputs of its convolution and one matrix per head.

    The convolution's inputs lie in a ring over time, [taps, rows, channels]; ``_phase`` is where the next one goes.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._key_heads, self._heads = module.num_k_heads, module.num_v_heads
        self._key, self._value = module.head_k_dim, module.head_v_dim
        self._channels = [module.key_dim, module.key_dim, module.value_dim]
        self._inward = Joined(module.in_proj_qkv, module.in_proj_z, module.in_proj_b, module.in_proj_a)
        self._outward = Joined(module.out_proj)
        self._norm = Norm(module.norm)
        self._taps: int = module.conv_kernel_size
        self._phase = 0
        weight = self._inward.weight
        self._ring = weight.new_zeros((self._taps, 0, sum(self._channels)))
        self._matrix = weight.new_zeros((0, self._heads, self._key, self._value), dtype=torch.float32)
        self.refresh()

    def refresh(self) -> None:
        self._norm.refresh()
        self._taps_of = self._module.conv1d.weight.data[:, 0].t().contiguous()  # [taps, channels]
        self._conv_bias = self._module.conv1d.bias
        self._rate = -self._module.A_log.data.float().exp()
        self._shift = self._module.dt_bias.data

    def resize(self, rows: int, reach: int) -> None:
        self._ring = _grown(self._ring, (self._taps, rows, self._ring.shape[2]))
        self._matrix = _grown(self._matrix, (rows, *self._matrix.shape[1:]))

    def _oldest_first(self) -> list[int]:
        return [(self._phase + tap) % self._taps for tap in range(self._taps)]

    def load(self, slot: int, memory: tuple[Tensor, ...] | None) -> None:
        if memory is None:
            self._ring[:, slot] = 0.0
            self._matrix[slot] = 0.0
            return
        inputs, matrix = memory
        self._ring[self._oldest_first(), slot] = inputs
        self._matrix[slot] = matrix

    def save(self, slot: int, length: int) -> tuple[Tensor, ...]:
        return self._ring[self._oldest_first(), slot], self._matrix[slot].clone()

    def move(self, source: int, target: int, length: int) -> None:
        self._ring[:, target] = self._ring[:, source]
        self._matrix[target] = self._matrix[source]

    def _gates(self, rate: Tensor, strength: Tensor) -> tuple[Tensor, Tensor]:
        """(log decay, beta), each [N, heads]."""
        return self._rate * F.softplus(rate.float() + self._shift), strength.sigmoid()

    def _out(self, mixed: Tensor, gate: Tensor) -> Tensor:
        """``mixed``, ``gate``: [N, heads × value]."""
        shape = (-1, self._heads, self._value)
        normed = self._norm(mixed.view(shape)) * F.silu(gate.reshape(shape).float())
        return self._outward.whole(normed.reshape(gate.shape).to(gate.dtype))

    def read(self, hidden: Tensor, packed: Packed) -> Tensor:
        mixed, gate, strength, rate = self._inward(hidden)
        rows = slice(packed.first, packed.first + packed.count)
        order = self._oldest_first()
        history = self._ring[order[1:], rows].transpose(0, 1)  # [count, taps - 1, channels]
        inputs = torch.cat((history, packed.pad(mixed)), dim=1)
        last = packed.new - 1 + torch.arange(self._taps, device=hidden.device)[:, None]  # [taps, count]
        self._ring[order, rows] = inputs[torch.arange(packed.count, device=hidden.device), last]
        convolved = self._convolve([inputs[:, tap : tap + packed.width] for tap in range(self._taps)])
        query, key, value = torch.split(convolved, self._channels, dim=-1)
        decay, beta = self._gates(rate, strength)
        # Where a row has no token, decay 0 (in logarithm) and beta 0 leave its matrix as it is.
        result, matrix = delta_rule(
            query.reshape(packed.count, packed.width, self._key_heads, self._key),
            key.reshape(packed.count, packed.width, self._key_heads, self._key),
            value.reshape(packed.count, packed.width, self._heads, self._value),
            packed.pad(decay),
            packed.pad(beta),
            state=self._matrix[rows],
        )
        self._matrix[rows] = matrix
        return self._out(packed.pack(result).reshape(hidden.shape[0], -1), gate)

    def _convolve(self, inputs: Sequence[Tensor]) -> Tensor:
        """Inputs of each tap, oldest first, [..., channels] each."""
        total = inputs[0] * self._taps_of[0]
        for each, weight in zip(inputs[1:], self._taps_of[1:], strict=True):
            total = torch.addcmul(total, each, weight)
        return F.silu(total if self._conv_bias is None else total + self._conv_bias)

    def step(self, hidden: Tensor, tick: Tick) -> Tensor:
        mixed, gate, strength, rate = self._inward(hidden)
        rows = tick.rows
        self._ring[self._phase, :rows] = mixed
        self._phase = (self._phase + 1) % self._taps
        order = self._oldest_first()
        convolved = self._convolve([self._ring[place, :rows] for place in order])
        split = 2 * self._channels[0]
        both = convolved[:, :split].reshape(rows, 2, self._key_heads, self._key).float()
        both = both * torch.rsqrt(both.square().sum(dim=-1, keepdim=True) + 1e-6)
        if self._heads != self._key_heads:
            both = both.repeat_interleave(self._heads // self._key_heads, dim=2)
        both = both.transpose(1, 2).reshape(rows * self._heads, 2, self._key)  # query, key
        decay, beta = self._gates(rate, strength)
        decay, beta = decay.exp().view(-1, 1), beta.reshape(-1, 1)
        value = convolved[:, split:].reshape(rows * self._heads, self._value).float()
        result = self._advance(both, value, decay, beta)
        return self._out(result.view(rows, -1).to(hidden.dtype), gate)

    def _advance(self, both: Tensor, value: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
        """One step of the delta rule for every matrix, in place → what the queries read, [rows × heads, value]."""
        matrices = self._matrix.flatten(0, 1)[: both.shape[0]]
        seen = torch.bmm(both, matrices) * decay[..., None]  # by query and key, before the update
        key = both[:, 1]
        delta = (value - seen[:, 1]) * beta
        matrices.mul_(decay[..., None]).baddbmm_(key[:, :, None], delta[:, None, :])
        overlap = (both[:, 0] * key).sum(dim=-1, keepdim=True)
        read: Tensor = torch.addcmul(seen[:, 0], overlap, delta) * self._key**-0.5
        return read


def _grown(old: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``old`` in the low corner of a larger tensor, zero where it is new."""
    new = old.new_zeros(shape)
    new[tuple(slice(size) for size in old.shape)] = old
    return new
