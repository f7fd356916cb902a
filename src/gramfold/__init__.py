"""gramfold: personalised federated learning in closed form."""

from gramfold.engines import ClientResult, Result, run
from gramfold.errors import GramfoldError, IllConditionedWarning
from gramfold.estimators import PersonalizedClassifier, PersonalizedRegressor
from gramfold.federation import Federation
from gramfold.heads import Head, load_head
from gramfold.methods import AFL, APFL, PACE, FedHiP, Local, LocalClasses
from gramfold.moments import Moments

__version__ = "0.1.0"

__all__ = [
    "AFL", "APFL", "PACE", "ClientResult", "FedHiP", "Federation", "GramfoldError", "Head", "IllConditionedWarning", "Local",
    "LocalClasses", "Moments", "PersonalizedClassifier", "PersonalizedRegressor", "Result", "__version__", "load_head", "run",
]  # fmt: skip
