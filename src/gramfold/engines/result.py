"""What a run gives back: heads, and figures for every client, in Python and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gramfold import evaluation
from gramfold.errors import GramfoldError
from gramfold.evaluation import Calibration, Scored
from gramfold.federation import Samples, Task
from gramfold.heads import Head
from gramfold.methods import ClientData, Method
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire.record import Record


@dataclass(frozen=True)
class ClientResult:
    """One client: its sizes, how its final model does on its own test split, and what it sent and received."""

    name: str
    train: int
    scored: Scored
    shared: Scored | None
    """The shared model on the same test split."""
    uplink_bytes: int
    downlink_bytes: int
    chosen: Mapping[str, Any]

    @property
    def test(self) -> int:
        return self.scored.n

    @property
    def accuracy(self) -> float | None:
        return self.scored.accuracy

    @property
    def rmse(self) -> float | None:
        return self.scored.rmse


@dataclass(frozen=True)
class Run:
    """The method, its task, and what all clients were sent last."""

    method: Method
    task: Task
    broadcast: Record


@dataclass(frozen=True)
class Result:
    """One method on one federation."""

    method: str
    parameters: Mapping[str, Any]
    rounds: int
    clients: Mapping[str, ClientResult]
    heads: Mapping[str, Head]
    global_head: Head | None
    seconds: Mapping[str, float]
    run: Run
    """What it takes to go on: see `join`."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """What the server selected."""
    history: Sequence[Mapping[str, Any]] = ()
    """After each round: seconds and bytes so far, and the clients' mean test accuracy where it was asked for."""

    @property
    def classification(self) -> bool:
        return self.run.task.labels is not None

    def join(self, X: Array, y: Array, name: str = "newcomer", device: str = "cpu") -> Head:
        """A head for a client that comes after the round: from what everybody was told and its own samples."""
        train = Samples(*(arrays.to_device(part, device) for part in self.run.task.admit(name, X, y)))
        if not train.n:
            raise GramfoldError(f"client {name!r} has no samples to learn from")
        return self.run.method.personalize(ClientData(name, train), self.run.broadcast)

    def _tested(self) -> Sequence[ClientResult]:
        return [client for client in self.clients.values() if client.test]

    def _figures(self) -> tuple[list[float], list[int]]:
        tested = self._tested()
        values = [client.accuracy if self.classification else client.rmse for client in tested]
        return [value for value in values if value is not None], [client.test for client in tested]

    @property
    def mean_accuracy(self) -> float | None:
        """Unweighted over the clients that have test samples (for regression: the mean RMSE)."""
        return evaluation.mean(self._figures()[0])

    @property
    def weighted_accuracy(self) -> float | None:
        """The same, each client weighted by its test samples."""
        return evaluation.weighted_mean(*self._figures())

    @property
    def worst_decile_accuracy(self) -> float | None:
        values = self._figures()[0]
        if self.classification:
            return evaluation.worst_decile(values)
        worst = evaluation.worst_decile([-value for value in values])
        return None if worst is None else -worst

    @property
    def global_accuracy(self) -> float | None:
        """The shared model on everybody's test samples together."""
        shared = [client.shared for client in self._tested() if client.shared is not None]
        if not shared:
            return None
        pooled = Scored(sum(s.n for s in shared), sum(s.right for s in shared), sum(s.squared_error for s in shared))
        return pooled.accuracy if self.classification else pooled.rmse

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error over everybody's test samples; None for a method whose scores are not probabilities."""
        parts = [client.scored.calibration for client in self._tested() if client.scored.calibration is not None]
        return sum(parts, Calibration()).expected_error if parts else None

    @property
    def left_out_accuracy(self) -> float | None:
        """The mean over clients of the accuracy each could estimate beforehand, by leave-one-out on its training samples."""
        known = [client.chosen.get("leave_one_out_accuracy") for client in self._tested()]
        return evaluation.mean([value for value in known if value is not None])

    @property
    def uplink_bytes(self) -> int:
        return sum(client.uplink_bytes for client in self.clients.values())

    @property
    def downlink_bytes(self) -> int:
        return sum(client.downlink_bytes for client in self.clients.values())

    def with_final_figures(self) -> "Result":
        """The same with its last round booked in full: after it come the final broadcast and the final models."""
        if not self.history:
            return self
        final = {"mean_accuracy": self.mean_accuracy, "downlink_bytes": self.downlink_bytes}
        return replace(self, history=[*self.history[:-1], {**self.history[-1], **final}])

    def to_dict(self) -> dict[str, Any]:
        """The method's entry in result.json."""
        figure = "accuracy" if self.classification else "rmse"
        return {
            "name": self.method,
            "parameters": dict(self.parameters),
            "chosen": dict(self.chosen),
            "rounds": self.rounds,
            f"mean_{figure}": self.mean_accuracy,
            f"weighted_{figure}": self.weighted_accuracy,
            f"worst_decile_{figure}": self.worst_decile_accuracy,
            f"global_{figure}": self.global_accuracy,
            "leave_one_out_accuracy": self.left_out_accuracy,
            "calibration_error": self.calibration_error,
            "uplink_bytes": self.uplink_bytes,
            "downlink_bytes": self.downlink_bytes,
            "seconds": dict(self.seconds),
            "history": [dict(entry) for entry in self.history],
            "clients": [
                {
                    "name": client.name,
                    "train": client.train,
                    "test": client.test,
                    figure: client.accuracy if self.classification else client.rmse,
                    "uplink_bytes": client.uplink_bytes,
                    "downlink_bytes": client.downlink_bytes,
                    "chosen": dict(client.chosen),
                }
                for client in self.clients.values()
            ],
        }
