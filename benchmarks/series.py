"""Series: our kernels beside MiniROCKET, on series that packages carry, and on people's recordings.

    pip install ".[benchmarks]"
    python -m benchmarks.series

Pooled: the published split of each set, ridge with its penalty by leave-one-out on standardised features; and the same series cut
evenly among four clients, the mean over clients of AFL's and of PACE's heads. Recordings: a watch on ten people's wrists, seven
exercises (seglearn), windows of two seconds, one recording of each person and exercise held out; mean over people. `whole`:
windows of one recording are left out together (`blocks=`); without, one by one.
Rate: series of 500 steps by the processor's second, on one core, 10,000 of them or as many as `--rate` says; the better of two
runs each, in turns. Time that other processes take does not count.
"""

import argparse
import os
import time
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.timing import write

SETS = (
    "ItalyPowerDemand",
    "ArrowHead",
    "OSULeaf",
    "ACSF1",
    "BasicMotions",
    "GunPoint",
    "JapaneseVowels",
    "PickupGestureWiimoteZ",
)
SEEDS, CLIENTS, TURNS = 3, 4, 2
METHODS = (gf.Local(), gf.AFL(), gf.APFL(), gf.PACE())


def ridge() -> Any:
    return make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-3, 5, 12)))


def mini(train: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    """MiniROCKET's features; series are n x channels x steps to it."""
    from aeon.transformations.collection.convolution_based import MiniRocket

    made = MiniRocket(random_state=0).fit(train)
    return [np.asarray(made.transform(part)) for part in (train, *others)]


def pooled(name: str) -> dict[str, Any]:
    from aeon.datasets import load_classification

    (X, y), (Z, z) = (load_classification(name, split=part) for part in ("train", "test"))
    series = [[np.asarray(one).T for one in part] for part in (X, Z)]
    steps = max(map(len, series[0]))
    ours = [gf.series(part, steps=steps) for part in series]
    plain = [np.asarray(part) for part in ours]
    found = {"set": name, "ridge": float(ridge().fit(plain[0], y).score(plain[1], z))}
    found |= {f"{method}, {CLIENTS} clients": of_clients(method, ours, y, z) for method in ("afl", "pace")}
    if isinstance(X, np.ndarray):  # it takes series of one length
        theirs = mini(X, Z)
        found["minirocket"] = float(ridge().fit(theirs[0], y).score(theirs[1], z))
    print(found, flush=True)
    return found


def of_clients(method: str, ours: list[Any], y: np.ndarray, z: np.ndarray) -> float:
    """A method's accuracy over the test series where the training series, each class in turn, lie with several clients. Test
    series are dealt the same way, and each is told by the head of its client."""
    parts = {}
    for k in range(CLIENTS):
        rows, held = (np.argsort(labels, kind="stable")[k::CLIENTS] for labels in (y, z))
        parts[str(k)] = ours[0][rows], y[rows], ours[1][held], z[held]
    result = gf.run(method, gf.Federation.from_clients(parts), progress=False)
    return float(result.weighted_accuracy or 0.0)


def recordings() -> list[dict[str, Any]]:
    from seglearn.datasets import load_watch

    data = load_watch()
    cut = [gf.windows(np.asarray(one, np.float32), 100)[0] for one in data["X"]]
    X, sizes = np.concatenate(cut), [len(one) for one in cut]
    y, who, which = (np.repeat(part, sizes) for part in (data["y"], data["subject"], np.arange(len(cut))))
    rows, found = gf.series(X), []
    for seed in range(SEEDS):
        rng, test = np.random.default_rng(seed), np.zeros(len(y), bool)
        for person in np.unique(who):
            for kind in np.unique(y):
                test |= which == rng.choice(np.unique(which[(who == person) & (y == kind)]))
        theirs = mini(X[~test].transpose(0, 2, 1), X[test].transpose(0, 2, 1))
        alone = np.empty_like(y[test])
        for person in np.unique(who):
            mine, held = who[~test] == person, who[test] == person
            alone[held] = ridge().fit(theirs[0][mine], y[~test][mine]).predict(theirs[1][held])
        guesses = {
            "MiniROCKET, each person's own ridge": alone,
            "MiniROCKET, pooled ridge": ridge().fit(theirs[0], y[~test]).predict(theirs[1]),
            "our features, pooled ridge": ridge().fit(np.asarray(rows)[~test], y[~test]).predict(np.asarray(rows)[test]),
        }
        for name, guess in guesses.items():
            right = guess == y[test]
            mean = float(np.mean([right[who[test] == person].mean() for person in np.unique(who)]))
            found.append({"seed": seed, "name": name, "accuracy": mean})
            print(found[-1], flush=True)
        parts, blocks = {}, {}
        for person in np.unique(who):
            train, held = (who == person) & ~test, (who == person) & test
            parts[str(person)] = rows[train], y[train], rows[held], y[held]
            blocks[str(person)] = which[train]
        for whole in (True, False):
            federation = gf.Federation.from_clients(parts, blocks=blocks if whole else None)
            for method in METHODS:
                result = gf.run(method, federation, progress=False)
                shared = None if result.mean_accuracy is None else result.global_accuracy
                found.append(
                    {"seed": seed, "name": method.name, "whole": whole, "accuracy": result.mean_accuracy, "shared": shared}
                )
                print(found[-1], flush=True)
    return found


def rate(n: int, steps: int = 500) -> dict[str, Any]:
    from aeon.transformations.collection.convolution_based import MiniRocket

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    X = np.random.default_rng(0).standard_normal((n, steps, 1)).astype(np.float32)
    turned = X.transpose(0, 2, 1)
    made = MiniRocket(random_state=0, n_jobs=1).fit(turned[:100])
    made.transform(turned[:20])  # compiled on first use
    works = {"ours": lambda: gf.series(X), "minirocket": lambda: made.transform(turned)}
    took, features = dict.fromkeys(works, float("inf")), {}
    for _ in range(TURNS):
        for name, work in works.items():
            before = time.process_time()
            features[name] = work().shape[1]
            took[name] = min(took[name], time.process_time() - before)
    return {"series": n, "steps": steps, **{name: n / seconds for name, seconds in took.items()}, "features": features}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=10_000)
    asked = parser.parse_args()
    began = time.perf_counter()
    figures = {"pooled": [pooled(name) for name in SETS], "recordings": recordings(), "series_a_second": rate(asked.rate)}
    write("series", {**figures, "minutes": round((time.perf_counter() - began) / 60, 1)})
