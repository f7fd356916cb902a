"""How far one client that lies can bend the features that all learn: Friedman's first function in units from 0.01 to 100, eight
clients, of which one lies in every round as far as the server's checks let it.

    python -m benchmarks.liar

The figure is the root mean square error of the other seven, on their own test samples, after the same rounds.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1

import gramfold as gf
from benchmarks.timing import write
from gramfold.federation import Samples
from gramfold.methods.learning import Learning
from gramfold.methods.protocol import ClientData

CLIENTS, SAMPLES, COLUMNS = 8, 2400, 10
Lie = Callable[[gf.PACE, ClientData, Any], Any]


def federation() -> gf.Federation:
    rng = np.random.default_rng(0)
    X, y = make_friedman1(SAMPLES, COLUMNS, noise=1.0, random_state=0)
    X, owner = X * 10.0 ** rng.uniform(-2, 2, COLUMNS), rng.integers(0, CLIENTS, SAMPLES)
    y = y + rng.standard_normal(CLIENTS)[owner]
    clients = {f"{k}": (X[owner == k], y[owner == k]) for k in range(CLIENTS)}
    return gf.Federation.from_clients(clients, test_size=0.25, regression=True)


def larger(times: float) -> Lie:
    """Every column so many times too large, in every round."""

    def lie(method: gf.PACE, client: ClientData, broadcast: Any) -> Any:
        train = Samples(np.asarray(client.train.inputs) * times, client.train.targets)
        return method.local(replace(client, train=train), broadcast)

    return lie


def longest(times: float) -> Lie:
    """Gradients along columns that do not matter, so many times as long as the server takes them to be at most."""

    def lie(method: gf.PACE, client: ClientData, broadcast: Any) -> Any:
        upload = method.local(client, broadcast)
        if not isinstance(broadcast, Learning) or broadcast.weights is None:
            return upload
        assert broadcast.longest is not None
        rows = np.random.default_rng(3).standard_normal((round(upload.n), upload.dim))
        rows[:, :5] = 0.0
        rows *= times * np.sqrt(float(broadcast.longest.mean()) * len(rows) / (rows**2).sum())
        return gf.Moments.from_features(rows, np.zeros((len(rows), 1)), None, upload.fingerprint).settle()

    return lie


def after(lie: Lie | None) -> dict[str, Any]:
    """The others' error where the first client lies, and in how many rounds it is refused."""
    cut = federation()
    method, refused, number = gf.PACE().settled(cut.task), 0, 0
    broadcast: Any = method.begin(cut.task)
    clients = [ClientData(client.name, client.train()) for client in cut]
    while True:
        total, last = None, method.is_last(number, broadcast)
        for client in clients:
            lies = lie is not None and client is clients[0]
            upload = lie(method, client, broadcast) if lie is not None and lies else method.local(client, broadcast)
            try:
                method.asked(broadcast).check(upload)
            except gf.GramfoldError:
                assert lies, "an honest client is never refused"
                refused += 1
                continue
            total = upload if total is None else total.__iadd__(upload)
        broadcast, number = method.aggregate(total, broadcast), number + 1
        if last:
            break
    errors = []
    for honest, data in list(zip(cut, clients, strict=True))[1:]:
        test, head = honest.test(), method.personalize(replace(data, contributed=True), broadcast)
        off = np.asarray(head.scores(test.inputs)).ravel() - np.asarray(test.targets).ravel()
        errors.append(float(np.sqrt(np.mean(off**2))))
    return {"rmse": float(np.mean(errors)), "refused": refused}


def main() -> None:
    lies: dict[str, Lie | None] = {"nobody lies": None}
    lies |= {f"columns {times:g} times too large": larger(times) for times in (3.0, 10.0, 100.0, 1e6)}
    lies |= {"gradients as long as they may be": longest(0.999), "a million times as long": longest(1e6)}
    rows = [{"lie": name, **after(lie)} for name, lie in lies.items()]
    write("liar", {"clients": CLIENTS, "samples": SAMPLES, "rows": rows})


if __name__ == "__main__":
    main()
