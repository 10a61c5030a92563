#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the reference pages from the sources. With --check, only compares them, and exits with 1 if a page is out of date.

Usage: docs/generate.py [--check] [root]
"""
import sys
from pathlib import Path

from generator import algorithms_page, api_page, errors_page

PAGES = {"docs/reference/algorithms.md": algorithms_page.page, "docs/reference/api.md": api_page.page,
         "docs/reference/errors.md": errors_page.page}


def stale(root):
    """Yields each page that is out of date, with its correct text."""
    for name, make in PAGES.items():
        page = make(root)
        path = root / name
        if page is not None and (not path.exists() or path.read_text() != page):
            yield path, page


def main():
    names = [argument for argument in sys.argv[1:] if argument != "--check"]
    root = Path(names[0] if names else Path(__file__).parents[1]).resolve()
    found = list(stale(root))
    for path, page in found:
        if "--check" in sys.argv:
            print(f"{path.relative_to(root)}: out of date; run ./dev format")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page)
            print(f"wrote {path.relative_to(root)}")
    sys.exit(1 if found and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
