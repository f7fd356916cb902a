"""What the Flower benchmarks share: sites with synthetic data, and what a run on their network took."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.deploy.template import write_app
from gramfold.engines.flower.network import Network, Site

INPUTS, CLASSES = 64, 10


def load(config: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """A site's samples, drawn from its number."""
    rng, n = np.random.default_rng(config["number"]), config["samples"]
    X, y = rng.standard_normal((n, INPUTS)).astype(np.float32), rng.integers(0, CLASSES, n)
    return X, y, X[:100], y[:100]


def network_of(folder: Path, sites: int, samples: int) -> Network:
    """A network of so many sites, with the app to run on it."""
    write_app(folder / "app", {})
    configs = [{"loader": f"{__file__}:load", "number": k, "samples": samples} for k in range(sites)]
    return Network(folder, [Site(f"site{k}", config) for k, config in enumerate(configs)])


def task(samples: int) -> str:
    labels = list(range(CLASSES))
    return json.dumps({"inputs": INPUTS, "labels": labels, "outputs": CLASSES, "seed": 0, "samples": samples})


class Peak:
    """The most memory that any process of a name has held, while the block lasts."""

    def __init__(self, name: str) -> None:
        self.name, self.bytes = name, 0
        self._over = threading.Event()

    def __enter__(self) -> "Peak":
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if self.name not in (process / "cmdline").read_text():
                        continue
                    for line in (process / "status").read_text().splitlines():
                        if line.startswith("VmHWM:"):
                            self.bytes = max(self.bytes, int(line.split()[1]) * 1024)
                except OSError:
                    continue
            time.sleep(0.2)
