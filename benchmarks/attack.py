"""What a curious server can rebuild from what it is sent: samples from a plain upload, and nothing from a sum or from noise.

    python -m benchmarks.attack

The server knows the feature map. An upload of fewer samples than features gives away the space that their feature vectors span:
the attack looks for points of the map's manifold in it, by Gauss-Newton from random starts, and reads off their labels. For any
map, the cross-moment of a class with one sample is that sample. The same attack is made on a plain upload, on the sum of three
clients and of all, and on moments with noise. Beside it stands the guess that anyone can make from the sum: the class's mean.
"""

import argparse
import time
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.timing import write
from gramfold.features import DrawnMap, draw, parse
from gramfold.federation import load_dataset
from gramfold.privacy import DP, Privacy

REBUILT = 0.01
"""A sample counts as rebuilt where a candidate is this close, relative to its length."""
STARTS, STEPS, ROUNDS = 96, 40, 12


class Target:
    """One client of many, and the moments that the server would see in each mode."""

    def __init__(self, clients: int, features: str, largest: int) -> None:
        data = load_dataset("digits")
        federation = gf.Federation.from_dataset(data, clients, "dirichlet:0.1", 0.25, 0)
        self.map = draw(parse(features), data.inputs.shape[1], 0)
        self.classes = len(data.labels)
        self.parts = [client.train() for client in federation]
        sizes = np.array([part.n for part in self.parts])
        self.own = int(np.argmax(np.where(sizes <= largest, sizes, 0)))
        own = self.parts[self.own]
        self.samples, self.codes = normalised(own.inputs), np.asarray(own.targets)
        counts = np.array([np.bincount(np.asarray(part.targets), minlength=self.classes) for part in self.parts])
        of_three = counts + np.roll(counts, -1, 0) + np.roll(counts, -2, 0)
        singles = [(int(k), int(c)) for k, c in np.argwhere(counts == 1)]
        self.lonely, self.lonely_class = next((k, c) for k, c in singles if of_three[k, c] > 3)
        """A client that has a class with a single sample, of which the two after it have more."""
        sizes_of_three = sizes + np.roll(sizes, -1) + np.roll(sizes, -2)
        self.few = int(np.argmin(sizes_of_three))
        """A client that has few samples, and so have the two after it."""
        self.only = next((k, c) for k, c in singles if of_three[k, c] == 1)
        """The same where they have none."""

    def moments(self, k: int) -> gf.Moments:
        part = self.parts[k]
        return gf.Moments.from_features(self.map(part.inputs), np.asarray(part.targets), self.classes, self.map.fingerprint)

    def sum_of(self, count: int, first: int | None = None) -> gf.Moments:
        """A client and those after it, `count` in all."""
        first = self.own if first is None else first
        total = self.moments(first)
        for k in range(1, count):
            total = total + self.moments((first + k) % len(self.parts))
        return total

    def noisy(self, moments: gf.Moments, eps: float) -> gf.Moments:
        policy = Privacy(dp=DP(eps))
        return policy.release(policy.noisy(moments, self.map.implied, 1), self.map.implied, 1, 1)


def normalised(inputs: np.ndarray) -> np.ndarray:
    inputs = np.asarray(inputs, float)
    return inputs * np.sqrt(inputs.shape[1] / (inputs**2).sum(1))[:, None]


