"""A run's configuration, from the app's pyproject.toml or the command line of `flwr run`."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gramfold.engines.options import RunOptions
from gramfold.errors import OptionError
from gramfold.federation import Task
from gramfold.methods import Method, Tunable, make_method
from gramfold.privacy import DP, Privacy, SecureSum
from gramfold.remote.tasks import task_from_json
from gramfold.renamed import setting

PRIVACY = {"secure-threshold": 2 / 3, "dp-eps": 0.0, "dp-delta": 1e-5}
"""What can be set of a secure sum and of noise, and what it is otherwise."""


@dataclass(frozen=True)
class Settings:
    """What to run and under which policies, read and checked."""

    method: Method
    task: Task | None
    """None: the sites describe their data, and must agree."""
    seed: int
    """The seed of a task that the sites agree on; a given task has its own."""
    minimum_sites: int
    deadline: float
    """Seconds, for each phase."""
    out: Path
    sites: tuple[str, ...] = ()
    """The expected sites."""
    max_classes: int = 1000
    """The most classes of a task that the sites agree on: every site downloads weights for each."""
    release_sites: int = 3
    """The least number of sites whose uploads are new in a sum that is released: see `release`."""
    privacy: Privacy = field(default_factory=Privacy)
    max_share: float = 1.0
    """The largest share of all samples that one site may have: see `influence`."""

    @property
    def options(self) -> RunOptions:
        return RunOptions(self.privacy)

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "Settings":
        try:
            parameters = json.loads(str(config.get("parameters") or "{}"))
            if not isinstance(parameters, dict):
                raise ValueError("`parameters` is not a JSON object")
            seed, minimum = int(setting(config, "random-state", "seed", 0)), int(config.get("minimum-sites", 1))
            deadline, classes = float(config.get("deadline-seconds", 600.0)), int(config.get("max-classes", cls.max_classes))
            release = int(config.get("release-sites", cls.release_sites))
            share = float(config.get("max-share", cls.max_share))
            if seed < 0 or min(minimum, release) < 1 or not 0 < deadline < math.inf or classes < 2:
                least = (
                    "`random-state` must be at least 0, `minimum-sites` and `release-sites` at least 1, `max-classes` at least 2"
                )
                raise ValueError(f"{least}, `deadline-seconds` more than 0")
            if not 0 < share <= 1:
                raise ValueError("`max-share` must be above 0 and at most 1")
        except ValueError as error:
            raise OptionError(f"cannot read the run's configuration: {error}") from None
        method = make_method(str(config.get("method", "pace")), **parameters)
        if config.get("precision"):
            method = replace(method, precision=str(config["precision"]))
        unset = method.undecided if isinstance(method, Tunable) else ()
        if unset:
            raise OptionError(
                f"{method.name} would tune {unset[0]} by trial runs on all clients' data, which a server does not have; "
                f"set it with --set {method.name}.{unset[0]}=... or in the configuration: parameters = '{{\"{unset[0]}\": ...}}'"
            )
        task = task_from_json(str(config["task"])) if config.get("task") else None
        sites = tuple(name.strip() for name in str(config.get("sites", "")).split(",") if name.strip())
        out = Path(str(config.get("out") or "gramfold-run"))
        return cls(method, task, seed, minimum, deadline, out, sites, classes, release, _privacy(config), share)


def _privacy(config: Mapping[str, Any]) -> Privacy:
    try:
        threshold, eps, delta = (float(config.get(key, usual)) for key, usual in PRIVACY.items())
    except ValueError as error:
        raise OptionError(f"cannot read the run's configuration: {error}") from None
    if eps and not config.get("secure"):
        raise OptionError("over a network noise goes with a secure sum: set `secure = true` beside `dp-eps`")
    secure = SecureSum(threshold) if config.get("secure") else None
    return Privacy(secure, DP(eps, delta) if eps else None)
