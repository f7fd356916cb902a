"""How a run goes, whichever engine carries it out, and the method as it then runs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramfold.errors import OptionError
from gramfold.federation import Task
from gramfold.methods import Method, Tunable
from gramfold.privacy import Privacy
from gramfold.wire.digits import require_precision


@dataclass(frozen=True)
class RunOptions:
    """`device`, `checkpoint`, `evaluate_every`, `keep_total`, `keep_clients`, `cluster`, `heads`: as in `gramfold.run`."""

    privacy: Privacy = field(default_factory=Privacy)
    device: str = "cpu"
    checkpoint: Path | None = None
    evaluate_every: int = 0
    keep_total: bool | None = None
    keep_clients: bool = False
    cluster: Any = None
    heads: Path | None = None

    @property
    def holds_total(self) -> bool | None:
        """Whether the result holds the sum; None: where it is small. A noisy one is nobody's to change."""
        return (self.keep_clients or self.keep_total) if self.privacy.dp is None else False

    def prepared(self, method: Method, task: Task) -> Method:
        """The method as it runs: it works on the task, what follows from that is decided, and it gets what it needs."""
        method.check_kind(task)
        require_precision(method.precision)
        noisy, masked = self.privacy.dp is not None, self.privacy.secure is not None
        method = method.settled(task, once=self.keep_total is True or noisy, bounded=noisy, masked=masked)
        self.check(method, task)
        if self.keep_clients and (not method.rounds or isinstance(method, Tunable)):
            raise OptionError(f"keep_clients is for methods of one sum of moments, which {method.name} is not")
        return method

    def check(self, method: Method, task: Task) -> None:
        """Raise, in words, where privacy leaves a method less than it needs."""
        if method.rounds_numbers and (self.keep_total or self.keep_clients or self.privacy):
            why = "secure sums and noise need numbers as they are" if self.privacy else "rounded numbers do not come out of a sum"
            raise OptionError(f"{why}, and these travel in {method.precision}; leave out precision, or set it to float64")
        if not self.privacy:
            return
        if self.keep_clients:
            raise OptionError("keep_clients keeps what each client sent, which nobody is to see; leave out secure and dp")
        if self.device != "cpu":
            raise OptionError("secure sums and noise are computed on the CPU; omit device")
        if method.answer is not None:
            raise OptionError(
                f"{method.name} answers each client from its own upload, which nobody is to see; {method.remedy('sums')}"
            )
        if self.privacy.dp is not None and (method.rounds > 1 or task.labels is None):
            what = f"{method.name} has {method.rounds} rounds" if method.rounds > 1 else "continuous targets have no bound"
            remedy = f"; {method.remedy('once')}" if method.rounds > 1 else ""
            raise OptionError(f"differential privacy is for classes and methods of one round of moments: {what}{remedy}")
        unset = method.undecided if isinstance(method, Tunable) else ()
        if unset:
            raise OptionError(
                f"{method.name} would tune {unset[0]} by trial runs on what nobody is to see; set it, for example "
                f"--set {method.name}.{unset[0]}=..."
            )
