"""What a network costs: the same method on three sites in process, over the in-process grid, and over real processes.

python -m benchmarks.flower_overhead [--repeats 3]

Starting the network is counted apart. The work itself is small, so what is left of a run is the engine's own.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import gramfold as gf
from benchmarks import flower_sites, timing
from gramfold.engines.flower.local_grid import LocalGrid, app_node, run_locally
from gramfold.federation import Federation

SITES, SAMPLES = 3, 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as temporary:
        timing.write("flower_overhead", measure(Path(temporary), repeats))


def measure(folder: Path, repeats: int) -> dict[str, Any]:
    loader = f"{flower_sites.__file__}:load"
    configs = [
        {"name": f"site{k}", "loader": loader, "number": k, "samples": SAMPLES, "state-dir": str(folder / f"state{k}")}
        for k in range(SITES)
    ]
    federation = Federation.from_clients(
        {str(config["name"]): flower_sites.load(config) for config in configs}, labels=range(flower_sites.CLASSES)
    )
    figures: dict[str, Any] = {"sites": SITES, "in_process_seconds": timing.best_of(3, lambda: gf.run(gf.PACE(), federation))}

    def config(number: int, where: str) -> dict[str, Any]:
        task, out = flower_sites.task(SAMPLES * SITES), str(folder / f"{where}{number}")
        return {"method": "pace", "task": task, "minimum-sites": SITES, "release-sites": 1, "out": out, "deadline-seconds": 300.0}

    local = [timing.timed(lambda k=k: run_locally(LocalGrid(map(app_node, configs)), config(k, "local"))) for k in range(3)]
    figures["in_process_grid_seconds"] = min(local)
    begun = time.perf_counter()
    with flower_sites.network_of(folder / "network", SITES, SAMPLES) as network:
        figures["network_start_seconds"] = time.perf_counter() - begun
        runs = []
        for number in range(repeats):
            begun = time.perf_counter()
            network.run(folder / "network" / "app", config(number, "flower"))
            wall = time.perf_counter() - begun
            spent = json.loads((folder / f"flower{number}" / "result.json").read_text())["methods"][0]["seconds"]
            runs.append({"seconds": wall, "query_seconds": spent["local"], "evaluate_seconds": spent["personalize"]})
        figures["runs"] = runs
    figures["best_run_seconds"] = min(run["seconds"] for run in runs)
    figures["best_two_phases_seconds"] = min(run["query_seconds"] + run["evaluate_seconds"] for run in runs)
    return figures


if __name__ == "__main__":
    main()
