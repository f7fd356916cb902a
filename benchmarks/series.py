"""Series: our kernels beside MiniROCKET, on series that packages carry, and on people's recordings.

    pip install aeon seglearn
    python -m benchmarks.series

Pooled: the published split of each set, ridge with its penalty by leave-one-out on standardised features. Recordings: a watch on
ten people's wrists, seven exercises (seglearn), windows of two seconds, one recording of each person and exercise held out; mean
over people.
Rate: series a second, one core, of 500 steps.
"""

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
SEEDS = 3


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
    ours = [np.asarray(gf.series(part, steps=steps)) for part in series]
    found = {"set": name, "ours": float(ridge().fit(ours[0], y).score(ours[1], z))}
    if isinstance(X, np.ndarray):  # it takes series of one length
        theirs = mini(X, Z)
        found["minirocket"] = float(ridge().fit(theirs[0], y).score(theirs[1], z))
    return found


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
        guesses = {
            "MiniROCKET, pooled ridge": ridge().fit(theirs[0], y[~test]).predict(theirs[1]),
            "our features, pooled ridge": ridge().fit(np.asarray(rows)[~test], y[~test]).predict(np.asarray(rows)[test]),
        }
        for name, guess in guesses.items():
            right = guess == y[test]
            mean = float(np.mean([right[who[test] == person].mean() for person in np.unique(who)]))
            found.append({"seed": seed, "name": name, "accuracy": mean})
        parts = {}
        for person in np.unique(who):
            train, held = (who == person) & ~test, (who == person) & test
            parts[str(person)] = rows[train], y[train], rows[held], y[held]
        federation = gf.Federation.from_clients(parts)
        for method in (gf.Local(), gf.AFL(), gf.APFL(), gf.PACE()):
            found.append({"seed": seed, "name": method.name, "accuracy": gf.run(method, federation).mean_accuracy})
    return found


def rate(n: int = 300, steps: int = 500) -> dict[str, float]:
    X = np.random.default_rng(0).standard_normal((n, steps, 1)).astype(np.float32)
    mini(X[:20].transpose(0, 2, 1))  # compiled on first use
    begun = time.perf_counter()
    gf.series(X)
    ours = time.perf_counter() - begun
    begun = time.perf_counter()
    mini(X.transpose(0, 2, 1))
    return {"ours": n / ours, "minirocket": n / (time.perf_counter() - begun)}


if __name__ == "__main__":
    write("series", {"pooled": [pooled(name) for name in SETS], "recordings": recordings(), "series_a_second": rate()})
