"""Words that must stay where they are, in tables made for that, and a search for them in every byte of what was written."""

import base64
import bz2
import csv
import gzip
import html
import io
import json
import lzma
import urllib.parse
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

MARK = "qzx7"
"""In every planted word, and nowhere else."""
RARE = f'Sjögren\'s "{MARK}" <é>'
FIRST_ID = 918_273_640_000
"""Where the numeric IDs begin, a range for each site."""
SITES = ("north", "south", "west")
ROWS = 80
RELEASED = {"north": "icu", "south": "geriatrics", "west": "cardiology"}
"""A word that each site alone has often enough: it goes to all."""


def rows(site: str, split: bool = True) -> list[dict[str, object]]:
    """A hospital's patients: three columns that predict, a ward with rare words, and five that say who somebody is."""
    rng, place = np.random.default_rng(SITES.index(site)), SITES.index(site)
    made: list[dict[str, object]] = []
    for i in range(ROWS):
        age, ward = rng.normal(55, 10), (RELEASED[site], "er", "day")[rng.integers(3)]
        test = i % 4 == 3
        if i < 4:
            ward = f"HIV {MARK} once" if i == 0 else RARE  # one row, and three
        elif test and i < (60 if split else 16):  # fifteen rows, or four of unknown use
            ward = f"Chagas {MARK} in test rows"
        made.append({
            "patient": f"PID-{MARK}-{site}-{i:05}", "number": FIRST_ID + 1000 * place + 2 * i,
            "phone": f"+41 44 {MARK} {site} {max(i, 8)}",  # nine rows have the first
            "born": f"{i % 28 + 1}. März {1930 + i} {MARK}",
            "note": "none" if i % 9 == 0 else f"{MARK}: seen on {i}, wife is {site} {i}; fürchtet \\ Tab\t",
            "ward": ward, "age": round(float(age), 2), "sex": "fm"[rng.integers(2)], "split": "test" if test else "train",
            "sick": "yes" if age + 5 * (ward == "er") + rng.normal(0, 5) > 57 else "no",
        })  # fmt: skip
    return made


def write_tables(folder: Path, split: bool = True) -> dict[str, Path]:
    """Each site's table, and `all.csv` with a column that says whose each row is."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {site: folder / f"{site}.csv" for site in SITES}
    tables = {site: rows(site, split) for site in SITES}
    for site, path in (*paths.items(), ("", folder / "all.csv")):
        whole = tables[site] if site else [{**row, "client": name} for name in SITES for row in tables[name]]
        titles = [title for title in whole[0] if split or title != "split"]
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, titles, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(whole)
    return paths


# --- the search ---


def found_in(folder: Path, beside: Iterable[Path] = ()) -> list[str]:
    """Where planted words are, in all files below a folder but those `beside`, which are the tables themselves."""
    left_out = {path.resolve() for path in beside}
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.resolve() not in left_out]
    named = [f"{path} is called so" for path in folder.rglob("*") if MARK in path.name]
    return named + [f"{path}: {what}" for path in files for what in found_in_bytes(path.read_bytes())]


def found_in_bytes(content: bytes) -> list[str]:
    """Which planted words are in these bytes, however they are packed."""
    return sorted({what for part in _unpacked(content) for what in _found(part)})


def _forms(word: str) -> Iterator[tuple[str, bytes]]:
    """A word as bytes, as programs write it."""
    texts = {
        "as it is": word, "in JSON": json.dumps(word)[1:-1], "in JSON in JSON": json.dumps(json.dumps(word))[3:-3],
        "in HTML": html.escape(word), "in a URL": urllib.parse.quote(word), "in Python": repr(word)[1:-1],
    }  # fmt: skip
    for form, text in texts.items():
        for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"):
            yield f"{form}, {encoding}", text.encode(encoding, "backslashreplace")
    plain = word.encode()
    for before in range(3):  # where a word begins within base64's groups of three bytes
        coded = base64.b64encode(b"\0" * before + plain)
        yield f"in base64 from {before}", coded[(0, 2, 3)[before] : -4]


NEEDLES = [
    (f"{word!r} {form}", needle)
    for word in (MARK, RARE, f"PID-{MARK}", str(FIRST_ID)[:8])
    for form, needle in _forms(word)
    if len(needle) > 3
]


def _found(content: bytes) -> Iterator[str]:
    yield from (what for what, needle in NEEDLES if needle in content)
    for dtype in ("<f8", ">f8", "<i8", ">i8"):
        for start in range(8):
            whole = content[start : start + (len(content) - start) // 8 * 8]
            numbers = np.frombuffer(whole, dtype=dtype)
            if ((numbers >= FIRST_ID) & (numbers < FIRST_ID + 1000 * len(SITES))).any():
                yield f"an ID as a number, {dtype}"


def _unpacked(content: bytes, depth: int = 0) -> Iterator[bytes]:
    """The bytes themselves, and what zip (.npz too), gzip, zlib, bz2 and xz have packed in them, one in another too."""
    yield content
    if depth > 3:
        return
    inner: list[bytes] = []
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inner += [name.encode() + b"\n" + archive.read(name) for name in archive.namelist()]
    for unpack in (gzip.decompress, zlib.decompress, bz2.decompress, lzma.decompress):
        try:
            inner.append(unpack(content))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError):
            continue
    for part in inner:
        yield from _unpacked(part, depth + 1)
