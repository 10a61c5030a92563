#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every #include, and the layers that each CMakeLists.txt links, with the layer table of
docs/architecture.md, which both defines and documents the rule."""
import re

import tree

TABLE_HEADER = "| folder | may include | third party |"


def read_table(text):
    """Returns {folder: (layers, third-party headers)} with the names that the folder may include.
    None in place of a set of names permits all names."""
    rows = {}
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(TABLE_HEADER):
            break
    next(lines, None)  # the dashes below the header
    for line in lines:
        if not line.startswith("|"):
            break
        folder, layers, third_party = [cell.strip() for cell in line.strip("|").split("|")][:3]
        for name in re.findall(r"`([^`]+)`", folder):
            rows[name] = tuple(None if cell == "anything" else set(re.findall(r"`([^`]+)`", cell))
                               for cell in (layers, third_party))
    return rows


def row_of(path, rows):
    """Returns the longest folder of the table that contains the file, or None."""
    holding = [folder for folder in rows if path.startswith(folder + "/")]
    return max(holding, key=len) if holding else None


PRODUCT = ("src/", "transports/")
# The folders of the system's own headers. In the folders of PRODUCT, any other folder in angle brackets must be in the
# table.
SYSTEM_FOLDERS = {"arpa", "asm", "linux", "net", "netinet", "sys"}


def layer_of(folder):
    return folder.split("/", 1)[-1]


def check(root):
    document = root / "docs/architecture.md"
    rows = read_table(document.read_text())
    if not rows:
        yield document, 1, f"no layer table (a line starting with '{TABLE_HEADER}')"
        return
    layers = {layer_of(folder) for folder in rows if folder.startswith(PRODUCT)}
    third_party = set().union(*(cells[1] for cells in rows.values() if cells[1]))
    for path in tree.sources(root, "src", "transports", "perf", "examples", "tests", "include"):
        relative = path.relative_to(root).as_posix()
        folder = row_of(relative, rows)
        if folder is None:
            yield path, 1, "its folder is not in the layer table of docs/architecture.md"
            continue
        text = tree.without_comments(path.read_text())
        if relative.startswith(PRODUCT):
            for line, _ in tree.numbered_matches(r'^[ \t]*#[ \t]*include[ \t]+\w', text):
                yield path, line, "an include must name its header: this check cannot follow macros"
        for line, match in tree.numbered_matches(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text):
            reason = forbidden(match.group(1), match.group(2), folder, rows[folder], layers, third_party)
            if reason:
                yield path, line, f"{folder} must not include {match.group(2)}: {reason}"
    yield from check_linked_layers(root, rows)


def check_linked_layers(root, rows):
    """Compares the layers after DEPENDS in each call of hccl_layer() with the table."""
    for folder, (layers, _) in rows.items():
        path = root / folder / "CMakeLists.txt"
        if not folder.startswith(PRODUCT) or not path.exists():
            continue
        call = re.search(r"hccl_layer\((.*?)\)\n", path.read_text() + "\n", re.S)
        depends = re.search(r"\bDEPENDS\s+([a-z_\s]+)", call.group(1)) if call else None
        linked = set(depends.group(1).split()) if depends else set()
        if linked != (layers or set()):
            yield path, 1, (f"links {', '.join(sorted(linked)) or 'no layer'}, but the layer table of docs/architecture.md "
                            f"lists {', '.join(sorted(layers)) or 'none'}")


def forbidden(quote, header, folder, row, layers, third_party):
    """Returns the reason why the folder must not include the header, or None if it may."""
    allowed_layers, allowed_third_party = row
    first = header.split("/")[0]
    if quote == '"' or ("/" in header and first in layers and folder.startswith(PRODUCT)):
        if ".." in header.split("/"):
            return "an include must name the layer, not a parent path"
        if (folder + "/").startswith(PRODUCT) and "/" not in header:
            return "within src and transports, an include must begin with the layer's name"
        own = folder.startswith(PRODUCT) and first == layer_of(folder)
        if first in layers and "/" in header and not own and allowed_layers is not None and first not in allowed_layers:
            return "its row in the layer table does not list that layer"
        return None
    for name in third_party:
        if header == name or header.startswith((name + "/", name + ".")):
            permitted = allowed_third_party is None or name in allowed_third_party
            return None if permitted else "its row in the layer table does not list that library"
    if "/" in header and folder.startswith(PRODUCT) and first not in SYSTEM_FOLDERS:
        return "the layer table lists no such library"
    return None


if __name__ == "__main__":
    tree.main(check)
