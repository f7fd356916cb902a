"""A site's own say: under which conditions anything leaves it. Read from its own configuration; no message can change it.

    release-sites = 3                 least number of sites whose new uploads a released sum holds, as the server announces it
    release-samples = 50              with fewer training samples it receives but does not contribute
    release-class-samples = 5         the same for every class it has
    release-methods = "pace,afl"      the methods it takes part in
    release-maps = "bias+linear"      the feature maps of a run, all of them (PACE has two); learned ones by their kind: deep
    release-times = 10                how many different uploads leave it, ever; a method of several rounds has one for each
    release-figures = 1               how many sets of figures leave it for one upload, or one run of several rounds
    release-require = "secure,dp"     what a run must have: a secure sum, differential privacy, or both
    release-eps = 8.0                 the largest eps of a run's differential privacy, which it then must have
    release-delta = 1e-5              the largest delta of it
    release-words = 5                 a word of a table leaves it only if so many training rows have it

and of a secure sum, whether or not it is required (`secure_terms`):

    release-threshold = 0.67          the least share of sites that must stay to its end and sign what it is of; two thirds
    release-features = 0.5            the most features for each sample in it; one where it is not set
    release-features-ever = 2.0       the same of all sums together that the site was in, each space counted once

What the server announces is the server's word: see docs/deploy.md.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import DrawnMap, parse
from gramfold.features.registry import MAPS
from gramfold.federation import Samples, Task
from gramfold.numerics.arrays import to_numpy
from gramfold.remote.outside import PolicyError
from gramfold.sources import RELEASE_WORDS
from gramfold.wire.record import Record, maps_in

PREFIX = "release-"
PROTECTIONS = {"secure": "a secure sum", "dp": "differential privacy"}
"""What a site can require, and what it is called. A run that has it says so in the header of its messages, under this key."""
SHARES = ("threshold", "features", "features-ever")


_AN = {"eps": "an eps", "delta": "a delta"}
DRAWN = {"kind", "map", "inputs", "seed", "name"}
"""All that the description of a map drawn at random has."""


@dataclasses.dataclass(frozen=True)
class Policy:
    """What a site requires. The defaults require nothing, but that rare words of tables stay."""

    sites: int = 1
    samples: int = 0
    class_samples: int = 0
    methods: frozenset[str] = frozenset()
    maps: tuple[str, ...] = ()
    times: int | None = None
    require: frozenset[str] = frozenset()
    eps: float | None = None
    delta: float = 1e-5
    figures: int = 1
    threshold: float = 2 / 3
    features: float = 1.0
    features_ever: float | None = None
    words: int = RELEASE_WORDS

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "Policy":
        """The policy in a site's configuration. A name that is none is refused: it would protect nothing."""
        given = {key.removeprefix(PREFIX): value for key, value in config.items() if key.startswith(PREFIX)}
        known = {field.name.replace("_", "-") for field in dataclasses.fields(cls)}
        unknown = sorted(given.keys() - known)
        if unknown:
            wanted = ", ".join(PREFIX + name for name in sorted(known))
            raise PolicyError(f"this site's configuration has {PREFIX + unknown[0]!r}, which is no policy; there are {wanted}")
        require = frozenset(_listed(given.get("require", "")))
        other = sorted(require - PROTECTIONS.keys())
        if other:
            raise PolicyError(f"{PREFIX}require lists {other[0]!r}; it can list {', '.join(PROTECTIONS)}")
        methods, maps = frozenset(_listed(given.get("methods", ""))), tuple(_listed(given.get("maps", "")))
        for text in set(maps) - MAPS.keys():
            try:
                parse(text)
            except GramfoldError as error:
                raise PolicyError(f"{PREFIX}maps in this site's configuration: {error}") from None
        numbers = [name for name in ("sites", "samples", "class-samples", "times", "figures", "words") if name in given]
        least: dict[str, Any] = {name.replace("-", "_"): _whole(name, given[name]) for name in numbers}
        bounds: dict[str, Any] = {name: _positive(name, given[name]) for name in ("eps", "delta") if name in given}
        required = {"dp"} if bounds else set()
        shares: dict[str, Any] = {name.replace("-", "_"): _positive(name, given[name]) for name in SHARES if name in given}
        return cls(**least, **bounds, **shares, methods=methods, maps=maps, require=require | required)

    def check_run(self, header: Mapping[str, Any]) -> None:
        """Raise unless a message's run is one that this site takes part in."""
        method = str(header.get("method"))
        if self.methods and method not in self.methods:
            raise PolicyError(f"this site's policy allows {', '.join(sorted(self.methods))}, not {method}")
        for name in sorted(self.require):
            if not header.get(name):
                raise PolicyError(f"this site's policy requires {PROTECTIONS[name]}, which this run does not have")
        if "dp" in self.require:
            self._check_noise(header["dp"])
        announced = header.get("release-sites", 1)
        if self.sites > 1 and not (isinstance(announced, int) and announced >= self.sites):
            raise PolicyError(
                f"this site's policy is a sum of at least {self.sites} sites, and the server would release one of {announced}; "
                f"it must set release-sites={self.sites}"
            )

    def _check_noise(self, noise: Any) -> None:
        given = noise if isinstance(noise, Mapping) else {}
        bounds: dict[str, float] = {"eps": math.inf if self.eps is None else self.eps, "delta": self.delta}
        for name, most in bounds.items():
            value = given.get(name, 0.0 if name == "delta" else None)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise PolicyError(f"this site's policy is {_AN[name]} of at most {most:g}, and this run has more")

    def check_plain(self) -> None:
        """Raise unless an upload may leave this site as it is, whatever the server says about the run."""
        for name in sorted(self.require):
            raise PolicyError(f"this site's policy requires {PROTECTIONS[name]}, and was asked for an upload without it")

    def check_sum(self, sites: int) -> None:
        """Raise unless a secure sum of so many sites is one that this site takes part in."""
        if sites < self.sites:
            raise PolicyError(f"this site's policy is a sum of at least {self.sites} sites, and this one has {sites}")

    def check_maps(self, broadcast: Record, inputs: int) -> None:
        """Raise unless every feature map of a broadcast is one that this site allows, and there is one: a network that is trained
        is none."""
        if not self.maps:
            return
        maps, found = ", ".join(self.maps), list(maps_in(broadcast))
        if not found:
            raise PolicyError(f"this site's policy allows the maps {maps}; this run has none that could be checked")
        allowed = [parse(text).describe() for text in self.maps if text not in MAPS]
        for map_ in found:
            if map_.kind not in self.maps and not _is_drawn(map_, allowed, inputs):
                raise PolicyError(f"this site's policy allows the maps {maps}; this run has another, {map_!r}")

    def abstains(self, train: Samples, task: Task, regression: bool = False) -> str | None:
        """Why this site receives but does not contribute; None if it does. `regression`: whether the site itself says that its
        targets are values: else whole numbers are classes, whatever the task calls them."""
        if train.n < self.samples:
            return f"it has fewer than {self.samples} training samples: it receives, and does not contribute"
        targets = to_numpy(train.targets)
        classes = task.labels is not None or not (regression or (targets != np.rint(targets)).any())
        if self.class_samples and classes:
            counts = np.unique(targets, axis=0, return_counts=True)[1]
            if (counts < self.class_samples).any():
                return f"it has classes with fewer than {self.class_samples} samples: it receives, and does not contribute"
        return None

    def check_times(self, upload: str, released: frozenset[str]) -> None:
        """Raise unless an upload may leave the site, which has released these."""
        if self.times is not None and upload not in released and len(released) >= self.times:
            raise PolicyError(f"this site's policy allows {self.times} uploads, and {len(released)} have left it already")


def _listed(value: Any) -> list[str]:
    return [part.strip() for part in str(value).split(",") if part.strip()]


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise PolicyError(f"{PREFIX}{name} in this site's configuration must be a whole number, got {value!r}")
    return value


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise PolicyError(f"{PREFIX}{name} in this site's configuration must be a number above 0, got {value!r}")
    return float(value)


def _is_drawn(map_: Any, allowed: list[dict[str, Any]], inputs: int) -> bool:
    """Whether a map is one of those that were described, drawn for the site's own inputs, and nothing beside."""
    found = map_.description
    return map_.kind == DrawnMap.kind and found.keys() == DRAWN and found["map"] in allowed and found["inputs"] == inputs
