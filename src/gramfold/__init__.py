"""gramfold: personalised federated learning in closed form."""

from gramfold.engines import ClientResult, Result, run
from gramfold.errors import GramfoldError, IllConditionedWarning
from gramfold.estimators import PersonalizedClassifier, PersonalizedRegressor
from gramfold.federation import Federation
from gramfold.heads import Head, load_head
from gramfold.methods import (
    AFL,
    APFL,
    PACE,
    Ditto,
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
    PFedMe,
)  # fmt: skip
from gramfold.moments import Moments

__version__ = "0.1.0"

__all__ = [
    "AFL", "APFL", "PACE", "ClientResult", "Ditto", "FedALA", "FedAS", "FedAvg", "FedAvgFT", "FedDBE", "FedHiP", "FedPCL",
    "FedProx", "FedProxFT", "FedSelect", "Federation", "GramfoldError", "Head", "HeartPFL", "IllConditionedWarning", "Local",
    "LocalClasses", "LocalSGD", "Moments", "PFedMe", "PersonalizedClassifier", "PersonalizedRegressor", "Result",
    "__version__", "load_head", "run",
]  # fmt: skip
