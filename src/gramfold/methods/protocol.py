"""The method interface. Three phases fit all methods, with one round or two hundred, analytic or gradient:

    local(client, broadcast) -> upload            at each client
    uploads are added up                          anywhere: folding is addition, in any order
    aggregate(total, broadcast) -> broadcast      at the server
    personalize(client, broadcast) -> Head        at each client, after the last round

A method defines *what* is computed, an engine *where*. A broadcast is a `Record` of the method's own: typed and serialisable.
The engine keeps track of participants, of what each client has received, and of whose samples are in the sum.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.federation import Federation, Samples, Task
from gramfold.heads import Head
from gramfold.moments import Implied
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet
from gramfold.wire.record import Record

IN_CODE = {"in code": True}
"""Metadata of a method's fields that no text can give: they are not among its parameters."""

INSTEAD = {
    "images": "extract features first, or flatten with X.reshape(len(X), -1), or use pacecnn or a gradient method",
    "features": "give images (n x height x width x channels), or use another method",
}
"""What to do with samples of a kind that a method does not take."""


@dataclass
class ClientData:
    """What a method sees at a client: its training samples, and its memory from earlier rounds.

    Methods put new arrays into the memory and never write to those in it: an interrupted round leaves no trace.
    """

    name: str
    train: Samples
    memory: dict[str, Array] = field(default_factory=dict)
    contributed: bool = False
    """Whether its samples are in the sum behind the broadcast; unbiased estimates must then leave them out."""


