"""Predict with a head where there is nothing but Python and NumPy: this file and the head's are all that is needed.

    gramfold export client-7.safetensors --numpy client-7.npz       where gramfold is installed
    python numpy_predictor.py client-7.npz < rows.csv               anywhere else: a row of numbers a line, and a line of answers

The file of a head is a list of steps, each an operator on arrays, and the numbers that they need. Reading it runs no code.
"""

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Operator = Callable[..., Any]


def _concat(*parts: Any, axis: int) -> Any:
    return np.concatenate(parts, axis=axis)


def _sum(values: Any, axes: Any, keepdims: int = 1) -> Any:
    return values.sum(tuple(axes.tolist()), keepdims=bool(keepdims))


def _slice(values: Any, first: Any, last: Any, axes: Any) -> Any:
    places = [slice(None)] * values.ndim
    for axis, begin, end in zip(axes.tolist(), first.tolist(), last.tolist(), strict=True):
        places[axis] = slice(begin, end)
    return values[tuple(places)]


def _softmax(values: Any, axis: int) -> Any:
    raised = np.exp(values - values.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


OPERATORS: dict[str, Operator] = {
    "Abs": np.abs,
    "Add": np.add,
    "ArgMax": lambda values, axis, keepdims: values.argmax(axis),
    "Cast": lambda values, to: values.astype(to),
    "Clip": np.clip,
    "Concat": _concat,
    "ConstantOfShape": lambda shape, value: np.full(shape, value),
    "Cos": np.cos,
    "Div": np.divide,
    "Equal": np.equal,
    "Erf": np.vectorize(math.erf, otypes=[float]),
    "Exp": np.exp,
    "Gather": lambda values, places, axis: values.take(places, axis),
    "Greater": np.greater,
    "Log": np.log,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "ReduceSum": _sum,
    "Shape": lambda values: np.array(values.shape),
    "Sigmoid": lambda values: 0.5 + 0.5 * np.tanh(0.5 * values),
    "Sign": np.sign,
    "Slice": _slice,
    "Softmax": _softmax,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Tanh": np.tanh,
    "Where": np.where,
}


class Predictor:
    """A head, read from its file: rows of numbers in; scores, and of classes labels and probabilities, out."""

    def __init__(self, path: Any) -> None:
        with np.load(path, allow_pickle=False) as file:
            self._arrays = {name: file[name] for name in file.files}
        self._steps = json.loads(str(self._arrays.pop("steps")))
        about = json.loads(str(self._arrays.pop("about")))
        self.inputs: int = about["inputs"]
        self.outputs: list[str] = about["outputs"]
        unknown = {step[0] for step in self._steps} - OPERATORS.keys()
        if unknown:
            raise ValueError(f"{path} needs {', '.join(sorted(unknown))}: copy numpy_predictor.py anew from where it was written")

    def __call__(self, rows: Any) -> dict[str, Any]:
        features = np.asarray(rows, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] != self.inputs or not np.isfinite(features).all():
            raise ValueError(f"expected finite rows of {self.inputs} numbers, got shape {features.shape}")
        known = {"features": features, **self._arrays}
        for operator, inputs, output, options in self._steps:
            known[output] = OPERATORS[operator](*(known[name] for name in inputs), **options)
        return {name: known[name] for name in self.outputs}


def main() -> None:
    predictor = Predictor(sys.argv[1])
    rows = [[float(cell) for cell in line.split(",")] for line in sys.stdin if line.strip()]
    for answer in zip(*(part.tolist() for part in predictor(rows).values()), strict=True):
        print(json.dumps(dict(zip(predictor.outputs, answer, strict=True))))


if __name__ == "__main__":
    main()
