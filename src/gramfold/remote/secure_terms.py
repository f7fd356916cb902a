"""What a site asks of a secure sum before it takes part: how many must stay, how many samples are in it, how many features.

A sum of fewer samples than features can be taken apart into them; so can many sums of a few features each, of the same samples.
So a site bounds the features of one sum by a share of the samples that the sites have signed to bring, and, where it likes, those
of all sums that it was ever in: each space in which the same samples were summed counts once, by the site's own diary.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gramfold.errors import SecureSumError
from gramfold.privacy.protocol import Roster
from gramfold.remote import diary
from gramfold.remote.policy import Policy


def check_threshold(policy: Policy, threshold: object) -> None:
    """Raise unless so many sites must stay to the end that the site agrees."""
    if not isinstance(threshold, float | int) or not threshold >= policy.threshold - 1e-9:
        raise SecureSumError(
            f"this site takes part in secure sums with a threshold of at least {policy.threshold:.3g}, and this one has "
            f"{threshold}; the server must set `secure-threshold`, or the site `release-threshold`"
        )


def features_of(public: Mapping[str, Any]) -> int:
    """How many features an upload is of; none where it is no moments."""
    return int(public.get("dim", 0)) * len(public.get("fingerprints", [None]))


def space_of(public: Mapping[str, Any], samples: str) -> str:
    """Equal for sums of the same samples (their digest) in the same space: a second one tells nothing new of them."""
    return hashlib.sha256(json.dumps([public, samples], sort_keys=True).encode()).hexdigest()[:32]


def fewest_samples(policy: Policy, features: int, space: str, part: float, roster: Roster, state: Path) -> int:
    """How many samples the sites of a sum of so many features must have, of which a part is in it; raises where all of the sites
    together have too few."""
    needed = _needed(features, policy.features * part)
    if roster.samples < needed:
        raise SecureSumError(
            f"a sum of {int(part * roster.samples)} samples with {features} features can be taken apart into them, and this site "
            f"allows {policy.features:g} features for each sample: use fewer features, more sites, or set its `release-features`"
        )
    if policy.features_ever is None:
        return needed
    before = {str(line["space"]): int(line["features"]) for line in diary.lines(state) if line.get("space")}
    ever = sum({**before, space: features}.values())
    needed = max(needed, _needed(ever, policy.features_ever * part))
    if roster.samples < needed:
        raise SecureSumError(
            f"with this sum the site would have been in sums of {ever} features, of {roster.samples} samples, and it allows "
            f"{policy.features_ever:g} for each, ever (`release-features-ever`)"
        )
    return needed


def _needed(features: int, share: float) -> int:
    return math.ceil(features / share - 1e-9)
