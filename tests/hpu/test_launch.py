# SPDX-License-Identifier: Apache-2.0
"""Tests the variables, exit codes and errors of hccl-hpu, and that it leaves no files or
processes."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emulation import HCCL_HPU, hccl_hpu, hccl_hpu_apart, private
from launcher import Program, environment, session_members, wait_until

NOTICE = "hccl-hpu: emulated Gaudi devices, which compute on the CPU; not a product of Intel or Habana"

# Prints a line in one short write, so that the ranks' lines do not mix.
SHOW = """
import json, os, sys
names = ("HCCL_", "HABANA_", "OMP_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_", "NODE_RANK", "TORCH_DEVICE", "PATH", "PYTHONPATH")
shown = {"arguments": sys.argv[1:], "path": sys.path[:4]} | {name: os.environ[name] for name in os.environ if name.startswith(names)}
os.write(1, (json.dumps(shown) + "\\n").encode())
"""

END = """
import os, sys
if os.environ.get("RANK", "0") == sys.argv[1]:
    os.kill(os.getpid(), 9) if sys.argv[2] == "kill" else sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def script(tmp_path: Path):
    """Returns a function that writes a program and returns its path."""
    def write(text: str, name: str = "program.py") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)
    return write


def test_run_sets_what_a_program_needs(script, tmp_path: Path) -> None:
    ended = hccl_hpu_apart("run", script(SHOW), "-n", "3", "--nodes", folder=tmp_path, PYTHONPATH="/somewhere")
    assert ended.code == 0 and ended.errors.splitlines() == [NOTICE], ended
    shown = json.loads(ended.output)
    assert shown["arguments"] == ["-n", "3", "--nodes"], shown["arguments"]
    assert shown["HCCL_EMU_HPU"] == "1" and shown["OMP_NUM_THREADS"] == "1"
    assert shown["HABANA_VISIBLE_MODULES"] == "0,1,2,3,4,5,6,7"
    first, second, third = shown["PYTHONPATH"].split(":")[:3]
    assert first.endswith("hccl_torch_hpu/shim") and second.startswith(str(tmp_path / "cache")) and third == "/somewhere"
    assert shown["path"][1:4] == [first, second, third]
    assert shown["PATH"].split(":")[0] == f"{first}/bin"


def test_run_keeps_what_the_user_has_set(script, tmp_path: Path) -> None:
    shown = json.loads(hccl_hpu("run", script(SHOW), folder=tmp_path, OMP_NUM_THREADS="3", HABANA_VISIBLE_MODULES="2,5"))
    assert (shown["OMP_NUM_THREADS"], shown["HABANA_VISIBLE_MODULES"]) == ("3", "2,5")


def test_quiet_run_prints_nothing_and_leaves_no_files(script, tmp_path: Path) -> None:
    """After a run of several processes, only the cache folder for version checks may be left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ended = hccl_hpu_apart("run", "-n", "2", script("print('only this')"), folder=tmp_path, HCCL_EMU_HPU_QUIET="1",
                           TMPDIR=str(temporary), HOME=str(tmp_path / "home"))
    assert (ended.code, ended.output.replace("\n", ""), ended.errors) == (0, "only this" * 2, "")
    assert list(temporary.iterdir()) == []
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cache", "program.py", "temporary"]
    names = [one.name for one in (tmp_path / "cache").rglob("*") if one.is_file()]
    assert sorted(names) == ["INSTALLER", "METADATA"], names


def test_verbose_names_the_variables(script, tmp_path: Path) -> None:
    ended = hccl_hpu_apart("run", "--verbose", script(""), folder=tmp_path)
    assert "hccl-hpu: HCCL_EMU_HPU=1" in ended.errors.splitlines() and ended.output == ""


def shown_by(*words, folder: Path) -> list[dict]:
    """Returns each process's stdout, parsed. Ignores stderr, where torchrun warns if one node
    leaves before another."""
    ended = hccl_hpu_apart(*words, folder=folder)
    assert ended.code == 0, ended.errors
    return [json.loads(line) for line in ended.output.splitlines()]


def test_run_starts_several_ranks(script, tmp_path: Path) -> None:
    """-n must start processes with torchrun's variables."""
    shown = shown_by("run", "-n", "3", script(SHOW), "argument", folder=tmp_path)
    assert sorted(one["RANK"] for one in shown) == ["0", "1", "2"]
    assert all(one["WORLD_SIZE"] == "3" and one["arguments"] == ["argument"] for one in shown)
    assert all("TORCH_DEVICE_BACKEND_AUTOLOAD" not in one for one in shown)


