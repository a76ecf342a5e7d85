"""What holds in every sandbox of this machine, and what only namespaces give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frognano.sandbox import namespaces, runner
from frognano.sandbox.contract import OperationError, SandboxError, SandboxSpec
from frognano.sandbox.interior import package_folder
from frognano.sandbox.local import LocalBackend

RUNNER = Path(runner.__file__)


@pytest.fixture
def one(any_backend: LocalBackend, snapshot: Path, wait: Any) -> Any:
    sandbox = wait(any_backend.open(SandboxSpec(snapshot=snapshot)))
    yield sandbox
    wait(sandbox.close())


def test_a_change_inside_is_seen_inside_and_never_in_the_snapshot(
    one: Any, snapshot: Path, wait: Any, bash: Any
) -> None:
    wait(one.request("edit", {"path": "pkg/code.py", "old": "41", "new": "42"}, 10))
    assert "return 42" in wait(bash(one, "cat pkg/code.py"))
    assert "return 41" in (snapshot / "pkg" / "code.py").read_text()
    assert b"+    return 42" in wait(one.changes())


def test_python_and_git_work_inside(one: Any, wait: Any, bash: Any) -> None:
    done = "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm x && git status --short"
    assert wait(bash(one, f"python3 -c 'from pkg.code import answer; print(answer())'; {done}")) == "41\n"


def test_a_failed_operation_leaves_the_sandbox_usable(one: Any, wait: Any, bash: Any) -> None:
    with pytest.raises(OperationError) as failure:
        wait(one.request("read", {"path": "nowhere.py"}, 10))
    assert failure.value.kind == "FileNotFoundError"
    assert wait(bash(one, "echo still here")) == "still here\n"


def test_a_huge_file_comes_in_part_and_leaves_the_sandbox_usable(one: Any, wait: Any, bash: Any) -> None:
    wait(bash(one, "head -c 40000000 /dev/zero > zeros"))
    got = wait(one.request("get", {"path": "zeros"}, 60))
    assert got["size"] == 40_000_000
    assert len(got["content_b64"]) * 3 // 4 == runner.GET_LIMIT + 2
    read = wait(one.request("read", {"path": "zeros", "max_chars": 0}, 60))
    assert sum(map(len, read["lines"])) <= runner.READ_LIMIT
    assert wait(bash(one, "echo still here")) == "still here\n"


def test_a_silent_runner_is_lost_and_every_later_request_says_so(one: Any, wait: Any) -> None:
    with pytest.raises(SandboxError, match="did not answer 'bash' within"):
        wait(one.request("bash", {"command": "sleep 100", "timeout_s": 100}, 0.3))
    with pytest.raises(SandboxError):
        wait(one.request("ping", {}, 5))


def test_closing_twice_is_safe_and_a_closed_sandbox_refuses(one: Any, wait: Any) -> None:
    wait(one.close())
    wait(one.close())
    with pytest.raises(SandboxError):
        wait(one.request("ping", {}, 5))
    with pytest.raises(SandboxError):
        wait(one.changes())


def test_environment_and_working_directory_are_the_specs(backend: LocalBackend, snapshot: Path, wait: Any) -> None:
    spec = SandboxSpec(snapshot=snapshot, workdir="/testbed/repo", env={"PYTHONPATH": "src", "FLAVOUR": "a b"})

    async def use() -> dict[str, Any]:
        sandbox = await backend.open(spec)
        result = await sandbox.request("bash", {"command": "pwd; echo $PYTHONPATH $FLAVOUR", "timeout_s": 9}, 20)
        await sandbox.close()
        return result

    assert wait(use())["stdout"]["head"] == "/testbed/repo\nsrc a b\n"


@pytest.mark.parametrize("workdir", ["/usr", "/", "/etc/../usr/lib", "/proc", "/tmp", "/../app"])
def test_a_working_directory_over_the_system_is_refused(
    backend: LocalBackend, snapshot: Path, wait: Any, workdir: str
) -> None:
    with pytest.raises(SandboxError, match="cannot be used"):
        wait(backend.open(SandboxSpec(snapshot=snapshot, workdir=workdir)))


def test_pytest_runs_inside_and_only_pytest(sandbox: Any, wait: Any, bash: Any) -> None:
    test = "printf 'from pkg.code import answer\\ndef test_it():\\n    assert answer() == 41\\n' > test_code.py"
    assert "1 passed" in wait(bash(sandbox, f"{test}; python -m pytest -q -p no:cacheprovider"))
    said = wait(bash(sandbox, "for p in frognano pydantic hypothesis pip; do python3 -c import\\ $p; done"))
    assert said.count("ModuleNotFoundError") == 4


def test_extra_folders_are_importable_and_read_only(
    backend: LocalBackend, snapshot: Path, tmp_path: Path, wait: Any, bash: Any
) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "whatever.py").write_text("x = 7\n")

    async def use() -> str:
        sandbox = await backend.open(SandboxSpec(snapshot=snapshot, extra_paths=(tmp_path / "extra",)))
        said: str = await bash(sandbox, "python3 -c 'import whatever; print(whatever.x)'; touch /opt/extra/0/y")
        await sandbox.close()
        return said

    said = wait(use())
    assert said.startswith("7\n")
    assert "Read-only file system" in said


def test_a_package_folder_is_built_once_and_named_by_its_content(tmp_path: Path) -> None:
    first = package_folder(tmp_path, ("iniconfig",))
    assert (first / "iniconfig" / "__init__.py").is_file()
    assert package_folder(tmp_path, ("iniconfig",)) == first
    assert package_folder(tmp_path, ("pluggy",)) != first
    with pytest.raises(SandboxError, match="pip install no-such-package"):
        package_folder(tmp_path, ("no-such-package",))


def test_a_second_resident_may_have_pytest_imported(snapshot: Path, tmp_path: Path, wait: Any) -> None:
    from frognano.sandbox.local import Resident

    judge = tmp_path / "judge.py"
    judge.write_text("import pytest\n" + RUNNER.read_text())
    residents = {"runner": RUNNER, "judge": Resident(script=judge, flags=("-I", "-u"))}

    async def use() -> dict[str, Any]:
        async with LocalBackend(residents, warm=0) as backend:
            sandbox = await backend.open(SandboxSpec(snapshot=snapshot), "judge")
            return await sandbox.request("ping", {}, 10)

    assert wait(use())["pid"] == 1


def test_enforcement_names_what_is_in_force(any_backend: LocalBackend) -> None:
    said = any_backend.enforcement()
    assert {"isolation", "memory", "processes", "disk", "network"} <= set(said)
    assert all(said.values())


def test_without_isolation_everything_says_none(wait: Any) -> None:
    assert set(LocalBackend({"runner": RUNNER}, no_isolation=True).enforcement().values()) == {"NONE (--no-isolation)"}


def test_without_bubblewrap_it_refuses_and_names_the_way_out(monkeypatch: pytest.MonkeyPatch, wait: Any) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="apt-get install -y bubblewrap") as refusal:
        wait(LocalBackend({"runner": RUNNER}).__aenter__())
    assert "--no-isolation" in str(refusal.value)


@pytest.mark.parametrize(("user", "command"), [(0, "--cap-add SYS_ADMIN"), (1000, "sysctl -w")])
@pytest.mark.parametrize("said", ["bwrap: No permissions to create new namespace", "PermissionError: unshare"])
def test_forbidden_namespaces_are_explained_with_the_one_command(
    user: int, command: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert command in namespaces.explain(said)
    assert "--no-isolation" in namespaces.explain(said)
    assert "--no-isolation" not in namespaces.explain("bwrap: execvp: no such file")
