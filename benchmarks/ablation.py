"""What each part of PACE brings: its head, its learned features, and the digits that its numbers travel in.

    python -m benchmarks.ablation FILE.npz [--groups head,features,precision] [--size 4096] [--device cuda] [--part NAME]

One part is switched off or changed at a time, 100 clients, dirichlet 0.1, 0.5 and 1.0, one seed. Writes
benchmarks/results/ablation_PART.json; `python -m benchmarks.tables` makes docs/ablation.md of all of them.
"""

import argparse
import json
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

import gramfold as gf
from benchmarks.pace import personalised
from benchmarks.timing import keep
from gramfold.federation import load_npz
from gramfold.federation.datasets import Dataset
from gramfold.methods import pace
from gramfold.methods.parts import learning, learning_steps, own_way, pace_head, unexplained
from gramfold.solve.class_prior import ClassPrior
from gramfold.solve.discriminant import Discriminant

MAP = "bias+linear+fourier:{}@learned"
CELLS = [(100, 0.1), (100, 0.5), (100, 1.0)]


def _no_refinement(rows: Any, targets: Any, penalty: float, *_: object) -> tuple[Any, Any]:
    return rows[:0].T @ targets[:0], targets * 0


def _ridge_scores(self: Discriminant, scores: Any, bend: float = 0.0) -> tuple[Any, Any]:
    """No discriminant: the ridge scores themselves are the evidence, in units that suit the prior of the weights."""
    return 2.0 * scores, scores * 0


class NoPrior:
    """All classes alike."""

    def __init__(self, classes: int) -> None:
        self.log_shares = np.zeros(classes)

    @classmethod
    def of(cls, counts: np.ndarray, pooled: np.ndarray) -> "NoPrior":
        return cls(len(counts))

    def left_out(self, codes: np.ndarray, once: np.ndarray, fresh: bool = False) -> np.ndarray:
        return np.zeros((len(codes), len(self.log_shares)))


class SurePrior(ClassPrior):
    """Evidence is weighed beside the prior that the head has."""

    def left_out(self, codes: np.ndarray, once: np.ndarray, fresh: bool = False) -> np.ndarray:
        return super().left_out(codes, once)


def _straight(classes: int) -> float:
    return 0.0


KEPT_IN = (pace_head, "ALMOST_ALL", 0.0)
"""No sample is left out of the shared discriminant."""
HEAD: dict[str, list[tuple[Any, str, Any]]] = {
    "PACE": [],
    "without the class prior": [(pace_head, "ClassPrior", NoPrior)],
    "without the discriminant (ridge scores)": [(Discriminant, "evidence", _ridge_scores), KEPT_IN],
    "samples kept in the discriminant": [KEPT_IN],
    "without the bend": [(own_way, "bend", _straight), (pace_head, "bend", _straight)],
    "weights fitted beside the head's own prior": [(pace_head, "ClassPrior", SurePrior)],
    "without refinement": [(unexplained, "ridge_with_left_out", _no_refinement)],
    "without leave-one-out residuals": [(pace_head, "left_out_residuals", lambda residuals, leverage: residuals)],
    "without selection (centre of the prior)": [
        (own_way, "most_likely", lambda evidence, offset, codes, start, *_: (start, 0.0))
    ],
}
"""Of the head alone: all of these have the same shared solution."""
ALL_SEEN = [(learning, "UNSEEN", 0.0), (pace, "unseen", lambda *_: None)]
FEATURES: dict[str, tuple[str, list[tuple[Any, str, Any]]]] = {
    "without Fourier features": ("bias+linear", []),
    "without a metric, frequencies of scale 1": ("bias+linear+fourier:{}", []),
    "without a metric, frequencies of scale 0.5": ("bias+linear+fourier:{}:0.5", []),
    "metric of the linear head, penalty one mean squared row (PACE)": (MAP, []),
    "the same with a tenth of the penalty": (MAP, [(learning_steps, "SHRINKAGE", 0.1)]),
    "the same with a hundredth of the penalty": (MAP, [(learning_steps, "SHRINKAGE", 0.01)]),
    "one pass of gradients": (MAP + ":1", []),
    "two passes of gradients": (MAP + ":2", []),
    "all samples make the metric, and all judge": (MAP, ALL_SEEN),
}
PRECISIONS = ("float64", "float32", "float16", "int8")


def ablate(data: Dataset, groups: list[str], size: int, device: str) -> list[dict[str, Any]]:
    federations = [gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", seed=0) for clients, alpha in CELLS]
    rows: list[dict[str, Any]] = []

    def note(group: str, name: str, method: gf.PACE, result: gf.Result) -> None:
        for (clients, alpha), federation in zip(CELLS, federations, strict=True):
            accuracy, estimate, error = personalised(method, federation, result.run.broadcast, device)
            bytes_ = (result.uplink_bytes + result.downlink_bytes) / len(result.clients)
            rows.append({"group": group, "name": name, "size": size, "clients": clients, "alpha": alpha, "pace": accuracy,
                         "estimate": estimate, "calibration_error": error, "shared": result.global_accuracy,
                         "rounds": result.rounds, "bytes": bytes_, "rounding": result.chosen.get("rounding", 0.0)})  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)

    def run(method: gf.PACE) -> gf.Result:
        return gf.run(method, federations[-1], device=device, keep_heads=False)

    if "head" in groups:
        method = gf.PACE(features=MAP.format(size), regime="sketch")
        result = run(method)
        for name, patches in HEAD.items():
            with ExitStack() as stack:
                for where, what, replacement in patches:
                    stack.enter_context(patch.object(where, what, replacement))
                note("head", name, method, result)
    if "features" in groups:
        for name, (spec, patches) in FEATURES.items():
            with ExitStack() as stack:
                for where, what, replacement in patches:
                    stack.enter_context(patch.object(where, what, replacement))
                method = gf.PACE(features=spec.format(size), regime="sketch")
                note("features", name, method, run(method))
    if "precision" in groups:
        for precision in PRECISIONS:
            method = gf.PACE(features=MAP.format(size), regime="sketch", precision=precision)
            note("precision", precision, method, run(method))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--groups", default="head,features,precision")
    parser.add_argument("--size", type=int, default=4096, help="Fourier features")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--part", default="all")
    given = parser.parse_args()
    rows = ablate(load_npz(given.file), given.groups.split(","), given.size, given.device)
    keep(f"ablation_{given.part}", rows)


if __name__ == "__main__":
    main()
