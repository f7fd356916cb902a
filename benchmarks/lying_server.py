"""How many rows a server reads that lies in its messages, in every mode: real sites, real secure sums, no network.

    python -m benchmarks.lying_server

In a secure sum it asks one client another question than all others, whose answer is zero; it tells clients different stories
about who dropped out, until the sum of a few is left; it asks all of them for sums under step functions, which hold a sample
alone between two steps; and it sums fewer samples than a map has features. Each is done as the protocol was before it bound what
is asked, or with sites that ask for nothing, and as it is.
"""

import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.attack import Target, normalised, reconstruct, score
from benchmarks.timing import write
from gramfold.errors import GramfoldError
from gramfold.features import Bias, Concat, Linear, Standardize, draw, parse
from gramfold.moments.checks import check_exact_counts, check_possible
from gramfold.privacy import ranges
from gramfold.privacy.ring import FixedPoint

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "privacy")]

COLUMNS, ROWS, SITES, SUMS = 30, 30, 5, 12
"""Of the hospitals, and of the sums with step functions."""
STEP = 1e-12
"""The width of a step."""
NEAR = 1e-6
"""How close a row is that counts as read, relative to its length."""
HOSPITAL: dict[str, Any] = {
    "release-require": "secure", "release-methods": "afl,pace", "release-maps": "bias+linear,bias+linear+fourier:64,relu:1024",
    "release-features": 0.5, "release-features-ever": 1.0, "release-sites": 3, "release-threshold": 2 / 3,
}  # fmt: skip


# --- different questions, different stories ---


def small_sum(target: Target, clients: list[int], seen: gf.Moments | None) -> dict[str, Any]:
    """How many of these clients' samples come back from what the server has."""
    parts = [target.parts[k] for k in clients]
    target.samples = normalised(np.concatenate([part.inputs for part in parts]))
    target.codes = np.concatenate([np.asarray(part.targets) for part in parts])
    of = len(target.codes)
    if seen is None:
        return {"of": of, "read": 0}
    return {"of": of, "read": score(target, *reconstruct(seen, target.map, of))["with_label"]}


def seen_of(plan: FixedPoint, words: np.ndarray, honest: gf.Moments) -> gf.Moments | None:
    """The moments in what is left of a sum; None where these are no moments, but masks."""
    seen = gf.Moments.from_vector(plan.decode(words), honest.public())
    try:
        check_possible(seen)
        check_exact_counts(seen)
    except GramfoldError:
        return None
    return seen


def two_faced(target: Target, bound: bool) -> dict[str, Any]:
    from two_faced import TwoFacedServer, many_stories, same_for_all, unbound

    found = {}
    with nullcontext() if bound else unbound():
        for what, members in (("one client is asked something else", 5), ("every client is told another story", 9)):
            clients = [(target.own + k) % len(target.parts) for k in range(members)]
            if members == 9:
                order = np.argsort([part.n for part in target.parts])
                clients = [int(k) for k in order[:members]]
            names = [f"client {k}" for k in range(members)]
            uploads = [target.moments(k) for k in clients]
            plan = ranges.plan(uploads[0].public(), target.map.implied, members)
            if members == 5:
                vectors = {name: plan.encode(u.vector() * (name == names[0])) for name, u in zip(names, uploads, strict=True)}
                server = TwoFacedServer(vectors, 2 / 3, {name: str(int(name == names[0])) for name in names})
                server.tell(same_for_all(names, names))
                left, hit = server.sum_of(names), [clients[0]]
            else:
                chosen, stories = many_stories(names)
                vectors = {name: plan.encode(u.vector()) for name, u in zip(names, uploads, strict=True)}
                server = TwoFacedServer(vectors, 0.51, dict.fromkeys(names, "1"))
                server.tell(stories)
                left, hit = server.sum_of(chosen), [clients[names.index(name)] for name in chosen]
            found[what] = small_sum(target, hit, seen_of(plan, left, uploads[0]))
    return found


# --- step functions ---


