"""The gated delta rule over many tokens at once, for CPUs: few passes, products of small matrices.

Equations of Gated DeltaNet (Yang et al., arXiv 2412.06464) in the chunked form of its section 3.3: within a chunk the
updates are solved together as one triangular system, between chunks the state is carried. On other devices the model's
own kernel is used. Proven against the recurrence, token by token.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule

_EPSILON = 1e-6
_CHUNK = 32


def delta_rule(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, *, state: Tensor
) -> tuple[Tensor, Tensor]:
    """What the queries read, [rows, tokens, heads, value], and the state afterwards.

    ``query``, ``key``: [rows, tokens, key heads, key], not yet normalised. ``value``: [rows, tokens, heads, value].
    ``decay`` (logarithm), ``beta``: [rows, tokens, heads]; a token with 0 and 0 leaves the state as it is.
    ``state``: [rows, heads, key, value], not changed.
    """
    tokens = query.shape[1]
    if query.device.type != "cpu":
        found: tuple[Tensor, Tensor] = torch_chunk_gated_delta_rule(
            query,
            key,
            value,
            g=decay,
            beta=beta,
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        return found
    rows, _, heads, width = value.shape
    query, key = _unit(query) * query.shape[-1] ** -0.5, _unit(key)
    if heads != key.shape[2]:
        query, key = (each.repeat_interleave(heads // key.shape[2], dim=2) for each in (query, key))
    query, key, value = (_chunked(each) for each in (query, key, value.float()))
    within = _chunked(decay[..., None].float())[..., 0].cumsum(dim=-1)
    beta = _chunked(beta[..., None].float())
    read, matrix = _scan(query, key, value, within, beta, matrix=state.flatten(0, 1))
    read = read.view(-1, rows, heads, _CHUNK, width).permute(1, 0, 3, 2, 4).reshape(rows, -1, heads, width)
    return read[:, :tokens], matrix.view(state.shape)


def _unit(heads: Tensor) -> Tensor:
    heads = heads.float()
    return heads * torch.rsqrt(heads.square().sum(dim=-1, keepdim=True) + _EPSILON)


def _chunked(each: Tensor) -> Tensor:
    """[rows, tokens, heads, d] → [chunks, rows × heads, 32, d], zeros at the end."""
    rows, tokens, heads, width = each.shape
    each = F.pad(each, (0, 0, 0, 0, 0, -tokens % _CHUNK)).view(rows, -1, _CHUNK, heads, width)
    return each.permute(1, 0, 3, 2, 4).reshape(-1, rows * heads, _CHUNK, width)


def _scan(
    query: Tensor, key: Tensor, value: Tensor, within: Tensor, beta: Tensor, *, matrix: Tensor
) -> tuple[Tensor, Tensor]:
    """All inputs [chunks, M, size, ·]; ``within``: logarithm of the decay since the chunk began, [chunks, M, size]."""
    size = key.shape[2]
    later = torch.ones(size, size, dtype=torch.bool).triu_(1)
    between = (within[..., :, None] - within[..., None, :]).masked_fill_(later, float("-inf")).exp_()
    grown = within.exp()[..., None]
    across = key.transpose(2, 3).contiguous()
    attention = torch.matmul(query, across) * between
    system = torch.matmul(key, across).mul_(between).mul_(beta)
    wanted = torch.cat((value * beta, key * (beta * grown)), dim=-1)
    solved = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
    new, old = solved.split([value.shape[-1], key.shape[-1]], dim=-1)
    seeing = torch.cat((old, query * grown), dim=2)
    left = (within[..., -1:] - within).exp()
    across = across * left[..., None, :]
    ends = grown[:, :, -1:]
    read = torch.empty_like(value)
    for chunk in range(key.shape[0]):
        seen = torch.bmm(seeing[chunk], matrix)
        fresh = new[chunk] - seen[:, :size]
        torch.baddbmm(seen[:, size:], attention[chunk], fresh, out=read[chunk])
        matrix = torch.baddbmm(matrix * ends[chunk], across[chunk], fresh)
    return read, matrix
