"""How clients differ, learned: every figure of docs/differ.md, on data whose clients are real.

    python -m benchmarks.differ FOLDER [--only NAME,...] [--out FILE]
    python -m benchmarks.differ FOLDER --join PART.json PART.json        # of runs with --only and --out; the later part counts

FOLDER holds parkinson.csv, school.npz, shift-dinov2s.npz and heart/ (development data). Root mean square error or accuracy, the
mean over clients; of schools over five cuts (small ones, of 8 to 30 students each: three). `without` is PACE with groups=False
and personal=False. Boosted trees are pooled, with the client as a column, scikit-learn's defaults and 500 rounds; the mixed
model is statsmodels' with a random intercept, on the same columns, where that package is installed. Nothing is tuned on
test data.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

import gramfold as gf
from benchmarks.pages import differ as pictures
from benchmarks.provenance import age, commit, stamp
from benchmarks.timing import RESULTS

WITHOUT = {"groups": False, "personal": False}
Row = dict[str, Any]
METHODS: dict[str, Callable[[], Any]] = {
    "Local": gf.Local, "AFL": gf.AFL, "FedHiP": gf.FedHiP, "APFL": gf.APFL,
    "PACE, without": lambda: gf.PACE(**WITHOUT), "PACE": gf.PACE, "MixedModel": gf.MixedModel,
}  # fmt: skip


def federation(X: np.ndarray, y: np.ndarray, owner: np.ndarray, train: np.ndarray, regression: bool) -> gf.Federation:
    clients = {
        str(k): (X[(owner == k) & train], y[(owner == k) & train], X[(owner == k) & ~train], y[(owner == k) & ~train])
        for k in np.unique(owner)
    }
    return gf.Federation.from_clients(clients, regression=regression, **({} if regression else {"labels": np.unique(y).tolist()}))


def measured(data: str, cut: str, seed: int, federation: gf.Federation, methods: list[str] | None = None) -> Iterator[Row]:
    for name in methods or METHODS:
        if name == "MixedModel" and federation.task.labels is not None:
            continue
        begun = time.process_time()
        result = gf.run(METHODS[name](), federation)
        figure = result.mean_accuracy if result.classification else result.mean_rmse
        said = {key: value for key, value in result.chosen.items() if key.startswith(("group", "personal", "varian"))}
        gains = list(result.gained_by_joining.values())
        gained = {"gained_by_joining": float(np.mean(gains)), "least_gained": float(min(gains))} if gains else {}
        yield {
            "data": data, "cut": cut, "seed": seed, "method": name, "figure": figure, "seconds": time.process_time() - begun,
            "rounds": result.rounds, "sent": result.uplink_bytes / len(result.clients),
            **said, **gained, **({"placed": result.groups} if result.groups else {}),
        }  # fmt: skip


def of_rows(data: str, cut: str, seed: int, method: str, figure: float) -> Row:
    return {"data": data, "cut": cut, "seed": seed, "method": method, "figure": figure}


def by_client(errors: np.ndarray, owner: np.ndarray) -> float:
    return float(np.mean([np.sqrt(np.mean(errors[owner == k] ** 2)) for k in np.unique(owner)]))


def trees(X: np.ndarray, y: np.ndarray, owner: np.ndarray, train: np.ndarray) -> float:
    rows = np.column_stack([X, owner])
    model = HistGradientBoostingRegressor(max_iter=500, random_state=0).fit(rows[train], y[train])
    return by_client((model.predict(rows) - y)[~train], owner[~train])


# --- the data ---


def parkinson(folder: Path, seed: int) -> Iterator[Row]:
    raw = np.genfromtxt(folder / "parkinson.csv", delimiter=",", skip_header=1)
    owner, when, y, X = raw[:, 0].astype(int), raw[:, 3], raw[:, 4], np.delete(raw, [0, 4], 1)
    rng = np.random.default_rng(seed)
    for cut in ("70 % at random", "the last 30 % in time"):
        if cut.startswith("the") and seed:
            continue  # there is one such cut
        train = np.zeros(len(y), bool)
        for k in np.unique(owner):
            rows = np.flatnonzero(owner == k)
            order = rng.permutation(rows) if cut.startswith("70") else rows[np.argsort(when[rows], kind="stable")]
            train[order[: round(0.7 * len(rows))]] = True
        yield from measured("Parkinson, total score", cut, seed, federation(X, y, owner, train, True))
        yield of_rows("Parkinson, total score", cut, seed, "boosted trees", trees(X, y, owner, train))
        line = np.zeros(len(y))
        for k in np.unique(owner):
            own = owner == k
            line[own] = np.polyval(np.polyfit(when[own & train], y[own & train], 1), when[own])
        yield of_rows("Parkinson, total score", cut, seed, "a line each", by_client((line - y)[~train], owner[~train]))


def small(folder: Path, seed: int) -> Iterator[Row]:
    """Schools of which 8 to 30 students are known."""
    data = np.load(folder / "school.npz")
    X, y, owner = data["features"].astype(float), data["targets"].astype(float), np.unique(data["client"], return_inverse=True)[1]
    rng, train = np.random.default_rng(seed), np.zeros(len(y), bool)
    for k in np.unique(owner):
        mine = rng.permutation(np.flatnonzero(owner == k))
        train[mine[: min(int(rng.integers(8, 31)), len(mine) - 1)]] = True
    methods = ["Local", "PACE, without", "PACE", "MixedModel"]
    yield from measured("schools, exam", "8 to 30 students each", seed, federation(X, y, owner, train, True), methods)


def schools(folder: Path, seed: int) -> Iterator[Row]:
    data = np.load(folder / "school.npz")
    X, y, owner = data["features"].astype(float), data["targets"].astype(float), np.unique(data["client"], return_inverse=True)[1]
    train = np.random.default_rng(seed).random(len(y)) >= 0.3
    yield from measured(
        "schools, exam",
        "70 % at random",
        seed,
        federation(X, y, owner, train, True),
        ["Local", "PACE, without", "PACE", "MixedModel"],
    )
    yield of_rows("schools, exam", "70 % at random", seed, "boosted trees", trees(X, y, owner, train))
    try:
        from statsmodels.regression.mixed_linear_model import MixedLM
    except ImportError:
        return
    basis = np.linalg.qr(np.column_stack([np.ones(train.sum()), X[train]]), mode="r")
    kept = np.abs(np.diag(basis)) > 1e-8 * np.abs(np.diag(basis)).max()
    rows = np.column_stack([np.ones(len(y)), X])[:, kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MixedLM(y[train], rows[train], groups=owner[train]).fit()
    offsets = {k: float(np.asarray(effect)[0]) for k, effect in fitted.random_effects.items()}
    predicted = rows @ fitted.fe_params + np.array([offsets.get(k, 0.0) for k in owner])
    yield of_rows("schools, exam", "70 % at random", seed, "mixed model", by_client((predicted - y)[~train], owner[~train]))


def domains(folder: Path, seed: int) -> Iterator[Row]:
    data = np.load(folder / "shift-dinov2s.npz")
    X, y, train = data["features"].astype(np.float32), data["labels"].astype(int), data["train"]
    domain = np.unique(data["client"], return_inverse=True)[1]
    for each in (1, 4, 8):
        owner = domain * each + np.random.default_rng(seed).integers(0, each, len(y)) if each > 1 else domain
        for row in measured("eight domains", f"{each} each", seed, federation(X, y, owner, train, False)):
            placed = row.get("placed")
            if placed:
                truth = [int(name) // each for name in placed]
                row["adjusted_rand"] = float(adjusted_rand_score(truth, list(placed.values())))
            yield row


def heart(folder: Path, seed: int) -> Iterator[Row]:
    """FLamby's split: rows with gaps in the first ten columns dropped, dummies for columns 2 and 6."""
    if seed:
        return
    clients = {}
    for file in sorted((folder / "heart").glob("*.csv")):
        raw = np.genfromtxt(file, delimiter=",", skip_header=1, missing_values="?", filling_values=np.nan)
        raw = raw[~np.isnan(raw[:, :10]).any(1)]
        rows, y = raw[:, :10], (raw[:, -1] > 0).astype(int)
        dummies = [(rows[:, [c]] == np.array(values)).astype(float) for c, values in ((2, (1, 2, 3, 4)), (6, (0, 1, 2)))]
        X = np.column_stack([np.delete(rows, [2, 6], 1), *dummies])
        drawn = y if np.bincount(y, minlength=2).min() > 1 else None  # one centre has a single patient without the disease
        split = train_test_split(np.arange(len(y)), test_size=0.34, train_size=0.66, random_state=43, stratify=drawn)
        clients[file.stem] = X[split[0]], y[split[0]], X[split[1]], y[split[1]]
    yield from measured("heart disease", "FLamby's", seed, gf.Federation.from_clients(clients, labels=[0, 1]))


