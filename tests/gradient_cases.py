"""What gradient tests share: quick methods, and how far apart two heads are."""

import numpy as np

import gramfold as gf
from gramfold.methods import GRADIENT, ClientData

QUICK = {"lr": 0.1, "rounds": 4, "epochs": 2, "batch_size": 16}


def quick(kind, **given):
    """A method with few rounds, and with every swept parameter in the middle of its grid."""
    middle = {name: values[len(values) // 2] for name, values in kind.grids.items()}
    base = {**middle, **QUICK}
    if kind is gf.LocalSGD:
        base["rounds"] = 0
    if kind is gf.FedZO:
        base["directions"] = 2
    return kind(**{**base, **given})


def weights(head, name="head.weight") -> np.ndarray:
    return np.asarray(head.state[name])


def distance(one, other) -> float:
    """The largest difference between two heads' weights."""
    assert set(one.state) == set(other.state)
    return max(float(np.abs(np.asarray(one.state[name]) - np.asarray(other.state[name])).max()) for name in one.state)


def client_data(federation: gf.Federation) -> list[ClientData]:
    return [ClientData(client.name, client.train()) for client in federation]


ON_FEATURES = [kind for kind in GRADIENT if "features" in kind.input_kinds]
