"""As a scikit-learn estimator: groups are clients, and a group never seen gets the shared head."""

import numpy as np
from sklearn.datasets import load_digits

import gramfold as gf

X, y = load_digits(return_X_y=True)
site = np.random.default_rng(0).integers(0, 8, len(y))
model = gf.PersonalizedClassifier(method="pace").fit(X[::2], y[::2], groups=site[::2])
print(f"own heads {model.score(X[1::2], y[1::2], groups=site[1::2]):.1%}, shared head {model.score(X[1::2], y[1::2]):.1%}")
