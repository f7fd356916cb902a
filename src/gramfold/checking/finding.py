"""Findings: whose, which column, what, what to do, and how sure that is."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

SERIOUS, NOTICE = "serious", "notice"
SURE = 0.99
"""Above this a finding does not say how sure it is."""
MANY, SHOWN = 3, 2
"""Clients of whom the same is said together, and those of them that are named where they are more."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth knowing. It quotes no word that would not leave its client anyway."""

    kind: str
    """units, gaps, codes, id, constant, missing, date, mixed, leak, labels, target or duplicates."""
    level: str
    what: str
    do: str
    client: str | None = None
    """None: all of them."""
    column: str | None = None
    confidence: float | None = None
    """The chance that it is so, where that was estimated."""
    factor: float | None = None
    """By which numbers are too large."""

    @property
    def where(self) -> str:
        column = None if self.column is None else f"column {self.column!r}"
        return ", ".join(part for part in (self.client, column) if part is not None) or "all clients"

    def __str__(self) -> str:
        return f"{self.where}: {self.claim}; {self.do}"

    @property
    def claim(self) -> str:
        """What, and how sure that is."""
        sure = "" if self.confidence is None or self.confidence > SURE else f" ({self.confidence:.0%} sure)"
        return self.what + sure


def together(findings: Sequence[Finding], clients: Sequence[str]) -> list[Finding]:
    """The same with what holds of many clients, to the letter, said once."""
    same: dict[tuple[Any, ...], list[Finding]] = {}
    for found in findings:
        same.setdefault((found.kind, found.level, found.what, found.do, found.column), []).append(found)
    said = []
    for group in same.values():
        names = [str(found.client) for found in group]
        if len(group) < MANY:
            said += group
        elif len(group) == MANY:
            said.append(replace(group[0], client=", ".join(names)))
        else:
            more = f" and {len(names) - SHOWN} more of {len(clients)} clients"
            said.append(replace(group[0], client=", ".join(names[:SHOWN]) + more))
    return said


@dataclass(frozen=True)
class Report:
    """What was found, the serious first.

    >>> Report.of([Finding("constant", NOTICE, "has one value throughout", "leave it out", column="ward")], ["north"])
    1 client checked: nothing serious, 1 notice
      notice  column 'ward': has one value throughout; leave it out
    """

    findings: tuple[Finding, ...]
    clients: tuple[str, ...]

    @classmethod
    def of(cls, findings: Sequence[Finding], clients: Sequence[str]) -> "Report":
        return cls(tuple(sorted(findings, key=lambda found: found.level != SERIOUS)), tuple(clients))

    @property
    def serious(self) -> tuple[Finding, ...]:
        return tuple(found for found in self.findings if found.level == SERIOUS)

    @property
    def summary(self) -> str:
        serious, notices = len(self.serious), len(self.findings) - len(self.serious)
        clients = f"{len(self.clients)} client{'s' * (len(self.clients) != 1)} checked"
        return f"{clients}: {serious or 'nothing'} serious, {notices or 'no'} notice{'s' * (notices != 1)}"

    def __repr__(self) -> str:
        return "\n".join([self.summary, *(f"  {found.level:<7} {found}" for found in self.findings)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for machines."""
        return {"clients": list(self.clients), "findings": [asdict(found) for found in self.findings]}