def test_run_simulates_nodes(script, tmp_path: Path) -> None:
    shown = sorted(shown_by("run", "--nodes", "2x2", script(SHOW), folder=tmp_path), key=lambda one: one["RANK"])
    assert [(one["RANK"], one["LOCAL_RANK"], one["NODE_RANK"], one["HCCL_NODE_ID"]) for one in shown] == [
        ("0", "0", "0", "node0"), ("1", "1", "0", "node0"), ("2", "0", "1", "node1"), ("3", "1", "1", "node1")]
    assert {one["MASTER_ADDR"] for one in shown} == {"127.0.0.1"} and len({one["MASTER_PORT"] for one in shown}) == 1
    assert all(one["HABANA_VISIBLE_MODULES"] == "0,1" and one["WORLD_SIZE"] == "4" for one in shown)


def test_run_accepts_a_module(tmp_path: Path) -> None:
    assert hccl_hpu("run", "-m", "platform", folder=tmp_path).startswith("Linux")


@pytest.mark.parametrize("how, end, code", [([], "5", 5), ([], "kill", -9), (["-n", "2"], "7", 7),
                                            (["-n", "2"], "kill", 137), (["--nodes", "2x1"], "9", 9)])
def test_exit_code(how: list[str], end: str, code: int, script, tmp_path: Path) -> None:
    """The exit code must be the script's. With several ranks, a line must name the failed rank."""
    last = "1" if how else "0"
    ended = hccl_hpu_apart("run", *how, script(END), last, end, folder=tmp_path, HCCL_EMU_HPU_QUIET="1")
    assert ended.code == code, ended
    if how and code:
        said = "has been terminated by SIGKILL" if end == "kill" else f"has ended with exit code {end}"
        assert ended.errors.splitlines()[0].endswith(f"rank 1 {said}"), ended


@pytest.mark.parametrize("words, code", [(["sh", "-c", "exit 4"], 4), (["--", "sh", "-c", "exit 4"], 4),
                                         (["python", "-c", "import sys; sys.exit(3)"], 3)])
def test_exit_code_of_a_shell(words: list[str], code: int, tmp_path: Path) -> None:
    assert hccl_hpu_apart("shell", *words, folder=tmp_path).code == code


def test_shell_is_the_users(tmp_path: Path) -> None:
    ended = hccl_hpu_apart("shell", folder=tmp_path, SHELL="/usr/bin/env")
    assert ended.code == 0 and "HCCL_EMU_HPU=1" in ended.output.splitlines()


def test_version_checks_find_the_release(tmp_path: Path) -> None:
    """In the shell, pip must be the environment's own and must list the release that Optimum
    requires. Outside the shell, pip must not list it."""
    listed = hccl_hpu("shell", "pip", "list", "--disable-pip-version-check", folder=tmp_path)
    assert [line.split() for line in listed.splitlines() if "habana-torch-plugin" in line] == [["habana-torch-plugin", "1.24.0"]]
    assert hccl_hpu("shell", "which", "pip", folder=tmp_path).strip() == str(Path(sys.executable).with_name("pip"))
    outside = subprocess.run([sys.executable, "-m", "pip", "list", "--disable-pip-version-check"], capture_output=True,
                             text=True, env=environment(**private(tmp_path)), timeout=120)
    assert "habana-torch-plugin" not in outside.stdout


