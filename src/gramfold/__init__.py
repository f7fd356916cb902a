"""gramfold: personalised federated learning in closed form."""

from typing import TYPE_CHECKING, Any

from gramfold.comparison import Comparison, compare
from gramfold.engines import ClientResult, Result, load_result, run
from gramfold.errors import GramfoldError, IllConditionedWarning, InputError, PrecisionWarning, SharedHeadWarning
from gramfold.federation import Federation
from gramfold.heads import Head, load_head
from gramfold.methods import (
    AFL,
    APFL,
    PACE,
    DeepAFL,
    Ditto,
    FedACnnL,
    FedALA,
    FedAS,
    FedAvg,
    FedAvgFT,
    FedDBE,
    FedHiP,
    FedPCL,
    FedProx,
    FedProxFT,
    FedSelect,
    HeartPFL,
    Local,
    LocalClasses,
    LocalSGD,
    PaceCNN,
    PFedACnnL,
    PFedMe,
)  # fmt: skip
from gramfold.moments import Moments
from gramfold.privacy import DP, SecureSum
from gramfold.version import __version__

if TYPE_CHECKING:
    from gramfold.estimators import PersonalizedClassifier, PersonalizedRegressor

__all__ = [
    "AFL", "APFL", "DP", "PACE", "ClientResult", "Comparison", "DeepAFL", "Ditto", "FedACnnL", "FedALA", "FedAS", "FedAvg",
    "FedAvgFT", "FedDBE", "FedHiP", "FedPCL", "FedProx", "FedProxFT", "FedSelect", "Federation", "GramfoldError", "Head",
    "HeartPFL", "IllConditionedWarning", "InputError", "Local", "LocalClasses", "LocalSGD", "Moments", "PFedACnnL", "PFedMe",
    "PaceCNN", "PersonalizedClassifier", "PersonalizedRegressor", "PrecisionWarning", "Result", "SecureSum", "SharedHeadWarning",
    "__version__",
    "compare", "load_head", "load_result", "run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The estimators need scikit-learn, which takes longer to import than all the rest: imported on first use."""
    if name in ("PersonalizedClassifier", "PersonalizedRegressor"):
        from gramfold import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'gramfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is public, and nothing else."""
    return __all__
