"""The methods, by the names they have on the command line."""

from dataclasses import fields
from types import UnionType
from typing import Any, Union, get_args, get_origin

from gramfold.errors import GramfoldError
from gramfold.features import FeatureMap
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
    HeartPFL,
    LocalSGD,
    PFedMe,
)  # fmt: skip
from gramfold.methods.local import Local
from gramfold.methods.local_classes import LocalClasses
from gramfold.methods.pace import PACE
from gramfold.methods.pacecnn import PaceCNN
from gramfold.methods.pfedacnnl import PFedACnnL
from gramfold.methods.protocol import ClientData, Method, Upload

ANALYTIC: tuple[type[Method], ...] = (Local, AFL, LocalClasses, FedHiP, APFL, PACE, DeepAFL)
ON_IMAGES: tuple[type[Method], ...] = (FedACnnL, PFedACnnL, PaceCNN)
"""Analytic methods that take images; all of `ANALYTIC` take features."""
METHODS: dict[str, type[Method]] = {method.name: method for method in (*ANALYTIC, *ON_IMAGES, *GRADIENT)}


def make_method(name: str, **parameters: Any) -> Method:
    """The method of that name, its parameters checked.

    >>> make_method("afl", beta=1.0)
    AFL(features='bias+linear', beta=1.0)
    """
    if name not in METHODS:
        raise GramfoldError(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    known = {field.name: field.type for field in fields(METHODS[name])}
    given = {}
    for key, value in parameters.items():
        if key not in known:
            raise GramfoldError(f"method {name!r} has no parameter {key}; it has: {', '.join(known)}")
        given[key] = tuple(value) if isinstance(value, list) else value
        if isinstance(value, dict):  # a feature map, as `parameters()` describes it
            given[key] = FeatureMap.from_description(value)
        if not _fits(given[key], known[key]):
            raise GramfoldError(f"{name}'s {key} must be {_in_words(known[key])}, got {value!r}")
    return METHODS[name](**given)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type; whole numbers are numbers, True and False are not."""
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and len(value) == len(get_args(kind)) and all(map(_fits, value, get_args(kind)))
    if kind in (float, int):
        return isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
    return isinstance(value, kind if isinstance(kind, type) else object)


def _in_words(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_in_words(option) for option in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a list of {len(get_args(kind))} numbers"
    words = {float: "a number", int: "a whole number", str: "a text", bool: "true or false", type(None): "none"}
    return words.get(kind, getattr(kind, "__name__", str(kind)))


__all__ = [
    "AFL", "ANALYTIC", "APFL", "GRADIENT", "METHODS", "ON_IMAGES", "PACE", "ClientData", "DeepAFL", "Ditto", "FedACnnL", "FedALA",
    "FedAS", "FedAvg", "FedAvgFT", "FedDBE", "FedHiP", "FedPCL", "FedProx", "FedProxFT", "FedSelect", "HeartPFL", "Local",
    "LocalClasses", "LocalSGD", "Method", "PFedACnnL", "PFedMe", "PaceCNN", "Upload", "make_method",
]  # fmt: skip
