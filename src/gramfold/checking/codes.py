"""Codes: a client that writes down the same things in other words, or in other numbers, than most."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from gramfold.checking.finding import SERIOUS, Finding
from gramfold.checking.table import Column
from gramfold.sources.statistics import RELEASE_WORDS

ROWS = 10
STRANGE = 0.5
"""The part of a client's rows with words that nobody else has."""
FEW_CODES = 10
"""Different whole numbers of a column that may be codes."""
OWN, THEIRS = 0.05, 0.2
"""The part of a client's rows with a number that nobody else has, and of the others' with one that it never has."""
SHOWN = 4


def codes(name: str, columns: Mapping[str, Column], release_words: int = RELEASE_WORDS) -> list[Finding]:
    """The clients of a column that differ in how they write it."""
    known = {client: column for client, column in columns.items() if column.present >= ROWS}
    of_words = {client: column.counts for client, column in known.items() if column.numbers is None}
    of_numbers = {client: column.numbers for client, column in known.items() if column.numbers is not None}
    found = kinds(name, columns, release_words)
    if not found and len(of_words) > 1:
        found = _words(name, of_words, release_words)
    if not found and len(of_numbers) > 1:
        found = _numbers(name, {client: numbers for client, numbers in of_numbers.items() if numbers is not None})
    return found


def kinds(name: str, columns: Mapping[str, Column], release_words: int = RELEASE_WORDS) -> list[Finding]:
    """Words, dates or numbers at some clients, and something else at most: whoever are fewer are named."""
    held = {client: column.kind for client, column in columns.items() if column.present >= ROWS}
    most = max(("numbers", "dates", "words"), key=Counter(held.values()).__getitem__)
    many = sum(kind == most for kind in held.values())
    listed = {client: _listed(columns[client].counts, release_words) if kind == "words" else "" for client, kind in held.items()}
    return [
        Finding("codes", SERIOUS, f"holds {kind}{listed[client]}, where {_clients(many)} {most}",
                "write it the same way everywhere", client, name)
        for client, kind in held.items() if kind != most
    ]  # fmt: skip


def _clients(many: int) -> str:
    return "another client has" if many == 1 else f"{many} other clients have"


def _words(name: str, counts: Mapping[str, Mapping[str, int]], release_words: int) -> list[Finding]:
    """Clients most of whose rows have words of their own, while the others share theirs."""
    holders = Counter(word for mine in counts.values() for word in mine)
    strange = {
        client: sum(n for word, n in mine.items() if holders[word] == 1) / sum(mine.values()) for client, mine in counts.items()
    }
    odd = [client for client, share in strange.items() if share > STRANGE]
    if not odd or len(odd) == len(counts) > 2:
        return []  # wards and towns are everybody's own
    if len(counts) == 2:
        odd = odd[:1]
        if any(_has_many(mine) for mine in counts.values()):
            return []
    elif 2 * len(odd) >= len(counts):
        return []
    found = []
    for client in odd:
        theirs = Counter[str]()
        for other, mine in counts.items():
            theirs.update(mine if other not in odd or (len(counts) == 2 and other != client) else {})
        alike = {_plain(word) for word in counts[client]} & {_plain(word) for word in theirs}
        what = "in other spelling" if alike else f"that no other client has{_listed(counts[client], release_words)}"
        found.append(
            Finding("codes", SERIOUS, f"{strange[client]:.0%} of its rows have words {what}; the others have"
                    f"{_listed(theirs, release_words) or ' their own'}", "write the same words everywhere", client, name)
        )  # fmt: skip
    return found


def _has_many(counts: Mapping[str, int]) -> bool:
    return len(counts) > FEW_CODES


def _plain(word: str) -> str:
    return re.sub(r"[\W_]", "", word).casefold()


def _listed(counts: Mapping[str, int], release_words: int) -> str:
    """The most frequent words that may be named."""
    frequent = [word for word, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])) if n >= release_words]
    shown = ", ".join(repr(word) for word in frequent[:SHOWN])
    return f" ({shown}{', ...' if len(frequent) > SHOWN else ''})" if shown else ""


def _numbers(name: str, numbers: Mapping[str, np.ndarray]) -> list[Finding]:
    """Clients whose few whole numbers are not those of the others: 1 and 2 for 0 and 1."""
    if any((values != np.rint(values)).any() or len(np.unique(values)) > FEW_CODES for values in numbers.values()):
        return []
    found = []
    for client, own in numbers.items():
        others = [values for other, values in numbers.items() if other != client]
        theirs = np.concatenate(others)
        strange, lacking = ~np.isin(own, theirs), ~np.isin(theirs, own)
        if strange.mean() >= OWN and lacking.mean() >= THEIRS and _agree(others):
            found.append(
                Finding("codes", SERIOUS, f"has the numbers {_codes(own)}, the others {_codes(theirs)}",
                        "code it the same way everywhere", client, name)
            )  # fmt: skip
    return found[:1] if len(numbers) == 2 else found


def _agree(others: Sequence[np.ndarray]) -> bool:
    """Whether clients have the same numbers, but for what few rows have."""
    known = np.concatenate(others)
    return all(np.isin(np.unique(known), values).mean() >= STRANGE for values in others)


def _codes(values: np.ndarray) -> str:
    return ", ".join(f"{value:g}" for value in np.unique(values)[:FEW_CODES])
