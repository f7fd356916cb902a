"""A page in the making: HTML from here, figures drawn in the browser from numbers that the page carries.

Drawing where the page is read makes figures that fit a phone and a sheet of paper, and that know which client is highlighted. The
page fetches nothing: style, script and numbers are inside, and a content security policy admits this script and no other.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from gramfold.measures import MEASURES, Measure

SCRIPTS = (
    "drawing.js",
    "highlight.js",
    "client_figures.js",
    "difference_figures.js",
    "method_figures.js",
    "tables.js",
    "page.js",
)
"""In the order in which they follow from each other; the last begins to draw."""
WIDE = "wide"
"""A figure over the whole width of the page."""


@cache
def _asset(name: str) -> str:
    return resources.files("gramfold.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """All files in one block, so that their names are nobody else's."""
    return '"use strict";\n{\n' + "\n".join(map(_asset, SCRIPTS)) + "}\n"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def as_script(content: Any) -> str:
    r"""JSON that cannot end the script element it stands in, whatever the names in it are.

    >>> as_script({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class Sheet:
    """HTML parts in their order, and the numbers of the figures among them. Texts are escaped here, parts of HTML are not."""

    def __init__(self, title: str, measure: Measure = MEASURES["accuracy"]) -> None:
        self.title = title
        self._parts: list[str] = [f"<h1>{escape(title)}</h1>"]
        self._figures: list[dict[str, Any]] = []
        self._groups: list[Mapping[str, Any]] = []
        self._open = False
        self._measure = {
            "less": measure.less_is_better, "percent": measure.percent, "unit": measure.unit, "title": measure.title,
            "least": 0 if measure.least == 0 else None,
            "most": None if measure.most is None else (100 if measure.percent else measure.most),
        }  # fmt: skip

    def group(self, clients: Mapping[str, Any]) -> int:
        """Clients that figures speak of; gives back the number that figures call them by."""
        self._groups.append(clients)
        return len(self._groups) - 1

    def html(self, *parts: str) -> None:
        if self._open:
            self._parts.append("</div>")
            self._open = False
        self._parts += parts

    def heading(self, text: str) -> None:
        self.html(f"<h2>{escape(text)}</h2>")

    def soft(self, text: str) -> None:
        self.html(f'<p class="soft">{escape(text)}</p>')

    def figure(self, title: str, note: str = "", css: str = "", **spec: Any) -> None:
        """A figure of a kind that the script knows; those that follow each other stand side by side where there is room."""
        if not self._open:
            self._parts.append('<div class="figures">')
            self._open = True
        about = f"<b>{escape(title)}</b>" + (f" <span>{escape(note)}</span>" if note else "")
        self._parts.append(f'<figure class="{css}" data-figure="{len(self._figures)}"><figcaption>{about}</figcaption></figure>')
        self._figures.append({**spec, "title": title})

    def render(self) -> str:
        self.html()
        style, script = _asset("page.css"), _script()
        policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
        data = {"measure": self._measure, "groups": self._groups, "figures": self._figures}
        none = "<noscript><p>The figures of this page are drawn by a script, which this browser does not run.</p></noscript>"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>gramfold: {escape(self.title)}</title><style>{style}</style></head>\n"
            f'<body><div id="bar"></div><main>{none}{"".join(self._parts)}</main>'
            f'<script type="application/json" id="data">{as_script(data)}</script>\n<script>{script}</script></body></html>\n'
        )


def table(header: Sequence[tuple[str, str]], rows: Sequence[tuple[str, Sequence[str]]], css: str = "") -> str:
    """Header cells are (text, what it means), rows (css class, cells of safe HTML)."""
    head = "".join(f'<th scope="col" title="{escape(meaning)}">{escape(title)}</th>' for title, meaning in header)
    body = "".join(f'<tr class="{css}">{"".join(cells)}</tr>' for css, cells in rows)
    return f'<div class="scroll"><table class="{css}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def cells(texts: Sequence[str]) -> list[str]:
    return [f"<td>{escape(text)}</td>" for text in texts]
