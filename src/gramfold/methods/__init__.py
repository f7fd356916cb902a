"""The methods, by their names on the command line."""

from gramfold.methods.afl import AFL
from gramfold.methods.apfl import APFL
from gramfold.methods.deepafl import DeepAFL
from gramfold.methods.fedacnnl import FedACnnL
from gramfold.methods.fedcgs import FedCGS
from gramfold.methods.fedcof import FedCOF
from gramfold.methods.fedhip import FedHiP
from gramfold.methods.gh_ofl import GHOFL
from gramfold.methods.gradient import (
    GRADIENT,
    LPFT,
    Ditto,
    FedALA,
    FedAS,
    FedAvg,
    FedAvgFT,
    FedDBE,
    FedPCL,
    FedProx,
    FedProxFT,
    FedRep,
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
from gramfold.methods.registry import check_from_file, find_method, known_methods, make_method, register, saved_method, spec_of
from gramfold.methods.safle import SAFLe
from gramfold.methods.targets import on_targets

ANALYTIC: tuple[type[Method], ...] = (Local, AFL, LocalClasses, FedHiP, APFL, PACE, DeepAFL)
ONE_HEAD: tuple[type[Method], ...] = (FedCGS, GHOFL, FedCOF, SAFLe)
"""Others in closed form, for classes: one head for all clients."""
ON_IMAGES: tuple[type[Method], ...] = (FedACnnL, PFedACnnL, PaceCNN)
"""Analytic methods that take images; all of `ANALYTIC` take features."""
OF_VALUES: tuple[type[Method], ...] = (MixedModel,)
"""Those for continuous targets alone."""
METHODS: dict[str, type[Method]] = {method.name: method for method in (*ANALYTIC, *ONE_HEAD, *OF_VALUES, *ON_IMAGES, *GRADIENT)}
"""gramfold's own methods, by their names on the command line."""
register(METHODS)

__all__ = [
    "AFL", "ANALYTIC", "APFL", "GHOFL", "GRADIENT", "LPFT", "METHODS", "OF_VALUES", "ONE_HEAD", "ON_IMAGES", "PACE",
    "Batched", "ClientData", "DeepAFL", "Ditto", "FedACnnL", "FedALA", "FedAS", "FedAvg", "FedAvgFT", "FedCGS", "FedCOF",
    "FedDBE", "FedHiP", "FedPCL", "FedProx", "FedProxFT", "FedRep", "FedSelect", "FedZO", "HeartPFL", "Local", "LocalClasses",
    "LocalSGD", "Method", "MixedModel", "PFedACnnL", "PFedMe", "PaceCNN", "SAFLe", "Tunable", "check_from_file",
    "find_method", "known_methods", "make_method", "on_targets", "saved_method", "spec_of",
]  # fmt: skip
