# SPDX-License-Identifier: Apache-2.0
"""docs/reference/errors.md: every code with its sentence, and every text the library can produce."""
import re
import textwrap
import tomllib
from pathlib import Path

from . import cpp

HEADERS = ("include/hccl/hccl_types.h", "include/hccl/synapse_common_types.h")
SENTENCES = "src/api/status_texts.cpp"
REMARKS = Path(__file__).with_name("remarks.toml")
MAKERS = {"Error", "hccl::Error", "CallMismatch", "SynError", "hccl::SynError", "Failure", "raise", "raise_with", "fail"}

# Where a text belongs: the longest path wins.
SUBJECTS = {
    "Arguments and usage": ("src/api", "src/comm", "src/node/lane.cpp"),
    "Joining a communicator": ("src/bootstrap", "src/network/network_backend.cpp", "src/base/process.cpp",
                               "src/base/secret.cpp", "src/base/rejection_log.h"),
    "Connections between ranks": ("src/transport", "transports"),
    "While operations run": ("src/node", "src/network", "src/comm/self_messages.cpp"),
    "Memory and devices": ("src/device", "src/base/shared_memory.cpp", "src/api/syn_memory.cpp", "src/api/dma_buffer.cpp"),
    "Environment": ("src/base", "src/bootstrap/comm_id.cpp"),
}

# Literals that no user sees: paths, parts of what identifies a box, labels of proofs.
UNSEEN = re.compile(r"^(/|<root>/|: cannot open|uid |node |boot |hccl (rank|server)$)")

INTRODUCTION = """\
<!-- Made by docs/generate.py of the sources. Do not edit: change the text where it is thrown, then ./dev format. -->
# Codes and texts

Every call returns a code. After a failure, `hcclGetLastErrorMessage()` and `synGetLastErrorMessage()` give the text
that belongs to it, of the calling thread; what fails after a call has returned is told by
`hcclCommGetAsyncErrorMessage()`. Each failure is also logged on stderr. A text says what was wrong, with rank, process and host where there is one, and after the
last semicolon one thing to do; where a sentence follows a text here, it says what that means or what to do.
Texts may change from release to release: programs decide by the code.

`<angle brackets>` stand for values, `{a|b}` for one of two wordings, `[brackets]` for a part that may be missing. Before
the text stand the codes it comes with: an `hccl` function returns the `hccl` code, a `syn` function the `syn` code, and
where there is only one of them, the other follows from [how codes translate](#how-codes-translate). Work that fails while work
runs on a stream gives `synFailHccl` and its text in the calls that synchronise. Texts about ranks that wait are explained with an example
in [how to debug a hang](../how-to/debug-a-hang.md).
"""

# Layers that say nothing to users: what a proof of a schedule finds is for those who write one.
WITHOUT_TEXTS = ("src/reduce/", "src/schedule/", "src/proof/", "src/algorithms/")

# The meaning of the loose texts of a file.
PARTS = {
    "src/base/variables.cpp": "`<what it accepts>`, of a variable that is not valid",
    "src/bootstrap/comm_id.cpp": "`<why>`, of a value of `HCCL_COMM_ID`",
    "src/bootstrap/unique_id.cpp": "`<why>`, of a unique id",
    "src/bootstrap/rendezvous.cpp": "`<who is missing>`, or what another rank has told",
    "src/bootstrap/rendezvous_client.cpp": "`<last trouble>`, and who made the unique id",
    "src/bootstrap/frame_connection.cpp": "`<why>`, of a connection that was rejected or closed",
    "src/bootstrap/pending_connections.cpp": "`<why>`, of a connection that was rejected or closed",
    "src/bootstrap/rank_admission.cpp": "`<why>`, of a connection that was rejected or closed",
    "src/bootstrap/root_server.cpp": "`<why>`, of a connection that was rejected or closed",
    "src/transport/dialer.cpp": "`<troubles>`, of an address that was tried",
    "transports/tcp/tcp_endpoint.cpp": "`<lost>`, of a connection",
    "transports/shm/shm_endpoint.cpp": "`<lost>`, of a process",
    "transports/verbs/verbs_errors.cpp": "`<name>`, `<cause>` and `<advice>`, of what an RDMA device reports",
    "transports/verbs/port_choice.cpp": "`<reasons>`, `<why>` and `<advice>`, of RDMA ports and GIDs",
    "transports/verbs/ports.cpp": "`<reasons>`, `<why>` and `<advice>`, of RDMA ports and GIDs",
    "src/node/operation_wait.cpp": "`<call>`, and `<who is late, and why>`, of a collective",
    "src/node/exchange_wait.cpp": "`<who is late, and why>`, of a send or receive",
    "src/call/point_to_point.cpp": "`<call>` and `<operation>`",
    "src/call/collective_call.cpp": "`<call>` and `<operation>`",
    "src/device/copy.cpp": "`<what>`, of a copy or fill",
    "src/base/errno_advice.cpp": "`<advice>`, by the error number of a system call",
    "src/base/log_output.cpp": "`<why>`, of the path in `HCCL_DEBUG_FILE`",
}
OTHER_PARTS = "Elsewhere"

