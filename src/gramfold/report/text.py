"""Numbers formatted for people."""

from collections.abc import Sequence

MISSING = "\N{EN DASH}"


def percent(share: float | None) -> str:
    """
    >>> percent(0.8312), percent(None) == MISSING
    ('83.1', True)
    """
    return MISSING if share is None else f"{100 * share:.1f}"


def number(value: float | None, digits: int = 3) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def size(count: float) -> str:
    """
    >>> size(0), size(2048), size(3_500_000)
    ('0 B', '2.0 kB', '3.5 MB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float) -> str:
    """
    >>> duration(0.01234), duration(3.21), duration(200)
    ('12 ms', '3.2 s', '3 min 20 s')
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def setting(value: object) -> str:
    """A hyper-parameter's value in a few characters."""
    if value is None:
        return "chosen"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def cell(value: object) -> object:
    """A value for a CSV file that people open in a spreadsheet: a text that would be a formula there is a text.

    >>> cell("=1+1"), cell("-0.5"), cell("cat"), cell(-0.5)
    ("'=1+1", '-0.5', 'cat', -0.5)
    """
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells as lines of text, columns under each other.

    >>> aligned([["client", "train"], ["a", "7"]])
    ['client  train', '     a      7']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
