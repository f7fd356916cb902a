"""The method interface. Three phases fit all methods, with one round or two hundred, analytic or gradient:

    local(client, broadcast) -> upload            at each client
    uploads are added up                          anywhere: folding is addition, in any order
    aggregate(total, broadcast) -> broadcast      at the server
    personalize(client, broadcast) -> Head        at each client, after the last round

A method defines *what* is computed, an engine *where*. A broadcast is a `Record` of the method's own: typed and serialisable.
The engine keeps track of participants, of what each client has received, and of whose samples are in the sum.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, final

import numpy as np

from gramfold.errors import MethodError
from gramfold.features import FeatureMap
from gramfold.federation import Federation, Samples, Task
from gramfold.heads import Head, Unsolved
from gramfold.methods.asked import Anything, Asked
from gramfold.numerics.arrays import Array
from gramfold.wire.digits import rounded
from gramfold.wire.record import Record

IN_CODE = {"in code": True}
"""Metadata of a method's fields that no text can give: they are not among its parameters."""

OF_RUN = {"of the run": True}
"""Metadata of fields that a run sets, for any method: among its parameters only where one has."""

FORMER = {
    **dict.fromkeys(("check", "check_packet", "implied"), "asked(broadcast), which has it"),
    **dict.fromkeys(("keeps_uploads", "reply"), "answer"),
    **dict.fromkeys(("adds_up", "again", "by_sample", "learned_before"), "revisable(broadcast), which says it"),
    **dict.fromkeys(("chosen", "noted"), "it as a field of the broadcast"),
    "root": "pooled_root, of the broadcast",
}
"""What was asked of methods under other names; a check that nobody calls would be none."""

INSTEAD = {
    "images": "extract features first, or flatten with X.reshape(len(X), -1), or use pacecnn or a gradient method",
    "features": "give images (n x height x width x channels), or use another method",
}
"""What to do with samples of a kind that a method does not take."""
SERIES_RATHER = (
    "of series (n x steps x channels), which look like grey images, make rows by gf.series(X), and in an .npz file call them "
    "`series`; of images extract features first, or use pacecnn or a gradient method"
)


def instead(kind: str, shape: Sequence[int]) -> str:
    """What to do with samples of a kind and shape that a method does not take."""
    return SERIES_RATHER if tuple(shape[2:]) == (1,) else INSTEAD[kind]


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
class Revisable:
    """How samples come into a model that is one sum of moments, and go."""

    again: Callable[[Task], Record]
    """What clients were sent before the round of that sum."""
    by_sample: bool = True
    """Whether it is a sum over samples, so that some of a client's can come and go without the rest."""
    learned: bool = False
    """Whether something was learned of samples in rounds before, and stays when they are taken out."""


