"""What pages are made of in tests: results, names that try to break out, and a bench."""

import gramfold as gf

HOSTILE = ["</script><script>alert(1)</script>", '" onload="alert(2)', "<b>north</b> & 'co'"]


def result_of(federation: gf.Federation, *methods, **more) -> dict:
    return {
        "gramfold": gf.__version__,
        "seed": 0,
        **federation.description,
        "methods": [gf.run(method, federation).to_dict() for method in methods],
        **more,
    }


OWN, ALL = [[0, 93.1], [10, 95.2], [100000, 94.0]], [[0, 93.0], [10, 86.1]]
BENCH = {
    "bench": "apfl", "paper": "A paper", "versions": {"gramfold": "1"}, "machine": {"cores": 2, "devices": ["cpu"]},
    "seeds": [0, 1], "options": {"rounds": 3}, "cells": {"a": {}, "b": {}},
    "tables": [{
        "title": "Accuracy <50>", "columns": ["method", "0.1", "0.5"], "note": "Other features.",
        "rows": [["afl", {"mean": 93.456, "error": 0.25, "published": 58.1}, None], ["</td><b>pace", 0.98765, "many"]],
    }],
    "plots": [
        {"kind": "lines", "title": "By alpha", "x": "alpha", "y": "accuracy %",
         "series": [{"name": "own", "points": OWN}, {"name": "all", "points": ALL}]},
        {"kind": "lines", "title": "By name", "x": "activation", "y": "accuracy %",
         "series": [{"name": "a", "points": [["relu", 1], ["tanh", 2]]}]},
        {"kind": "heat", "title": "Both", "x": "left", "y": "right", "columns": ["a", "b"], "rows": ["c", "d"],
         "values": [[1.0, 2.0], [None, 4.0]]},
    ],
}  # fmt: skip
