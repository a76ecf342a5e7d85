"""Bash: a new shell each time, nothing waits for a person, nothing outlives its time, no output is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., str]
PROFILES = pytest.mark.parametrize("profile", ["leaf", "reference"])


def alive(marker: str) -> list[int]:
    """Processes whose command line holds ``marker``, zombies aside."""
    found = []
    for name in os.listdir("/proc"):
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
            if marker.encode() in line and int(name) != os.getpid():
                found.append(int(name))
        except OSError:
            continue
    return found


@PROFILES
def test_exit_code_and_both_streams(tool: Tool, profile: str) -> None:
    text = tool("Bash", profile, command="echo out; echo err >&2; exit 3")
    assert text == "Exit code: 3\nSTDOUT:\nout\n\nSTDERR:\nerr\n"


@PROFILES
def test_death_by_signal_is_a_negative_code(tool: Tool, profile: str) -> None:
    assert tool("Bash", profile, command="kill -9 $$") == "Exit code: -9\nSTDOUT:\n\nSTDERR:\n"


def test_the_shell_keeps_nothing_and_is_no_login_shell(tool: Tool, work: Path) -> None:
    tool("Bash", command="cd /; export KEPT=1")
    assert tool("Bash", command='pwd; echo "[$KEPT]"; shopt -q login_shell || echo plain') == (
        f"Exit code: 0\nSTDOUT:\n{work}\n[]\nplain\n\nSTDERR:\n"
    )
    assert "login" in tool("Bash", "reference", command="shopt -q login_shell && echo login")


def test_the_given_path_is_kept(tool: Tool) -> None:
    assert os.environ["PATH"] in tool("Bash", command="echo $PATH")


@PROFILES
def test_a_timeout_kills_everything_and_keeps_the_output(tool: Tool, profile: str) -> None:
    marker = f"time.sleep(60{os.getpid()})"
    python = f"python3 -c 'import time; {marker}'"
    command = f"echo begun; setsid {python} & (setsid {python} &); nohup {python} & {python}; true"
    text = tool("Bash", profile, command=command, timeout=2)
    assert text == "Timed out after 2.0s\nSTDOUT:\nbegun\n\nSTDERR:\n"
    assert alive(marker) == []


def test_stubborn_children_are_killed_too(tool: Tool) -> None:
    marker = f"time.sleep(61{os.getpid()})"
    script = "import os,signal,time; signal.signal(15, signal.SIG_IGN); os.fork(); os.setsid() if os.fork() else 0; "
    assert tool("Bash", command=f'python3 -c "{script}{marker}"', timeout=1).startswith("Timed out after 1.0s")
    assert alive(marker) == []


@PROFILES
def test_a_background_job_does_not_hold_the_answer(tool: Tool, profile: str) -> None:
    text = tool("Bash", profile, command="sleep 1000 & echo $!")
    assert text.startswith("Exit code: 0\n")
    job = int(text.split("\n")[2])
    os.kill(job, 9)


def test_a_background_job_lives_on_and_never_blocks_on_its_output(tool: Tool, work: Path) -> None:
    job = "for i in $(seq 300); do head -c 1000 /dev/zero; done; echo through > done; sleep 30"
    pid = int(tool("Bash", command=f"({job}) & echo $!").split("\n")[2])
    for _ in range(500):
        if (work / "done").exists():
            break
        time.sleep(0.02)
        tool("Bash", command="true")
    assert (work / "done").read_text() == "through\n"
    assert tool("Bash", command=f"kill {pid}; sleep 1000", timeout=0.2).startswith("Timed out after 0.2s")


def test_a_timeout_leaves_the_jobs_of_earlier_calls_alone(tool: Tool) -> None:
    pid = int(tool("Bash", command="sleep 1000 > /dev/null 2>&1 & echo $!").split("\n")[2])
    tool("Bash", command="sleep 1000", timeout=0.2)
    assert tool("Bash", command=f"kill {pid} && echo killed").split("\n")[2] == "killed"


@PROFILES
def test_bytes_that_are_not_utf8_lose_nothing(tool: Tool, profile: str) -> None:
    text = tool("Bash", profile, command=r"printf 'a\xff\xc3'; printf 'b\xe9' >&2; exit 4")
    assert text == "Exit code: 4\nSTDOUT:\na\ufffd\ufffd\nSTDERR:\nb\ufffd"


def test_carriage_returns_stay_in_leaf_and_become_newlines_in_the_reference(tool: Tool) -> None:
    assert tool("Bash", command=r"printf '1\r2\r\n'") == "Exit code: 0\nSTDOUT:\n1\r2\r\n\nSTDERR:\n"
    assert tool("Bash", "reference", command=r"printf '1\r2\r\n'") == "Exit code: 0\nSTDOUT:\n1\n2\n\nSTDERR:\n"


def resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_huge_output_is_cut_at_both_ends_in_bounded_memory(tool: Tool, sandbox: object) -> None:
    tool("Bash", command="true")
    command = "echo first; head -c 104857600 /dev/zero | tr '\\0' x; echo; echo last"
    pid = sandbox.process.pid  # type: ignore[attr-defined]
    before = resident_kib(pid)
    text = tool("Bash", command=command)
    assert resident_kib(pid) - before < 20_000
    assert len(text) < 30_200
    assert text.startswith("Exit code: 0\nSTDOUT:\nfirst\nxxx")
    assert text.endswith("xxx\nlast\n\nSTDERR:\n")
    cut = 104857600 + len("first\n\nlast\n") - (30_000 - len("Exit code: 0\nSTDOUT:\n\nSTDERR:\n"))
    assert f"\n[{cut} characters cut; to see them, send the output to a file and Read that]\n" in text


def test_an_endless_producer_is_stopped(tool: Tool) -> None:
    text = tool("Bash", command="yes", timeout=2)
    assert text.startswith("Timed out after 2.0s\nSTDOUT:\ny\ny\n")
    assert len(text) < 30_200


def test_a_long_log_does_not_push_out_the_errors(tool: Tool) -> None:
    text = tool("Bash", command="seq 100000; echo 'the reason' >&2; exit 1")
    assert text.startswith("Exit code: 1\nSTDOUT:\n1\n2\n")
    assert "\n100000\n" in text
    assert text.endswith("STDERR:\nthe reason\n")
    both = tool("Bash", command="seq 100000; seq 200000 >&2")
    assert "\n100000\n" in both
    assert both.endswith("\n200000\n")
    assert len(both) < 30_300


@pytest.mark.parametrize("command", ["seq 100000", "seq 100000 >&2", "seq 5000; seq 5000 >&2", "seq 3000"])
def test_the_reference_keeps_the_head_and_counts_the_rest(tool: Tool, command: str) -> None:
    out_text = "".join(_seq(part) for part in command.split(";") if ">&2" not in part)
    err = "".join(_seq(part) for part in command.split(";") if ">&2" in part)
    whole = f"Exit code: 0\nSTDOUT:\n{out_text}\nSTDERR:\n{err}"
    expected = whole if len(whole) <= 30000 else f"{whole[:30000]}\n[truncated {len(whole) - 30000} chars]"
    assert tool("Bash", "reference", command=command) == expected


def _seq(part: str) -> str:
    return "".join(f"{number}\n" for number in range(1, int(part.split()[1]) + 1))


@PROFILES
def test_nothing_waits_for_a_person(tool: Tool, work: Path, profile: str) -> None:
    git = "git -c user.name=a -c user.email=b@c"
    script = f"""
    git init -q . && echo 1 > f && git add f && {git} commit -qm one
    git checkout -qb other && echo 2 > f && {git} commit -qam two
    git checkout -q - && echo 3 > f && {git} commit -qam three
    {git} rebase other; echo 4 > f; git add f; {git} rebase --continue; git log; {git} commit --amend
    read line; cat; tty; python3 -c 'open("/dev/tty")'; echo end
    """
    text = tool("Bash", profile, command=script, timeout=60)
    assert text.startswith("Exit code: 0\n")
    assert "not a tty" in text
    assert "\nend\n" in text


@PROFILES
def test_unclosed_quotes_and_heredocs_return(tool: Tool, profile: str) -> None:
    assert "hi\n" in tool("Bash", profile, command="cat <<EOF\nhi", timeout=30)
    assert "unexpected EOF" in tool("Bash", profile, command='echo "abc', timeout=30)
    assert "a << b\n" in tool("Bash", profile, command="cat <<'EOF'\na << b\nEOF", timeout=30)


@PROFILES
def test_a_very_long_command_runs(tool: Tool, work: Path, profile: str) -> None:
    body = "0123456789\n" * 14_000
    assert tool("Bash", profile, command=f"cat > big <<'EOF'\n{body}EOF\nexit 5").startswith("Exit code: 5\n")
    assert (work / "big").read_text() == body


def test_a_command_does_not_find_itself_in_the_process_list(tool: Tool) -> None:
    text = tool("Bash", command="pkill -f a_name_nobody_has; echo $?")
    assert text == "Exit code: 0\nSTDOUT:\n1\n\nSTDERR:\n"


def test_a_nul_in_a_command_is_an_answer(tool: Tool) -> None:
    assert tool("Bash", command="echo a\0b") == "ValueError: embedded null byte"
    assert tool("Bash", command="") == "ValueError: command is required"


@pytest.mark.parametrize(
    "timeout", [-1, 0, "-1", "soon", 180000, float("nan"), float("inf"), 1e12, 3601, True, [1], "nan"]
)
def test_a_timeout_outside_the_rule_is_refused_and_nothing_runs(tool: Tool, work: Path, timeout: object) -> None:
    text = tool("Bash", command="touch ran", timeout=timeout)
    assert text.startswith("ValueError: timeout is in seconds, above 0 and at most 3600; ")
    assert text.endswith("The command was not run.")
    assert not (work / "ran").exists()


@pytest.mark.parametrize("timeout", [None, "30", 30, 3600, 0.5, ""])
def test_timeouts_inside_the_rule_run(tool: Tool, work: Path, timeout: object) -> None:
    assert tool("Bash", command="touch ran", timeout=timeout).startswith("Exit code: 0")
    assert (work / "ran").exists()


def test_leaf_takes_no_milliseconds(tool: Tool) -> None:
    assert "timeout_ms is not taken" in tool("Bash", command="true", timeout_ms=1000)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [({"timeout": 1001}, "1.0"), ({"timeout_ms": 300}, "0.3"), ({"timeout": 0}, "0.1"), ({"timeout": "0.2"}, "0.2")],
)
def test_the_reference_reads_timeouts_as_the_published_harness(
    tool: Tool, arguments: dict[str, object], shown: str
) -> None:
    assert tool("Bash", "reference", command="sleep 5", **arguments).startswith(f"Timed out after {shown}s\n")


def test_the_reference_answers_a_timeout_it_cannot_read(tool: Tool) -> None:
    expected = "ValueError: could not convert string to float: 'soon'"
    assert tool("Bash", "reference", command="true", timeout="soon") == expected
    assert tool("Bash", "reference", command="true", timeout="nan").startswith("ValueError: timeout must be finite")


def test_a_working_folder_that_is_gone_is_an_answer(tool: Tool, work: Path) -> None:
    work.rmdir()
    assert tool("Bash", command="true").startswith("FileNotFoundError: ")
    work.mkdir()