class Steps:
    """What a server knows of each column: where its steps are, and the number, the sum and the labels of the samples beyond."""

    def __init__(self) -> None:
        self.known: list[dict[float, np.ndarray]] = [{} for _ in range(COLUMNS)]
        self.all = np.zeros(1 + COLUMNS)

    def next(self) -> list[float]:
        """A new step in each column: the mean of the smallest group that is not one sample alone; at first a guess."""
        found = []
        for column, groups in enumerate(map(self.groups, range(COLUMNS))):
            several = [group for group in groups if group[0] > 1.5]
            group = min(several, key=lambda group: group[0]) if several else self.all
            found.append(float(group[1 + column] / group[0]) if group[0] else 0.0)
        return found

    def groups(self, column: int) -> list[np.ndarray]:
        """The number and the sum of the samples between two steps."""
        beyond = [part for _, part in sorted(self.known[column].items())]
        return [low - high for low, high in zip([self.all, *beyond], [*beyond, 0 * self.all], strict=True)]

    def learn(self, total: gf.Moments, steps: list[float]) -> None:
        """Read a sum of 1, x and the steps: 6 where x is beyond, -6 where not."""
        self.all = np.asarray(total.gram[0, : 1 + COLUMNS])
        for column, step in enumerate(steps):
            signed = np.asarray(total.gram[1 + COLUMNS + column, : 1 + COLUMNS]) / 6
            self.known[column][step] = (self.all + signed) / 2

    def rows(self) -> np.ndarray:
        """Whatever lies alone between two steps."""
        alone = [group[1:] for column in range(COLUMNS) for group in self.groups(column) if abs(group[0] - 1) < 1e-3]
        return np.array(alone).reshape(-1, COLUMNS)


def with_steps(folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    from memory_sites import MemorySites, hospitals

    sites = MemorySites(folder, hospitals(SITES, ROWS * 4 // 3, COLUMNS), trusted=True, **policy)
    steps, refused, made = Steps(), "", 0
    for number in range(SUMS):
        at = steps.next()
        features = Concat([Bias(), Linear(), Standardize(tuple(at), (STEP,) * COLUMNS)])
        try:
            result = sites.run(gf.AFL(features=features), f"out{number}", secure=True)
        except GramfoldError as error:
            refused = str(error).partition("site00: ")[2].partition("; site01: ")[0]
            break
        made += 1
        steps.learn(result.run.total, at)
    everything = np.concatenate([site_rows(sites, name) for name in sites.names])
    found = steps.rows()
    near = np.linalg.norm(everything[:, None] - found[None], axis=2) < NEAR * np.linalg.norm(everything, axis=1)[:, None]
    return {"of": len(everything), "read": int(near.any(1).sum()) if len(found) else 0, "sums": made, "refused": refused}


def site_rows(sites: Any, name: str) -> np.ndarray:
    """A site's training samples, as it has them."""
    from gramfold.remote.site import Site

    return np.asarray(Site(sites.config[name]).client(gf.federation.Task(COLUMNS, (0, 1, 2), 3, 0)).train().inputs)


# --- fewer samples than features ---


def of_a_small_table(masked: bool) -> dict[str, Any]:
    """As many Fourier features as PACE takes for a table, not learned: the span of fewer samples than features is theirs."""
    rows, inputs = 150, 8
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 3
    X = 2 * rng.standard_normal((3, inputs))[y] + rng.standard_normal((rows, inputs))
    task = gf.federation.Task(inputs, (0, 1, 2), 3, seed=0, samples=rows)
    spec = gf.PACE(learn=False).settled(task, masked=masked).features
    number = next(term.split(":")[1] for term in spec.split("+") if term.startswith("fourier"))
    map_ = draw(parse(f"bias+linear+fourier:{number}"), inputs, 0)  # of rows of one length, as the attack has them
    total = gf.Moments.from_features(map_(X), y, 3, map_.fingerprint)
    target = Target.__new__(Target)
    target.map, target.samples, target.codes = map_, normalised(X), y
    found = score(target, *reconstruct(total, map_, rows))
    return {"of": rows, "features": map_.dim, "read": found["with_label"]}


def main() -> None:
    begun = time.perf_counter()
    target = Target(20, "bias+linear+fourier:128", 40)
    before, now = two_faced(target, bound=False), two_faced(target, bound=True)
    policies = {"none": {}, "release-features-ever = 1": {"release-features-ever": 1.0}, "a hospital's": HOSPITAL}
    stepped = {}
    for name, policy in policies.items():
        with tempfile.TemporaryDirectory() as folder:
            stepped[name] = with_steps(Path(folder), policy)
    small = {"as many as ever": of_a_small_table(False), "under masks": of_a_small_table(True)}
    found = {"unbound": before, "bound": now, "steps": stepped, "small_table": small, "hospital": HOSPITAL}
    write("lying_server", {**found, "seconds": time.perf_counter() - begun})


if __name__ == "__main__":
    main()
