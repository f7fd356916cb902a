"""Sites without a network: an exchange that hands every message to the site's own code, as bytes, in this process. A lie changes
what one site is asked, or what it answers."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import gramfold as gf
from gramfold.methods import spec_of
from gramfold.privacy import masks
from gramfold.remote.messages import EVALUATE, QUERY, SECURE, TASK, TRAIN, Arrival, Message, Request
from gramfold.remote.run import run_remote
from gramfold.remote.secure_site import identity
from gramfold.remote.settings import Settings
from gramfold.remote.site import Site, head_file
from gramfold.wire import Packet

WORK = {TASK: "task", QUERY: "local", TRAIN: "local", EVALUATE: "personalize", SECURE: "secure"}
Lie = Callable[[str, Message], Message]
"""Of a site's name and a message to it, or its answer."""


def sent(message: Message) -> Message:
    """A message as it arrives."""
    packets = {name: Packet.from_bytes(packet.to_bytes()) for name, packet in message.packets.items()}
    return Message(json.loads(json.dumps(dict(message.header))), packets)


def honest(site: str, message: Message) -> Message:
    return message


class MemorySites:
    """An exchange with the clients of a federation as sites, each with a file and a `state-dir` of its own."""

    deadline = 60.0

    def __init__(self, folder: Path, clients: Mapping[str, tuple[np.ndarray, np.ndarray]], trusted: bool = False, **policy: Any):
        self.folder, self.names = folder, sorted(clients)
        self.asking: Lie = honest
        self.answering: Lie = honest
        self.messages = 0
        self.config: dict[str, dict[str, Any]] = {}
        for name, (X, y) in clients.items():
            np.savez(folder / f"{name}.npz", features=X, labels=y)
            data, state = str(folder / f"{name}.npz"), folder / "state" / name
            self.config[name] = {"name": name, "data": data, "state-dir": str(state), **policy}
        if trusted:
            self.trust()

    def trust(self) -> None:
        """Every site has the others' keys from elsewhere."""
        keys = {}
        for name, config in self.config.items():
            state = Path(config["state-dir"])
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            keys[name] = masks.identity_of(identity(state)).hex()
        (self.folder / "keys.json").write_text(json.dumps(keys))
        for config in self.config.values():
            config["trusted-keys"] = str(self.folder / "keys.json")

    # --- the exchange ---

    def nodes(self, needed: int = 0, expected: int = 0) -> dict[int, str]:
        return dict(enumerate(self.names))

    def ask(self, kind: str, messages: Iterable[tuple[int, Message]]) -> Iterator[Arrival]:
        for node, message in messages:
            name = self.names[node]
            asked = sent(self.asking(name, message))
            answer = self.answering(name, sent(Site(self.config[name]).answer(WORK[kind], lambda asked=asked: asked)))
            self.messages += 1
            yield Arrival(Request(node, kind, str(self.messages), time.monotonic()), lambda answer=answer: answer)

    # --- a run ---

    def run(self, method: Any, out: str = "out", **config: Any) -> gf.Result:
        given = {"method": spec_of(method), "parameters": json.dumps(dict(method.parameters())), "out": str(self.folder / out)}
        return run_remote(self, Settings.read({**given, **config}))

    def diary(self, name: str) -> list[dict[str, Any]]:
        path = Path(self.config[name]["state-dir"]) / "sent.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def head(self, name: str, method: Any) -> gf.Head:
        return gf.load_head(head_file(self.config[name]["state-dir"], method.name))


def hospitals(count: int, samples: int, inputs: int, seed: int = 0, classes: int = 3) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """So many sites with so many samples each."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.standard_normal((classes, inputs))
    made = {}
    for k in range(count):
        y = np.arange(samples) % classes
        made[f"site{k:02}"] = (means[y] + rng.standard_normal((samples, inputs)), y)
    return made
