"""``frognano solve`` from end to end: a model over HTTP, the sandbox, the patch, the user's repository."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from frognano.policy.scripted import say
from frognano.policy.scripted_server import Fault
from tests.cli.conftest import BROKEN, MEND, MENDED, Done, command, git, image, serving

pytestmark = pytest.mark.slow
Frognano = Callable[..., Done]
ISSUE = "double(2) gives 5 and should give 4"


def test_an_issue_becomes_a_patch_and_the_repository_stays_as_it_was(
    repo: Path, frognano: Frognano, tmp_path: Path
) -> None:
    before = image(repo)
    patch = tmp_path / "out.diff"
    with serving() as server:
        model = ("--base-url", server.base_url, "--model", "scripted", "--api-key-env", "FROG_KEY")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model, "--patch", str(patch))
    assert done.code == 0, done.err
    assert image(repo) == before
    assert "-    return x + 3\n+    return x + x\n" in patch.read_text()
    assert (
        done.out.index("turn 1") < done.out.index("turn 2") < done.out.index("turn 3") < done.out.index("ended: agent")
    )
    assert "calls Edit" in done.out
    assert "A person must review it" in done.out
    git(repo, "apply", str(patch))
    assert (repo / "calc.py").read_text() == MENDED


def test_the_key_is_in_no_log_no_output_and_not_in_the_sandbox(repo: Path, frognano: Frognano, tmp_path: Path) -> None:
    look = say("", ("Bash", {"command": "env; cat /proc/*/environ | tr '\\0' '\\n'"}))
    with serving((look, *MEND)) as server:
        model = ("--base-url", server.base_url, "--model", "scripted", "--api-key-env", "FROG_KEY")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model)
        assert "sk-very-secret" in server.keys
    assert done.code == 0, done.err
    assert "sk-very-secret" not in done.out + done.err
    left = [path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert left
    assert not any(b"sk-very-secret" in data for data in left)


def test_apply_writes_the_patch_into_the_repository(repo: Path, frognano: Frognano) -> None:
    (repo / "notes.txt").write_text("untracked\n")
    with serving() as server:
        model = ("--base-url", server.base_url, "--model", "scripted")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model, "--apply")
    assert done.code == 0, done.err
    assert (repo / "calc.py").read_text() == MENDED
    assert "not as committed: 0 changed, 1 untracked" in done.out


def test_apply_refuses_when_the_repository_changed_meanwhile(repo: Path, surroundings: dict[str, str]) -> None:
    slow = (say("", ("Bash", {"command": "sleep 4"})), *MEND)
    with serving(slow) as server:
        model = ("--base-url", server.base_url, "--model", "scripted", "--apply")
        line = command("solve", "--repo", str(repo), "--issue", ISSUE, *model)
        running = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings)
        assert running.stdout is not None
        while "sandbox" not in running.stdout.readline():
            pass
        (repo / "calc.py").write_text("mine\n")
        _, err = running.communicate()
    assert running.returncode == 2
    assert "changed while the model worked" in err
    assert (repo / "calc.py").read_text() == "mine\n"


PASSING: tuple[Fault, ...] = (
    *("rate_limited", "server_error", "unavailable", "cut_stream", "cut_body", "empty_reply", "empty_choices"),
    *("not_json", "wrong_finish", "refused_field", "no_ids", "error_in_stream", "object_arguments"),
)
ENDING: tuple[Fault, ...] = ("unauthorized", "not_found", "refused_history", "context_overflow")
ANSWERED: tuple[Fault, ...] = ("broken_arguments", "doubled_arguments", "call_as_text")


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_of_the_server_that_passes_does_not_stop_the_work(repo: Path, frognano: Frognano, fault: Fault) -> None:
    with serving(faults=(fault,)) as server:
        model = ("--base-url", server.base_url, "--model", "scripted")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model)
    assert done.code == 0, done.out + done.err
    assert "return x + x" in done.out


@pytest.mark.parametrize("fault", ENDING)
def test_a_fault_that_does_not_pass_ends_with_one_line_and_no_traceback(
    repo: Path, frognano: Frognano, fault: Fault
) -> None:
    with serving(faults=(fault,) * 20) as server:
        model = ("--base-url", server.base_url, "--model", "scripted", "--api-key-env", "FROG_KEY")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model)
    assert done.code == 1, done.out
    assert "sk-very-secret" not in done.out + done.err
    assert (repo / "calc.py").read_text() == BROKEN


@pytest.mark.parametrize("fault", ANSWERED)
def test_a_reply_that_is_damaged_never_damages_the_repository(repo: Path, frognano: Frognano, fault: Fault) -> None:
    with serving(faults=(fault,)) as server:
        model = ("--base-url", server.base_url, "--model", "scripted")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model)
    assert done.code in (0, 1)
    assert (repo / "calc.py").read_text() == BROKEN


def test_an_unreachable_server_is_named(repo: Path, frognano: Frognano) -> None:
    model = ("--base-url", "http://127.0.0.1:1/v1", "--model", "none", "--retries", "0")
    done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model)
    assert done.code == 1
    assert "frognano: the model could not be asked: check --base-url" in done.err


def test_ctrl_c_stops_leaves_the_log_and_says_how_to_go_on(repo: Path, surroundings: dict[str, str]) -> None:
    before = image(repo)
    with serving((say("", ("Bash", {"command": "sleep 600"})),)) as server:
        model = ("--base-url", server.base_url, "--model", "scripted")
        line = command("solve", "--repo", str(repo), "--issue", ISSUE, *model)
        running = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=surroundings)
        assert running.stdout is not None
        while "sandbox" not in running.stdout.readline():
            pass
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
    assert running.returncode == 130
    assert "the repository was not touched" in out
    assert "frognano solve --repo" in err
    assert "Traceback" not in err
    assert image(repo) == before


def test_a_folder_without_git_is_worked_on_too(tmp_path: Path, frognano: Frognano) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "calc.py").write_text(BROKEN)
    with serving() as server:
        model = ("--base-url", server.base_url, "--model", "scripted", "--apply")
        done = frognano("solve", "--repo", str(plain), "--issue", ISSUE, *model)
    assert done.code == 0, done.err
    assert (plain / "calc.py").read_text() == MENDED


def test_no_isolation_runs_on_a_copy_and_says_what_it_is(repo: Path, frognano: Frognano) -> None:
    with serving() as server:
        model = ("--base-url", server.base_url, "--model", "scripted", "--no-isolation")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model)
    assert done.code == 0, done.err
    assert "NONE: the model's commands run as you" in done.out
    assert (repo / "calc.py").read_text() == BROKEN


def test_what_the_model_writes_cannot_steer_the_terminal(repo: Path, frognano: Frognano) -> None:
    with serving((say("\x1b[2Jred\x1b]0;title\x07"),)) as server:
        model = ("--base-url", server.base_url, "--model", "scripted")
        done = frognano("solve", "--repo", str(repo), "--issue", ISSUE, *model)
    assert done.code == 1
    assert "\x1b" not in done.out
    assert "there is no patch" in done.out


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "empty issue": (("--issue", "  "), "the issue is empty"),
    "missing file": (("--issue", "nothing.md"), "there is no such file"),
    "missing repository": (("--issue", ISSUE, "--repo", "/nowhere/at/all"), "/nowhere/at/all"),
    "no model": (("--issue", ISSUE), "--base-url URL --model NAME"),
    "two models": (("--issue", ISSUE, "--checkpoint", "x", "--model", "y"), "not both"),
    "no such key": (
        ("--issue", ISSUE, "--base-url", "http://x/v1", "--model", "y", "--api-key-env", "NOT_SET"),
        "NOT_SET",
    ),
    "no such checkpoint": (("--issue", ISSUE, "--checkpoint", "/nowhere"), "/nowhere"),
    "bad profile": (("--issue", ISSUE, "--profile", "loaf"), "profile"),
    "no url": (("--issue", ISSUE, "--base-url", "localhost:1", "--model", "y"), "http://"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_one_line(repo: Path, frognano: Frognano, case: str) -> None:
    arguments, said = BAD[case]
    done = frognano("solve", *(() if "--repo" in arguments else ("--repo", str(repo))), *arguments)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) <= 2
