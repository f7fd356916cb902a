"""The methods, by the names they have on the command line."""

from typing import Any

from gramfold.errors import GramfoldError
from gramfold.methods.afl import AFL
from gramfold.methods.apfl import APFL
from gramfold.methods.deepafl import DeepAFL
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
    HeartPFL,
    LocalSGD,
    PFedMe,
)  # fmt: skip
from gramfold.methods.local import Local
from gramfold.methods.local_classes import LocalClasses
from gramfold.methods.pace import PACE
from gramfold.methods.protocol import ClientData, Method, Upload

ANALYTIC: tuple[type[Method], ...] = (Local, AFL, LocalClasses, FedHiP, APFL, PACE, DeepAFL)
METHODS: dict[str, type[Method]] = {method.name: method for method in (*ANALYTIC, *GRADIENT)}


def make_method(name: str, **parameters: Any) -> Method:
    """The method of that name.

    >>> make_method("afl", beta=1.0)
    AFL(features='bias+linear', beta=1.0)
    """
    if name not in METHODS:
        raise GramfoldError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    try:
        return METHODS[name](**parameters)
    except TypeError:
        known = ", ".join(METHODS[name].__dataclass_fields__)
        wrong = ", ".join(set(parameters) - set(METHODS[name].__dataclass_fields__))
        raise GramfoldError(f"method {name!r} has no parameter {wrong}; it has: {known}") from None


__all__ = [
    "AFL", "ANALYTIC", "APFL", "GRADIENT", "METHODS", "PACE", "ClientData", "DeepAFL", "Ditto", "FedALA", "FedAS", "FedAvg",
    "FedAvgFT", "FedDBE", "FedHiP", "FedPCL", "FedProx", "FedProxFT", "FedSelect", "HeartPFL", "Local", "LocalClasses",
    "LocalSGD", "Method", "PFedMe", "Upload", "make_method",
]  # fmt: skip
