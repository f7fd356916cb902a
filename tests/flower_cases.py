"""What the Flower tests share: a federation's clients as sites with files of their own, and runs over an in-process grid."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Message

import gramfold as gf
from gramfold.engines.flower.local_grid import LocalGrid, Node, app_node, run_locally
from gramfold.methods import spec_of
from gramfold.remote.site import head_file
from gramfold.remote.tasks import task_to_json

PACE = gf.PACE(features="bias+linear+fourier:64")
"""In one round: features that are learned take more."""


def write_site(path: Path, client: Any) -> None:
    """A client's samples as a data file of gramfold's form."""
    train, test = client.train(), client.test()
    np.savez(
        path,
        **{"images" if train.inputs.ndim == 4 else "features": np.concatenate([train.inputs, test.inputs])},
        labels=np.concatenate([train.targets, test.targets]).squeeze(),
        train=np.arange(train.n + test.n) < train.n,
    )


def held_back(node: Node, until: threading.Event) -> Node:
    """A node that answers once something has happened, and the one it waits for has had time to come through."""
    looks = [0]

    def answer(message: Message) -> Any:
        looks[0] += until.is_set()
        return node(message) if looks[0] > 3 else None

    return answer


def all_answered(result: dict[str, Any], sites: "Sites") -> bool:
    account = result["sites"]
    return (account["answered"], account["excluded"], account["late"]) == (sites.names, {}, [])


class Sites:
    """The sites of a federation in a folder, and the server's side of a run over them."""

    def __init__(self, folder: Path, federation: gf.Federation) -> None:
        self.folder, self.federation = folder, federation
        self.names = [client.name for client in federation]
        self.config = {name: self.configure(name) for name in self.names}
        for client in federation:
            write_site(self.data(client.name), client)

    def data(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def configure(self, name: str) -> dict[str, Any]:
        kind = {} if self.federation.task.labels is not None else {"regression": True}
        return {"name": name, "data": str(self.data(name)), "state-dir": str(self.folder / "state" / name), **kind}

    def node(self, name: str) -> Node:
        return app_node(self.config[name])

    def run(self, method: gf.AFL | Any, nodes: dict[str, Node] | None = None, **config: Any) -> dict[str, Any]:
        """Run a method over these nodes (every site's own where none are given); the content of result.json."""
        grid = self.grid(nodes)
        run_locally(grid, self.run_config(method, **config))
        return self.result(config.get("out", "out"))

    def grid(self, nodes: dict[str, Node] | None = None) -> LocalGrid:
        made = nodes if nodes is not None else {name: self.node(name) for name in self.names}
        return LocalGrid(made.values(), made.keys())

    def run_config(self, method: Any, **config: Any) -> dict[str, Any]:
        given = {"task": task_to_json(self.federation.task), "deadline-seconds": 300.0, "release-sites": 1, **config}
        given["out"] = str(self.folder / config.get("out", "out"))
        return {"method": spec_of(method), "parameters": json.dumps(dict(method.parameters())), **given}

    def result(self, out: str = "out") -> dict[str, Any]:
        return json.loads((self.folder / out / "result.json").read_text())

    def head(self, name: str, method: Any) -> gf.Head:
        return gf.load_head(head_file(self.config[name]["state-dir"], method.name))

    def distance(self, method: Any, expected: gf.Result) -> float:
        """The largest difference between the scores of the sites' heads and those expected, on the sites' test samples."""
        apart = [0.0]
        for client in self.federation:
            if client.name in expected.heads:
                inputs = client.test().inputs
                scores = (head.scores(inputs) for head in (self.head(client.name, method), expected.heads[client.name]))
                # a class that a client has never seen may score minus infinity
                mine, theirs = (np.nan_to_num(np.asarray(part)) for part in scores)
                apart.append(float(np.abs(mine - theirs).max()))
        return max(apart)

    def without(self, *names: str) -> gf.Federation:
        """The federation that these sites are no part of."""
        kept = [client for client in self.federation if client.name not in names]
        return gf.Federation(kept, self.federation.task)
