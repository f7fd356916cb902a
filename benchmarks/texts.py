"""Texts: PACE and the others on sentences of a packaged encoder (MiniLM), and on word counts.

    python -m benchmarks texts

The texts come with our own dependencies: what SciPy's functions say of themselves, in one paragraph; the class is the subpackage.
Nine of them, some 1,200 texts, cut among clients by dirichlet:0.3 and iid. The others with their defaults, which choose their
parameters by leave-one-out, on the same rows. Three seeds.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.prepared import arrays
from gramfold.backbones import open_backbone

SUBJECTS = ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "special", "stats")
CUTS, CLIENTS = ("dirichlet:0.3", "iid"), 10
WORDS = 1000
KINDS, METHODS = ("MiniLM", "TF-IDF"), ("pace", "apfl", "fedhip", "afl", "local")


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


def read(kind: str) -> tuple[Any, np.ndarray, str]:
    """Rows, what they are about, and whose texts they are."""
    written, labels = texts()
    rows = open_backbone("minilm")(written) if kind == "MiniLM" else words(written)
    return rows, labels, scipy.__version__


def words(written: list[str]) -> np.ndarray:
    return TfidfVectorizer(max_features=WORDS).fit_transform(written).toarray()


def sources(given: Given) -> dict[str, Callable[[], tuple[Any, np.ndarray, str]]]:
    """What `benchmarks.prepared` keeps."""
    return {kind: partial(read, kind) for kind in KINDS}


@lru_cache(2)
def data_set(given: Given, kind: str) -> tuple[Any, np.ndarray, str]:
    X, labels, version = arrays(given, "texts", kind, partial(read, kind))
    return csr_matrix(X) if kind == "TF-IDF" else X, labels, str(version)


def cells(given: Given) -> Iterator[Cell]:
    for seed in seeds(given, 3):
        for kind in KINDS:
            yield from (Cell((kind, cut, method, seed), (method,), 10) for cut in CUTS for method in METHODS)


def measure(given: Given, kind: str, cut: str, method: str, seed: int) -> list[Row]:
    X, labels, version = data_set(given, kind)
    federation = gf.Federation.split(X, labels, CLIENTS, cut, random_state=seed, min_size=8)
    result = gf.run(method, federation, keep_heads=False)
    made = {"inputs": kind, "cut": cut, "method": method, "seed": seed, "texts": len(labels), "scipy": version}
    return [{**made, "accuracy": result.mean_accuracy, "log_loss": result.log_loss}]


def figures(rows: list[Row]) -> dict[str, Any]:
    """Means over seeds."""
    means = []
    for kind, cut, method in dict.fromkeys((row["inputs"], row["cut"], row["method"]) for row in rows):
        mine = [row for row in rows if (row["inputs"], row["cut"], row["method"]) == (kind, cut, method)]
        lost = [row["log_loss"] for row in mine if row["log_loss"] is not None]
        accuracy, loss = float(np.mean([row["accuracy"] for row in mine])), float(np.mean(lost)) if lost else None
        means.append({"inputs": kind, "cut": cut, "method": method, "accuracy": accuracy, "log_loss": loss})
    sizes = {"scipy": rows[0]["scipy"], "texts": rows[0]["texts"], "classes": len(SUBJECTS), "clients": CLIENTS}
    return {**sizes, "seeds": len({row["seed"] for row in rows}), "rows": means}


BENCH = Bench("texts", cells, measure, figures)
