"""What a run has for each client, by the client's name."""

from typing import Any, NoReturn, TypeVar

Value = TypeVar("Value")


class ByName(dict[str, Value]):
    """A dict by client name; a key that is missing, or is not a string, gets an error that says so."""

    def __missing__(self, key: Any) -> NoReturn:
        if not isinstance(key, str):
            hint = f"; write [{str(key)!r}]" if str(key) in self else ""
            raise KeyError(f"clients are known by name, and names are strings: {key!r} is not one{hint}")
        raise KeyError(f"no client is called {key!r}")
