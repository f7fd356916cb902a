"""Networks on images that are solved layer by layer. Importing this does not import torch."""

from gramfold.convolution.description import PRESETS, layers, parse
from gramfold.convolution.filters import Layer, codes, solve_layer
from gramfold.convolution.network import ConvolutionMap

__all__ = ["PRESETS", "ConvolutionMap", "Layer", "codes", "layers", "parse", "solve_layer"]
