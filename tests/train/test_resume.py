"""Checkpoints and resume: whatever the moment of the kill, the climb goes on as if nothing had happened."""

import asyncio
import ctypes
import json
import multiprocessing
import os
import shutil
import time
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from frognano.config.train import OptimizerSettings, TrainSettings
from frognano.policy.checkpoint import load_model
from frognano.rollout.journal import DiskFull, RunLocked
from frognano.train.checkpoint import CheckpointError, CheckpointStore, check_manifest
from frognano.train.update import Learner


def settings(**changes):
    values = {"updates": 4, "groups": 3, "group_size": 4, "max_lag": 0, "validation_cadence": 0}
    return TrainSettings(optimizer=OptimizerSettings(lr=1e-2), **(values | changes))


def save(model, folder):
    model.save_pretrained(folder)


def finish(make_climb, **changes):
    climb = make_climb(settings(**changes))
    climb.source.journaled = True
    return climb, asyncio.run(climb.run())


def weights(climb):
    return {name: tensor.clone() for name, tensor in climb.learner.model.state_dict().items()}


def outcome(climb):
    """What must not depend on whether the run was killed."""
    tasks = [
        (group.seq, group.task_id, group.state, group.reason, group.number) for group in climb.journal.groups("one")
    ]
    timed = {"waited_s", "update_s", "tokens_per_s"}
    metrics = [
        {key: value for key, value in entry.metrics.items() if key not in timed}
        for entry in climb.journal.updates("one")
    ]
    return tasks, metrics


class Killed(Exception):
    """Stands for a kill: the climb does not know it."""


def kill_at(climb, place, number):
    """Die in update ``number`` at a named place of the climb."""
    owner, name = {
        "in the step": (climb.learner, "step"),
        "before the checkpoint": (climb.store, "write"),
        "before the commit": (climb.journal, "commit_update"),
        "before the hand-over": (climb.source, "hand_over"),
        "while a group is journaled": (climb.journal, "add_episode"),
        "while a group is dropped": (climb.journal, "drop_group"),
    }[place]
    original, calls = getattr(owner, name), iter(range(1000))
    limit = number * 7 if "group" in place else number
    limit = 0 if "dropped" in place else limit

    def dying(*args, **kwargs):
        if next(calls) >= limit:
            raise Killed
        return original(*args, **kwargs)

    setattr(owner, name, dying)


PLACES = [
    "in the step",
    "before the checkpoint",
    "before the commit",
    "before the hand-over",
    "while a group is journaled",
    "while a group is dropped",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_climb_killed_anywhere_ends_bit_equal_at_lag_zero(make_climb, tmp_path, place):
    undisturbed, result = finish(make_climb)
    expected, manifest = weights(undisturbed), outcome(undisturbed)
    undisturbed.journal.close()
    shutil.rmtree(tmp_path / "run")
    climb = make_climb(settings())
    climb.source.journaled = True
    kill_at(climb, place, 1)
    with pytest.raises(Killed):
        asyncio.run(climb.run())
    resumed, again = finish(make_climb)
    assert again == result
    assert outcome(resumed) == manifest
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(resumed).items())


def run_in_child(make_climb, change):
    def work():
        climb = make_climb(settings(**change))
        climb.source.journaled = True
        climb.source.delay_s = 0.01
        asyncio.run(climb.run())

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


@pytest.mark.slow
@pytest.mark.parametrize("max_lag", [0, 1])
def test_a_climb_killed_with_signal_nine_again_and_again_loses_and_repeats_nothing(make_climb, tmp_path, max_lag):
    change = {"max_lag": max_lag, "updates": 6}
    database = tmp_path / "run" / "journal.sqlite"
    kills = 0
    for attempt in range(5):
        process = run_in_child(make_climb, change)
        while not database.exists() and process.is_alive():
            time.sleep(0.01)
        time.sleep(0.05 + 0.13 * attempt)
        process.kill()
        process.join()
        kills += process.exitcode == -9
    climb, result = finish(make_climb, **change)
    assert kills > 0
    assert result.updates == 6
    groups, updates = climb.journal.groups("one"), climb.journal.updates("one")
    assert [entry.number for entry in updates] == [1, 2, 3, 4, 5, 6]
    assert [group.seq for group in groups] == list(range(len(groups))), "no task is passed over"
    assert all(group.state != "started" for group in groups)
    assert sum(group.state == "consumed" for group in groups) == sum(entry.metrics["groups"] for entry in updates)
    assert all(entry.metrics["lag_over"] == 0 for entry in updates)
    if max_lag == 0:
        expected = weights(climb)
        climb.journal.close()
        shutil.rmtree(tmp_path / "run")
        undisturbed, _ = finish(make_climb, **change)
        assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(undisturbed).items())


def test_resuming_a_finished_climb_does_nothing_more(make_climb):
    first, result = finish(make_climb)
    expected = weights(first)
    again, repeated = finish(make_climb)
    assert repeated == result
    assert again.source.started == []
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(again).items())


def test_a_second_process_on_the_run_is_refused(make_climb):
    climb, _ = finish(make_climb)
    with pytest.raises(RunLocked):
        type(climb.journal)(climb.journal.folder, climb.journal.recipe)


