"""What a run gives back: heads, and figures for every client, in Python and as JSON; how it goes on from there."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramfold import evaluation, report
from gramfold.errors import MALFORMED, ResultError
from gramfold.evaluation import Calibration, Evaluation, Scored
from gramfold.federation import Federation, Samples
from gramfold.heads import Head
from gramfold.imports import frame
from gramfold.methods import ClientData
from gramfold.methods.finishing import finished, shared_head
from gramfold.methods.protocol import reported
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.results import saved
from gramfold.results.by_name import ByName
from gramfold.results.figures import ClientResult, Figures
from gramfold.results.folded import Run
from gramfold.sources.targets import SEVERAL

if TYPE_CHECKING:
    from pandas import DataFrame

ByClient = Mapping[str, tuple[Array, Array]]
"""Samples by client's name: (X, y)."""


@dataclass(frozen=True)
class Result(Figures):
    """One method on one federation."""

    method: str
    parameters: Mapping[str, Any]
    rounds: int
    clients: Mapping[str, ClientResult]
    heads: Mapping[str, Head]
    global_head: Head | None
    seconds: Mapping[str, float]
    run: Run
    """What `join` and `update` need to go on later."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """What the server selected."""
    history: Sequence[Mapping[str, Any]] = ()
    """After each round: seconds and bytes so far, and the clients' mean test accuracy (or RMSE) where it was evaluated."""
    privacy: Mapping[str, Any] = field(default_factory=dict)
    """The secure sum and the noise that it was made with; empty: neither."""

    @property
    def classification(self) -> bool:
        return self.run.task.labels is not None or self.targets == SEVERAL

    @property
    def targets(self) -> str:
        return self.run.task.targets

    @property
    def classes(self) -> int:
        return len(self.run.task.labels or self.run.task.names or (None,))

    @property
    def groups(self) -> dict[str, int | str]:
        """The group of each client that is in one, where the method found or was given any: a number, or its name."""
        names = self.chosen.get("group_names")
        found = {name: client.chosen["group"] for name, client in self.clients.items() if "group" in client.chosen}
        return {name: group if names is None else names[group] for name, group in found.items()}

    @property
    def gained_by_joining(self) -> dict[str, float]:
        """By how much every client's left-out samples are likelier than in a model of its own alone, in nats a sample; known
        before any test."""
        known = "gained_by_joining"
        return {name: client.chosen[known] for name, client in self.clients.items() if known in client.chosen}

    def join(self, X: Array, y: Array, name: str = "newcomer", device: str = "cpu") -> Head:
        """A head for a client that joins after the last round, from the final broadcast and its own samples."""
        train = Samples(*(arrays.to_device(part, device) for part in self.run.task.admit(name, X, y)))
        if not train.n:
            raise ResultError(f"client {name!r} has no samples to learn from")
        run, client = self.run, ClientData(name, train)
        return finished(run.method.personalize(client, run.broadcast), run.method, client, run.broadcast, run.task)

    def evaluate(self, X: Array, y: Array, client: str | None = None) -> Evaluation:
        """How a client's head does on these samples, or the shared head where no client is named."""
        if client is None:
            head, name = self.global_head, "all clients"
            if head is None:
                raise ResultError(f"{self.method} has no shared model; name a client: evaluate(X, y, client=...)")
        else:
            if client not in self.heads:
                known = ", ".join(map(repr, list(self.heads)[:5])) + (", ..." if len(self.heads) > 5 else "")
                raise ResultError(f"no head of a client {client!r} here; there are: {known or 'none (heads were not kept)'}")
            head, name = self.heads[client], client
        return Evaluation.of(evaluation.score_head(head, self.run.given(name, X, y)), self.classification)

    def everywhere(self, federation: Federation, device: str = "cpu") -> dict[str, float]:
        """Every client's head on the test samples of all clients: its accuracy (for regression its RMSE) by client's name.

        What a head gave up of the classes that its client seldom sees: personalising raises its figure at home and, past a point,
        lowers this one.
        """
        tests = [test for client in federation if (test := client.test()).n]
        inputs = arrays.concatenate([test.inputs for test in tests])
        targets = arrays.concatenate([test.targets for test in tests])
        pooled = Samples(arrays.to_device(inputs, device), arrays.to_device(targets, device))
        return {name: evaluation.main_figure(head, pooled) for name, head in self.heads.items()}

    # --- samples that come and go ---

    def update(
        self, *, add: ByClient | None = None, forget: ByClient | None = None, labels: Sequence[int | str] = ()
    ) -> "Result":
        """The model with some clients' training samples added, and without some that are in it; exactly that of a run on what
        is left, with the same features.

        Samples to forget must be those that were added: what is impossible is refused, but other samples of the same number
        cannot be detected. The clients' heads and figures belong to the old model and are not carried over: see `personalize`
        (one client, from its own samples) and `refresh` (all of a federation). For methods of one round whose uploads are
        moments.

        `labels` names classes that are new: what is added may be of them.
        """
        self._require_exact()
        run = self.run.with_labels([_plain(label) for label in labels]) if len(labels) else self.run
        added, forgotten = (
            {name: run.given(name, *given) for name, given in (clients or {}).items()} for clients in (add, forget)
        )
        return self._of(run.updated(added, forgotten))

    def leave(self, *names: str) -> "Result":
        """The model without these clients, of which nothing is needed: for a run with `keep_clients=True`. See `update`."""
        self._require_exact()
        return self._of(self.run.without(names))

    def _require_exact(self) -> None:
        if "dp" in self.privacy:
            raise ResultError(
                "this model was made with noise, and cannot be changed without releasing its samples once more; run again"
            )

    def forget(self, X: Array, y: Array, name: str) -> "Result":
        """The model without these training samples of a client: all of them, or some. See `update`."""
        return self.update(forget={name: (X, y)})

    def without(self, name: str, federation: Federation) -> "Result":
        """The model without a client, and all others' heads and figures anew: for a federation that is at hand."""
        self._require_exact()
        gone = [client for client in federation if client.name == name]
        if not gone:
            raise ResultError(f"no client of the federation is called {name!r}")
        run = self.run.updated({}, {name: gone[0].train()})
        return self._of(run).refresh(replace(federation, clients=[client for client in federation if client.name != name]))

    def personalize(self, X: Array, y: Array, name: str) -> Head:
        """A client's head from the model as it is now, and its own training samples."""
        return self.run.head(name, self.run.given(name, X, y))

    def refresh(self, federation: Federation) -> "Result":
        """The same model with every client's head and figures made anew. The bytes are those of sending the model again."""
        theirs, ours = federation.task, self.run.task
        asked, had = ((task.inputs, task.labels, task.outputs, task.targets, task.names) for task in (theirs, ours))
        if asked != had:
            raise ResultError("the federation's inputs or classes are not those of this result")
        begun = time.perf_counter()
        clients, heads, sent = {}, {}, self.run.broadcast.pack().wire_bytes
        for client in federation:
            train, test = client.train(), client.test()
            head = self.run.head(client.name, train)
            ((scored, shared),) = evaluation.score_each([head], self.global_head, [test])
            heads[client.name] = head
            clients[client.name] = ClientResult(client.name, train.n, scored, shared, 0, sent, head.chosen)
        return replace(self, clients=ByName(clients), heads=ByName(heads), seconds={"personalize": time.perf_counter() - begun})

    def _of(self, run: Run) -> "Result":
        """The result of another run of the same method, before any client has made its head."""
        head, chosen = shared_head(run.method, run.broadcast, run.task), reported(run.broadcast, "chosen")
        return replace(self, clients={}, heads={}, global_head=head, seconds={}, run=run, chosen=chosen, history=())

    # --- on disk ---

    def cards(self) -> dict[str | None, dict[str, Any]]:
        """A model card for every client's head, and under None that of the shared one."""
        run = self.run
        state: dict[str, Any] = {
            "version": run.broadcast.pack().digest()[:16],
            "clients": len(run.samples) or None,
            "seed": run.task.seed,
        }
        if names := self.chosen.get("group_names"):
            state["groups"] = list(names)
        pooled = {"training_samples_of_all": sum(run.samples.values()) or run.task.samples}
        card = partial(report.make_card, federation=state, protections=self._protections())
        made: dict[str | None, dict[str, Any]] = {}
        for name, head in self.heads.items():
            client = self.clients[name]
            sizes = {"training_samples": client.train, "test_samples": client.test, **pooled}
            made[name] = card(head, whose=f"client {name}", data=sizes, figures=self._figures(client.scored))
        if self.global_head is not None:
            shared = self._pooled_score()
            figures = {} if shared is None else self._figures(shared)
            made[None] = card(self.global_head, whose="all clients", data=pooled, figures=figures)
        return made

    def _protections(self) -> list[str]:
        """The secure sum and the noise of the run, in words."""
        noise = self.privacy.get("dp")
        had = ["a secure sum"] if "secure_sum" in self.privacy else []
        return had if noise is None else [*had, f"differential privacy (eps {noise['eps']:g}, delta {noise['delta']:g})"]

    def _figures(self, scored: Scored) -> dict[str, Any]:
        return Evaluation.of(scored, self.classification).for_card()

    def save(self, folder: str | PathLike[str]) -> None:
        """Write all that it takes to go on after a restart: `load_result` reads it."""
        figures = {
            "given": dict(self.parameters), "clients": [client.to_dict() for client in self.clients.values()],
            "seconds": dict(self.seconds), "chosen": dict(self.chosen), "history": [dict(entry) for entry in self.history],
            "privacy": dict(self.privacy),
        }  # fmt: skip
        saved.write(Path(folder), saved.SavedRun.of(self.run, **figures), self.global_head, self.heads, self.cards())

    @classmethod
    def load(cls, folder: str | PathLike[str], allow_code: bool = False) -> "Result":
        """The result that `save` wrote; see `load_result`."""
        found, shared, heads = saved.read(Path(folder))
        run = found.run(allow_code)
        try:
            made = cls(
                method=run.method.name,
                parameters=found.given,
                rounds=found.history[-1]["round"] if found.history else run.method.rounds,
                clients=ByName({client["name"]: ClientResult.from_dict(client) for client in found.clients}),
                heads=ByName(heads),
                global_head=shared,
                seconds=found.seconds,
                run=run,
                chosen=found.chosen,
                history=found.history,
                privacy=found.privacy,
            )
            made.to_dict()  # where nothing can be computed with them, these are no figures
        except MALFORMED as error:
            raise ResultError(f"{folder} holds no readable result: {error!r}") from None
        return made

    # --- to look at ---

    def __repr__(self) -> str:
        if not self.clients:
            counted = self.run.samples
            what = f"{sum(counted.values())} samples of {len(counted)} clients" if counted else "no clients"
            return f"Result of {self.method}: the shared model of {what}; no heads yet, see personalize and refresh"
        return report.summary_text(self.to_dict())

    def _repr_html_(self) -> str:
        return report.summary_html(self.to_dict()) if self.clients else f"<p>{report.safe(repr(self))}</p>"

    def table(self, most: int = 30) -> str:
        """The clients as text, one line each, the first `most` of them."""
        return report.client_table(self.rows(), most)

    def rows(self) -> list[dict[str, Any]]:
        """The clients as plain values: sizes, figures, bytes and what was chosen for each."""
        figure, *beside = self._columns()
        return [
            {
                "client": client.name, "train": client.train, "test": client.test, figure: getattr(client.scored, figure),
                **{key: getattr(client.scored, key) for key in beside},
                **{f"{key}_{end}": client.intervals.get(key, (None, None))[i]
                   for key in self.measures for i, end in enumerate(("low", "high"))},
                f"shared_{figure}": None if client.shared is None else getattr(client.shared, figure),
                "uplink_bytes": client.uplink_bytes, "downlink_bytes": client.downlink_bytes,
                **{f"chosen.{key}": value for key, value in client.chosen.items()},
            }
            for client in self.clients.values()
        ]  # fmt: skip

    def _columns(self) -> list[str]:
        """A client's figures, those that lead first."""
        return list(dict.fromkeys([*self.measures, *self.of_clients]))

    def to_frame(self) -> "DataFrame":
        """`rows` as a pandas DataFrame."""
        return frame(self.rows())

    def with_final_figures(self) -> "Result":
        """The same with its last round complete: the bytes of the final broadcast, and the figures of the final models."""
        if not self.history:
            return self
        mean = {"mean_accuracy": self.mean_accuracy} if self.classification else {"mean_rmse": self.mean_rmse}
        final = {**mean, "downlink_bytes": self.downlink_bytes}
        return replace(self, history=[*self.history[:-1], {**self.history[-1], **final}])

    def to_dict(self) -> dict[str, Any]:
        """The method's entry in result.json."""
        figures, bins, of_second = self.of_clients, self._pooled_bins("calibration"), self._pooled_bins("reliability")
        labels = self.run.task.labels
        return {
            "name": self.method,
            "parameters": dict(self.parameters),
            "chosen": dict(self.chosen),
            "rounds": self.rounds,
            "measures": self.measures,
            **self._means(),
            "intervals": {key: list(ends) for key, ends in self.intervals.items()},
            "leave_one_out_accuracy": self.leave_one_out_accuracy,
            "calibration_error": self.calibration_error,
            **({} if bins is None else {"reliability": {key: part.tolist() for key, part in vars(bins).items()}}),
            **({} if of_second is None or labels is None else {"positive": _of_second(labels[1], of_second)}),
            **({"bootstrap": drawn} if (drawn := self._draws()) else {}),
            "uplink_bytes": self.uplink_bytes,
            "downlink_bytes": self.downlink_bytes,
            **({"privacy": dict(self.privacy)} if self.privacy else {}),
            "seconds": dict(self.seconds),
            "history": [dict(entry) for entry in self.history],
            "clients": [
                {
                    "name": client.name,
                    "train": client.train,
                    "test": client.test,
                    **{key: getattr(client.scored, key) for key in figures},
                    "intervals": {key: list(ends) for key, ends in client.intervals.items()},
                    **({} if client.shared is None else {f"shared_{key}": getattr(client.shared, key) for key in figures}),
                    "uplink_bytes": client.uplink_bytes,
                    "downlink_bytes": client.downlink_bytes,
                    "chosen": dict(client.chosen),
                }
                for client in self.clients.values()
            ],
        }


def _of_second(label: int | str, bins: Calibration) -> dict[str, Any]:
    """What result.json says of the second class's probability."""
    return {"class": label, **{key: part.tolist() for key, part in vars(bins).items()}}


def _plain(label: Any) -> int | str:
    """A class's name without NumPy's type."""
    found: int | str = label.item() if hasattr(label, "item") else label
    return found
