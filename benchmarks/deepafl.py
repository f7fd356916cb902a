"""DeepAFL against depth, in one pass, and PACE on random features beside it.

    python -m benchmarks.deepafl FILE.npz [--depths 0,1,2,5,10] [--device cuda] [--out OUT.json]

After every layer the run could end: at the depths asked for it does, on the side, and every client's head is evaluated. Bytes and
seconds are those of a run that ends there.
"""

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import gramfold as gf
from gramfold import evaluation
from gramfold.engines.deliveries import Deliveries
from gramfold.engines.inprocess import on_device
from gramfold.evaluation import score_head
from gramfold.federation import load_npz
from gramfold.methods import ClientData


def curve(method: gf.DeepAFL, federation: gf.Federation, depths: list[int], device: str) -> list[dict[str, Any]]:
    """Figures at every depth of a run to the last one."""
    clients = [ClientData(client.name, on_device(client.train(), device)) for client in federation]
    tests = [on_device(client.test(), device) for client in federation]
    broadcast, up, seconds, rows = method.begin(federation.task), 0, 0.0, []
    deliveries = Deliveries()  # all clients receive the same, so one of them tells
    for _ in range(method.rounds):
        begun = time.perf_counter()
        total = None
        deliveries.announce(broadcast)
        deliveries.delivered("", deliveries.packet("", broadcast))
        for client in clients:
            upload = method.local(client, broadcast)
            up += upload.wire_bytes
            if total is None:
                total = upload
            else:
                total += upload
        seconds += time.perf_counter() - begun
        layers = broadcast.map.layers
        if broadcast.map.next_outer is None and layers in depths:
            row: dict[str, Any] = {"depth": layers, "uplink_bytes": up / len(clients)}
            for personal in (False, True):
                ending = replace(method, depth=layers, personal=personal)
                begun = time.perf_counter()
                final = ending.aggregate(total, broadcast)
                heads = [ending.personalize(replace(client, contributed=True), final) for client in clients]
                took = time.perf_counter() - begun
                scored = [score_head(head, test) for head, test in zip(heads, tests, strict=True)]
                if personal:
                    row |= {
                        "seconds": seconds + took,
                        "downlink_bytes": deliveries.bytes[""] + deliveries.packet("", final).wire_bytes,
                    }
                    row["accuracy"] = evaluation.mean([score.accuracy for score in scored])
                else:
                    row["shared_accuracy"] = sum(score.right for score in scored) / sum(score.n for score in scored)
            rows.append(row)
            print(json.dumps(row), flush=True)
        begun = time.perf_counter()
        broadcast = method.aggregate(total, broadcast)
        seconds += time.perf_counter() - begun
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--depths", default="0,1,2,5,10")
    parser.add_argument("--fourier", default="1024,4096", help="widths of the random features beside it")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out")
    given = parser.parse_args()
    federation = gf.Federation.from_dataset(load_npz(given.path), clients=100, partition="dirichlet:0.1", random_state=0)
    depths = [int(depth) for depth in given.depths.split(",")]
    found: dict[str, Any] = {"deepafl": curve(gf.DeepAFL(depth=max(depths)), federation, depths, given.device), "others": []}
    features = ["bias+linear", *(f"bias+linear+fourier:{width}" for width in given.fourier.split(","))]
    for method in (gf.AFL(), *(gf.PACE(features=spec) for spec in features)):
        result = gf.run(method, federation, device=given.device, keep_heads=False)
        figures = {
            "name": method.name, "features": getattr(method, "features", None), "accuracy": result.mean_accuracy,
            "shared_accuracy": result.global_accuracy, "uplink_bytes": result.uplink_bytes / 100,
            "downlink_bytes": result.downlink_bytes / 100,
            "seconds": sum(taken for phase, taken in result.seconds.items() if phase not in ("evaluate", "tuning")),
        }  # fmt: skip
        found["others"].append(figures)
        print(json.dumps(figures, default=str), flush=True)
    if given.out:
        with open(given.out, "w") as file:
            json.dump(found, file, indent=1, default=str)


if __name__ == "__main__":
    main()
