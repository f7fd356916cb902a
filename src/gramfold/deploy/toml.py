"""A minimal TOML writer: flat tables of strings, numbers and booleans."""

import json
from collections.abc import Mapping
from typing import Any

Value = str | int | float | bool
"""The value types of Flower's configurations."""


def to_toml(tables: Mapping[str, Any]) -> str:
    """Values at the top, then a section for every table; a table's name may have dots.

    >>> print(to_toml({"name": "north", "tool.app": {"rounds": 2, "quick": True}}), end="")
    name = "north"
    <BLANKLINE>
    [tool.app]
    rounds = 2
    quick = true
    """
    values = [f"{key} = {_value(value)}\n" for key, value in tables.items() if not isinstance(value, Mapping)]
    sections = [f"\n[{name}]\n{to_toml(table)}" for name, table in tables.items() if isinstance(table, Mapping)]
    return "".join(values + sections)


def _value(value: Any) -> str:
    # JSON strings, numbers, booleans and lists of them are valid TOML, except for one character that only JSON allows
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