@dataclass(frozen=True)
class Method(ABC):
    """Base of all methods: a frozen set of hyper-parameters, None meaning "chosen in closed form"."""

    name: ClassVar[str]
    """Its name on the command line and in results."""
    summary: ClassVar[str]
    paper: ClassVar[str]
    probabilistic: ClassVar[bool] = False
    """Whether its heads give probabilities."""
    input_kinds: ClassVar[frozenset[str]] = frozenset({"features"})
    """The inputs it supports: "features" (rows of numbers), "images"."""
    has_round_models: ClassVar[bool] = False
    """Whether clients can compute a model after every round, not only after the last."""
    weighted: ClassVar[bool] = False
    """Whether it honours weights of samples."""
    remedies: ClassVar[Mapping[str, str]] = {}
    """What to set where a run has no more than "sums", for a method that would keep uploads, or a round, "once"."""
    threaded: ClassVar[bool] = True
    """Whether an engine may work on several clients at once, a thread each."""

    @property
    def rounds(self) -> int:
        """Rounds of uploads, at most."""
        return 1

    @property
    def adds_up(self) -> bool:
        """Whether its model is made of one sum of moments, so that samples can come and go."""
        return self.rounds == 1

    def again(self, task: Task, broadcast: Any) -> Record:
        """What clients were sent before the round of that sum, from what they were sent after it."""
        return self.begin(task)

    def by_sample(self, broadcast: Any) -> bool:
        """Whether that sum is one over samples, so that some of a client's can come and go without the rest."""
        return True

    def learned_before(self, broadcast: Any) -> bool:
        """Whether something was learned of samples in rounds before that sum, and stays when they are taken out of it."""
        return self.rounds > 1

    def is_last(self, round_number: int, broadcast: Any) -> bool:
        """Whether the round that a broadcast begins is the last."""
        return round_number >= self.rounds - 1

    @property
    def keeps_uploads(self) -> bool:
        """Whether the server needs each client's last upload again to answer it (`reply`)."""
        return False

    def participants(self, round_number: int, names: Sequence[str], seed: int) -> Sequence[str]:
        """The clients that take part in a round."""
        return names

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> "Method":
        """The same method with what follows from the task alone decided. Engines call this before anything else. If it has the
        choice it takes, `once`, one round, as sums that are kept and noise need it; features of a `bounded` length, as noise
        does; and where sums are `masked` so few features that a sum of all samples says little of each."""
        return self

    @abstractmethod
    def begin(self, task: Task) -> Record:
        """What all clients are sent before the first round."""

    @abstractmethod
    def local(self, client: ClientData, broadcast: Any) -> Any:
        """The upload of one client."""

    def check_packet(self, packet: Packet, broadcast: Any) -> None:  # noqa: B027
        """Raise unless the packet can hold an upload for the broadcast, going by the sizes it claims: engines call this for
        packets from other processes, before they make anything of them."""

    def check(self, upload: Any, broadcast: Any) -> None:  # noqa: B027
        """Raise unless the upload is valid for the broadcast; engines call this for uploads from other processes. No upload may
        depend on it that an earlier one was valid: whoever answers first may be the one who lies."""

    def implied(self, broadcast: Any) -> Implied:
        """What holds for the features behind every upload, whatever the samples; nothing, where that is not known."""
        space = getattr(broadcast, "space", None)
        return Implied() if space is None else space.map.implied

    @abstractmethod
    def aggregate(self, total: Any, broadcast: Any) -> Record:
        """What all clients are sent after a round, from the sum of the uploads."""

    def reply(self, upload: Any | None, broadcast: Any) -> Record:
        """What one client is sent before it personalises: the broadcast, unless the server does part of its work. Asked where
        uploads are kept; None is the upload of a client that sent none."""
        reply: Record = broadcast
        return reply

    @abstractmethod
    def personalize(self, client: ClientData, broadcast: Any) -> Head:
        """The client's own head."""

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Any) -> Sequence[Head]:
        """The heads of several clients, each what `personalize` gives; together where that is faster."""
        return [self.personalize(client, broadcast) for client in clients]

    def numbers_per_sample(self, broadcast: Any) -> int | None:
        """How many numbers of a sample are in memory while heads are computed, for a method whose heads are faster together; None:
        it has no use for others."""
        return None

    def global_head(self, broadcast: Any) -> Head | None:
        """The model that all clients share, if there is one and the broadcast holds it."""
        return None

    def root(self, broadcast: Any, along: Array) -> Array | None:
        """T'^-1 along the columns of `along`, T T' being the pooled system behind the broadcast; None where it does not hold
        that."""
        return None

    def chosen(self, broadcast: Any) -> Mapping[str, Any]:
        """What the server selected, for the result."""
        return getattr(broadcast, "chosen", None) or {}

    def noted(self, broadcast: Any) -> Mapping[str, Any]:
        """Figures of the round that led to the broadcast, for the history."""
        return {}

    def remedy(self, need: str) -> str:
        """What to do where a run has no more than that, as the end of an error."""
        return f"set {self.name}'s {self.remedies[need]}" if need in self.remedies else "use another method"

    def check_kind(self, task: Task) -> None:
        """Raise, with a word on what to do, unless it works on the task's kind of samples."""
        kind = "images" if task.shape else "features"
        if kind not in self.input_kinds:
            takes, what = " or ".join(sorted(self.input_kinds)), task.shape or f"{task.inputs} numbers each"
            raise GramfoldError(f"{self.name} takes {takes}; this data holds {kind} ({what}); {INSTEAD[kind]}")

    def check_weights(self, train: Samples) -> None:
        """Raise where samples have weights and the method would ignore them."""
        if train.weights is not None and not self.weighted:
            raise GramfoldError(f"method {self.name!r} knows no sample weights; leave them out, or use an analytic method")

    def check_penalties(self, *names: str) -> None:
        """Raise unless these parameters are None or finite and not negative."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float | np.number) and math.isfinite(value) and value >= 0):
                raise GramfoldError(f"{self.name}'s {name} must be a number from 0 up, or None to have it chosen; got {value!r}")

    def parameters(self) -> Mapping[str, Any]:
        """The hyper-parameters, as given."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.metadata != IN_CODE}


@dataclass(frozen=True)
class Batched(Method):
    """A method that can compute many clients in one batch, where an engine has them all."""

    @abstractmethod
    def prefers_batching(self, broadcast: Any) -> bool:
        """Whether an engine that has all clients should pass them to `local_many` and `personalize_many`."""

    @abstractmethod
    def local_many(self, clients: Sequence[ClientData], broadcast: Any) -> Sequence[Any]:
        """The uploads of several clients, computed together."""

    @abstractmethod
    def personalize_many(self, clients: Sequence[ClientData], broadcast: Any) -> Sequence[Head]:
        """The heads of several clients, computed together."""


@dataclass(frozen=True)
class Tunable(Method):
    """A method that chooses some parameters by trial runs."""

    @property
    @abstractmethod
    def undecided(self) -> Sequence[str]:
        """The parameters that are still to be chosen."""

    @abstractmethod
    def tune(self, federation: Federation, score: Callable[[Method, Federation], float]) -> tuple[Method, Mapping[str, Any]]:
        """This method with all parameters set, and the chosen ones. `score` runs a candidate; higher is better."""
