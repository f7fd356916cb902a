"""Methods by name: gramfold's own, those that installed packages offer, and any class given as module:Class.

A package offers a method by an entry point of the group "gramfold.methods"; without one it is named "package.module:Class".
"""

import dataclasses
import importlib
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from gramfold import renamed
from gramfold.errors import MethodError
from gramfold.features import FeatureMap
from gramfold.methods.protocol import IN_CODE, OF_RUN, Method

GROUP = "gramfold.methods"
_OWN: dict[str, type[Method]] = {}


def register(methods: Mapping[str, type[Method]]) -> None:
    """Make methods known by their names."""
    _OWN.update(methods)


def known_methods() -> dict[str, str]:
    """The names of all methods that need no module path, with where each comes from."""
    return dict.fromkeys(_OWN, "gramfold") | {entry.name: entry.value for entry in entry_points(group=GROUP)}


def find_method(spec: str) -> type[Method]:
    """The class of a method: by name, or as package.module:Class."""
    if spec in _OWN:
        return _OWN[spec]
    offered = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    place = offered.get(spec, spec)
    module, colon, name = place.partition(":")
    if not colon:
        known = ", ".join([*_OWN, *offered])
        raise MethodError(f"unknown method {spec!r}; known: {known}; or write package.module:Class")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise MethodError(f"cannot import method {spec!r}: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Method) and dataclasses.is_dataclass(found)):
        raise MethodError(f"{spec!r} is not a method: it must be a dataclass that derives from gramfold.methods.Method")
    return found


def check_from_file(spec: str, allow_code: bool) -> None:
    """Raise for a class that a file names and that would have to be imported: a file is no reason to run code. One that is here
    already, or of an installed package that offers it, runs none."""
    module = spec.partition(":")[0]
    if ":" in spec and spec not in known_methods().values() and module not in sys.modules and not allow_code:
        raise MethodError(f"its method is code, {spec}: import {module} before, or, if you trust it, allow_code=True")


def spec_of(method: Method) -> str:
    """The name under which `find_method` finds a method, also on another machine where its package is installed.

    >>> from gramfold.methods import AFL
    >>> spec_of(AFL())
    'afl'
    """
    asked: Method = getattr(method, "inner", method)  # what runs on columns of targets goes by its name
    kind = type(asked)
    if _OWN.get(kind.name) is kind:
        return kind.name
    place = f"{kind.__module__}:{kind.__qualname__}"
    return next((entry.name for entry in entry_points(group=GROUP) if entry.value == place), place)


def make_method(name: str, **parameters: Any) -> Method:
    """The method of that name, its parameters checked.

    >>> make_method("afl", penalty=1.0)
    AFL(features=None, penalty=1.0)
    """
    kind = find_method(name)
    types = get_type_hints(kind)
    known = {field.name: types[field.name] for field in dataclasses.fields(kind) if field.metadata != IN_CODE}
    given: dict[str, Any] = {}
    for key, value in renamed.taken(kind, parameters).items():
        if key not in known:
            own = [field.name for field in dataclasses.fields(kind) if field.metadata not in (IN_CODE, OF_RUN)]
            raise MethodError(f"method {name!r} has no parameter {key}; it has: {', '.join(own)}")
        given[key] = tuple(value) if isinstance(value, list) else value
        if isinstance(value, dict) and not _fits(value, known[key]):  # a feature map, as `parameters()` describes it
            given[key] = FeatureMap.from_description(value)
        if not _fits(given[key], known[key]):
            raise MethodError(f"{name}'s {key} must be {_in_words(known[key])}, got {value!r}")
    return kind(**given)


def saved_method(name: str, parameters: Mapping[str, Any]) -> Method:
    """The method that a file describes, which may know its parameters by former names."""
    return make_method(name, **renamed.current(find_method(name), parameters))


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
    words = {float: "a number", int: "a whole number", str: "a string", bool: "true or false", type(None): "none"}
    return words.get(kind, getattr(kind, "__name__", str(kind)))