LOG_INTRODUCTION = """
Lines on stderr, or in `HCCL_DEBUG_FILE`, as `hccl <LEVEL> <host>:<pid> <subsystem>: <text>`. They fail nothing by
themselves.
"""

PARTS_INTRODUCTION = """
The texts that some of the `<angle brackets>` above stand for.
"""


class Message:
    def __init__(self, subject, kind, codes, template):
        self.subject, self.kind, self.codes, self.template = subject, kind, codes, template.strip()


def subject_of(path):
    """The subject whose folder or file is the longest that holds the path."""
    fitting = [(len(place), subject) for subject, places in SUBJECTS.items() for place in places
               if path == place or path.startswith(place + "/")]
    return max(fitting)[1] if fitting else "Arguments and usage"


def enumerators(root, enum):
    for header in HEADERS:
        path = root / header
        match = re.search(rf"typedef enum {enum} \{{(.*?)\}}", path.read_text(), re.S) if path.exists() else None
        if match:
            return re.findall(r"(\w+)\s*=\s*(-?\w+)", re.sub(r"//[^\n]*", "", match.group(1)))
    return []


def messages_of(path, tokens, codes, functions):
    """The messages of one file, then the literals that are in none of them."""
    reader = cpp.Reader(tokens, functions)
    taken = set()
    for index, (kind, value) in enumerate(tokens):
        if kind != "code" or value not in "({" or index in taken:
            continue
        maker = tokens[index - 1][1] if index else ""
        end = cpp.end_of(tokens, index)
        arguments = cpp.split(tokens[index + 1:end], ",")
        site = read_site(maker, value, arguments, codes, reader)
        if site is None:
            continue
        taken.update(range(index, end + 1))
        message_kind, its_codes, templates = site
        for template in templates:
            if re.search(r"[a-z]{3}", re.sub(r"<[^>]*>", "", template)):
                yield Message(subject_of(path), message_kind, its_codes, template)
    yield from parts_of(PARTS.get(path, OTHER_PARTS), tokens, taken | reader.used, reader, functions)


def read_site(maker, bracket, arguments, codes, reader):
    """(kind, codes, templates) where a call or a braced list makes a message."""
    if maker in ("log", "log_line") and len(arguments) > 2:
        level = arguments[0][0][1].removeprefix("LogLevel::") if arguments[0] else ""
        if level in ("warning", "error"):
            return "log", [{"warning": "WARN", "error": "ERROR"}[level]], ["".join(reader.text_of(part) for part in arguments[2:])]
        return ("log", [], []) if level == "info" else None
    if len(arguments) != 2:
        return None
    found = [value for kind, value in arguments[0] if kind == "code" and value in codes]
    plain = bracket == "{" and len(arguments[0]) == 1
    if not found or not (plain or maker in MAKERS):
        return None
    text = returned(arguments[1]) if maker == "raise_with" else arguments[1]
    return "error", list(dict.fromkeys(found)), reader.alternatives(text)


def returned(function):
    """Returns the expression that a lambda returns."""
    begin = function.index(("code", "return")) + 1
    return function[begin:function.index(("code", ";"), begin)]


def is_prose(template):
    """Returns whether people read it: it has words beside the values that are filled in."""
    words = re.sub(r"<[^>]*>|\{rank \|ranks \}", "", template)
    return re.search(r"[A-Za-z]{2,}[^A-Za-z]* [^A-Za-z]*[A-Za-z]{2,}", words) is not None and not UNSEEN.match(template)


def parts_of(heading, tokens, taken, reader, functions):
    """Returns the texts that are made elsewhere and put into messages: prose literals with the text(...) around them."""
    index = 0
    while index < len(tokens):
        end = index
        if index not in taken and tokens[index:index + 2] == [("code", "text"), ("code", "(")]:
            end = cpp.end_of(tokens, index + 1)
        expression = tokens[index:end + 1]
        if index not in taken and cpp.has_text(expression):
            template = reader.text_of(expression)
            if is_prose(template) and template not in functions.values():
                yield Message(heading, "part", [], template)
        index = end + 1


def collect(root):
    codes = {name for enum in ("hcclResult_t", "synStatus") for name, _ in enumerators(root, enum)}
    paths = [path for folder in ("src", "transports") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".cpp", ".h")]
    sources = {path.relative_to(root).as_posix(): cpp.tokens(path.read_text()) for path in paths}
    functions = {}
    for tokens in sources.values():
        functions.update(cpp.text_functions(tokens))
    found = []
    for name, tokens in sources.items():
        if name != SENTENCES and not name.startswith(WITHOUT_TEXTS):
            found.extend(messages_of(name, tokens, codes, functions))
    return merged(found)