def cost(folder: Path, seed: int) -> Iterator[Row]:
    """What is asked costs where there is nothing to find, and how long many clients take."""
    if seed:
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 20))
    y = X @ rng.standard_normal(20) + np.sin(2 * X[:, 0]) + rng.standard_normal(60_000)
    owner, train = np.repeat(np.arange(600), 100), np.tile(np.arange(100) < 80, 600)
    yield from measured(
        "alike, values", "600 clients of 100 rows", seed, federation(X, y, owner, train, True), ["PACE, without", "PACE"]
    )
    data = np.load(folder / "shift-dinov2s.npz")
    inputs, codes = data["features"].astype(np.float32), data["labels"].astype(int)
    dealt = rng.integers(0, 40, len(codes))
    yield from measured(
        "alike, classes", "40 clients", seed, federation(inputs, codes, dealt, data["train"], False), ["PACE, without", "PACE"]
    )


DATA = {"parkinson": parkinson, "schools": schools, "small": small, "domains": domains, "heart": heart, "cost": cost}
SEEDS = {"schools": 5, "small": 3}
"""Of the others there is one cut."""


PAGE, MARKS = Path("docs/differ.md"), ("<!-- differ -->\n", "<!-- /differ -->")


def page(found: Row) -> None:
    """Write the table of a result file into the page, and draw its pictures."""
    rows = found["rows"]
    if any("group_tree" in row for row in rows):
        (PAGE.parent / "differ_groups.svg").write_text(pictures.groups_plot(rows))
    (PAGE.parent / "differ_gains.svg").write_text(pictures.gains_plot(rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = [f"| data | cut | {' | '.join(methods)} |", f"| --- | --- |{' ---: |' * len(methods)}"]
    for data, cut in dict.fromkeys((row["data"], row["cut"]) for row in rows):
        cells = []
        for method in methods:
            of = [row["figure"] for row in rows if (row["data"], row["cut"], row["method"]) == (data, cut, method)]
            sure = f" ± {np.std(of, ddof=1) / len(of) ** 0.5:.3f}" if len(of) > 1 else ""
            cells.append(f"{np.mean(of):.3f}{sure}" if of else "")
        lines.append(f"| {data} | {cut} | {' | '.join(cells)} |")
    text = PAGE.read_text()
    before, after = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    said = "Root mean square error or (domains, heart, classes) accuracy, mean over clients; `python -m benchmarks.differ` "
    said += f"at {', '.join(dict.fromkeys(row.get('commit', found.get('commit')) for row in rows))}.\n\n"
    lines += ["", age("differ"), ""]
    PAGE.write_text(text[:before] + said + "\n".join(lines) + text[after:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(DATA))
    parser.add_argument("--out", type=Path, default=RESULTS / "differ.json")
    parser.add_argument("--join", type=Path, nargs="+", default=())
    given = parser.parse_args()
    rows = joined(given.join)
    for name in () if rows else given.only.split(","):
        for seed in range(SEEDS.get(name, 1)):
            for row in DATA[name](given.folder, seed):
                row.pop("placed", None)
                rows.append({**row, "commit": commit()})
                seconds = f"{row['seconds']:6.1f} s" if "seconds" in row else ""
                print(f"{row['data']:24s} {row['cut']:24s} {row['method']:16s} {row['figure']:8.4f} {seconds}", flush=True)
                given.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    given.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    if given.out.parent == RESULTS:
        if {row["commit"] for row in rows} == {commit()}:  # else the oldest part says what they are older than
            stamp(given.out.stem)
        page(json.loads(given.out.read_text()))


def joined(parts: Iterable[Path]) -> list[Row]:
    """The rows of several runs, each with the commit it is of; of two of one kind the later."""
    rows: dict[tuple[Any, ...], Row] = {}
    for part in parts:
        found = json.loads(part.read_text())
        for row in found["rows"]:
            key = tuple(row[name] for name in ("data", "cut", "seed", "method"))
            rows[key] = {"commit": found.get("commit"), **row}
    return list(rows.values())


if __name__ == "__main__":
    main()
