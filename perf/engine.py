"""Tokens per second of the in-process engine, beside plain transformers decoding of the same batch, in one run.

    python perf/engine.py [--rows 64] [--turns 3] [--layers 6] [--threads 1]

A random hybrid of width 128 (gated DeltaNet and gated attention alternating, vocabulary 1,024) plays episodes: a shared
prompt, then turns of a few dozen sampled tokens with short answers between them. CPU seconds of the worker count, not
wall seconds, so that a busy machine disturbs less. The rival decodes one left-padded batch of the same rows with the
model's own cache and forward pass, without prompts, turns, or leaving rows: a favour to it.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from typing import Any

import torch
from transformers import DynamicCache, Qwen3_5ForCausalLM, Qwen3_5TextConfig
from transformers.utils.logging import set_verbosity_error

from frognano.config.engine import EngineSettings
from frognano.policy.batch import Batch
from frognano.policy.contract import Sampling
from frognano.policy.engine import TorchEngine

PROMPT, ANSWER, TURN = 180, 50, 32


def make_model(layers: int) -> Any:
    """About 0.25M parameters a layer."""
    torch.manual_seed(0)
    config = Qwen3_5TextConfig(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        linear_num_key_heads=4,
        linear_num_value_heads=4,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        layer_types=(["linear_attention", "full_attention"] * layers)[:layers],
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [2, 1, 1],
        },
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    return Qwen3_5ForCausalLM(config).eval()


def ids(seed: int, length: int) -> list[int]:
    return torch.randint(0, 1024, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def episodes(model: Any, rows: int, turns: int) -> tuple[int, float, float]:
    """Sampled tokens, CPU seconds of the process, wall seconds, for whole episodes through the engine."""
    engine = TorchEngine(model, EngineSettings(max_rows=rows, wave=True))
    engine.start()
    engine.announce(rows)
    talks = [engine.open(Sampling(seed=number)) for number in range(rows)]
    cpu, wall = time.process_time(), time.perf_counter()
    for turn in range(turns):
        new = [ids(number // 8, PROMPT) if turn == 0 else ids(number + turn, ANSWER) for number in range(rows)]
        answers = [
            engine.submit(talk, text, TURN - 8 + number % 17, frozenset())
            for number, (talk, text) in enumerate(zip(talks, new, strict=True))
        ]
        for answer in answers:
            answer.result()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    engine.stop()
    return engine.stats().sampled_tokens, cpu, wall


@torch.inference_mode()
def steps(model: Any, rows: int, reach: int, count: int) -> float:
    """CPU seconds of one engine step (draw and read) of ``rows`` rows that hold ``reach`` tokens."""
    engine = TorchEngine(model, EngineSettings(max_rows=rows))
    batch: Batch = engine._batch
    runner = batch._runner
    logits = torch.cat([runner.join([None] * 8, [ids(8 * k + n, reach) for n in range(8)]) for k in range(rows // 8)])
    from frognano.policy.sampler import RowSampler

    sampler = RowSampler([Sampling(seed=n) for n in range(rows)], [0] * rows, logits.device)
    for _ in range(3):
        logits = runner.step(sampler.draw(logits)[0])
    started = time.process_time()
    for _ in range(count):
        logits = runner.step(sampler.draw(logits)[0])
    return (time.process_time() - started) / count


@torch.inference_mode()
def plain_steps(model: Any, rows: int, reach: int, count: int) -> float:
    """The same with the model's own forward pass, sampling by multinomial."""
    cache = DynamicCache(config=model.config)
    text = torch.tensor([ids(n, reach) for n in range(rows)])
    logits = model(input_ids=text, cache=cache, use_cache=True, logits_to_keep=1).logits[:, -1]

    def step(logits: torch.Tensor) -> torch.Tensor:
        drawn = torch.multinomial(torch.softmax(logits, dim=-1), 1)
        torch.log_softmax(logits, dim=-1).gather(1, drawn)
        return model(input_ids=drawn, cache=cache, use_cache=True, logits_to_keep=1).logits[:, -1]

    for _ in range(3):
        logits = step(logits)
    started = time.process_time()
    for _ in range(count):
        logits = step(logits)
    return (time.process_time() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    set_verbosity_error()
    model = make_model(arguments.layers)
    count = sum(parameter.numel() for parameter in model.parameters())
    load = os.getloadavg()[0]
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}, load {load:.1f}")
    print(f"{count / 1e6:.2f}M parameters, {arguments.rows} rows, {arguments.threads} threads")
    reach = PROMPT + TURN
    plain = plain_steps(make_model(arguments.layers), arguments.rows, reach, arguments.steps)
    ours = steps(make_model(arguments.layers), arguments.rows, reach, arguments.steps)
    again = plain_steps(make_model(arguments.layers), arguments.rows, reach, arguments.steps)
    plain = min(plain, again)
    print(f"one step:  engine {1e3 * ours:.1f} CPU ms = {arguments.rows / ours:,.0f} tokens per CPU second")
    print(f"           transformers {1e3 * plain:.1f} CPU ms = {arguments.rows / plain:,.0f}; ratio {plain / ours:.1f}")
    sampled, cpu, wall = episodes(model, arguments.rows, arguments.turns)
    print(f"episodes:  {sampled} tokens sampled, {sampled / cpu:,.0f} per CPU second, {sampled / wall:,.0f} per second")


if __name__ == "__main__":
    main()
