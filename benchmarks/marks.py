"""A page's part that a script writes: what stands between its marks."""

from collections.abc import Sequence
from pathlib import Path

SCALE = Path(__file__).parents[1] / "docs" / "scale.md"


def fill(page: Path, name: str, lines: Sequence[str]) -> None:
    """Write lines between the marks of the script `benchmarks/NAME.py`."""
    begin, end = f"<!-- made by benchmarks/{name}.py -->", f"<!-- end of {name} -->"
    text = page.read_text()
    before, after = text.index(begin) + len(begin), text.index(end)
    page.write_text(text[:before] + "\n" + "\n".join(lines) + "\n" + text[after:])
