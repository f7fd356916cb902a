"""What errors say, held once: docs/errors.md lists every code and every message, and is written from the code.

python tests/test_errors.py    writes the page anew
"""

import ast
import importlib
import json
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import gramfold
from gramfold.errors import GramfoldError

SOURCES = Path(gramfold.__file__).parent
PAGE = SOURCES.parents[1] / "docs" / "errors.md"
GAP = "…"
"""What stands for the parts of a message that depend on what happened."""
HEAD = """# Errors and their codes

Every error that you can mend is a `gramfold.GramfoldError`: one line that says what is wrong, where, and what to do. Its class,
from `gramfold.errors`, says what it is about, and has a code that stays the same where the words change: `error.code` in Python.
A command that fails prints `error: ` and the line on standard error, and exits with 2; with `--json` it also prints
`{"error": {"code": ..., "message": ...}}` on standard output. Two codes are of commands alone: `command` for a command line that
cannot be read, and `memory` where memory ran out.

This page is written from the code by `python tests/test_errors.py`; "…" stands for names and numbers.
"""


def classes() -> dict[str, type[GramfoldError]]:
    """All errors by name."""
    for found in pkgutil.walk_packages(gramfold.__path__, "gramfold.", onerror=lambda name: None):
        if not found.name.endswith("__main__"):
            with suppress(ImportError):  # of an extra
                importlib.import_module(found.name)
    known, rest = {}, [GramfoldError]
    while rest:
        kind = rest.pop()
        known[kind.__name__] = kind
        rest += [sub for sub in kind.__subclasses__() if sub.__module__.startswith("gramfold.")]
    return known


def said(node: ast.expr) -> list[str]:
    """The messages that an expression may be."""
    if isinstance(node, ast.IfExp):
        return said(node.body) + said(node.orelse)
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)]
    return []


def raised() -> Iterator[tuple[str, str]]:
    """The class and the message of every `raise`, in the order of the sources."""
    known = classes()
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                name = ast.unparse(node.exc.func)
                for message in said(node.exc.args[0]) if name in known else ():
                    if re.search(r"\w", message.replace(GAP, "")):
                        yield name, message


def page() -> str:
    known, messages = classes(), defaultdict[str, list[str]](list)
    for name, message in raised():
        messages[known[name].code].append(message)
    parts = [HEAD]
    for kind in sorted(known.values(), key=lambda kind: kind.code):
        about = (kind.__doc__ or "").split("\n\n")[0]
        parts.append(f"## `{kind.code}`\n\n`{kind.__module__}.{kind.__name__}`. {' '.join(about.split())}\n")
        if found := sorted(set(messages[kind.code]), key=str.lower):
            parts.append("\n".join(f"- `` {message} ``" for message in found) + "\n")
    return "\n".join(parts)


def test_the_page_says_what_the_code_says():
    assert PAGE.read_text() == page(), "run python tests/test_errors.py"


def test_every_message_is_one_plain_line():
    messages = {message for _, message in raised()}
    assert len(messages) > 500
    assert [message for message in messages if "\n" in message or re.search(r"([^. ]\.|!|\s)$", message)] == []
    assert [message for message in messages if re.match(r"(?!Nystroem|Flower)[A-Z][a-z]+ ", message)] == [], (
        "they follow `error: `"
    )


def test_codes_are_short_and_each_is_one_class():
    known = classes()
    codes = [kind.code for kind in known.values()]
    assert len(set(codes)) == len(codes) < 40
    assert all(re.fullmatch(r"[a-z]+(\.[a-z]+)?", code) for code in codes)
    assert all(kind.__doc__ for kind in known.values())


def test_a_command_that_fails_tells_programs_the_code(gramfold):
    code, out, err = gramfold("run", "nowhere.npz", "--json")
    assert code == 2
    assert json.loads(out) == {"error": {"code": "file", "message": "no such data file: nowhere.npz"}}
    assert err == "error: no such data file: nowhere.npz\n"
    assert json.loads(gramfold("run", "--json", "--nope")[1])["error"]["code"] == "command"
    assert gramfold("run", "nowhere.npz")[1] == ""


if __name__ == "__main__":
    PAGE.write_text(page())
