"""An ONNX graph being written: nodes and constants, in float64 as heads compute."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramfold.imports import require

OPSET = 14
"""What graphs are written in, where no backbone's own comes first. Only operators that mean the same from 13 to 21 are used."""


class Graph:
    """Methods give the name of the tensor that they add."""

    def __init__(self) -> None:
        self.onnx: Any = require("onnx", "onnx", "exporting to ONNX")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or f"gramfold/{len(self.nodes)}/{operator.lower()}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """An array of numbers; the same one is written once."""
        array = np.ascontiguousarray(values, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"gramfold/constant/{len(self._known)}"
            self.constants.append(self.onnx.numpy_helper.from_array(array, self._known[key]))
        return self._known[key]

    def words(self, values: Sequence[str]) -> str:
        name = f"gramfold/words/{len(self.constants)}"
        content = [value.encode() for value in values]
        self.constants.append(self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, [len(values)], content))
        return name

    def whole(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def cast(self, tensor: str, dtype: str, name: str = "") -> str:
        return self.add("Cast", tensor, name=name, to=getattr(self.onnx.TensorProto, dtype))

    def double(self, tensor: str) -> str:
        return self.cast(tensor, "DOUBLE")

    def plus(self, tensor: str, values: Any) -> str:
        return self.add("Add", tensor, self.constant(values))

    def times(self, tensor: str, values: Any) -> str:
        return self.add("Mul", tensor, self.constant(values))

    def matmul(self, tensor: str, matrix: Any) -> str:
        return self.add("MatMul", tensor, self.constant(matrix))

    def total(self, tensor: str, *axes: int, keep: bool = True) -> str:
        return self.add("ReduceSum", tensor, self.whole(*axes), keepdims=int(keep))

    def part(self, tensor: str, axis: int, first: int, last: int) -> str:
        """From `first` to before `last` along an axis."""
        return self.add("Slice", tensor, self.whole(first), self.whole(last), self.whole(axis))

    def reshape(self, tensor: str, *shape: int) -> str:
        """-1: whatever is left."""
        return self.add("Reshape", tensor, self.whole(*shape))

    def one_where_zero(self, tensor: str) -> str:
        """The tensor with ones for its zeros, to divide by."""
        is_zero = self.double(self.add("Equal", tensor, self.constant(0.0)))
        return self.add("Add", tensor, is_zero)

    def ones(self, like: str) -> str:
        """A column of ones, as long as the tensor."""
        n = self.part(self.add("Shape", like), 0, 0, 1)
        shape = self.add("Concat", n, self.whole(1), axis=0)
        value = self.onnx.helper.make_tensor("one", self.onnx.TensorProto.DOUBLE, [1], [1.0])
        return self.add("ConstantOfShape", shape, value=value)
