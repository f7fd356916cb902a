"""What a run has for each client, by the client's name."""

from typing import Any, NoReturn, TypeVar

Value = TypeVar("Value")


class ByName(dict[str, Value]):
    """A dict whose keys are names: one that is not there is told apart from one that is no name."""

    def __missing__(self, key: Any) -> NoReturn:
        if not isinstance(key, str):
            hint = f"; write [{str(key)!r}]" if str(key) in self else ""
            raise KeyError(f"clients are known by name, and names are strings: {key!r} is none{hint}")
        raise KeyError(f"no client is called {key!r}")
