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
    """One client: its sizes, its final model's score on its own test split, and the bytes it sent and received."""

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
    """The method, its task, and the last broadcast."""

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
    """What `join` needs to add a client later."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """What the server selected."""
    history: Sequence[Mapping[str, Any]] = ()
    """After each round: seconds and bytes so far, and the clients' mean test accuracy (or RMSE) where it was evaluated."""

    @property
    def classification(self) -> bool:
        return self.run.task.labels is not None

    def join(self, X: Array, y: Array, name: str = "newcomer", device: str = "cpu") -> Head:
        """A head for a client that joins after the last round, from the final broadcast and its own samples."""
        train = Samples(*(arrays.to_device(part, device) for part in self.run.task.admit(name, X, y)))
        if not train.n:
            raise GramfoldError(f"client {name!r} has no samples to learn from")
        return self.run.method.personalize(ClientData(name, train), self.run.broadcast)

    def _tested(self) -> Sequence[ClientResult]:
        return [client for client in self.clients.values() if client.test]

    # --- accuracies: None for regression ---

    @property
    def mean_accuracy(self) -> float | None:
        """Unweighted mean over the clients that have test samples."""
        return evaluation.mean(self._accuracies())

    @property
    def weighted_accuracy(self) -> float | None:
        """The mean over clients, each weighted by its test samples."""
        return evaluation.weighted_mean(self._accuracies(), self._test_sizes()) if self.classification else None

    @property
    def worst_decile_accuracy(self) -> float | None:
        """The mean over the worst tenth of the clients."""
        return evaluation.worst_decile(self._accuracies())

    @property
    def global_accuracy(self) -> float | None:
        """The shared model on the pooled test samples of all clients."""
        pooled = self._pooled_score()
        return pooled.accuracy if pooled is not None and self.classification else None

    # --- root mean squared errors: None for classification ---

    @property
    def mean_rmse(self) -> float | None:
        """Unweighted mean over the clients that have test samples."""
        return evaluation.mean(self._rmses())

    @property
    def weighted_rmse(self) -> float | None:
        """The mean over clients, each weighted by its test samples."""
        return None if self.classification else evaluation.weighted_mean(self._rmses(), self._test_sizes())

    @property
    def worst_decile_rmse(self) -> float | None:
        """The mean over the worst tenth of the clients, those with the largest errors."""
        worst = evaluation.worst_decile([-value for value in self._rmses()])
        return None if worst is None else -worst

    @property
    def global_rmse(self) -> float | None:
        """The shared model on the pooled test samples of all clients."""
        pooled = self._pooled_score()
        return None if pooled is None or self.classification else pooled.rmse

    def _accuracies(self) -> list[float]:
        values = [client.accuracy for client in self._tested() if self.classification]
        return [value for value in values if value is not None]

    def _rmses(self) -> list[float]:
        values = [client.rmse for client in self._tested() if not self.classification]
        return [value for value in values if value is not None]

    def _test_sizes(self) -> list[int]:
        return [client.test for client in self._tested()]

    def _pooled_score(self) -> Scored | None:
        """The shared model on the test samples of all clients; None where there is no shared model."""
        shared = [client.shared for client in self._tested() if client.shared is not None]
        if not shared:
            return None
        return Scored(sum(s.n for s in shared), sum(s.right for s in shared), sum(s.squared_error for s in shared))

    # --- other figures ---

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error over the pooled test samples; None for a method whose scores are not probabilities."""
        parts = [client.scored.calibration for client in self._tested() if client.scored.calibration is not None]
        return sum(parts, Calibration()).expected_error if parts else None

    @property
    def leave_one_out_accuracy(self) -> float | None:
        """The mean over clients of the accuracy that each estimates by leave-one-out, from its training samples alone."""
        known = [client.chosen.get("leave_one_out_accuracy") for client in self._tested()]
        return evaluation.mean([value for value in known if value is not None])

    @property
    def uplink_bytes(self) -> int:
        return sum(client.uplink_bytes for client in self.clients.values())

    @property
    def downlink_bytes(self) -> int:
        return sum(client.downlink_bytes for client in self.clients.values())

    def with_final_figures(self) -> "Result":
        """The same with its last round complete: the bytes of the final broadcast, and the figures of the final models."""
        if not self.history:
            return self
        mean = {"mean_accuracy": self.mean_accuracy} if self.classification else {"mean_rmse": self.mean_rmse}
        final = {**mean, "downlink_bytes": self.downlink_bytes}
        return replace(self, history=[*self.history[:-1], {**self.history[-1], **final}])

    def to_dict(self) -> dict[str, Any]:
        """The method's entry in result.json."""
        if self.classification:
            means = {
                "mean_accuracy": self.mean_accuracy,
                "weighted_accuracy": self.weighted_accuracy,
                "worst_decile_accuracy": self.worst_decile_accuracy,
                "global_accuracy": self.global_accuracy,
            }
        else:
            means = {
                "mean_rmse": self.mean_rmse,
                "weighted_rmse": self.weighted_rmse,
                "worst_decile_rmse": self.worst_decile_rmse,
                "global_rmse": self.global_rmse,
            }
        return {
            "name": self.method,
            "parameters": dict(self.parameters),
            "chosen": dict(self.chosen),
            "rounds": self.rounds,
            **means,
            "leave_one_out_accuracy": self.leave_one_out_accuracy,
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
                    **({"accuracy": client.accuracy} if self.classification else {"rmse": client.rmse}),
                    "uplink_bytes": client.uplink_bytes,
                    "downlink_bytes": client.downlink_bytes,
                    "chosen": dict(client.chosen),
                }
                for client in self.clients.values()
            ],
        }
