"""What those who may pool rows would use on tables of several clients: trees, a line, and the linear mixed model.

All take X (n x columns), y, each row's client as a whole number, and which rows train; all give predictions for every row:
values, or probabilities of the second of two classes.
"""

import itertools
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

TREES = [
    {"learning_rate": rate, "max_leaf_nodes": leaves, "min_samples_leaf": least, "l2_regularization": l2}
    for rate, leaves, least, l2 in itertools.product((0.03, 0.1), (4, 15), (5, 40), (0.0, 10.0))
]
ROUNDS = 400
CATEGORIES = 254
"""As many as scikit-learn's trees take; clients beyond the largest so many are one that is not known."""
SLOPES = 3
"""The columns that say most of the target are those along which clients may have a slope of their own."""
Rows = np.ndarray


def boosted_trees(X: Rows, y: Rows, owner: Rows, train: Rows, classes: bool, seed: int) -> Rows:
    """The client is a column of categories. Sixteen settings, each with its best number of rounds on a fifth of training rows."""
    known = np.argsort(-np.bincount(owner[train], minlength=owner.max() + 1), kind="stable")[:CATEGORIES]
    place = np.full(owner.max() + 1, np.nan)
    place[known] = np.arange(len(known))
    rows = np.column_stack([X, place[owner]])
    made: Callable = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    fit, held = train_test_split(np.flatnonzero(train), test_size=0.2, random_state=seed, stratify=y[train] if classes else None)
    tried = []
    for setting in TREES:
        model = made(max_iter=ROUNDS, early_stopping=False, categorical_features=[X.shape[1]], random_state=seed, **setting)
        model.fit(rows[fit], y[fit])
        stages = model.staged_predict_proba(rows[held]) if classes else model.staged_predict(rows[held])
        losses = [loss(stage[:, 1] if classes else stage, y[held], classes) for stage in stages]
        tried.append((min(losses), int(np.argmin(losses)) + 1, setting))
    _, rounds, setting = min(tried, key=lambda one: one[:2])
    model = made(max_iter=rounds, early_stopping=False, categorical_features=[X.shape[1]], random_state=seed, **setting)
    model.fit(rows[train], y[train])
    return np.asarray(model.predict_proba(rows)[:, 1] if classes else model.predict(rows))


def line(X: Rows, y: Rows, owner: Rows, train: Rows, classes: bool, seed: int) -> Rows:
    """One ridge, or logistic regression, of standardised columns for all, its penalty by cross-validation."""
    if not classes:
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15))).fit(X[train], y[train])
        return np.asarray(model.predict(X))
    model = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=np.logspace(-3, 2, 8), max_iter=2000, scoring="neg_log_loss"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(X[train], y[train]).predict_proba(X)[:, 1])


def mixed_model(X: Rows, y: Rows, owner: Rows, train: Rows, classes: bool, seed: int) -> Rows:
    """A random intercept for each client, by restricted maximum likelihood (for classes: the posterior mode, with a random
    intercept on the logits); then a random slope along one column, where a held-out fifth of the training rows prefers it."""
    columns = StandardScaler().fit(X[train]).transform(X)
    if classes:
        return _mixed_classes(columns, y, owner, train)
    fit, held = train_test_split(np.flatnonzero(train), test_size=0.2, random_state=seed)
    kept = np.isin(np.arange(len(y)), fit)
    best: tuple[float, list[int]] = (loss(_mixed(columns, y, owner, kept, [])[held], y[held], False), [])
    said = np.abs((columns[fit] * (y[fit] - y[fit].mean())[:, None]).mean(0))
    for slope in map(int, np.argsort(-said, kind="stable")[:SLOPES]):
        try:
            found = loss(_mixed(columns, y, owner, kept, [slope])[held], y[held], False)
        except (np.linalg.LinAlgError, ValueError):  # statsmodels finds no optimum
            continue
        best = min(best, (found, [slope]))
    try:
        return _mixed(columns, y, owner, train, best[1])
    except (np.linalg.LinAlgError, ValueError):
        return _mixed(columns, y, owner, train, [])


def _independent(X: Rows, train: Rows) -> Rows:
    """A constant and the columns, less those that others add up to."""
    rows = np.column_stack([np.ones(len(X)), X])
    diagonal = np.abs(np.diag(np.linalg.qr(rows[train], mode="r")))
    return rows[:, diagonal > 1e-8 * diagonal.max()]


def _mixed(X: Rows, y: Rows, owner: Rows, train: Rows, slopes: list[int]) -> Rows:
    from statsmodels.regression.mixed_linear_model import MixedLM

    rows, random = _independent(X, train), np.column_stack([np.ones(len(X)), X[:, slopes]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MixedLM(y[train], rows[train], groups=owner[train], exog_re=random[train]).fit()
    effects = np.zeros((owner.max() + 1, random.shape[1]))
    for client, effect in fitted.random_effects.items():
        effects[int(client)] = np.asarray(effect)
    return np.asarray(rows @ fitted.fe_params + (random * effects[owner]).sum(1))


def _mixed_classes(X: Rows, y: Rows, owner: Rows, train: Rows) -> Rows:
    from scipy.sparse import csr_matrix
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    rows, clients = _independent(X, train), int(owner.max()) + 1
    whose = csr_matrix((np.ones(train.sum()), (np.arange(train.sum()), owner[train])), shape=(train.sum(), clients))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = BinomialBayesMixedGLM(y[train], rows[train], whose, np.zeros(clients, int)).fit_map()
    return np.asarray(1 / (1 + np.exp(-(rows @ fitted.fe_mean + np.asarray(fitted.vc_mean)[owner]))))


def loss(predicted: Rows, wanted: Rows, classes: bool) -> float:
    """Root mean square error, or log loss."""
    if not classes:
        return float(np.sqrt(np.mean((predicted - wanted) ** 2)))
    chances = np.clip(np.where(wanted == 1, predicted, 1 - predicted), 1e-6, 1.0)
    return float(-np.log(chances).mean())
