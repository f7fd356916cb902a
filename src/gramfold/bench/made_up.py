"""Clients that no file is needed for, the same ones every time."""

import numpy as np

from gramfold.federation import Federation


def embeddings(samples: int, inputs: int, classes: int, clients: int) -> Federation:
    """Clients with few of the classes each; six samples of which five are for training."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 6 * samples // 5)
    X = (rng.standard_normal((classes, inputs))[y] + 4.0 * rng.standard_normal((len(y), inputs))).astype(np.float32)
    return Federation.split(X, y, clients, "dirichlet:0.1", test_size=1 / 6, random_state=0)


def small_clients(clients: int, rows: int, columns: int) -> Federation:
    """Tables of two classes, which a line, a curve and a shift of the client's own tell apart; a quarter of the rows test."""
    rng = np.random.default_rng(0)
    along = rng.standard_normal(columns)
    given = {}
    for k in range(clients):
        X = rng.standard_normal((rows, columns))
        odds = X @ along + 2.0 * np.sin(2.0 * X[:, 0]) + 0.5 * rng.standard_normal()
        given[str(k)] = X, (odds + rng.standard_normal(rows) > 0).astype(int)
    return Federation.from_clients(given, test_size=0.25, random_state=0)