def test_finished_episodes_are_not_run_again(make_climb):
    climb = make_climb(settings(updates=1))
    climb.source.journaled = True
    kill_at(climb, "in the step", 0)
    with pytest.raises(Killed):
        asyncio.run(climb.run())
    resumed = make_climb(settings(updates=1))
    ran = []
    original = resumed.source.episode
    resumed.source.episode = lambda *args: ran.append(args[1]) or original(*args)
    asyncio.run(resumed.run())
    assert ran == []
    assert resumed.journal.updates("one")[0].metrics["groups"] == 3


def test_a_damaged_checkpoint_is_refused_by_name(make_climb):
    climb, result = finish(make_climb, updates=1)
    folder = climb.store.folder(result.last)
    check_manifest(folder)
    state = folder / "trainer.pt"
    state.write_bytes(state.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match=r"one-u00001 is damaged: trainer\.pt"):
        asyncio.run(make_climb(settings(updates=1)).run())
    shutil.rmtree(folder)
    with pytest.raises(CheckpointError, match="one-u00001 is missing"):
        asyncio.run(make_climb(settings(updates=1)).run())


def test_half_written_and_unjournaled_checkpoints_are_cleaned(make_climb):
    climb, _ = finish(make_climb, updates=2)
    for name in (".partial-one-u00003", "one-u00003", "two-u00001"):
        (climb.store.root / name).mkdir()
    asyncio.run(make_climb(settings(updates=2)).run())
    assert sorted(folder.name for folder in climb.store.root.iterdir()) == ["one-u00002", "two-u00001"]


def test_the_same_checkpoint_can_be_written_again(make_climb):
    climb, _ = finish(make_climb, updates=1)
    before = (climb.store.folder("one-u00001") / "manifest.json").read_text()
    assert climb.store.write("one", 1, climb.learner) == "one-u00001"
    assert (climb.store.folder("one-u00001") / "manifest.json").read_text() == before


def test_a_failed_write_leaves_the_checkpoint_before_it_and_nothing_half_done(make_climb):
    climb, result = finish(make_climb, updates=1)

    def broken(model, folder):
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    climb.store._save_model = broken
    with pytest.raises(DiskFull, match="the one before it is intact"):
        climb.store.write("one", 2, climb.learner)
    assert [folder.name for folder in climb.store.root.iterdir()] == ["one-u00001"]
    check_manifest(climb.store.folder(result.last))


def on_a_small_disk(folder, megabytes, work):
    """Call ``work`` in a child whose ``folder`` is a disk of its own; returns what it put, or why there is none."""
    queue = multiprocessing.get_context("fork").SimpleQueue()

    def child():
        libc, uid, gid = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
        new_user, new_mounts = 0x10000000, 0x00020000
        if libc.unshare(new_user | new_mounts):
            queue.put(f"no namespaces here: {os.strerror(ctypes.get_errno())}")
            return
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={megabytes}m".encode()):
            queue.put(f"no tmpfs here: {os.strerror(ctypes.get_errno())}")
            return
        queue.put(work())

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    return queue.get() if not queue.empty() else f"the child ended with {process.exitcode}"


def test_a_disk_that_really_is_full_leaves_every_checkpoint_before_it(make_climb, tmp_path):
    learner = make_climb(settings()).learner
    (tmp_path / "small").mkdir()

    def work():
        store = CheckpointStore(tmp_path / "small" / "checkpoints", save, type(learner.model).from_pretrained)
        written = []
        try:
            for number in range(1, 200):
                written.append(store.write("c", number, learner))
        except DiskFull:
            store.restore(written[-1], learner)
            return written, sorted(folder.name for folder in store.root.iterdir())
        return "the disk never filled up"

    found = on_a_small_disk(tmp_path / "small", 2, work)
    if isinstance(found, str) and found.startswith("no "):
        pytest.skip(found)
    written, left = found
    assert len(written) > 2
    assert left == written


def test_the_model_in_a_checkpoint_loads_like_any_other(make_climb, tiny_model):
    climb, result = finish(make_climb, updates=1)
    folder = climb.store.folder(result.last) / "model"
    loaded = type(climb.learner.model).from_pretrained(folder)
    ids = torch.tensor([[1, 2, 3, 4]])
    torch.testing.assert_close(loaded(input_ids=ids).logits, climb.learner.model(input_ids=ids).logits)
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"]


def test_a_checkpoint_has_the_format_of_the_folder_the_model_came_from(tiny_model, random_groups, tmp_path):
    base = tmp_path / "base"
    tiny_model("hybrid").save_pretrained(base)
    words = {"<pad>": 0, "<|im_end|>": 1} | {f"w{index}": index for index in range(2, 64)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>").save_pretrained(base)
    (base / "chat_template.jinja").write_text("{{ messages }}")
    loaded = load_model(base)
    learner = Learner(loaded.model, settings(), pad_id=loaded.pad_id)
    learner.step(random_groups())
    store = CheckpointStore.of(tmp_path / "checkpoints", loaded)
    folder = store.folder(store.write("one", 1, learner)) / "model"
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"):
        assert (folder / name).read_bytes() == (base / name).read_bytes()
    resumed = Learner(load_model(base).model, settings())
    store.restore("one-u00001", resumed)
    for one in (learner, resumed):
        one.step(random_groups(seed=1))
    ours, theirs = learner.model.state_dict(), resumed.model.state_dict()
    assert resumed.version == 2
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
