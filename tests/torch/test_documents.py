# SPDX-License-Identifier: Apache-2.0
"""Tests the Python programs of the how-to pages, each with the command in its first line."""
import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from launcher import FOLDER, run

PAGES = FOLDER.parents[1] / "docs/how-to"
ALLOWED = ["--allow-run-as-root", "--oversubscribe"]


def programs() -> list:
    found = []
    for page in ("train-with-pytorch.md", "test-gaudi-code-on-a-laptop.md"):
        for text in re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text(), flags=re.M | re.S):
            command = text.splitlines()[0].removeprefix("# ")
            found.append(pytest.param(command, text, id=f"{page}:{command.split()[-1]}"))
    return found


def arguments_of(command: str, path: Path) -> tuple[list[str], dict[str, str]]:
    """Returns the words and the environment variables of a page's command."""
    words = shlex.split(command)
    variables = {}
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        variables[name] = value
    launcher, *options, _ = words
    if launcher == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", *options, str(path)], variables
    if launcher == "mpirun":
        if shutil.which("mpirun") is None:
            pytest.skip("needs mpirun")
        variables |= {"OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_oob_tcp_if_include": "lo"}
        return ["mpirun", *ALLOWED, *options[:-1], sys.executable, str(path)], variables
    assert launcher == "python" and not options, command
    return [sys.executable, str(path)], variables


@pytest.mark.parametrize("command, text", programs())
def test_program_of_a_page_runs(command: str, text: str, tmp_path: Path) -> None:
    for package in set(re.findall(r"^ *(?:from|import) (accelerate|lightning|transformers)\b", text, flags=re.M)):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    path = tmp_path / command.split()[-1]
    path.write_text(text)
    arguments, variables = arguments_of(command, path)
    run(arguments, seconds=300, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path), **variables)


def test_pages_contain_programs() -> None:
    assert len(programs()) >= 8
