"""Accuracy against noise: AFL and PACE at eps 1, 2, 4 and 8, 100 clients, beside no noise.

    python -m benchmarks.dp FILE.npz [--clients 100] [--draws 2]

The noise is drawn on the sum, with the variance that all clients' shares under a secure sum add up to (each adds so much that the
fewest who may be left have all of it); masks change nothing, and are left out here. Writes docs/dp.svg as well.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.timing import write
from gramfold.engines import RunOptions
from gramfold.engines.inprocess import run_inprocess
from gramfold.federation import load_npz
from gramfold.moments import Implied
from gramfold.privacy import DP, Privacy, SecureSum, graph

EPS = (1.0, 2.0, 4.0, 8.0)
METHODS = {"AFL": gf.AFL(), "PACE": gf.PACE(features="bias+linear")}


@dataclass(frozen=True)
class OnTheSum(Privacy):
    """The noise of a secure sum of all clients, drawn at once."""

    def noisy(self, upload: Any, implied: Implied, clients: int) -> Any:
        return upload

    def release(self, total: Any, implied: Implied, clients: int, summed: int) -> Any:
        if self.dp is None:
            return total
        variance = clients / graph.needed(clients, SecureSum().threshold)
        noise = self.dp.noise(implied.length(total.dim) or 0.0)
        return noise.repair(noise.add(total, variance), variance)


def figures(method: Any, federation: gf.Federation, eps: float | None) -> dict[str, Any]:
    result = run_inprocess(
        method, federation, RunOptions(OnTheSum(None, None if eps is None else DP(eps))), keep_heads=False
    )  # fmt: skip
    return {
        "accuracy": result.mean_accuracy, "shared_accuracy": result.global_accuracy,
        "calibration_error": result.calibration_error, "estimate": result.leave_one_out_accuracy,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--draws", type=int, default=2)
    given = parser.parse_args()
    federation = gf.Federation.from_dataset(load_npz(given.file), given.clients, "dirichlet:0.1", 0.25, 0)
    rows = []
    for name, method in METHODS.items():
        for eps in (*EPS, None):
            found = [figures(method, federation, eps) for _ in range(given.draws if eps is not None else 1)]
            mean = {key: float(np.mean([one[key] for one in found])) for key in found[0] if found[0][key] is not None}
            rows.append({"method": name, "eps": eps, "sigma": None if eps is None else 1 / DP(eps).mu, **mean})
            print(rows[-1], flush=True)
    write("dp", {"clients": given.clients, "samples": federation.task.samples, "delta": 1e-5, "draws": given.draws, "rows": rows})
    (Path(__file__).parents[1] / "docs" / "dp.svg").write_text(plot(rows))


def plot(rows: list[dict[str, Any]]) -> str:
    """Accuracy over eps, a line for each method, dashed where there is no noise."""
    width, height, left, bottom = 560, 300, 50, 40
    at = {eps: left + i * (width - left - 90) / (len(EPS) - 1) for i, eps in enumerate(EPS)}

    def y(value: float) -> float:
        return height - bottom - value * (height - bottom - 15)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for tenth in range(0, 11, 2):
        parts.append(f'<path d="M{left} {y(tenth / 10):.1f}H{width - 90}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(tenth / 10) + 4:.1f}" text-anchor="end">{10 * tenth}</text>')
    parts += [f'<text x="{x:.1f}" y="{height - 20}" text-anchor="middle">{eps:g}</text>' for eps, x in at.items()]
    parts.append(f'<text x="{(left + width - 90) / 2}" y="{height - 4}" text-anchor="middle">eps (delta 1e-5)</text>')
    for name, colour in zip(METHODS, ("#888888", "#3949ab"), strict=True):
        mine = {row["eps"]: row["accuracy"] for row in rows if row["method"] == name}
        points = " ".join(f"{at[eps]:.1f},{y(mine[eps]):.1f}" for eps in EPS)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{at[eps]:.1f}" cy="{y(mine[eps]):.1f}" r="3" fill="{colour}"/>' for eps in EPS]
        parts.append(f'<path d="M{left} {y(mine[None]):.1f}H{width - 90}" stroke="{colour}" stroke-dasharray="5 4"/>')
        parts.append(f'<text x="{width - 84}" y="{y(mine[EPS[-1]]) + 4:.1f}" fill="{colour}">{name}</text>')
        parts.append(f'<text x="{width - 84}" y="{y(mine[None]) + 4:.1f}" fill="{colour}">no noise</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
