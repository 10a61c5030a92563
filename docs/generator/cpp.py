# SPDX-License-Identifier: Apache-2.0
"""Parses as much of C++ as the reference pages need: tokens, arguments of calls, and texts built from literals and values."""
import re

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|(?P<text>"(?:\\.|[^"\\\n])*")|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*'
    r"|\d[\w.']*|->|<<|>>|[^\s]", re.S)
OPENING, CLOSING = "({[", ")}]"

# The placeholders for expressions. A key is a whole expression without spaces, or the name of the function or member at
# its end.
NAMES = {
    "send_bytes": "bytes", "describe(idle_elsewhere)": "ranks", "system_error_text": "system error", "advice_on": "advice", "advice_on_mapping": "advice", "advice_on_thread": "advice", "gai_strerror(status)": "system error", "error.message()": "system error",
    "error.what()": "reason", "own.text": "reason", "failure->text": "reason", "leader.why()": "reason",
    "where": "address", "to_text": "address", "to_text(gid.kind)": "kind", "row.algorithm->name": "algorithm", "session.remote": "address",
    "interface.address.host_text()": "address", "entry.address.host_text()": "address", "address.host_text()": "address",
    "id.addresses.front().to_text()": "address", "holder_text": "process", "status.st_uid": "uid", "limit.rlim_cur": "limit",
    "a_name": "buffer", "b_name": "buffer", "std::min(a.end(),b.end())-std::max(a.address,b.address)": "n",
    "pciBus": "PCI address", "missing_.begin()->second": "reason", "foreign": "n", "family(theirs)": "IP version",
    "family(ours)": "IP version",
    "rank_text": "rank (pid, host)", "describe_rank": "rank (pid, host)", "description": "creator of the id (pid, host)",
    "describe(interfaces)": "interfaces", "describe(*entry)": "allocation", "describe": "call", "call_text": "call", "posted_calls_text": "calls",
    "delay": "late ranks and causes", "rank_list": "ranks", "seconds": "seconds", "elapsed.count()": "seconds",
    "waited_for()": "missing ranks", "sizeof(hcclUniqueId)": "1032", "size-1": "size - 1", "communicator->size()-1": "size - 1",
    "std::chrono::duration_cast<std::chrono::seconds>(kPoolTimeout).count()": "seconds", "expected-1": "rank",
    "bytes-left": "n", "bytes>>20": "n", "device::pci_bus_id(0)": "PCI address", "device_->id()": "device",
    "stream.device().id()": "device", "stream->device().id()": "device", "communicator->device().id()": "device",
    "std::min(larger+larger_bytes,smaller+smaller_bytes)-std::max(larger,smaller)": "n",
    "facts().name": "type", "free_bytes()": "n", "identities.size()": "n", "ranks.size()": "n", "mine.blob.size()": "bytes",
    "request.size": "n", "id.length": "n", "op_.number": "number", "lane.number()": "number", "lane.ordinal()": "stream", "op_.lane.ordinal()": "stream",
    "stream->progress()->completed()": "n", "stream->pushed()": "n", "operation-1": "stream", "lane-1": "stream",
    "reduce::operation_name": "reduction", "reduce::type_name": "type", "collective_name": "collective",
    "variable.name": "variable", "variable.reader.accepted": "accepted values", "*value": "value", "geteuid()": "user",
    "*user": "user", "base_+entry.first+entry.second.lead": "address", "entry.second.requested": "n",
    "call.peer": "peer", "hello.size": "n", "hello_.rank": "rank", "joining_rank": "rank", "leader_": "rank", "rank_": "rank",
    "node_.rank()": "rank", "ranks[first]": "rank", "ranks[last]": "rank", "size_": "ranks", "size()": "ranks",
    "odd": "ranks and their calls", "usual": "the other ranks and their calls", "doing": "operation",
    "kMostRanks": "n", "node::kMaxRanks": "n", "kMostBlob": "limit", "Group::kMostCalls": "1024", "kLanes": "n",
}


def tokens(source):
    """Returns pairs (kind, value). The kind is 'text' for a string literal, otherwise 'code'. Joins adjacent string literals."""
    found = []
    for match in TOKEN.finditer(re.sub(r"^[ \t]*#[ \t]*include\b[^\n]*", "", source, flags=re.M)):
        value = match.group(0)
        if value.startswith(("//", "/*")):
            continue
        if match.group("text") is None:
            found.append(("code", value))
            continue
        literal = re.sub(r"\\(.)", lambda m: {"n": "\n", "0": "\0"}.get(m.group(1), m.group(1)), value[1:-1])
        if found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + literal)
        else:
            found.append(("text", literal))
    return found


