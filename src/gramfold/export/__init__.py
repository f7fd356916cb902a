"""Heads for other programs: ONNX, PyTorch, scikit-learn, NumPy alone."""

from gramfold.export.numpy_file import write_numpy
from gramfold.export.onnx_file import onnx_model, write_onnx
from gramfold.export.sklearn_file import write_sklearn
from gramfold.export.torch_file import write_torch

__all__ = ["onnx_model", "write_numpy", "write_onnx", "write_sklearn", "write_torch"]
