"""gramfold: personalised federated learning in closed form."""

import importlib
from typing import TYPE_CHECKING, Any

from gramfold.engines import ClientResult, Result, load_result, run
from gramfold.engines.seeds import compare
from gramfold.engines.streamed import run_streamed
from gramfold.errors import (
    GramfoldError,
    IllConditionedWarning,
    InputError,
    LearnedFeaturesWarning,
    PrecisionWarning,
    SharedHeadWarning,
)
from gramfold.federation import Federation
from gramfold.heads import Explanation, Head, load_head
from gramfold.methods import (
    AFL,
    APFL,
    GHOFL,
    LPFT,
    PACE,
    DeepAFL,
    Ditto,
    FedACnnL,
    FedALA,
    FedAS,
    FedAvg,
    FedAvgFT,
    FedCGS,
    FedCOF,
    FedDBE,
    FedHiP,
    FedPCL,
    FedProx,
    FedProxFT,
    FedRep,
    FedSelect,
    FedZO,
    HeartPFL,
    Local,
    LocalClasses,
    LocalSGD,
    MixedModel,
    PaceCNN,
    PFedACnnL,
    PFedMe,
    SAFLe,
)  # fmt: skip
from gramfold.moments import Moments
from gramfold.privacy import DP, SecureSum
from gramfold.results.comparison import Comparison
from gramfold.results.shards import Streamed, load_streamed
from gramfold.version import __version__

if TYPE_CHECKING:
    from gramfold.backbones import open_backbone
    from gramfold.backbones.series import series
    from gramfold.backbones.windows import windows
    from gramfold.export import write_numpy, write_onnx, write_sklearn, write_torch
    from gramfold.extraction import load_data
    from gramfold.sklearn_api import PersonalizedClassifier, PersonalizedRegressor, TableTransformer
    from gramfold.sources import Columns

__all__ = [
    "AFL", "APFL", "DP", "GHOFL", "LPFT", "PACE", "ClientResult", "Columns", "Comparison", "DeepAFL", "Ditto", "Explanation",
    "FedACnnL", "FedALA", "FedAS", "FedAvg", "FedAvgFT", "FedCGS", "FedCOF", "FedDBE", "FedHiP", "FedPCL", "FedProx",
    "FedProxFT", "FedRep", "FedSelect", "FedZO", "Federation", "GramfoldError", "Head", "HeartPFL", "IllConditionedWarning",
    "InputError", "LearnedFeaturesWarning", "Local", "LocalClasses", "LocalSGD", "MixedModel", "Moments", "PFedACnnL",
    "PFedMe", "PaceCNN", "PersonalizedClassifier", "PersonalizedRegressor", "PrecisionWarning", "Result", "SAFLe",
    "SecureSum", "SharedHeadWarning", "Streamed", "TableTransformer", "__version__", "compare", "load_data", "load_head",
    "load_result", "load_streamed", "open_backbone", "run", "run_streamed", "series", "windows", "write_numpy", "write_onnx",
    "write_sklearn", "write_torch",
]  # fmt: skip

_LATER = {
    "Columns": "gramfold.sources",
    "PersonalizedClassifier": "gramfold.sklearn_api",
    "PersonalizedRegressor": "gramfold.sklearn_api",
    "TableTransformer": "gramfold.sklearn_api",
    "load_data": "gramfold.extraction",
    "open_backbone": "gramfold.backbones",
    "series": "gramfold.backbones.series",
    "windows": "gramfold.backbones.windows",
    "write_numpy": "gramfold.export",
    "write_onnx": "gramfold.export",
    "write_sklearn": "gramfold.export",
    "write_torch": "gramfold.export",
}
"""Names that are imported on first use: scikit-learn takes longer to import than all the rest, and not everybody has raw data."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'gramfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is public, and nothing else."""
    return __all__
