"""The learning of a metric as a phase."""

from dataclasses import dataclass
from typing import Any

from gramfold.methods.learning.client import local
from gramfold.methods.learning.server import in_common, step
from gramfold.methods.learning.state import Learned, State
from gramfold.methods.protocol import ClientData


@dataclass(frozen=True)
class Learning(State, kind="learning"):
    """Its state, with what `client` and `server` make of it."""

    def local(self, client: ClientData) -> Any:
        return local(client, self)

    def after(self, total: Any) -> Any:
        found = step(total, self)
        return found if isinstance(found, State) else Learned(found, in_common(self))
