"""Wide texts: PACE on TF-IDF of words and of their parts, tens of thousands of columns, beside pooled logistic regression.

    python -m benchmarks.wide_texts [--packages scipy sklearn numpy]

The texts come with our own dependencies: what the functions of a package say of themselves; the class is the subpackage (those
with 20 or more). Cut among ten clients by dirichlet:0.3. The pooled logistic regression is given its clients' class priors, as
PACE is: its log-probabilities plus the logarithm of a client's (counts + 1), less that of all. Of its strengths the best on the
test samples counts, which flatters it. Writes benchmarks/results/wide_texts.json.
"""

import argparse
import importlib
import inspect
import pkgutil
import resource
import time

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union

import gramfold as gf
from benchmarks.timing import write

CLIENTS, CUT, ENOUGH = 10, "dirichlet:0.3", 20
STRENGTHS = (1.0, 10.0, 100.0)


def texts(package: str) -> tuple[list[str], np.ndarray]:
    """The first 1,500 characters of each documentation, once, without the name of its subject."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        subject = f"{package}.{module.name}"
        if module.name.startswith("_") or module.name in ("tests", "testing", "conftest"):
            continue
        try:
            members = vars(importlib.import_module(subject))
        except ImportError:
            continue
        for name in sorted(members):
            value = members[name]
            if name.startswith("_") or not callable(value) or not str(getattr(value, "__module__", "")).startswith(subject):
                continue
            text = " ".join((inspect.getdoc(value) or "").split()).replace(subject, "")[:1500]
            if len(text) > 80:
                found.setdefault(text, module.name)
    subjects, counts = np.unique(list(found.values()), return_counts=True)
    kept = [(text, subject) for text, subject in found.items() if subject in subjects[counts >= ENOUGH]]
    return [text for text, _ in kept], np.array([subject for _, subject in kept])


def pooled(federation: gf.Federation) -> float:
    """The mean accuracy over clients."""
    clients = [(client.train(), client.test()) for client in federation.clients]
    X = csr_array(vstack([train.inputs for train, _ in clients]))
    y = np.concatenate([train.targets for train, _ in clients])
    best = 0.0
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=300).fit(X, y)
        known = np.bincount(y, minlength=len(model.classes_)) + 1.0
        right = []
        for train, test in clients:
            own = np.bincount(train.targets, minlength=len(known)) + 1.0
            scores = model.predict_log_proba(test.inputs) + np.log(own / own.sum()) - np.log(known / known.sum())
            right.append((scores.argmax(1) == test.targets).mean())
        best = max(best, float(np.mean(right)))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", nargs="+", default=["scipy", "sklearn", "numpy"])
    rows = []
    for package in parser.parse_args().packages:
        written, labels = texts(package)
        vectors = make_union(TfidfVectorizer(), TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5)))
        X = csr_array(vectors.fit_transform(written))
        federation = gf.Federation.split(X, labels, CLIENTS, CUT, random_state=0, min_size=8)
        for method in ("pace", "afl", "local"):
            began = time.perf_counter()
            result = gf.run(method, federation, keep_heads=False)
            rows.append({"package": package, "texts": len(written), "columns": X.shape[1], "method": method,
                         "accuracy": result.mean_accuracy, "seconds": round(time.perf_counter() - began, 1),
                         "bytes_a_client": (result.uplink_bytes + result.downlink_bytes) // CLIENTS,
                         "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})  # fmt: skip
            print(rows[-1], flush=True)
        rows.append({"package": package, "method": "pooled logistic regression", "accuracy": pooled(federation)})
        print(rows[-1], flush=True)
    write("wide_texts", {"clients": CLIENTS, "cut": CUT, "rows": rows})


if __name__ == "__main__":
    main()
