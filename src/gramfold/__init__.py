"""gramfold: personalised federated learning in closed form."""

from gramfold.engines import ClientResult, Result, run
from gramfold.errors import GramfoldError, IllConditionedWarning
from gramfold.federation import Federation
from gramfold.heads import Head, load_head
from gramfold.methods import AFL, APFL, FedHiP, Local, LocalClasses
from gramfold.moments import Moments

__version__ = "0.1.0"

__all__ = [
    "AFL", "APFL", "ClientResult", "FedHiP", "Federation", "GramfoldError", "Head", "IllConditionedWarning", "Local",
    "LocalClasses", "Moments", "Result", "__version__", "load_head", "run",
]  # fmt: skip
