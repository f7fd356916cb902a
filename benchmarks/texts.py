"""Texts: PACE and the others on sentences of a packaged encoder (MiniLM), and on word counts.

    python -m benchmarks.texts [--seeds 3]

The texts come with our own dependencies: what SciPy's functions say of themselves, in one paragraph; the class is the subpackage.
Nine of them, some 1,200 texts, cut among clients by dirichlet:0.3 and iid. The others with their defaults, which choose their
parameters by leave-one-out, on the same rows. Writes benchmarks/results/texts.json.
"""

import argparse
import importlib
import inspect

import numpy as np
import scipy
from sklearn.feature_extraction.text import TfidfVectorizer

import gramfold as gf
from benchmarks.timing import write
from gramfold.backbones import open_backbone

SUBJECTS = ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "special", "stats")
CUTS, CLIENTS = ("dirichlet:0.3", "iid"), 10
WORDS = 1000


def texts() -> tuple[list[str], np.ndarray]:
    """The first paragraph after the summary's line, or that line; each once, without the name of its subject."""
    found: dict[str, str] = {}
    for subject in SUBJECTS:
        module = importlib.import_module(f"scipy.{subject}")
        for name in sorted(module.__all__):
            written = inspect.getdoc(getattr(module, name, None)) or ""
            paragraphs = [" ".join(part.split()) for part in written.split("\n\n") if not part.startswith(("Parameters", "---"))]
            text = " ".join(paragraphs[:2])[:400].replace(f"scipy.{subject}", "")
            if len(text) > 40:
                found.setdefault(text, subject)
    return list(found), np.array(list(found.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    written, labels = texts()
    inputs = {"MiniLM": open_backbone("minilm")(written), "TF-IDF": TfidfVectorizer(max_features=WORDS).fit_transform(written)}
    rows = []
    for kind, X in inputs.items():
        for cut in CUTS:
            for method in ("pace", "apfl", "fedhip", "afl", "local"):
                results = [
                    gf.run(method, gf.Federation.split(X, labels, CLIENTS, cut, random_state=seed, min_size=8), keep_heads=False)
                    for seed in range(seeds)
                ]
                rows.append({"inputs": kind, "cut": cut, "method": method,
                             "accuracy": float(np.mean([result.mean_accuracy for result in results])),
                             "log_loss": _mean([result.log_loss for result in results])})  # fmt: skip
                print(rows[-1], flush=True)
    write("texts", {"scipy": scipy.__version__, "texts": len(written), "classes": len(SUBJECTS), "clients": CLIENTS,
                    "seeds": seeds, "rows": rows})  # fmt: skip


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


if __name__ == "__main__":
    main()