def reported(broadcast: Any, what: str) -> Mapping[str, Any]:
    """What a broadcast says of itself: `chosen`, what the server selected, for the result; `noted`, figures of the round that
    led to it, for the history."""
    found: Mapping[str, Any] = getattr(broadcast, what, None) or {}
    return found


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
    penalties: ClassVar[tuple[str, ...]] = ()
    """Its parameters that are numbers from 0 up, or None."""

    def __init_subclass__(cls) -> None:
        for former in sorted(
            FORMER.keys() & {name for name, own in vars(cls).items() if callable(own) or isinstance(own, property)}
        ):
            raise MethodError(f"{cls.__name__}.{former} would never be called: write {FORMER[former]} (docs/extend.md)")

    precision: str | None = field(default=None, kw_only=True, repr=False, metadata=OF_RUN)
    """What numbers travel in (`gf.run(..., precision=)`); None: as they are."""

    def __post_init__(self) -> None:
        for name in self.penalties:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float | np.number) and math.isfinite(value) and value >= 0):
                raise MethodError(f"{self.name}'s {name} must be a number from 0 up, or None to have it chosen; got {value!r}")

    @property
    def rounds(self) -> int:
        """Rounds of uploads, at most."""
        return 1

    def is_last(self, round_number: int, broadcast: Any) -> bool:
        """Whether the round that a broadcast begins is the last."""
        return round_number >= self.rounds - 1

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

    def asked(self, broadcast: Any) -> Asked:
        """What the round that a broadcast begins asks for: what uploads from other processes are held against, and what holds for
        the features behind them."""
        space = getattr(broadcast, "space", None)
        return Anything() if space is None else Anything(space.implied)

    @abstractmethod
    def aggregate(self, total: Any, broadcast: Any) -> Record:
        """What all clients are sent after a round, from the sum of the uploads."""

    @property
    def answer(self) -> Callable[[Any | None, Any], Record] | None:
        """Where the server does part of the work of personalising, what it sends one client before that, from the upload that is
        kept of the client (None: it sent none) and the broadcast; None: all are sent the broadcast, and no upload is kept."""
        return None

    @abstractmethod
    def personalize(self, client: ClientData, broadcast: Any) -> Head:
        """The client's own head."""

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Any) -> Sequence[Head]:
        """The heads of several clients, each what `personalize` gives; together where that is faster."""
        return [self.personalize(client, broadcast) for client in clients]

    def sum_of(self, clients: Sequence[ClientData], broadcast: Any) -> Any:
        """The sum of the uploads of several clients, in the numbers that these travel in; together where that is the same."""
        uploads = (self.sent(client, broadcast) for client in clients)
        return functools.reduce(lambda total, upload: total.__iadd__(upload), uploads)

    def small_heads(self, clients: Sequence[ClientData], broadcast: Any) -> Sequence[Head]:
        """The heads of several clients, for keeping thousands of them: weights may be `Unsolved`."""
        return self.personalize_many(clients, broadcast)

    def weights_of(self, given: Unsolved, broadcast: Any) -> Array:
        """The weights of a stream of `small_heads`."""
        raise MethodError(f"{self.name} writes no weights of kind {given.kind!r}")

    def numbers_per_sample(self, broadcast: Any) -> int | None:
        """How many numbers of a sample are in memory while heads are computed, for a method whose heads are faster together;
        None: it has no use for others."""
        return None

    def global_head(self, broadcast: Any) -> Head | None:
        """The model that all clients share, if there is one and the broadcast holds it."""
        return None

    def revisable(self, broadcast: Any) -> "Revisable | None":
        """What samples can come and go by, where the model is made of one sum of moments, that of the round which a broadcast
        begins or which led to it; else None."""
        return Revisable(self.begin) if self.rounds == 1 else None

    # --- what is asked of a method, and not for it to say ---

    @final
    def sent(self, client: ClientData, broadcast: Any) -> Any:
        """The upload of one client, in the numbers that it travels in."""
        return self.narrowed(self.local(client, broadcast))

    @final
    @property
    def rounds_numbers(self) -> bool:
        """Whether numbers travel in fewer bits than they have: then samples do not come out of a sum as they went in."""
        return self.precision not in (None, "float64")

    @final
    def narrowed(self, upload: Any) -> Any:
        """An upload in the numbers that it travels in."""
        return upload.rounded(self.precision) if self.rounds_numbers else upload

    @final
    def broadcast_after(self, total: Any, broadcast: Any) -> Record:
        """What all clients are sent after a round, in the numbers that it travels in."""
        return rounded(self.aggregate(total, broadcast), self.precision)

    @final
    def remedy(self, need: str) -> str:
        """What to do where a run has no more than that, as the end of an error."""
        return f"set {self.name}'s {self.remedies[need]}" if need in self.remedies else "use another method"

    @final
    def check_kind(self, task: Task) -> None:
        """Raise, with a word on what to do, unless it works on the task's kind of samples."""
        kind = "images" if task.shape else "features"
        if kind not in self.input_kinds:
            takes, what = " or ".join(sorted(self.input_kinds)), task.shape or f"{task.inputs} numbers each"
            raise MethodError(f"{self.name} takes {takes}; this data holds {kind} ({what}); {instead(kind, task.shape)}")

    @final
    def check_weights(self, train: Samples) -> None:
        """Raise where samples have weights and the method would ignore them."""
        if train.weights is not None and not self.weighted:
            raise MethodError(f"method {self.name!r} knows no sample weights; leave them out, or use an analytic method")

    def parameters(self) -> Mapping[str, Any]:
        """The hyper-parameters, as given; maps as they are described."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.metadata != IN_CODE}
        unset = {field.name for field in fields(self) if field.metadata == OF_RUN and given[field.name] is None}
        given = {key: value for key, value in given.items() if key not in unset}
        return {key: value.describe() if isinstance(value, FeatureMap) else value for key, value in given.items()}


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
