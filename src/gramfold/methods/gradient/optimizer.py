"""One gradient step, on stacked tensors, for one client or a hundred."""

from dataclasses import dataclass

from gramfold.errors import MethodError
from gramfold.numerics.arrays import Array

Tensors = dict[str, Array]


@dataclass(frozen=True)
class Optimizer:
    """Plain or momentum SGD ("sgd"), or "adam"; both with weight decay."""

    kind: str = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("sgd", "adam"):
            raise MethodError(f"unknown optimizer {self.kind!r}; use sgd or adam")

    def slots(self, state: Tensors) -> dict[str, Tensors]:
        """The optimizer's state between steps."""
        names = ("mean", "square") if self.kind == "adam" else ("velocity",) if self.momentum else ()
        slots = {slot: {name: tensor.new_zeros(tensor.shape) for name, tensor in state.items()} for slot in names}
        if self.kind == "adam":
            slots["step"] = {"": next(iter(state.values())).new_zeros(len(next(iter(state.values()))))}
        return slots

    def step(self, state: Tensors, grads: Tensors, slots: dict[str, Tensors], lr: Array) -> None:
        """Change `state` and `slots` in place. SGD takes all tensors at once: on a GPU each would be a launch of its own."""
        if self.kind == "adam":
            self._adam(state, grads, slots, lr)
            return
        import torch

        names, weights = list(state), list(state.values())
        steps = [grads[name] for name in names]
        if self.weight_decay:
            steps = list(torch._foreach_add(steps, weights, alpha=self.weight_decay))
        if self.momentum:
            velocity = [slots["velocity"][name] for name in names]
            torch._foreach_mul_(velocity, self.momentum)
            torch._foreach_add_(velocity, steps)
            steps = velocity
        torch._foreach_sub_(weights, steps, alpha=lr)

    def _adam(self, state: Tensors, grads: Tensors, slots: dict[str, Tensors], lr: Array) -> None:
        """Kingma and Ba 2015, with its usual decay rates 0.9 and 0.999."""
        slots["step"][""] += 1
        for name, tensor in state.items():
            grad = grads[name] + self.weight_decay * tensor if self.weight_decay else grads[name]
            steps = slots["step"][""].reshape(-1, *[1] * (tensor.ndim - 1))
            mean, square = slots["mean"][name], slots["square"][name]
            mean.lerp_(grad, 0.1)
            square.lerp_(grad * grad, 0.001)
            tensor -= lr * (mean / (1 - 0.9**steps)) / ((square / (1 - 0.999**steps)).sqrt() + 1e-8)
