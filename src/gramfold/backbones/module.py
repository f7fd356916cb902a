"""A network of torch as a backbone: as it is, frozen, a batch at a time."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gramfold.backbones.base import IMAGES, Backbone, fingerprint, finished
from gramfold.backbones.pixels import read_image
from gramfold.errors import BackboneError
from gramfold.numerics.arrays import is_torch

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class ModuleBackbone(Backbone):
    """An `nn.Module` from a batch of tensors to n x d numbers: in evaluation mode, without gradients, where its weights are.

    Tensors go in as they are, as a torch data set gives them; images (files, PIL images, bytes) as 3 x H x W in [0, 1]. Its
    fingerprint covers its weights, its layers and its source.
    """

    kind, pooling = IMAGES, "own"

    def __init__(self, module: Any, name: str | None = None, device: str | None = None) -> None:
        if isinstance(module, type):
            raise BackboneError(f"{module.__name__} is the class of a network; give a network, such as {module.__name__}()")
        self.name = name or f"module:{type(module).__qualname__}"
        self.module = module if device is None else module.to(device)
        self.fingerprint = fingerprint(["module", ADDRESS.sub("", repr(module)), source_of_type(module)], _weights(module))

    def prepare(self, sample: Any) -> Any:
        import torch

        if is_torch(sample):
            return sample
        if isinstance(sample, np.ndarray) and not (sample.ndim == 3 and sample.dtype == np.uint8):
            return torch.as_tensor(sample, dtype=torch.float32)
        pixels = np.asarray(read_image(sample), dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
        return torch.from_numpy(np.ascontiguousarray(pixels))

    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        import torch

        shapes = [tuple(sample.shape) for sample in batch]
        if len(set(shapes)) > 1:
            other = next(shape for shape in shapes if shape != shapes[0])
            raise BackboneError(
                f"backbone {self.name} takes samples of one shape, got {shapes[0]} and {other}; resize them in the data set's "
                "transform, or with a function as backbone"
            )
        weights = next(iter([*self.module.parameters(), *self.module.buffers()]), None)
        given = torch.stack(list(batch)) if weights is None else torch.stack(list(batch)).to(weights.device)
        training = self.module.training
        try:
            self.module.eval()
            with torch.inference_mode():
                rows = self.module(given)
        except (RuntimeError, TypeError, ValueError) as error:
            said = str(error).strip().partition("\n")[0]
            raise BackboneError(f"backbone {self.name} failed on samples of shape {shapes[0]}: {said}") from None
        finally:
            self.module.train(training)
        if not is_torch(rows):
            raise BackboneError(
                f"backbone {self.name} gave a {type(rows).__name__}, not a tensor; give a function: "
                "lambda images: model(torch.stack(images)).pooler_output"
            )
        return finished(rows.float().cpu().numpy(), len(batch), self.name)


def _weights(module: Any) -> Iterator[bytes]:
    """Names, types, shapes and bytes of what a network has learned."""
    state: Mapping[str, Any] = module.state_dict()
    for name, part in sorted(state.items()):
        if is_torch(part):
            flat = part.detach().cpu().contiguous()
            yield f"{name} {flat.dtype} {tuple(flat.shape)}".encode()
            yield flat.reshape(-1).view(dtype=_bytes_type()).numpy().tobytes()
        else:
            yield f"{name} {part!r}".encode()


def _bytes_type() -> Any:
    import torch

    return torch.uint8


def source_of_type(value: Any) -> str:
    """The source of what computes; the name of its type where there is none to see."""
    try:
        return inspect.getsource(value if inspect.isroutine(value) else type(value))
    except (OSError, TypeError):
        return repr(type(value))