MISTAKES = [
    (["run", "none.py"], {}, "the file none.py does not exist"),
    (["run", "-n", "0", "{script}"], {}, "-n 0: the number of processes must be at least 1"),
    (["run", "-n", "9", "{script}"], {},
     "9 processes need 9 devices, but the number of visible devices is 8; set HCCL_DEVICE_COUNT=9"),
    (["run", "-n", "2", "{script}"], {"HABANA_VISIBLE_MODULES": "3"},
     "2 processes need 2 devices, but the number of visible devices is 1; name more modules in HABANA_VISIBLE_MODULES (now 3)"),
    (["run", "-n", "9", "{script}"], {"HABANA_VISIBLE_MODULES": "all"},
     "9 processes need 9 devices, but the number of visible devices is 8; set HCCL_DEVICE_COUNT=9"),
    (["run", "{script}"], {"HABANA_VISIBLE_MODULES": "0,x"},
     "HABANA_VISIBLE_MODULES=0,x must be distinct module numbers separated by commas, e.g. 0,1"),
    (["run", "{script}"], {"HCCL_DEVICE_COUNT": "many"}, "HCCL_DEVICE_COUNT=many must be a positive number of devices"),
    (["run", "--nodes", "2", "{script}"], {},
     "--nodes 2 must be the number of nodes and the number of devices per node, e.g. 2x4"),
    (["run", "--nodes", "2x9", "{script}"], {"HABANA_VISIBLE_MODULES": "0,1"},
     "9 processes need 9 devices, but the number of visible devices is 2; name more modules in HABANA_VISIBLE_MODULES (now 0,1)"),
    (["run", "{script}"], {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
     "TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps torch from loading the emulated device; unset it"),
    (["shell", "no-such-command"], {}, "cannot run no-such-command: No such file or directory"),
    (["run", "{script}"], {"XDG_CACHE_HOME": "/proc/nowhere"},
     "cannot write /proc/nowhere/hccl-torch-hpu: No such file or directory; set XDG_CACHE_HOME to a folder that you own"),
]


@pytest.mark.parametrize("words, variables, said", MISTAKES)
def test_usage_errors_are_one_line(words: list[str], variables: dict[str, str], said: str, script, tmp_path: Path) -> None:
    """A usage error must print one line on stderr, exit with code 2, and not start the script."""
    path = script("print('started')")
    ended = hccl_hpu_apart(*[word.format(script=path) for word in words], folder=tmp_path,
                           **({"HCCL_EMU_HPU_QUIET": "1"} | variables))
    assert (ended.code, ended.output, ended.errors) == (2, "", f"hccl-hpu: {said}\n")


@pytest.mark.parametrize("how", [["-n", "2"], ["--nodes", "2x1"]])
def test_ranks_end_with_the_launcher(how: list[str], script, tmp_path: Path) -> None:
    """SIGTERM must terminate the launcher and all processes that it has started."""
    path = script(f"import os, time; open(r'{tmp_path}/rank' + os.environ['RANK'], 'w').close(); time.sleep(300)")
    program = Program([HCCL_HPU, "run", *how, path], environment(**private(tmp_path)))
    try:
        wait_until(lambda: all((tmp_path / f"rank{rank}").exists() for rank in range(2)))
        os.kill(program.process.pid, signal.SIGTERM)
        code, output = program.process.wait(60), program.process.pid
        assert code in (128 + signal.SIGTERM, -signal.SIGTERM), code
        wait_until(lambda: not session_members(output))
    finally:
        program.kill()


def folders_of(tmp_path: Path) -> list[str]:
    return [one.name for one in (tmp_path / "cache/hccl-torch-hpu").iterdir()]


def test_concurrent_starts_create_one_folder(tmp_path: Path) -> None:
    programs = [Program([HCCL_HPU, "shell", "true"], environment(**private(tmp_path))) for _ in range(8)]
    assert [program.finish(60)[0] for program in programs] == [0] * 8
    assert len(folders_of(tmp_path)) == 1, folders_of(tmp_path)


def test_damaged_folder_is_repaired(tmp_path: Path) -> None:
    hccl_hpu("shell", "true", folder=tmp_path)
    made, = (tmp_path / "cache").rglob("METADATA")
    made.write_text("nonsense")
    hccl_hpu("shell", "true", folder=tmp_path)
    assert "1.24.0" in made.read_text() and len(folders_of(tmp_path)) == 1


def test_folder_writable_by_others_is_refused(tmp_path: Path) -> None:
    hccl_hpu("shell", "true", folder=tmp_path)
    root = tmp_path / "cache/hccl-torch-hpu"
    root.chmod(0o777)
    said = hccl_hpu("shell", "true", folder=tmp_path, code=2)
    assert said == f"hccl-hpu: other users can write to {root}; remove it, or set XDG_CACHE_HOME to a folder that you own\n"


def test_launcher_does_not_import_torch(script, tmp_path: Path) -> None:
    """The launcher must start a single process without importing torch."""
    ended = hccl_hpu_apart("shell", "true", folder=tmp_path, command=(sys.executable, "-X", "importtime", HCCL_HPU))
    assert ended.code == 0 and "argparse" in ended.errors
    assert not [line for line in ended.errors.splitlines() if line.split("|")[-1].strip().split(".")[0] == "torch"]
