"""What it costs PACE to choose everything, against the same method with fixed values; and its regimes in bytes.

    python -m benchmarks.pace_cost FILE.npz [--features bias+linear]

100 clients, dirichlet:0.1, whole runs with evaluation, interleaved, best of three.
"""

import argparse

import gramfold as gf
from benchmarks.timing import best_interleaved, write
from gramfold.federation import load_npz


def main(path: str, features: str, repeats: int) -> None:
    federation = gf.Federation.from_dataset(load_npz(path), clients=100, partition="dirichlet:0.1", random_state=0)
    chosen = gf.PACE(features=features)
    fixed = gf.PACE(features=features, penalty=50.0, weights=(14.0, 0.02), parts=())
    seconds = best_interleaved(
        repeats,
        {
            "chosen": lambda: gf.run(chosen, federation, keep_heads=False),
            "fixed": lambda: gf.run(fixed, federation, keep_heads=False),
        },
    )
    regimes = {}
    for regime in ("sum", "sketch"):
        result = gf.run(gf.PACE(features=features, regime=regime), federation, keep_heads=False)
        regimes[regime] = {
            "uplink_bytes_per_client": result.uplink_bytes // len(federation),
            "downlink_bytes_per_client": result.downlink_bytes // len(federation),
            "mean_accuracy": result.mean_accuracy,
            "loo_estimate": result.leave_one_out_accuracy,
        }
    name = "pace_cost_" + features.replace("+", "_").replace(":", "")
    write(name, {"features": features, "seconds": seconds, "chosen_over_fixed": seconds["chosen"] / seconds["fixed"],
                 "regimes": regimes})  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--features", default="bias+linear")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    main(given.path, given.features, given.repeats)
