"""How small a client may be: memory and time of what runs there, each step a process of its own on one core.

    python -m benchmarks.small_client

The steps are the commands of a run as files, `gramfold fold` (what a client sends) and `gramfold personal` (its head), and
`numpy_predictor.py` for 1,000 rows, where there is nothing but NumPy. PACE, one round. Seconds are the processor's, start of
Python included; memory is the most that the process held. `old` is the same core whose matrix products do without the wide
instructions of the last twenty years (OPENBLAS_CORETYPE=Prescott). Needs the extra `onnx`; writes
benchmarks/results/small_client.json.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import write
from gramfold.export import numpy_predictor

OLD = {"OPENBLAS_CORETYPE": "Prescott"}
ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
TURNS, ROWS = 3, 1000


class Size(NamedTuple):
    """One client's samples, and the map of the run."""

    what: str
    samples: int
    columns: int
    classes: int
    features: str


SIZES = (
    Size("a table", 200, 20, 2, "bias+columns"),
    Size("embeddings", 500, 384, 10, "bias+linear"),
    Size("large embeddings", 500, 768, 100, "bias+linear"),
    Size("a curved map", 2000, 64, 10, "bias+linear+fourier:2048"),
)
LAUNCH = """
import resource, subprocess, sys
ran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print("", spent.ru_utime + spent.ru_stime, spent.ru_maxrss, sep=" ", file=sys.stderr)
sys.exit(ran.returncode)
"""
"""A process as small as can be starts the one that is measured: a child's peak is never below its parent's."""
RATE = """
import time, numpy as np
a = np.random.default_rng(0).standard_normal((700, 700))
a @ a
print(2 * 700**3 / min((lambda t: (a @ a, time.process_time() - t)[1])(time.process_time()) for _ in range(9)))
"""


def spent(command: list[str], more: dict[str, str], given: str = "", turns: int = TURNS) -> dict[str, float]:
    """The processor's seconds, the least of some turns, and the most memory of a process."""
    found = []
    for _ in range(turns):
        ran = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LAUNCH, *command],
            env={**os.environ, **ONE, **more},
            input=given,
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            raise SystemExit(f"{command} failed: {ran.stderr}")
        found.append([float(word) for word in ran.stderr.splitlines()[-1].split()])
    seconds, kilobytes = zip(*found, strict=True)
    return {"seconds": min(seconds), "peak_bytes": 1024 * max(kilobytes)}


def data(size: Size, folder: Path) -> None:
    """Three clients of a size: one is measured, the others make it a federation."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((size.classes, size.columns))
    for name in ("mine", "yours", "theirs"):
        y = np.arange(size.samples) % size.classes
        X = centres[y] + 2 * rng.standard_normal((size.samples, size.columns))
        np.savez(folder / f"{name}.npz", features=X.astype(np.float32), labels=y)


def measured(size: Size) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        folder, gramfold = Path(place), [sys.executable, "-m", "gramfold"]
        data(size, folder)
        parts = [str(folder / f"{name}.npz") for name in ("mine", "yours", "theirs")]

        def at(name: str) -> str:
            return str(folder / name)

        spent([*gramfold, "begin", *parts, "--method", "pace", "--features", size.features, "-o", at("round.task")], {}, turns=1)
        for part in parts:
            spent([*gramfold, "fold", at("round.task"), part, "-o", part.replace(".npz", ".moments")], {}, turns=1)
        sums = [part.replace(".npz", ".moments") for part in parts]
        spent([*gramfold, "merge", *sums, "-o", at("all.moments")], {}, turns=1)
        spent([*gramfold, "next", at("round.task"), at("all.moments"), "-o", at("final.model")], {}, turns=1)
        rows = np.load(parts[0])["features"]
        rows = np.tile(rows, (-(-ROWS // len(rows)), 1))[:ROWS]
        text = "\n".join(",".join(map(str, row)) for row in rows.tolist())
        steps: dict[str, Any] = {}
        for kind, more in (("here", {}), ("old", OLD)):
            fold = spent([*gramfold, "fold", at("round.task"), parts[0], "-o", at("again.moments")], more)
            personal = [*gramfold, "personal", at("final.model"), parts[0], "--heads", at("heads"), "--out", at("figures")]
            head = spent(personal, more)
            saved = next(Path(at("heads")).rglob("*.safetensors"))
            if kind == "here":
                spent([*gramfold, "export", str(saved), "--numpy", at("head.npz")], {}, turns=1)
                shutil.copy(numpy_predictor.__file__, at("predictor.py"))
            predicted = spent([sys.executable, "-I", at("predictor.py"), at("head.npz")], more, text)
            steps[kind] = {"fold": fold, "personal": head, "predict": predicted}
        files = {"sum": "mine.moments", "model": "final.model", "numpy": "head.npz"}
        sizes = {name: Path(at(file)).stat().st_size for name, file in files.items()}
        return {**size._asdict(), "steps": steps, "bytes": {**sizes, "head": saved.stat().st_size}}


def main() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    idle: dict[str, Any] = {}
    for kind, more in (("here", {}), ("old", OLD)):
        ran = subprocess.run([sys.executable, "-c", RATE], env={**os.environ, **ONE, **more}, capture_output=True, check=True)
        idle[kind] = {
            "flops": float(ran.stdout),
            "numpy": spent([sys.executable, "-I", "-c", "import numpy"], more),
            "gramfold": spent([sys.executable, "-m", "gramfold", "--version"], more),
        }
    rows = []
    for size in SIZES:
        rows.append(measured(size))
        print(rows[-1], flush=True)
    write("small_client", {"turns": TURNS, "predicted": ROWS, "idle": idle, "rows": rows})


if __name__ == "__main__":
    main()
