"""Five hospitals and an outcome that three patients of a hundred have; at the smallest nobody has it."""

import numpy as np

SIZES = {"north": 900, "east": 600, "south": 450, "west": 350, "island": 100}


def hospitals(seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Samples by hospital. What raises the risk is much the same everywhere; how much differs a little."""
    rng, found = np.random.default_rng(seed), {}
    for name, n in SIZES.items():
        X = rng.standard_normal((n, 6))
        odds = X @ (np.array([1.3, -1.0, 0.8, 0.0, 0.0, 0.0]) + 0.3 * rng.standard_normal(6)) - 5.2
        y = rng.random(n) < 1 / (1 + np.exp(-odds))
        found[name] = X, np.where(y & (name != "island"), "ill", "well")
    return found
