"""Our update step against TRL's DPPO trainer on the same scripted trajectories, in one run.

    python perf/update_step.py                # vocabulary 512, 0.85M parameters, 4 groups of 8, about 16k tokens
    python perf/update_step.py --case large   # vocabulary 248,320, 16M parameters, 4 trajectories, about 1.9k tokens

Each side runs in a process of its own on one thread. Printed are CPU-seconds of a step, tokens per CPU-second, peak
memory of the process (and what it held before the first step), gradient norms, and the ratios. CPU-seconds, not wall
time, because machines are shared. The rival is TRL 1.8.0, a release that has that trainer (`pip install trl==1.8.0`);
without it our side is printed alone. The target: 1.5 times (large: 5) the tokens per CPU-second at half the memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

GIB = 1 << 20
TARGETS = {"small": 1.5, "large": 5.0}


@dataclass(frozen=True)
class Case:
    """One model and one batch."""

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    groups: int
    group_size: int
    length: int
    micro_batch_tokens: int
    rival_rows: int
    """Rows of a micro-batch of the rival: its default of 8, or fewer where memory asks for it."""


CASES = {
    "small": Case(512, 128, 384, 4, 4, 8, 512, 2048, 8),
    "large": Case(248_320, 64, 128, 2, 2, 2, 480, 512, 1),
}


@dataclass(frozen=True)
class Script:
    """One scripted trajectory of four turns; log-probabilities are those of a uniform policy, slightly moved."""

    prompt: list[int]
    completion: list[int]
    mask: list[int]
    logprobs: list[float]
    reward: float


def scripts(case: Case, seed: int = 0) -> list[list[Script]]:
    """The batch, group by group; about 38 % of the tokens are sampled ones."""
    source = random.Random(seed)
    groups = []
    for _ in range(case.groups):
        prompt = [source.randrange(4, case.vocabulary) for _ in range(case.length // 8)]
        groups.append([_script(case, source, prompt, float(member % 2)) for member in range(case.group_size)])
    return groups


def _script(case: Case, source: random.Random, prompt: list[int], reward: float) -> Script:
    mask: list[int] = []
    for turn in range(4):
        mask += [1] * source.randint(case.length // 14, case.length // 8)
        mask += [0] * source.randint(case.length // 9, case.length // 5) if turn < 3 else []
    completion = [source.randrange(4, case.vocabulary) for _ in mask]
    uniform = -math.log(case.vocabulary)
    logprobs = [uniform + source.uniform(-0.1, 0.1) if sampled else 0.0 for sampled in mask]
    return Script(prompt, completion, mask, logprobs, reward)


def build_model(case: Case) -> Any:
    """The same random Qwen3 on both sides."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=case.vocabulary,
        hidden_size=case.hidden,
        intermediate_size=case.intermediate,
        num_hidden_layers=case.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=case.hidden // 4,
        tie_word_embeddings=True,
        max_position_embeddings=4096,
    )
    return Qwen3ForCausalLM(config)


def ours(case: Case, steps: int) -> dict[str, Any]:
    """Our learner, with the rival's advantage (sample deviation, 1e-4) so that gradients can be compared."""
    from frognano.config.train import AdvantageSettings, TrainSettings
    from frognano.records import TokenRow, Trajectory, Verdict, VersionSpan
    from frognano.train.batch import make_group
    from frognano.train.update import Learner

    settings = TrainSettings(
        micro_batch_tokens=case.micro_batch_tokens, advantage=AdvantageSettings(std="sample", eps=1e-4)
    )
    groups = []
    for index, group in enumerate(scripts(case)):
        members = [
            Trajectory(
                id=f"{index}-{member}",
                task_id=str(index),
                exit_reason="agent",
                verdict=Verdict(reward=one.reward),
                tokens=TokenRow(
                    ids=tuple(one.prompt + one.completion),
                    mask=tuple([0] * len(one.prompt) + one.mask),
                    logprobs=tuple([0.0] * len(one.prompt) + one.logprobs),
                    spans=(VersionSpan(start=0, version=0),),
                ),
            )
            for member, one in enumerate(group)
        ]
        groups.append(make_group(f"g{index}", str(index), members, settings))
    learner = Learner(build_model(case), settings)
    before = peak()
    norms, seconds = [], []
    for _ in range(steps):
        start = time.process_time()
        norms.append(learner.step(groups).grad_norm)
        seconds.append(time.process_time() - start)
    return {"seconds": seconds, "norms": norms, "peak": peak(), "before": before}


