#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks documents. Relative links must have a target, both in the repository and in a site made
from docs/. Sources that a page names must exist. Every page must be in the index, and tests must
run the programs of how-to pages. The glossary must define no word twice, and pages must avoid the
phrases of english.py. The table of variables must match the code, the comments of the public
headers must follow one format, and generated pages must be up to date."""
import re
import sys
from pathlib import Path

import english
import tree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import generate

ENVIRONMENT = "docs/reference/environment.md"
VARIABLES = "src/base/variables.cpp"
PAGE_TESTS = ("test_documents.py", "test_pages.py")


def check(root):
    sources = {f"/{path.relative_to(root).as_posix()}" for path in tree.sources(root)}
    tests = tests_in(root)
    for path in tree.files(root):
        if path.suffix == ".md":
            yield from check_links(root, path)
            yield from check_english(path)
            yield from check_sources_exist(root, path, sources)
            yield from check_tests_exist(path, tests)
    yield from check_index(root)
    yield from check_glossary(root)
    yield from check_variables(root)
    yield from check_pages_are_run(root)
    yield from check_docstrings(root)
    for path, _ in generate.stale(root):
        yield path, 1, "differs from the output of docs/generate.py: run ./dev format"


def without_code(path):
    """Returns the text of a page without its code blocks. Line numbers stay unchanged."""
    return re.sub(r"^```.*?^```", lambda m: "\n" * m.group(0).count("\n"), path.read_text(), flags=re.M | re.S)


def check_english(path):
    """Reports the phrases listed in english.py, except in a question that ends in the same line."""
    for number, line in enumerate(without_code(path).splitlines(), 1):
        for match, complaint in english.complaints(line):
            if not re.match(r"[^.!]*\?", line[match.end():]):
                yield path, number, complaint


def check_sources_exist(root, path, sources):
    """Checks that a source named in backquotes exists. The name may be the end of a path. Skips
    headers without a layer, which may belong to other projects."""
    for line, match in tree.numbered_matches(r"`((?:[\w-]+/)*[\w-]+\.(?:h|cpp))`", without_code(path)):
        name = match.group(1)
        is_ours = name.endswith(".cpp") or (root / "src" / name.split("/")[0]).is_dir()
        if is_ours and not any(source.endswith(f"/{name}") for source in sources):
            yield path, line, f"{name} does not exist"


def tests_in(root):
    """Returns the names of all GoogleTest tests, as "Suite.Name"."""
    pattern = r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)"
    return {f"{suite}.{name}" for path in (root / "tests").rglob("*.cpp") for suite, name in re.findall(pattern, path.read_text())}


def check_tests_exist(path, tests):
    """Checks that a test named in backquotes as `Suite.Name` exists."""
    for line, match in tree.numbered_matches(r"`([A-Z][a-z]\w+\.[A-Z]\w+)`", without_code(path)):
        if match.group(1) not in tests:
            yield path, line, f"the test {match.group(1)} does not exist"


def check_links(root, path):
    text = without_code(path)
    for line, match in tree.numbered_matches(r"\]\(([^)\s]+)\)", text):
        target = match.group(1)
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        document = (path.parent / name).resolve() if name else path
        if not document.exists():
            yield path, line, f"link to {target}, which does not exist"
        elif is_below(path, root / "docs") and not (is_below(document, root / "docs") and document.is_file()):
            yield path, line, f"link to {target}, which a site made of docs/ does not have: name the file in backquotes instead"
        elif anchor and document.suffix == ".md" and anchor not in anchors(document.read_text()):
            yield path, line, f"link to {target}: no such heading"


def anchors(text):
    """Returns the anchors of headings: lower case, dashes for spaces, no punctuation. Omits anchors
    with several dashes in a row and anchors of repeated headings, because GitHub and site generators
    disagree about these."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    found = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+\s+(.*)$", text, re.M)]
    return {anchor for anchor in found if "--" not in anchor and found.count(anchor) == 1}


