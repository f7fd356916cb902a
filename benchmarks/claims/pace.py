"""What docs/pace.md says in words of small tables."""

from typing import Any

from benchmarks.claims import claim
from benchmarks.kept import load

PAGE = "docs/pace.md"


def behind(tables: dict[str, Any]) -> list[float]:
    """By how much the better of the pooled regressions has the lower log loss, in standard errors of PACE's and as it is."""
    gaps = []
    for models in tables.values():
        pooled = min(models[name]["log_loss"][0] for name in models if name.startswith("pooled"))
        mine, error = models["PACE personal"]["log_loss"]
        if mine > pooled:
            assert mine - pooled < error
            gaps.append(mine - pooled)
    return gaps


@claim(PAGE)
def pooled_regressions_are_sometimes_ahead() -> str:
    found = load("binary")
    first, again = (behind(found[part]) for part in ("settings", "again"))
    return (
        f"By log loss the better of the two pooled regressions is ahead of PACE's personal heads in {len(first)} of the first {len(found['settings'])} "
        f"tables and in {len(again)} of the second {len(found['again'])}, in each by less than a standard error ({max(first + again):.3f} at most)."
    )
