"""Large moments over a real network on this machine: the server's peak memory with one site and with five, seconds, MB/s.

python -m benchmarks.flower_size [--method afl] [--width 4096] [--sites 1,5]
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import flower_sites, timing
from benchmarks.flower_sites import Peak


def measure(method: str, width: int, sites: int) -> dict[str, Any]:
    samples = width + 100  # more samples than features: the upload is the triangle
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with flower_sites.network_of(folder, sites, samples) as network:
            config = {
                "method": method, "parameters": json.dumps({"features": f"fourier:{width}"}), "minimum-sites": sites,
                "task": flower_sites.task(samples * sites), "out": str(folder / "out"), "deadline-seconds": 550.0,
                "release-sites": 1,
            }  # fmt: skip
            begun = time.perf_counter()
            with Peak("flwr-serverapp") as server, Peak("flwr-clientapp") as client, Peak("flower-superlink") as link:
                network.run(folder / "app", config)
            elapsed = time.perf_counter() - begun
        result = json.loads((folder / "out" / "result.json").read_text())
    entry = result["methods"][0]
    local, personal, worked = entry["seconds"]["local"], entry["seconds"]["personalize"], result["sites"]["seconds"].values()
    return {
        "sites": sites,
        "uplink_mb": entry["uplink_bytes"] / 1e6,
        "downlink_mb": entry["downlink_bytes"] / 1e6,
        "seconds": elapsed,
        "upload_phase_seconds": local,
        "upload_phase_mb_per_second": entry["uplink_bytes"] / 1e6 / local,
        "personalize_phase_seconds": personal,
        "slowest_sites_own_seconds": max(worked),
        "aggregate_seconds": entry["seconds"]["aggregate"],
        "server_app_peak_mb": server.bytes / 1e6,
        "client_app_peak_mb": client.bytes / 1e6,
        "superlink_peak_mb": link.bytes / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="afl")
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--sites", default="1,5")
    given = parser.parse_args()
    runs = [measure(given.method, given.width, int(sites)) for sites in given.sites.split(",")]
    ratio = runs[-1]["server_app_peak_mb"] / runs[0]["server_app_peak_mb"]
    timing.write(f"flower_size_{given.method}", {"width": given.width, "runs": runs, "server_peak_ratio": ratio})


if __name__ == "__main__":
    main()
