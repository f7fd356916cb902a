"""What heads say of clients' test samples, and what becomes of it with a class prior, a temperature and a mask."""

from typing import Any

import numpy as np
from scipy.optimize import minimize

import gramfold as gf
from gramfold.solve.class_prior import ClassPrior

PLAIN = np.array([1.0, 0.0])
"""A head as it is: its temperature, and no prior."""


class Evidence:
    """Of all clients' test samples: log-probabilities, their clients' class priors and absent classes, and who is whose."""

    def __init__(self, heads: Any, parts: gf.Federation) -> None:
        trains = {client.name: np.asarray(client.train().targets) for client in parts}
        classes = parts.task.outputs
        pooled = np.bincount(np.concatenate(list(trains.values())), minlength=classes)
        logs, priors, absent, codes, owners = [], [], [], [], []
        for client in parts:
            test = client.test()
            if not test.n:
                continue
            own = np.bincount(trains[client.name], minlength=classes)
            chances = heads[client.name].predict_proba(np.asarray(test.inputs, np.float32))
            logs.append(np.log(np.maximum(chances, 1e-30)))
            prior = ClassPrior.of(own[None], pooled).log_shares[0] - np.log(np.maximum(pooled, 0.5) / pooled.sum())
            priors.append(np.broadcast_to(prior, logs[-1].shape))
            absent.append(np.broadcast_to(own == 0, logs[-1].shape))
            codes.append(np.asarray(test.targets))
            owners.append(np.full(test.n, len(owners)))
        self.logs, self.priors, self.absent = map(np.concatenate, (logs, priors, absent))
        self.codes, self.owners = map(np.concatenate, (codes, owners))

    def loss(self, weights: np.ndarray) -> float:
        logits = weights[0] * self.logs + weights[1] * self.priors
        top = logits.max(1)
        normal = top + np.log(np.exp(logits - top[:, None]).sum(1))
        return float((normal - logits[np.arange(len(logits)), self.codes]).mean())

    def fitted(self) -> np.ndarray:
        """The most likely temperature (as a factor) and weight of the prior."""
        found = minimize(self.loss, np.array([1.0, 0.5]), method="Nelder-Mead", options={"maxiter": 120, "xatol": 1e-3})
        return np.asarray(found.x)

    def accuracy(self, weights: np.ndarray, masked: bool = False) -> float:
        """The mean over clients. `masked`: a client chooses among the classes that it has."""
        logits = weights[0] * self.logs + weights[1] * self.priors
        right = np.where(self.absent & masked, -np.inf, logits).argmax(1) == self.codes
        return float((np.bincount(self.owners, right) / np.bincount(self.owners)).mean())

    def figures(self, weights: np.ndarray) -> dict[str, float]:
        return {
            "plain": self.accuracy(PLAIN), "masked": self.accuracy(PLAIN, masked=True), "with_prior": self.accuracy(weights),
            "log_loss": self.loss(weights), "plain_log_loss": self.loss(PLAIN),
        }  # fmt: skip
