"""The methods, by their names on the command line."""

from gramfold.methods.afl import AFL
from gramfold.methods.apfl import APFL
from gramfold.methods.deepafl import DeepAFL
from gramfold.methods.fedacnnl import FedACnnL
from gramfold.methods.fedhip import FedHiP
from gramfold.methods.gradient import (
    GRADIENT,
    Ditto,
    FedALA,
    FedAS,
    FedAvg,
    FedAvgFT,
    FedDBE,
    FedPCL,
    FedProx,
    FedProxFT,
    FedSelect,
    FedZO,
    HeartPFL,
    LocalSGD,
    PFedMe,
)  # fmt: skip
from gramfold.methods.local import Local
from gramfold.methods.local_classes import LocalClasses
from gramfold.methods.mixed import MixedModel
from gramfold.methods.pace import PACE
from gramfold.methods.pacecnn import PaceCNN
from gramfold.methods.pfedacnnl import PFedACnnL
from gramfold.methods.protocol import Batched, ClientData, Method, Tunable
from gramfold.methods.registry import check_from_file, find_method, known_methods, make_method, register, spec_of

ANALYTIC: tuple[type[Method], ...] = (Local, AFL, LocalClasses, FedHiP, APFL, PACE, DeepAFL)
ON_IMAGES: tuple[type[Method], ...] = (FedACnnL, PFedACnnL, PaceCNN)
"""Analytic methods that take images; all of `ANALYTIC` take features."""
OF_VALUES: tuple[type[Method], ...] = (MixedModel,)
"""Those for continuous targets alone."""
METHODS: dict[str, type[Method]] = {method.name: method for method in (*ANALYTIC, *OF_VALUES, *ON_IMAGES, *GRADIENT)}
"""gramfold's own methods, by their names on the command line."""
register(METHODS)

__all__ = [
    "AFL", "ANALYTIC", "APFL", "GRADIENT", "METHODS", "OF_VALUES", "ON_IMAGES", "PACE", "Batched", "ClientData", "DeepAFL",
    "Ditto", "FedACnnL", "FedALA", "FedAS", "FedAvg", "FedAvgFT", "FedDBE", "FedHiP", "FedPCL", "FedProx", "FedProxFT",
    "FedSelect", "FedZO", "HeartPFL", "Local", "LocalClasses", "LocalSGD", "Method", "MixedModel", "PFedACnnL", "PFedMe",
    "PaceCNN", "Tunable", "check_from_file", "find_method", "known_methods", "make_method", "spec_of",
]  # fmt: skip