def rival(case: Case, steps: int) -> dict[str, Any]:
    """TRL's DPPO trainer, fed by a rollout function; gradient checkpointing off, as on our side."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, TrainerCallback
    from trl.experimental.dppo import DPPOConfig, DPPOTrainer

    batch = scripts(case)
    words = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {f"w{index}": index for index in range(3, case.vocabulary)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<unk>")),
        pad_token="<pad>",
        eos_token="<eos>",
        padding_side="left",
    )
    found: dict[str, list[float]] = {"seconds": [], "norms": []}

    def rollout(prompts: list[str], _trainer: Any) -> dict[str, Any]:
        seen: dict[str, int] = {}
        picked = []
        for prompt in prompts:
            picked.append(batch[int(prompt)][seen.setdefault(prompt, 0)])
            seen[prompt] += 1
        return {
            "prompt_ids": [one.prompt for one in picked],
            "completion_ids": [one.completion for one in picked],
            "logprobs": [one.logprobs for one in picked],
            "env_mask": [one.mask for one in picked],
            "scripted_reward": [one.reward for one in picked],
        }

    class Clock(TrainerCallback):
        def on_step_begin(self, *_args: Any, **_kwargs: Any) -> None:
            found["seconds"].append(time.process_time())

        def on_step_end(self, *_args: Any, **_kwargs: Any) -> None:
            found["seconds"][-1] = time.process_time() - found["seconds"][-1]

        def on_log(self, *_args: Any, logs: dict[str, float], **_kwargs: Any) -> None:
            if "grad_norm" in logs:
                found["norms"].append(float(logs["grad_norm"]))

    rows = case.groups * case.group_size
    with tempfile.TemporaryDirectory() as folder:
        config = DPPOConfig(
            output_dir=folder,
            per_device_train_batch_size=case.rival_rows,
            gradient_accumulation_steps=rows // case.rival_rows,
            num_generations=case.group_size,
            max_completion_length=4096,
            max_steps=steps,
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            adam_beta2=0.98,
            weight_decay=0.1,
            max_grad_norm=1.0,
            epsilon=0.2,
            epsilon_high=0.2,
            clip_ratio_c=1e4,
            beta=0.0,
            logging_steps=1,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
            report_to=[],
            save_strategy="no",
        )
        trainer = DPPOTrainer(
            model=build_model(case),
            reward_funcs=lambda scripted_reward, **_kwargs: scripted_reward,
            args=config,
            train_dataset=[{"prompt": str(index)} for index in range(case.groups)],
            processing_class=tokenizer,
            rollout_func=rollout,
            callbacks=[Clock()],
        )
        before = peak()
        trainer.train()
    return {**found, "peak": peak(), "before": before}


def peak() -> float:
    """Peak resident memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB


def run_side(side: str, case: str, steps: int) -> dict[str, Any] | None:
    """Run one side in its own process; None when the rival is not installed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, __file__, "--side", side, "--case", case, "--steps", str(steps)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        if side == "rival" and "ModuleNotFoundError" in done.stderr:
            print(f"rival left out: {done.stderr.strip().splitlines()[-1]}")
            return None
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def report(case_name: str, steps: int) -> None:
    """Run both sides and print the comparison."""
    case = CASES[case_name]
    groups = scripts(case)
    tokens = sum(len(one.prompt) + len(one.completion) for group in groups for one in group)
    trained = sum(sum(one.mask) for group in groups for one in group)
    print(f"{case_name}: {tokens} tokens a step, {trained} of them trained, {steps} steps, the first one is warm-up")
    results = {side: run_side(side, case_name, steps) for side in ("ours", "rival")}
    print(f"{'':8} {'CPU-s/step':>10} {'tok/CPU-s':>10} {'peak GiB':>9} {'before':>7}  gradient norms")
    for side, found in results.items():
        if found is not None:
            best = min(found["seconds"][1:] or found["seconds"])
            norms = " ".join(f"{norm:.5f}" for norm in found["norms"])
            print(f"{side:8} {best:10.2f} {tokens / best:10.0f} {found['peak']:9.2f} {found['before']:7.2f}  {norms}")
    left, right = results["ours"], results["rival"]
    if left is not None and right is not None:
        speed = min(right["seconds"][1:] or right["seconds"]) / min(left["seconds"][1:] or left["seconds"])
        memory = left["peak"] / right["peak"]
        print(f"speed ×{speed:.2f} (target ×{TARGETS[case_name]}), memory ×{memory:.2f} (target ×0.50)")


def main() -> None:
    """Parse arguments; a child prints JSON, the parent the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=sorted(CASES), default="small")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--side", choices=["ours", "rival"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side is None:
        report(options.case, options.steps)
        return
    import torch

    torch.set_num_threads(1)
    work = ours if options.side == "ours" else rival
    print(json.dumps(work(CASES[options.case], options.steps)))


if __name__ == "__main__":
    main()
