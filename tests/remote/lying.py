"""A server that lies in its messages, as seen by one site: no network, the real code of the site."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gramfold as gf
from gramfold.federation import Samples, Task
from gramfold.methods import ClientData, spec_of
from gramfold.remote.messages import Message
from gramfold.remote.site import Site
from gramfold.remote.tasks import task_to_json
from gramfold.wire.record import Record


class Server:
    """Asks one site whatever it likes."""

    def __init__(self, config: Mapping[str, Any], method: Any, task: Task) -> None:
        self.config, self.method, self.task = config, method, task

    def header(self, **more: Any) -> dict[str, Any]:
        method = more.pop("method", self.method)
        about = {"gramfold": gf.__version__, "method": spec_of(method), "parameters": dict(method.parameters())}
        return {**about, "task": task_to_json(self.task), "run": "", "round": 0, "counted": [], "release-sites": 99, **more}

    def ask(self, kind: str, broadcast: Record | None = None, **more: Any) -> Message:
        packets = {} if broadcast is None else {"broadcast": broadcast.pack()}
        return Site(self.config).answer(kind, lambda: Message(self.header(**more), packets))

    def begin(self) -> Any:
        return self.method.begin(self.task)

    def upload(self, **more: Any) -> Message:
        return self.ask("local", self.begin(), **more)

    def shared(self, weights: Any) -> Record:
        """A broadcast of a linear model with weights of the server's choice."""
        begun = self.begin()
        sample = Samples(np.eye(self.task.inputs)[:1], np.zeros((1, 1)) if self.task.labels is None else np.zeros(1, int))
        made = self.method.aggregate(self.method.local(ClientData("nobody", sample, {}), begun), begun)
        return replace(made, weights=np.asarray(weights, float).reshape(np.asarray(made.weights).shape))


def save(path: Path, X: np.ndarray, y: np.ndarray) -> str:
    np.savez(path, features=X, labels=y)
    return str(path)