def is_below(path, folder):
    return path.resolve().is_relative_to(folder.resolve())


def check_index(root):
    """Checks that docs/README.md, or the README.md of a folder to which it links, links to each page
    below docs/."""
    start = (root / "docs/README.md").resolve()
    if not start.exists():
        return
    seen, open_pages = {start}, [start]
    while open_pages:
        page = open_pages.pop()
        for target in re.findall(r"\]\(([^)\s#]+\.md)", page.read_text()):
            linked = (page.parent / target).resolve()
            if linked.is_file() and linked not in seen and page.name == "README.md":
                seen.add(linked)
                open_pages.append(linked)
    for path in tree.files(root, "docs"):
        if path.suffix == ".md" and path.resolve() not in seen:
            yield path, 1, "is in no index: link to it from docs/README.md or from the README.md of its folder"


def check_pages_are_run(root):
    """Checks that each how-to page either has a console block (tests/docs runs these) or is named by
    a test that runs its programs."""
    tests = "".join(path.read_text() for path in tree.files(root, "tests") if path.name in PAGE_TESTS)
    for path in tree.files(root, "docs/how-to"):
        if path.suffix == ".md" and "\n```console\n" not in path.read_text() and f'"{path.name}"' not in tests:
            yield path, 1, "has no console block, and no test runs its programs: name it in " + " or ".join(PAGE_TESTS)


def check_glossary(root):
    """Checks that the glossary defines no word twice."""
    path = root / "docs/architecture.md"
    _, _, glossary = path.read_text().partition("\n## Glossary\n")
    defined = set()
    for words in re.findall(r"^\| ([^|]+) \|", glossary.partition("\n## ")[0], flags=re.M):
        for word in words.split(", "):
            if word in defined:
                yield path, 1, f"the glossary defines '{word}' twice"
            defined.add(word)


def check_variables(root):
    """Checks that the document's tables have the same names and defaults as the code's table of
    variables."""
    document = (root / ENVIRONMENT).read_text()
    rows = {match.group(1): (line, match.group(2)) for line, match in
            tree.numbered_matches(r"^\| `(\w+)` \| (?:`([^`]*)`)?", document)}
    code = tree.without_comments((root / VARIABLES).read_text())
    read = set()
    for line, match in tree.numbered_matches(r'\b(?:Variable|ForeignKey)\{\s*"(\w+)",\s*"([^"]*)"', code):
        name, default = match.groups()
        read.add(name)
        if name not in rows:
            yield root / VARIABLES, line, f"{name} has no row in {ENVIRONMENT}"
        elif (rows[name][1] or "") != default:
            yield root / ENVIRONMENT, rows[name][0], f"{name}: the default in {VARIABLES} is '{default}'"
    for name in rows.keys() - read:
        yield root / ENVIRONMENT, rows[name][0], f"{name} is not in the table of {VARIABLES}"


def check_docstrings(root):
    """Checks that the labels in the comments of the public headers are in order, and that error
    texts name parameters as the headers do."""
    labels = ("Blocks", "In place", "Errors")
    declared = set()
    for path in sorted((root / "include/hccl").glob("*.h")):
        text = path.read_text()
        declared.update(re.findall(r"(\w+)(?:\[\w*\])?[,)]", text))
        for line, match in tree.numbered_matches(r"((?:^//.*\n)+)", text):
            found = [labels.index(label) for label in re.findall(rf"^// ({'|'.join(labels)}): ", match.group(1), re.M)]
            if found != sorted(set(found)):
                yield path, line, "a docstring may have the labels 'Blocks:', 'In place:' and 'Errors:', each once and in this order"
    for path in sorted((root / "src/api").glob("*.cpp")):
        for line, match in tree.numbered_matches(r'require_pointer\(\w+, "(\w+)"\)', path.read_text()):
            if match.group(1) not in declared:
                yield path, line, f"no public function has a parameter '{match.group(1)}'"


if __name__ == "__main__":
    tree.main(check)