def reconstruct(seen: gf.Moments, map_: DrawnMap, most: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """At most so many samples (normalised) whose features lie in the span of those behind the moments, and their labels."""
    d, frequencies, phases = map_.inputs, *fourier_of(map_)
    values, vectors = np.linalg.eigh(seen.gram)
    real = values > 1e-10 * values.max()
    V, values = vectors[:, real], values[real]
    bias, linear, cosine = V[0], V[1 : d + 1], V[d + 1 :]
    middle = V.T @ seen.gram[:, 0] / max(seen.exact_n, 1)
    spread = np.sqrt(values / max(seen.exact_n, 1))
    rng, found = np.random.default_rng(seed), np.empty((0, d))
    for _ in range(ROUNDS if len(values) < seen.dim else 1):  # where the span is everything, every point is in it
        q = middle + rng.standard_normal((STARTS, len(values))) * spread
        damping = np.full(STARTS, 1.0)
        residual = _residual(q, bias, linear, cosine, frequencies, phases)
        for _ in range(STEPS):
            angles = (q @ linear.T) @ frequencies + phases
            slope = cosine[None] + np.sin(angles)[:, :, None] * (frequencies.T @ linear)[None]
            jacobian = np.concatenate([np.broadcast_to(bias, (STARTS, 1, len(bias))), slope], 1)
            normal = np.swapaxes(jacobian, 1, 2) @ jacobian
            normal += damping[:, None, None] * np.eye(len(bias))
            step = np.linalg.solve(normal, np.swapaxes(jacobian, 1, 2) @ residual[:, :, None])[:, :, 0]
            trial = _residual(q - step, bias, linear, cosine, frequencies, phases)
            better = (trial**2).sum(1) < (residual**2).sum(1)
            q, residual = np.where(better[:, None], q - step, q), np.where(better[:, None], trial, residual)
            damping = np.where(better, damping / 5, damping * 4)
        converged = (residual**2).sum(1) < 1e-12
        for z in (q @ linear.T)[converged]:
            if not len(found) or np.linalg.norm(found - z, axis=1).min() > 1e-3 * np.sqrt(d):
                found = np.concatenate([found, z[None]])
        if len(found) >= most:
            break
    if not len(found):  # nothing on the manifold: the best that is left are the starts themselves
        found = q @ linear.T
    labels = (map_(found) @ (V / values) @ (V.T @ seen.cross)).argmax(1)
    return found[:most], labels[:most]


def _residual(q: np.ndarray, bias: Any, linear: Any, cosine: Any, frequencies: Any, phases: Any) -> np.ndarray:
    angles = (q @ linear.T) @ frequencies + phases
    return np.concatenate([(q @ bias - 1)[:, None], q @ cosine.T - np.cos(angles)], 1)


def fourier_of(map_: DrawnMap) -> tuple[np.ndarray, np.ndarray]:
    """The frequencies and phases of [1, z, cos(z Omega + b)], as anyone who knows the map can ask it."""
    d = map_.inputs
    unit = np.eye(d)
    # cos(s w + b) at three lengths of one coordinate gives w and b; reading the drawn numbers is the same, and shorter
    from gramfold.numerics import seeds

    width = map_.dim - d - 1
    stream = seeds.frozen(map_.description["seed"], f"{map_.description['name']}/1/2/fourier")
    frequencies, phases = stream.standard_normal((d, width)) / np.sqrt(d), stream.uniform(0, 2 * np.pi, width)
    assert np.allclose(np.cos((unit * np.sqrt(d)) @ frequencies + phases), map_(unit)[:, d + 1 :])
    return frequencies, phases


def score(target: Target, found: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """How close the nearest candidate is to each of the target's samples, and how many have it with the right label."""
    scale = np.sqrt(target.samples.shape[1])
    apart = np.linalg.norm(target.samples[:, None] - found[None], axis=2) / scale
    nearest = apart.argmin(1)
    errors = apart.min(1)
    right = (errors < REBUILT) & (labels[nearest] == target.codes)
    return {"median_error": float(np.median(errors)), "rebuilt": int((errors < REBUILT).sum()), "with_label": int(right.sum())}


def guess(target: Target, total: gf.Moments) -> float:
    """The median error of the best guess from the sum: the mean of each sample's class."""
    d = target.samples.shape[1]
    means = (total.cross[1 : d + 1] / np.maximum(total.squares, 1)).T
    scale = np.sqrt(d)
    return float(np.median(np.linalg.norm(target.samples - means[target.codes], axis=1) / scale))


def single_sample(target: Target, seen: gf.Moments, client: int, code: int) -> float:
    """The error of reading a class's cross-moment as the one sample that a client has of it."""
    part = target.parts[client]
    row = normalised(part.inputs)[np.asarray(part.targets) == code][0]
    mean = seen.cross[1 : len(row) + 1, code] / max(seen.squares[code], 1.0)
    return float(np.linalg.norm(mean - row) / np.sqrt(len(row)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--features", default="bias+linear+fourier:128")
    parser.add_argument("--largest", type=int, default=40, help="the most samples of the client that is attacked")
    given = parser.parse_args()
    target = Target(given.clients, given.features, given.largest)
    count, everyone = given.clients, target.sum_of(given.clients)
    plain, lonely = target.moments(target.own), target.moments(target.lonely)
    modes = {
        "plain upload": (plain, lonely),
        "plain upload, noise of eps 8": tuple(target.noisy(part, 8) for part in (plain, lonely)),
        "plain upload, noise of eps 1": tuple(target.noisy(part, 1) for part in (plain, lonely)),
        "secure sum of 3": (target.sum_of(3), target.sum_of(3, target.lonely)),
        f"secure sum of {count}": (everyone, everyone),
        f"secure sum of {count}, noise of eps 8": (target.noisy(everyone, 8),) * 2,
    }
    guessed, own = guess(target, everyone), len(target.codes)
    rows, single = [], (target.lonely, target.lonely_class)
    for name, (seen, other) in modes.items():
        begun = time.perf_counter()
        candidates = reconstruct(seen, target.map, len(target.codes))
        figures: dict[str, Any] = {"mode": name, "samples": round(seen.exact_n), **score(target, *candidates)}
        figures |= {"single_sample_error": single_sample(target, other, *single), "seconds": time.perf_counter() - begun}
        rows.append(figures)
    small = target.sum_of(3, target.few)
    behind = [target.parts[(target.few + k) % count] for k in range(3)]
    target.samples = normalised(np.concatenate([part.inputs for part in behind]))
    target.codes = np.concatenate([np.asarray(part.targets) for part in behind])
    few = {"samples": small.n, **score(target, *reconstruct(small, target.map, small.n))}
    guesses = {"guess_error": guessed, "single_sample_guess": single_sample(target, everyone, *single)}
    guesses["only_sample_in_a_sum_of_3"] = single_sample(target, target.sum_of(3, target.only[0]), *target.only)
    shape = {"clients": count, "features": given.features, "samples": own, "dim": target.map.dim}
    write("attack", {**shape, **guesses, "modes": rows, "small_sum_of_3": few})


if __name__ == "__main__":
    main()