def merged(messages):
    """One entry for each text: the codes of all its sites together."""
    by_template = {}
    for message in messages:
        place = message.subject if message.kind == "part" else ""
        first = by_template.setdefault((message.kind, place, message.template), message)
        first.codes = list(dict.fromkeys(first.codes + message.codes))
    return list(by_template.values())


def wrapped(bullet, text):
    return textwrap.fill(text, 122, initial_indent=bullet, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)


def quoted(template):
    return f"`` {template} ``" if "`" in template else f"`{template}`"


def remark_of(message, remarks, used):
    """Returns the remark of remarks.toml on a message; one that names nothing to do must have a remark."""
    for beginning, remark in remarks.items():
        if message.template.startswith(beginning):
            used.add(beginning)
            return remark
    if message.kind == "error" and not re.search(r"; |: (set it to|call|pass) ", message.template):
        raise SystemExit(f"'{message.template}' names nothing to do: add that to the text or to {REMARKS}")
    return None


def entries(messages, remarks, used):
    for message in messages:
        codes = ", ".join(message.codes)
        yield wrapped("- ", (f"{codes}: " if codes else "") + quoted(message.template))
        remark = remark_of(message, remarks, used)
        if remark:
            yield wrapped("  ", remark)


def code_tables(root):
    source = (root / SENTENCES).read_text() if (root / SENTENCES).exists() else ""
    sentences = dict(re.findall(r'\{(hccl\w+),\s+"\w+",\s+"([^"]*)"\}', source))
    yield "\n## Codes of the hccl functions\n\n| code | value | sentence |\n|---|---|---|"
    for name, value in enumerators(root, "hcclResult_t"):
        yield f"| `{name}` | {value} | {sentences.get(name, '')} |"
    table = re.search(r"kStatusTexts = .*?\{(.*?)\}\)", source, re.S)
    texts = re.findall(r'\{"\w+",\s+"([^"]*)"\}', table.group(1)) if table else []
    yield "\n## Codes of the syn functions\n\n| code | value | sentence |\n|---|---|---|"
    for name, value in enumerators(root, "synStatus"):
        if value.isdigit() and int(value) < len(texts):
            yield f"| `{name}` | {value} | {texts[int(value)]} |"


def cases(path, root, function):
    """{label: result} of the switch in a function that translates codes."""
    source = (root / path).read_text() if (root / path).exists() else ""
    body = re.search(function + r"\(.*?\n\}", source, re.S)
    pairs, pending = [], []
    for label, default, result in re.findall(r"case (\w+):|(default):|return (\w+);", body.group(0) if body else ""):
        if result:
            pairs.append((pending, result))
            pending = []
        else:
            pending.append(label or default)
    return pairs


def translations(root):
    yield "\n## How codes translate\n\nA `syn` function translates an `hccl` code as follows, and an `hccl`"
    yield "function a `syn` code:\n\n| from | to |\n|---|---|"
    for path, function, rest in (("src/api/guard.cpp", "synStatus status_of", "any other `hccl` code"),
                                 ("src/base/syn_error.h", "hcclResult_t result_of", "any other `syn` code")):
        for labels, result in cases(path, root, function):
            names = ", ".join(rest if label == "default" else f"`{label}`" for label in labels)
            yield f"| {names} | `{result}` |"


def parts(messages, remarks, used):
    for heading in [*dict.fromkeys(PARTS.values()), OTHER_PARTS]:
        mine = [m for m in messages if m.kind == "part" and m.subject == heading]
        if mine:
            yield from ["", f"{heading}:", "", *entries(mine, remarks, used)]


def page(root):
    remarks, used = tomllib.loads(REMARKS.read_text()), set()
    messages = collect(root)
    lines = [INTRODUCTION.rstrip()]
    for subject in SUBJECTS:
        mine = [m for m in messages if m.kind == "error" and m.subject == subject]
        lines += ["", f"## {subject}", "", *entries(mine, remarks, used)] if mine else []
    lines += ["", "## Log", LOG_INTRODUCTION, *entries([m for m in messages if m.kind == "log"], remarks, used)]
    lines += ["", "## Parts", PARTS_INTRODUCTION.rstrip(), *parts(messages, remarks, used), *code_tables(root), *translations(root)]
    stale = remarks.keys() - used
    if (root / SENTENCES).exists() and stale:
        raise SystemExit(f"{REMARKS}: no text begins like this any more: {sorted(stale)}")
    return "\n".join(lines) + "\n"
