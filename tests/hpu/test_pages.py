# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of the how-to pages on emulated Gaudis, with the commands in the programs'
first lines."""
import re
import shlex
from pathlib import Path

import pytest

from emulation import HCCL_HPU, LIMIT, private
from launcher import FOLDER, Program, environment, free_port

PAGES = FOLDER.parents[1] / "docs/how-to"
SETS = {"hpu-accelerate.md": "set_a", "hpu-transformers.md": "set_a", "hpu-lightning.md": "set_b",
        "hpu-lightning-multi-node.md": "set_b", "hpu-optimum.md": "set_c", "ci-for-gaudi-code.md": "set_a"}
WORKFLOW = "ci-for-gaudi-code.md"  # the commands of the page's workflow run the page's program
COMMAND = re.compile(r"# ((?:\w+=\S+ )*hccl-hpu .*)")
PORT = "29500"  # the port in the pages, which each run replaces with a free one


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (PAGES / page).read_text(), flags=re.M | re.S)


def commands_of(text: str) -> list[str]:
    """Returns the commands in the first lines of a program."""
    found = []
    for line in text.splitlines():
        match = COMMAND.fullmatch(line)
        if match is None:
            return found
        found.append(match.group(1))
    return found


def programs() -> list:
    return [pytest.param(text, id=f"{page}:{commands_of(text)[0].split()[-1]}", marks=getattr(pytest.mark, name))
            for page, name in SETS.items() if page != WORKFLOW for text in blocks(page, "python")]


def start(command: str, folder: Path, port: str) -> Program:
    words = shlex.split(command.replace(PORT, port))
    variables = private(folder) | {"PET_MASTER_PORT": port}
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        variables[name] = value
    assert words.pop(0) == "hccl-hpu", command
    # Programs start in the folder that has the page's files.
    return Program(["env", "-C", str(folder), HCCL_HPU, *words], environment(**variables))


def run_commands(commands: list[str], folder: Path) -> None:
    """Runs the commands of a page: concurrently if each names a node, otherwise one after
    another."""
    assert commands
    port = free_port()
    if all("NODE_RANK=" in command for command in commands):
        running = [start(command, folder, port) for command in commands]
        ended = [program.finish(LIMIT) for program in running]
    else:
        ended = [start(command, folder, free_port()).finish(LIMIT) for command in commands]
    for code, output in ended:
        assert code == 0, output


@pytest.mark.parametrize("text", programs())
def test_program_of_a_page_runs(text: str, tmp_path: Path) -> None:
    commands = commands_of(text)
    name = re.findall(r"[\w-]+\.py", commands[0])[0]
    (tmp_path / name).write_text(text)
    run_commands(commands, tmp_path)


@pytest.mark.set_a
def test_workflow_of_a_page_runs(tmp_path: Path) -> None:
    """The workflow steps that run programs must work with the page's script."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    workflow = yaml.safe_load(blocks(WORKFLOW, "yaml")[0])
    program = blocks(WORKFLOW, "python")[0]
    commands = [step["run"] for step in workflow["jobs"]["train"]["steps"] if step.get("run", "").startswith("hccl-hpu ")]
    assert len(commands) == 4 and commands_of(program)[0] in commands, commands
    (tmp_path / "train.py").write_text(program)
    run_commands(commands, tmp_path)


def test_pages_contain_programs() -> None:
    assert len(programs()) >= 14
    assert all(commands_of(text) for page in SETS for text in blocks(page, "python"))