def end_of(all_tokens, start):
    """Returns the index of the bracket that closes the one at `start`, or of the last token if none does."""
    depth = 0
    for index in range(start, len(all_tokens)):
        kind, value = all_tokens[index]
        if kind == "code" and value in OPENING:
            depth += 1
        elif kind == "code" and value in CLOSING:
            depth -= 1
            if depth == 0:
                return index
    return len(all_tokens) - 1


def split(all_tokens, separator):
    """Splits tokens at the separators outside all brackets, and returns a list of lists."""
    parts, depth = [[]], 0
    for kind, value in all_tokens:
        if kind == "code":
            depth += value in OPENING
            depth -= value in CLOSING
            if value == separator and depth == 0:
                parts.append([])
                continue
        parts[-1].append((kind, value))
    return parts


def has_text(all_tokens):
    return any(kind == "text" for kind, _ in all_tokens)


class Reader:
    """Turns an expression into the text that it produces. <placeholders> stand for values known only at run time."""

    def __init__(self, file_tokens, functions=None):
        self.known, self.used, self.functions = {}, set(), functions or {}
        for index in range(1, len(file_tokens) - 1):
            if file_tokens[index] == ("code", "=") and file_tokens[index - 1][0] == "code":
                self.known.setdefault(file_tokens[index - 1][1], []).append(index + 1)
        self.file_tokens = file_tokens

    def text_of(self, expression):
        expression = list(expression)
        if has_text(expression) and len(split(expression, "?")) > 1:
            yes, no = self.alternatives(expression)
            return f"{{{yes}|{no}}}" if yes and no else f"[{yes or no}]"
        if has_text(expression) and len(parts := split(expression, "+")) > 1:
            return "".join(self.text_of(part) for part in parts)
        if len(expression) == 1 and expression[0][0] == "text":
            return expression[0][1]
        if expression and expression[0] in (("code", "text"), ("code", "std::string")) and len(expression) > 2:
            inside = expression[2:end_of(expression, 1)]
            return "".join(self.text_of(part) for part in split(inside, ","))
        return self.named(expression)

    def alternatives(self, expression):
        """Returns a list of the texts that an expression can produce: two for `condition ? one : other`, else one."""
        condition = len(split(expression, "?")[0])
        if condition == len(expression):
            return [self.text_of(expression)]
        one, *others = split(expression[condition + 1:], ":")
        other = [token for part in others for token in [("code", ":"), *part]][1:]
        return [self.text_of(one), self.text_of(other)]

    def named(self, expression):
        written = "".join(value for kind, value in expression if kind == "code")
        if written in ("std::hex", "std::dec") or written.startswith(("std::setw", "std::setfill")):
            return ""
        if re.fullmatch(r"'.'", written):
            return written[1]
        if re.fullmatch(r"\w+", written) and (definition := self.definition(written)) is not None:
            return definition
        written = re.sub(r"^static_cast<[\w:]+>\((.*)\)$", r"\1", written)
        head = written.split("(")[0].split(".")[-1].split("->")[-1]
        if head in self.functions and written.endswith(")"):
            return self.functions[head]
        for key in (written, head):
            if key in NAMES:
                return NAMES[key] if NAMES[key].isdigit() else f"<{NAMES[key]}>"
        words = re.findall(r"[A-Za-z_]\w*", written)
        word = re.sub(r"(?<=[a-z])([A-Z])", r" \1", words[-1]).lower() if words else "value"
        return "<" + word.removeprefix("k ").strip("_").replace("_", " ") + ">"

    def definition(self, name):
        """Returns the text of a constant or variable of this file if its only definition is a text,
        else None."""
        places = self.known.get(name, [])
        if len(places) != 1:
            return None
        value = split(self.file_tokens[places[0]:places[0] + 60], ";")[0]
        if not value or (value[0][0] != "text" and value[0] != ("code", "text")):
            return None
        self.used.update(range(places[0], places[0] + len(value)))
        return self.text_of(value)


def text_functions(file_tokens):
    """Returns {name: text} for the functions that return a message in which an action follows a
    semicolon."""
    reader, found, name = Reader(file_tokens), {}, None
    for index, (kind, value) in enumerate(file_tokens):
        if kind == "code" and value == "{" and file_tokens[index - 1][1] in (")", "const"):
            opening = index
            while opening and file_tokens[opening] != ("code", "("):
                opening -= 1
            before = file_tokens[opening - 1][1].split("::")[-1]
            if re.fullmatch(r"\w+", before) and before not in ("for", "if", "while", "switch", "catch"):
                name = before
        if (kind, value) == ("code", "return") and file_tokens[index + 1:index + 2] == [("code", "text")]:
            template = reader.text_of(split(file_tokens[index + 1:], ";")[0])
            if "; " in template:
                found[name] = template
    return found
