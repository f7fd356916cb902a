"""Clients that train more than one model in a round, each on its own: a personal one, and one to send.

The trainings do not touch one another. Where clients are computed side by side, so are their models: half as many steps follow
one upon the other, and that is what takes the time.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gramfold.methods.gradient.base import State
from gramfold.methods.gradient.optimizer import Optimizer

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort, Extras, Objective


class Side(NamedTuple):
    """A model of every client: the purpose that names its random numbers, the stacked weights it starts from, how strongly it is
    pulled towards the anchor, and what its objective needs beside."""

    purpose: str
    start: State
    pull: float
    extras: "Extras"


def descended(
    cohort: "Cohort", objective: "Objective", sides: Sequence[Side], anchor: State, *, epochs: int, optimizer: Optimizer
) -> list[State]:
    """Every side's weights after training."""
    if len(cohort) == 1 or not cohort.net.stackable:
        return [
            cohort.descend(
                objective, side.start, side.extras,
                epochs=epochs, optimizer=optimizer, purpose=side.purpose, pull=(side.pull, anchor),
            )
            for side in sides
        ]  # fmt: skip
    import torch

    def interleaved(parts: Sequence[Any]) -> Any:
        if isinstance(parts[0], dict):
            return {name: interleaved([part[name] for part in parts]) for name in parts[0]}
        return torch.stack(list(parts), 1).flatten(0, 1)

    together = cohort.pick([k for k in range(len(cohort)) for _ in sides])
    strengths = torch.tensor([side.pull for side in sides], device=cohort.device).repeat(len(cohort))
    state = together.descend(
        objective, interleaved([side.start for side in sides]), interleaved([side.extras for side in sides]),
        epochs=epochs, optimizer=optimizer, purpose=[side.purpose for side in sides], pull=(strengths, anchor),
    )  # fmt: skip
    return [{name: tensor[i :: len(sides)] for name, tensor in state.items()} for i in range(len(sides))]


def personal_models(cohort: "Cohort", trained: Callable[["Cohort"], list[State]]) -> State:
    """The models that clients kept as "personal"; those never sampled train theirs from the last shared one."""
    kept = cohort.recall("personal", cohort.spread(cohort.shared))
    if new := [k for k, known in enumerate(cohort.knows("personal")) if not known]:
        (made,) = trained(cohort.pick(new))
        for name, tensor in kept.items():
            tensor[new] = made[name]
    return kept
