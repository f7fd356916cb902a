"""Names of before. What was called otherwise is taken for one release, with a warning that says its name of now.

    @renamed(seed="random_state")                     arguments of a function, or fields of a class
    current(AFL, {"beta": 1.0})                       the same under names of now, without a word: for what files hold
    options(["run", "--seed", "3"])                   the same on the command line
    setting(config, "random-state", "seed")           the same in a configuration

All that is here goes with the next release.
"""

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

C = TypeVar("C", bound=Callable[..., Any])
DATA = ""
"""What an option became that has no name any more: its value is an argument."""
FORMER_OPTIONS = {
    "run": {"--data": DATA, "--seed": "--random-state", "--test": "--test-size"},
    "begin": {"--seed": "--random-state", "--test": "--test-size"},
    "bench": {"--data": DATA},
    "flower up": {"--data": DATA, "--seed": "--random-state", "--sites": "--clients", "--folder": "--out"},
}


class FormerNameWarning(FutureWarning):
    """Something was called by a name that the next release does not know."""


def renamed(**names: str | tuple[str, Mapping[Any, Any]]) -> Callable[[C], C]:
    """Take a function's arguments, or a class's fields, by their former names too. A pair also says what former values became.

    >>> @renamed(seed="random_state", small=("drop_small", {"drop": True, "error": False}))
    ... def cut(random_state=0, drop_small=False):
    ...     return random_state, drop_small
    >>> with warnings.catch_warnings(action="ignore"):
    ...     cut(seed=3, small="drop")
    (3, True)
    """
    became = {old: new if isinstance(new, tuple) else (new, {}) for old, new in names.items()}

    def of(what: C) -> C:
        if not isinstance(what, type):
            return _taking(what, became)
        kind = cast(Any, what)
        kind.former_names = became
        kind.__init__ = _taking(kind.__init__, became)
        for old, (new, _) in became.items():
            setattr(kind, old, property(functools.partial(_read, old=old, new=new)))
        return what

    return of


def _taking(function: C, became: Mapping[str, tuple[str, Mapping[Any, Any]]]) -> C:
    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        if not became.keys().isdisjoint(named):
            for old in became.keys() & named.keys():
                _warn(old, became[old][0])
            named = _under_current_names(became, named)
        return function(*arguments, **named)

    return cast(C, called)


def _read(owner: Any, old: str, new: str) -> Any:
    _warn(old, new)
    return getattr(owner, new)


def _warn(old: str, new: str) -> None:
    text = f"{old} is called {new} now" if new else f"{old} is an argument now: leave the word out, and give what came after it"
    warnings.warn(f"{text}; the former name goes with the next release", FormerNameWarning, stacklevel=3)


def _under_current_names(became: Mapping[str, tuple[str, Mapping[Any, Any]]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their names of now. Of two the former counts: dataclasses.replace gives both."""
    found = {name: value for name, value in given.items() if name not in became}
    for old in became.keys() & given.keys():
        new, values = became[old]
        found[new] = values.get(given[old], given[old])
    return found


def taken(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a caller says of a class's fields, by their names of now."""
    for old in getattr(kind, "former_names", {}).keys() & given.keys():
        _warn(old, kind.former_names[old][0])
    return current(kind, given)


def current(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of a class's fields, by their names of now."""
    return _under_current_names(getattr(kind, "former_names", {}), given)


def options(arguments: Sequence[str]) -> list[str]:
    """A command line by its names of now.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     options(["run", "--data", "a.npz", "--seed=3"])
    ['run', 'a.npz', '--random-state=3']
    """
    command = " ".join(arguments[: 2 if arguments[:1] == ["flower"] else 1])
    former, found = FORMER_OPTIONS.get(command, {}), []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name not in former:
            found.append(argument)
            continue
        new = former[name]
        _warn(name, new)
        found += [new + equals + value] if new else [value] if equals else []
    return found


def setting(config: Mapping[str, Any], name: str, former: str, default: Any) -> Any:
    """A setting, by its name or its former one."""
    if former in config and name not in config:
        _warn(former, name)
        return config[former]
    return config.get(name, default)
