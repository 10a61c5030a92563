#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of this folder against a small tree that breaks it, and one that does not."""
import tempfile
import unittest
from pathlib import Path

import check_docs
import check_layers
import check_sources

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
TABLE = """
| folder | may include | third party |
|---|---|---|
| `src/base` | – | – |
| `src/device` | `base` | – |
| `src/reduce` | `base` | `hwy` |
| `tests` | anything | anything |
"""


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("docs/architecture.md", TABLE)
        self.write("docs/reference/environment.md", "| `HCCL_TIMEOUT` | `1800` | seconds |\n")
        self.write("src/base/config.cpp", LICENCE + 'Variable{"HCCL_TIMEOUT", "1800", "seconds"};\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def findings(self, check):
        return [what for _, _, what in check.check(self.root)]

    def assert_one(self, check, part):
        findings = self.findings(check)
        self.assertEqual(len(findings), 1, findings)
        self.assertIn(part, findings[0])

    def test_clean_tree_has_no_findings(self):
        self.write("src/device/a.h", LICENCE + '#include "base/b.h"\n// catch (...) and getenv() in a comment\n')
        self.write("tests/t.cpp", LICENCE + '#include "device/a.h"\n#include <hwy/highway.h>\n')
        for check in (check_layers, check_sources, check_docs):
            self.assertEqual(self.findings(check), [])

    def test_include_of_a_layer_above(self):
        self.write("src/base/b.h", LICENCE + '#include "device/a.h"\n')
        self.assert_one(check_layers, "does not list that layer")

    def test_include_of_a_way_up(self):
        self.write("src/base/b.h", LICENCE + '#include "../device/a.h"\n')
        self.assert_one(check_layers, "never a way up")

    def test_include_without_its_layer(self):
        self.write("src/base/b.h", LICENCE + '#include "c.h"\n')
        self.assert_one(check_layers, "layer's name")

    def test_include_of_a_foreign_library(self):
        self.write("src/device/a.h", LICENCE + "#include <hwy/highway.h>\n")
        self.assert_one(check_layers, "does not list that library")

    def test_folder_without_a_row(self):
        self.write("src/planner/p.h", LICENCE)
        self.assert_one(check_layers, "not in the layer table")

    def test_missing_licence(self):
        self.write("src/base/b.h", "#pragma once\n")
        self.assert_one(check_sources, "SPDX")

    def test_long_file(self):
        self.write("src/base/b.h", LICENCE + "int i;\n" * 400)
        self.assert_one(check_sources, "401 lines")

    def test_catch_getenv_and_macros(self):
        self.write("src/base/b.cpp", LICENCE + "try { f(); } catch (...) {}\n")
        self.assert_one(check_sources, "catch")
        self.write("src/base/b.cpp", LICENCE + 'auto p = getenv("HOME");\n')
        self.assert_one(check_sources, "environment")
        self.write("src/base/b.cpp", LICENCE + "#define MAX(a, b) a\n")
        self.assert_one(check_sources, "function-like macro")

    def test_broken_links(self):
        self.write("README.md", "[a](docs/none.md)\n")
        self.assert_one(check_docs, "does not exist")
        self.write("README.md", "[a](docs/architecture.md#nowhere)\n")
        self.assert_one(check_docs, "no such heading")

    def test_undocumented_variable_and_wrong_default(self):
        self.write("docs/reference/environment.md", "\n")
        self.assert_one(check_docs, "no row")
        self.write("docs/reference/environment.md", "| `HCCL_TIMEOUT` | `60` | seconds |\n")
        self.assert_one(check_docs, "'1800'")


if __name__ == "__main__":
    unittest.main()
