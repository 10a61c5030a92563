# SPDX-License-Identifier: Apache-2.0
"""Tests how the backend computes the byte ranges of tensors, with a C++ program because Python does
not expose them."""
import subprocess
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths, library_paths

from launcher import FOLDER, run


def test_memory_range(tmp_path: Path) -> None:
    sources = FOLDER.parent.parent / "python" / "src"
    program = tmp_path / "memory_range_check"
    libraries = library_paths()
    subprocess.run(["g++", "-std=c++20", "-O1", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", f"-I{sources}",
                    *[f"-isystem{path}" for path in include_paths()], str(FOLDER / "memory_range_check.cpp"),
                    str(sources / "memory_range.cpp"), "-o", str(program), *[f"-L{path}" for path in libraries],
                    *[f"-Wl,-rpath,{path}" for path in libraries], "-ltorch", "-ltorch_cpu", "-lc10"], check=True, timeout=300)
    run([str(program)])
