#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the rules of this folder on small trees that break a rule and on trees that do not."""
import tempfile
import unittest
from pathlib import Path

import check_docs
import check_layers
import check_recipes
import check_sources
import generate

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
        self.write("src/base/variables.cpp", LICENCE + 'Variable{"HCCL_TIMEOUT", "1800", "seconds"};\n')
        for linked in ("docs/explanation/compatibility.md", "docs/how-to/debug-a-hang.md"):
            self.write(linked, "\n")
        self.write("tests/torch/test_documents.py", '# SPDX-License-Identifier: Apache-2.0\n"debug-a-hang.md"\n')
        self.generate()

    def generate(self):
        for path, page in generate.stale(self.root):
            path.write_text(page)

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

    def test_recipe_findings(self):
        lists = ""
        for recipe in check_recipes.RECIPES:
            lists += f"### {recipe.heading}\n- `src/a.h`: it.\n\n"
        self.write("CONTRIBUTING.md", lists)
        self.write("src/a.h", "hcclBfloat16\n")
        self.assertEqual(self.findings(check_recipes), [])
        self.write("src/b.h", "hcclBfloat16\n")
        self.assert_one(check_recipes, "does not list this file")
        self.write("src/b.h", "\n")
        self.write("CONTRIBUTING.md", lists + "- `src/<family>.h`: gone.\n")
        self.assert_one(check_recipes, "src/half.h, which does not exist")
        self.write("CONTRIBUTING.md", lists + "- `src/a.h`: again.\n" * 10)
        self.assert_one(check_recipes, "11 files, more than 9")
        self.write("CONTRIBUTING.md", lists.replace("### A collective\n", ""))
        self.assert_one(check_recipes, "no recipe 'A collective'")

    def test_duplicate_class_name(self):
        self.write("src/base/a.h", LICENCE + "class Stage {};\nclass Other;\n")
        self.write("src/device/b.h", LICENCE + "enum class Stage : int { one };\nstruct A {\n  struct Other {};\n};\n")
        self.assert_one(check_sources, "Stage is also a class of src/base/a.h")

    def test_nested_class_with_a_used_name(self):
        self.write("src/base/a.h", LICENCE + "class Stage {};\n")
        self.write("src/device/b.h", LICENCE + "struct A {\n  struct Stage;\n};\n")
        self.assert_one(check_sources, "Stage is also a class of src/base/a.h")

    def test_glossary_defines_a_word_twice(self):
        page = self.root / "docs/architecture.md"
        page.write_text(page.read_text() + "\n## Glossary\n\n| word | is |\n|---|---|\n| rank, node | a |\n| channel, rank | b |\n")
        self.assert_one(check_docs, "the glossary defines 'rank' twice")

    def test_sentence_that_begins_with_a_clause(self):
        self.write("src/base/b.h", LICENCE + "// Takes bytes. What was\n// taken is gone.\nint take();  // course: of what\n")
        self.assert_one(check_sources, "'What'")
        self.write("src/base/b.h", LICENCE + "int take();  // Whether it did\n")
        self.assert_one(check_sources, "'Whether'")
        self.write("src/base/b.h", LICENCE + "// Takes what was sent. Of course it may block.\nint take();\n")
        self.assertEqual(self.findings(check_sources), [])

    def test_sentence_of_a_page_that_begins_with_a_clause(self):
        self.write("docs/explanation/compatibility.md", "What differs is told here.\n```\nWhat is code\n```\nWhat is it?\n")
        self.assert_one(check_docs, "'What'")

    def test_stilted_phrases(self):
        for phrase, part in (("Waits so long for a peer.", "'so long'"), ("A rank is no index.", "'is no'"),
                             ("The transport cannot be had.", "'cannot be had'")):
            self.write("src/base/b.h", LICENCE + f"// {phrase}\nint wait();\n")
            self.assert_one(check_sources, part)
            self.write("src/base/b.h", LICENCE + f'constexpr const char* kText = "{phrase}";\n')
            self.assert_one(check_sources, part)
        self.write("src/base/b.h", LICENCE + "// There is no peer, or so many that it is no longer one.\nint wait();\n")
        self.assertEqual(self.findings(check_sources), [])

    def test_include_of_a_layer_above(self):
        self.write("src/base/b.h", LICENCE + '#include "device/a.h"\n')
        self.assert_one(check_layers, "does not list that layer")

    def test_include_with_a_parent_path(self):
        self.write("src/base/b.h", LICENCE + '#include "../device/a.h"\n')
        self.assert_one(check_layers, "not a parent path")

    def test_include_without_its_layer(self):
        self.write("src/base/b.h", LICENCE + '#include "c.h"\n')
        self.assert_one(check_layers, "layer's name")

    def test_include_of_a_foreign_library(self):
        self.write("src/device/a.h", LICENCE + "#include <hwy/highway.h>\n")
        self.assert_one(check_layers, "does not list that library")

    def test_include_in_angle_brackets_of_a_layer_above(self):
        self.write("src/base/a.cpp", LICENCE + "#include <device/b.h>\n")
        self.assert_one(check_layers, "src/base must not include device/b.h")

    def test_include_of_a_macro(self):
        self.write("src/base/a.cpp", LICENCE + "#define HEADER <device/b.h>\n#include HEADER\n")
        self.assert_one(check_layers, "must name its header")

    def test_include_of_a_library_without_a_folder(self):
        self.write("src/base/a.cpp", LICENCE + "#include <hwy.h>\n")
        self.assert_one(check_layers, "does not list that library")

    def test_include_of_an_unlisted_library(self):
        self.write("src/base/a.cpp", LICENCE + "#include <openssl/ssl.h>\n#include <sys/socket.h>\n#include <vector>\n")
        self.assert_one(check_layers, "lists no such library")

    def test_linked_layer_that_the_table_lacks(self):
        self.write("src/device/CMakeLists.txt", "hccl_layer(device SOURCES a.cpp\n  DEPENDS base)\n")
        self.assertEqual(self.findings(check_layers), [])
        self.write("src/device/CMakeLists.txt", "hccl_layer(device SOURCES a.cpp\n  DEPENDS base reduce)\n")
        self.assert_one(check_layers, "links base, reduce, but the layer table")

    def test_output_to_standard_output(self):
        self.write("src/base/a.cpp", LICENCE + 'void f() { std::snprintf(t, 9, "a"); std::fprintf(stderr, "a"); puts("a"); }\n')
        self.assert_one(check_sources, "puts: the library writes nothing")

    def test_source_with_another_suffix(self):
        self.write("src/base/a.cc", LICENCE)
        self.assert_one(check_sources, "must end in .h or .cpp")

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

    def test_missing_source(self):
        self.write("README.md", "`src/base/variables.cpp`, `variables.cpp`, `zlib.h`\n")
        self.assertEqual(self.findings(check_docs), [])
        for name in ("base/gone.h", "gone.cpp"):
            self.write("README.md", f"`{name}`\n")
            self.assert_one(check_docs, f"{name} does not exist")

    def test_missing_test(self):
        self.write("tests/unit/some_test.cpp", LICENCE + "TEST_F(Some,\n       Thing) {}\n")
        self.write("README.md", "`Some.Thing` `Some.Other`\n")
        self.assert_one(check_docs, "the test Some.Other does not exist")

    def test_links_outside_the_site(self):
        self.write("examples/a.c", LICENCE)
        for target in ("../../examples/a.c", "../reference"):
            self.write("docs/how-to/debug-a-hang.md", f"[a]({target})\n")
            self.assert_one(check_docs, "a site made of docs/ does not have")
        self.write("docs/how-to/debug-a-hang.md", "[a](../architecture.md)\n")
        self.write("README.md", "[a](examples/a.c) [b](docs)\n")
        self.assertEqual(self.findings(check_docs), [])

    def test_anchors_that_generators_disagree_on(self):
        self.write("docs/how-to/debug-a-hang.md", "# A & b\n\n# Twice\n\n# Twice\n\n```\n# Comment\n```\n")
        for anchor in ("a--b", "a-b", "twice", "twice-1", "comment"):
            self.write("README.md", f"[a](docs/how-to/debug-a-hang.md#{anchor})\n")
            self.assert_one(check_docs, "no such heading")

    def test_page_missing_from_every_index(self):
        pages = sorted(path.relative_to(self.root / "docs") for path in (self.root / "docs").rglob("*.md"))
        self.write("docs/README.md", "".join(f"- [a]({page})\n" for page in pages))
        self.assertEqual(self.findings(check_docs), [])
        self.write("docs/decisions/0001.md", "# A\n")
        self.assert_one(check_docs, "is in no index")
        self.write("docs/architecture.md", TABLE + "[a](decisions/0001.md)\n")
        self.assert_one(check_docs, "is in no index")
        self.write("docs/decisions/README.md", "[a](0001.md)\n")
        self.write("docs/README.md", "[b](decisions/README.md)\n" + (self.root / "docs/README.md").read_text())
        self.assertEqual(self.findings(check_docs), [])

    def test_page_with_untested_programs(self):
        self.write("docs/how-to/train.md", "```python\n1\n```\n")
        self.assert_one(check_docs, "no test runs its programs")
        self.write("docs/how-to/train.md", "A\n\n```console\n$ true\n```\n")
        self.assertEqual(self.findings(check_docs), [])
        self.write("docs/how-to/train.md", "```python\n1\n```\n")
        self.write("tests/hpu/test_pages.py", 'PAGES = ["train.md"]\n')
        self.assertEqual(self.findings(check_docs), [])

    def test_undocumented_variable_and_wrong_default(self):
        self.write("docs/reference/environment.md", "\n")
        self.assert_one(check_docs, "no row")
        self.write("docs/reference/environment.md", "| `HCCL_TIMEOUT` | `60` | seconds |\n")
        self.assert_one(check_docs, "'1800'")

    def test_docstring_and_parameter(self):
        self.write("include/hccl/hccl.h", "// Waits.\n// Errors: none.\n// Blocks: no.\nhcclResult_t hcclWait(int* id);\n")
        self.generate()
        self.assert_one(check_docs, "in this order")
        self.write("include/hccl/hccl.h", "// Waits.\n// Blocks: no.\n// Errors: none.\nhcclResult_t hcclWait(int* id);\n")
        self.write("src/api/a.cpp", 'require_pointer(id, "id");\nrequire_pointer(id, "uniqueId");\n')
        self.generate()
        self.assert_one(check_docs, "uniqueId")

    def test_undocumented_foreign_key(self):
        self.write("src/base/variables.cpp", 'Variable{"HCCL_TIMEOUT", "1800", "s"};\nForeignKey{"HCCL_TRIALS", "120"};\n')
        self.assert_one(check_docs, "HCCL_TRIALS has no row")

    def test_message_and_function_without_regeneration(self):
        self.write("include/hccl/hccl_types.h", "typedef enum hcclResult_t { hcclBusy = 12 } hcclResult_t;\n")
        self.generate()
        self.assertEqual(self.findings(check_docs), [])
        self.write("src/device/a.cpp", 'throw Error(hcclBusy, text("module ", id, " is busy; wait"));\n')
        self.assert_one(check_docs, "docs/generate.py")
        self.generate()
        page = (self.root / "docs/reference/errors.md").read_text()
        self.assertIn("- hcclBusy: `module <id> is busy; wait`", page)
        self.write("include/hccl/hccl.h", "// Waits.\nhcclResult_t hcclWait(int seconds);\n")
        self.assert_one(check_docs, "docs/generate.py")

    def test_bound_without_regeneration(self):
        bound = "Bound around(const Scale& s) {\n  return {.steps = %s, .hops = 1, .sent = 1, .received = 1, .peers = 2};\n}\n"
        row = 'Algorithm{"ring", Collective::all_reduce, ring_all_reduce, around}\n'
        self.write("docs/explanation/schedules.md", "\n")
        self.write("src/algorithms/ring.cpp", "// SPDX\n// Round\n// and round.\nSchedule ring_all_reduce(const Shape&) {}\n")
        self.write("src/algorithms/hierarchical.cpp", "// SPDX\n// Nodes.\n")
        self.write("src/algorithms/catalogue.cpp", bound % "2 * (s.n - 1)" + row)
        self.generate()
        self.assertEqual(self.findings(check_docs), [])
        page = (self.root / "docs/reference/algorithms.md").read_text()
        self.assertIn("Round and round.", page)
        self.assertIn("| all_reduce | 2 (n - 1) | 1 | 1 | 1 | 2 |", page)
        self.write("src/algorithms/catalogue.cpp", bound % "2 * s.log_n" + row)
        self.assert_one(check_docs, "docs/generate.py")

    def test_message_without_a_remedy(self):
        self.write("include/hccl/hccl_types.h", "typedef enum hcclResult_t { hcclBusy = 12 } hcclResult_t;\n")
        self.write("src/device/a.cpp", 'throw Error(hcclBusy, "the module is busy");\n')
        with self.assertRaisesRegex(SystemExit, "names no action"):
            self.findings(check_docs)

    def test_texts_of_every_form(self):
        """The generated page must list texts in constants, alternatives, braced arguments and log lines,
        and texts that functions return."""
        self.write("include/hccl/hccl_types.h", "typedef enum hcclResult_t { hcclBusy = 12 } hcclResult_t;\n")
        self.write("src/device/a.cpp", """
            constexpr const char* kGone = "it has gone; look for it";
            std::string odd(int rank) { return text("rank ", rank, " is odd; make it even"); }
            void f() {
              if (gone) throw Error(hcclBusy, kGone);
              raise(hcclBusy, odd(rank));
              fail({hcclBusy, first ? "the first of them failed; begin again" : "another failed; go on"});
              log(LogLevel::warning, "device", "lost ", lost, " bytes");
            }""")
        self.generate()
        page = (self.root / "docs/reference/errors.md").read_text()
        for line in ("hcclBusy: `it has gone; look for it`", "hcclBusy: `rank <rank> is odd; make it even`",
                     "hcclBusy: `the first of them failed; begin again`", "hcclBusy: `another failed; go on`",
                     "WARN: `lost <lost> bytes`"):
            self.assertIn("- " + line, page)


if __name__ == "__main__":
    unittest.main()
