#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the recipes of CONTRIBUTING.md. The listed files must exist. A recipe must list every file
in its scope that mentions its specimen, and no more files than its limit."""
import re

import tree

DOCUMENT = "CONTRIBUTING.md"


class Recipe:
    """A recipe of CONTRIBUTING.md. Its specimen is an existing instance of what the recipe adds, such as the algorithm
    "pairwise".

    ``heading`` is the recipe's heading, and ``most`` the largest number of files that the recipe may list.
    ``placeholders`` maps the placeholders in the recipe's paths to the specimen's values. The recipe must list every
    file in ``scope``, a list of folders and files, that matches ``pattern``."""

    def __init__(self, heading, most, placeholders, pattern, scope):
        self.heading, self.most, self.placeholders = heading, most, placeholders
        self.pattern, self.scope = re.compile(pattern), scope


RECIPES = (
    Recipe("An algorithm between nodes", 5, {"<name>": "pairwise"}, r"pairwise", ("src", "transports")),
    Recipe("A transport", 4, {"<name>": "tcp"}, r"\b(hccl_)?tcp\b", ("transports", "CMakeLists.txt", "src/CMakeLists.txt")),
    Recipe("An environment variable", 5, {"<reader>": "device/runtime.cpp"}, r"\bHABANA_DISABLE_DOUBLE_SYN_INITIALIZE\b",
           ("src", "transports", "tests/fuzz", "tests/unit", "tests/support", "docs/reference/environment.md")),
    Recipe("A collective", 9, {"<algorithm>": "pairwise"}, r"\b(all_to_all|hcclAlltoAll|pairwise_all_to_all)\b",
           ("src", "transports", "include/hccl/hccl.h")),
    Recipe("A data type", 9, {"<family>": "half"}, r"\bhcclBfloat16\b",
           ("src", "transports", "include", "perf/hccl_perf", "perf/programs", "python/src", "tests/support/scalar_fold.h",
            "tests/support/elements.cpp")),
)


def listed(text, recipe):
    """Returns the path at the beginning of each item of the recipe, or None if the document lacks the recipe."""
    match = re.search(rf"^### {re.escape(recipe.heading)}\n(.*?)(?=^##|\Z)", text, re.M | re.S)
    if match is None:
        return None
    paths = re.findall(r"^- `([^`]+)`", match.group(1), re.M)
    for placeholder, value in recipe.placeholders.items():
        paths = [path.replace(placeholder, value) for path in paths]
    return paths


def files_that_mention(root, recipe):
    for place in recipe.scope:
        for path in [root / place] if (root / place).is_file() else tree.files(root, place):
            if path.suffix in tree.SOURCE_SUFFIXES | {".map", ".txt", ".md"} and recipe.pattern.search(path.read_text()):
                yield path


def check(root):
    document = root / DOCUMENT
    text = document.read_text()
    for recipe in RECIPES:
        paths = listed(text, recipe)
        if paths is None:
            yield document, 1, f"no recipe '{recipe.heading}'"
            continue
        if len(paths) > recipe.most:
            yield document, 1, f"'{recipe.heading}' lists {len(paths)} files, more than {recipe.most}"
        for name in paths:
            if not (root / name).exists():
                yield document, 1, f"'{recipe.heading}' lists {name}, which does not exist"
        for path in files_that_mention(root, recipe):
            name = path.relative_to(root).as_posix()
            if not any(name == listed_path or name.startswith(listed_path.rstrip("/") + "/") for listed_path in paths):
                yield path, 1, f"the recipe '{recipe.heading}' of {DOCUMENT} does not list this file"


if __name__ == "__main__":
    tree.main(check)
