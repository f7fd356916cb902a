"""Folding is addition, so forgetting is subtraction: the model after it is the one that never saw the client."""

import numpy as np

import gramfold as gf
from gramfold.solve.ridge import ridge

rng = np.random.default_rng(0)
sites = [(rng.standard_normal((200, 30)), rng.integers(0, 4, 200)) for _ in range(5)]
moments = [gf.Moments.from_features(F, y, classes=4) for F, y in sites]

pooled = sum(moments[1:], moments[0])
without_third = pooled - moments[2]

forgotten = ridge(without_third.gram, without_third.cross, penalty=1.0)
F, y = (np.concatenate([site[i] for k, site in enumerate(sites) if k != 2]) for i in (0, 1))
never_seen = np.linalg.solve(F.T @ F + np.eye(30), F.T @ np.eye(4)[y])
print(f"largest difference: {np.abs(forgotten - never_seen).max():.1e}")
