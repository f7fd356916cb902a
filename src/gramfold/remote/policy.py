"""A site's own say: under which conditions anything leaves it. Read from its own configuration; no message can change it.

    release-sites = 3                 least number of sites whose new uploads a released sum holds, as the server announces it
    release-samples = 50              with fewer training samples it receives but does not contribute
    release-class-samples = 5         the same for every class it has
    release-methods = "pace,afl"      the methods it takes part in
    release-maps = "bias+linear"      the feature maps of a run, all of them (PACE has two); learned ones by their kind: deep
    release-times = 10                how many different uploads leave it, ever
    release-require = "secure,dp"     what a run must have: a secure sum, differential privacy, or both
    release-eps = 8.0                 the largest eps of a run's differential privacy, which it then must have
    release-words = 5                 a word of a table leaves it only if so many training rows have it

and of a secure sum, whether or not it is required (`secure_terms`):

    release-threshold = 0.67          the least share of sites that must stay to its end and sign what it is of; two thirds
    release-features = 0.5            the most features for each sample in it; one where it is not set
    release-features-ever = 2.0       the same of all sums together that the site was in, each space counted once

What the server announces is the server's word: see docs/deploy.md.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import parse
from gramfold.features.registry import MAPS
from gramfold.federation import Samples, Task
from gramfold.numerics.arrays import to_numpy
from gramfold.sources import RELEASE_WORDS
from gramfold.wire.record import Record

PREFIX = "release-"
PROTECTIONS = {"secure": "a secure sum", "dp": "differential privacy"}
"""What a site can require, and what it is called. A run that has it says so in the header of its messages, under this key."""
SHARES = ("threshold", "features", "features-ever")


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
            raise GramfoldError(f"this site's configuration has {PREFIX + unknown[0]!r}, which is no policy; there are {wanted}")
        require = frozenset(_listed(given.get("require", "")))
        other = sorted(require - PROTECTIONS.keys())
        if other:
            raise GramfoldError(f"{PREFIX}require lists {other[0]!r}; it can list {', '.join(PROTECTIONS)}")
        methods, maps = frozenset(_listed(given.get("methods", ""))), tuple(_listed(given.get("maps", "")))
        for text in set(maps) - MAPS.keys():
            parse(text)
        numbers = [name for name in ("sites", "samples", "class-samples", "times", "words") if name in given]
        least: dict[str, Any] = {name.replace("-", "_"): _whole(name, given[name]) for name in numbers}
        shares: dict[str, Any] = {name.replace("-", "_"): _share(name, given[name]) for name in SHARES if name in given}
        eps = given.get("eps")
        if eps is not None and (isinstance(eps, bool) or not isinstance(eps, int | float) or not eps > 0):
            raise GramfoldError(f"{PREFIX}eps in this site's configuration must be a number above 0, got {eps!r}")
        return cls(
            **least, **shares, methods=methods, maps=maps, require=require | ({"dp"} if eps is not None else set()), eps=eps
        )

    def check_run(self, header: Mapping[str, Any]) -> None:
        """Raise unless a message's run is one that this site takes part in."""
        method = str(header.get("method"))
        if self.methods and method not in self.methods:
            raise GramfoldError(f"this site's policy allows {', '.join(sorted(self.methods))}, not {method}")
        for name in sorted(self.require):
            if not header.get(name):
                raise GramfoldError(f"this site's policy requires {PROTECTIONS[name]}, which this run does not have")
        noise = header.get("dp")
        if self.eps is not None and not (isinstance(noise, Mapping) and 0 < noise.get("eps", 0) <= self.eps):
            raise GramfoldError(f"this site's policy is an eps of at most {self.eps:g}, and this run has more")
        announced = header.get("release-sites", 1)
        if self.sites > 1 and not (isinstance(announced, int) and announced >= self.sites):
            raise GramfoldError(
                f"this site's policy is a sum of at least {self.sites} sites, and the server would release one of {announced}; "
                f"it must set release-sites={self.sites}"
            )

    def check_plain(self) -> None:
        """Raise unless an upload may leave this site as it is, whatever the server says about the run."""
        for name in sorted(self.require):
            raise GramfoldError(f"this site's policy requires {PROTECTIONS[name]}, and was asked for an upload without it")

    def check_sum(self, sites: int) -> None:
        """Raise unless a secure sum of so many sites is one that this site takes part in."""
        if sites < self.sites:
            raise GramfoldError(f"this site's policy is a sum of at least {self.sites} sites, and this one has {sites}")

    def check_maps(self, broadcast: Record) -> None:
        """Raise unless every feature map of a broadcast is one that this site allows."""
        if not self.maps:
            return
        allowed = [parse(text).describe() for text in self.maps if text not in MAPS]
        for map_ in _maps_of(broadcast):
            if map_.kind not in self.maps and map_.description.get("map") not in allowed:
                raise GramfoldError(f"this site's policy allows the maps {', '.join(self.maps)}; this run has another, {map_!r}")

    def abstains(self, train: Samples, task: Task) -> str | None:
        """Why this site receives but does not contribute; None if it does."""
        if train.n < self.samples:
            return f"it has fewer than {self.samples} training samples: it receives, and does not contribute"
        if task.labels is not None and self.class_samples:
            counts = np.bincount(to_numpy(train.targets).astype(np.int64), minlength=len(task.labels))
            if (counts[counts > 0] < self.class_samples).any():
                return f"it has classes with fewer than {self.class_samples} samples: it receives, and does not contribute"
        return None

    def check_times(self, upload: str, released: frozenset[str]) -> None:
        """Raise unless an upload may leave the site, which has released these."""
        if self.times is not None and upload not in released and len(released) >= self.times:
            raise GramfoldError(f"this site's policy allows {self.times} uploads, and {len(released)} have left it already")


def _listed(value: Any) -> list[str]:
    return [part.strip() for part in str(value).split(",") if part.strip()]


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
        raise GramfoldError(f"{PREFIX}{name} in this site's configuration must be a number above 0, got {value!r}")
    return float(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise GramfoldError(f"{PREFIX}{name} in this site's configuration must be a whole number, got {value!r}")
    return value


def _maps_of(value: Any) -> Iterator[Any]:
    if isinstance(value, Record):
        for field in dataclasses.fields(value):  # type: ignore[arg-type]
            yield from _maps_of(getattr(value, field.name))
    elif hasattr(value, "fingerprint") and hasattr(value, "description"):
        yield value
    elif isinstance(value, Mapping):
        yield from (found for part in value.values() for found in _maps_of(part))
    elif isinstance(value, list | tuple):
        yield from (found for part in value for found in _maps_of(part))
