# SPDX-License-Identifier: Apache-2.0
"""Phrases that slow down readers of comments, texts and pages, each with a replacement."""
import re

# Noun clauses at the beginning of a sentence, which reveal its subject late.
NOUN_CLAUSE = re.compile(r"(?:^|[.:;!?] )(Of|What|Whatever|Who|Whoever|Whether) (?!course)")
AMOUNT = re.compile(r"\b[Ss]o (?:many|much|long)\b(?! (?:as|that)\b)")
NEGATION = re.compile(r"(?<!\b[Tt]here )\bis no (?!longer\b)")
UNAVAILABLE = re.compile(r"\bcannot be had\b")


def complaints(text):
    """Yields (match, complaint) for each phrase of the text that must be reworded."""
    for match in NOUN_CLAUSE.finditer(text):
        yield match, f"a sentence begins with '{match.group(1)}': name the subject"
    for match in AMOUNT.finditer(text):
        yield match, f"'{match.group(0)}': name the constant or the parameter"
    for match in NEGATION.finditer(text):
        yield match, "'is no': write 'is not a'"
    for match in UNAVAILABLE.finditer(text):
        yield match, "'cannot be had': write 'is not available'"
