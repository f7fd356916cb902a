"""Labelled data from a file or from scikit-learn's embedded digits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gramfold.errors import FileError, LabelsError, SamplesError
from gramfold.federation.blocks import block_codes
from gramfold.federation.client import targets_in_words
from gramfold.numerics import inputs as check
from gramfold.numerics.arrays import Array
from gramfold.origin import Origin, known_rows
from gramfold.sources.targets import CLASSES, ORDERED, Targets, kind_of, read_targets
from gramfold.wire.npz import read_arrays

KEYS = ("features", "images", "series", "labels", "train", "client", "classes", "origin", "block")
"""What is read of an .npz file; it may hold more."""


@dataclass(frozen=True)
class Dataset:
    """Inputs and targets; optionally, which rows are for training and which client each belongs to."""

    name: str
    inputs: Array
    """Features (n x d, perhaps sparse), or images (n x H x W x channels); n x H x W are grey ones."""
    targets: np.ndarray
    """Class codes (n), or continuous values (n x outputs) where `labels` is None."""
    labels: tuple[int | str, ...] | None
    train: np.ndarray | None = None
    client: np.ndarray | None = None
    whole: bool = True
    """False for one site's share, which may hold a single class."""
    origin: Origin | None = None
    """What made the inputs of raw samples, where that is known."""
    blocks: np.ndarray | None = None
    """What each sample is part of, such as a recording, as a number: see `federation.blocks`."""
    kind: str = ""
    """What targets are where they are more than a class or a value: see `sources.targets`."""
    names: tuple[int | str, ...] = ()
    """Of several labels a sample: what they are called."""
    recode: Callable[[Sequence[np.ndarray]], tuple[Array, Origin]] | None = field(default=None, compare=False)
    """The inputs as an encoder makes them that has seen these training rows of each owner alone; None where none is needed."""

    def __repr__(self) -> str:
        what = targets_in_words(self.labels, self.outputs, self.kind)
        shape = " x ".join(map(str, self.inputs.shape[1:]))
        origin = "" if self.origin is None else f", from {self.origin}"
        return f"Dataset({self.name!r}, {len(self.targets)} samples of {shape} numbers, {what}{origin})"

    def recoded(self, training: Sequence[np.ndarray]) -> "Dataset":
        """The same samples by an encoder that was made of these training rows of each owner."""
        if self.recode is None:
            return self
        inputs, origin = self.recode(training)
        return replace(self, inputs=inputs, origin=origin)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", known_rows(check.samples(self.inputs, self.name), self.origin))
        n = self.inputs.shape[0]
        targets = self.targets[..., 0] if self.labels is None else self.targets
        for what, array in (("labels", targets), ("train", self.train), ("client", self.client), ("blocks", self.blocks)):
            if array is not None and array.shape != (n,):
                raise SamplesError(f"{self.name}: `{what}` has shape {array.shape}, but there are {n} samples")
        if self.whole and not n:
            raise SamplesError(f"{self.name}: no samples")
        if self.whole and self.labels is not None and len(np.unique(self.targets)) < 2:
            raise LabelsError(f"{self.name}: only one class in the labels; classification needs at least two")

    def splits(self) -> tuple[Array, ...]:
        """(X, y), or (X, y, X_test, y_test) where it says which samples are for training; classes by name."""
        known = self.labels is not None and len(self.targets)
        y = np.asarray(self.labels)[self.targets] if known else self.targets
        if self.train is None:
            return self.inputs, y
        rows, held_out = np.flatnonzero(self.train), np.flatnonzero(~self.train)
        return self.inputs[rows], y[rows], self.inputs[held_out], y[held_out]

    @property
    def training_blocks(self) -> np.ndarray | None:
        """The blocks of the training samples, or of all where it does not say which these are."""
        return self.blocks if self.blocks is None or self.train is None else self.blocks[self.train]

    @property
    def codes(self) -> np.ndarray:
        """Class codes; for regression all samples share one code."""
        return self.targets if self.labels is not None else np.zeros(len(self.targets), dtype=np.int64)

    @property
    def outputs(self) -> int:
        return len(self.labels) if self.labels is not None else self.targets.shape[1]


def digits() -> Dataset:
    """scikit-learn's 1797 handwritten digits, 8 x 8 pixels, as 64 features."""
    from sklearn.datasets import load_digits

    inputs, codes = load_digits(return_X_y=True)
    return Dataset("digits", inputs.astype(np.float32), codes.astype(np.int64), tuple(range(10)))


def digits_as_images() -> Dataset:
    """The same digits as 8 x 8 images of one channel, in [0, 1]."""
    flat = digits()
    return replace(flat, name="digits-images", inputs=(flat.inputs / 16).reshape(-1, 8, 8, 1))


def load_npz(
    path: str | Path,
    whole: bool = True,
    regression: bool = False,
    targets: str | None = None,
    names: Sequence[int | str] | None = None,
) -> Dataset:
    """An .npz file: `features` (n x d), `images` (n x H x W x 3, or n x H x W for grey ones; bytes, or floats in [0, 1]) or
    `series` (n x steps, or n x steps x channels; NaN where nothing was measured), `labels` (n), and optionally `train` (n, bool),
    `client` (n, names), `block` (n, what each sample is part of, such as a recording) and `classes` (C names, labels then being
    0..C-1).

    With regression=True, `labels` are continuous values (n, or n x outputs); `targets` and `names` (of classes in their order, or
    of several labels; else `classes`): as in `Federation.split`. With whole=False it is one site's share of the data,
    which may hold a single class and no test samples. A file of `gramfold extract` also says which backbone its features come
    from (`origin`)."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"no such data file: {path}")
    content = read_arrays(path, KEYS)
    name = path.name
    kinds = [key for key in ("features", "images", "series") if key in content]
    if len(kinds) != 1 or "labels" not in content:
        found = ", ".join(content) or "nothing"
        raise LabelsError(f"{name}: needs `labels` and either `features`, `images` or `series`; found {found}")
    if kinds[0] == "series":
        from gramfold.backbones.series import series

        content["features"] = rows = series(content.pop("series"))
        assert rows.origin is not None
        content["origin"], kinds = np.array(rows.origin.to_json()), ["features"]
    inputs = content[kinds[0]]
    if kinds[0] == "images" and inputs.ndim not in (3, 4):
        raise SamplesError(f"{name}: `images` must be n x H x W x channels, got shape {inputs.shape}; rows go under `features`")
    if kinds[0] == "features" and inputs.ndim != 2:
        raise SamplesError(
            f"{name}: expected features (n x d), got shape {inputs.shape}; series go under `series`, images under `images`"
        )
    inputs = check.shaped(inputs, f"{name}: `{kinds[0]}`")
    if inputs.dtype == np.float16 or (inputs.dtype.kind in "iub" and kinds[0] == "features"):
        inputs = inputs.astype(np.float32)
    y = _targets(content, len(inputs), name, kind_of(content["labels"], targets, regression), names)
    train = content.get("train")
    if train is not None:
        if train.dtype.kind not in "biu":
            raise SamplesError(f"{name}: `train` must be True or False per sample, got dtype {train.dtype}")
        train = train.astype(bool)
        if whole and train.shape == (len(inputs),) and (train.all() or not train.any()):
            raise SamplesError(f"{name}: `train` is the same for all samples; leave it out to split each client's data")
    client = content.get("client")
    owners = None if client is None else check.names(client, len(inputs), "client", name)
    origin = Origin.from_json(str(content["origin"]), name) if "origin" in content else None
    blocks = block_codes(content["block"], len(inputs), name) if "block" in content else None
    return Dataset(
        name, inputs, y.values, y.labels, train, owners, whole, origin, blocks, y.kind, y.names
    )  # fmt: skip


def _targets(content: dict[str, np.ndarray], n: int, name: str, kind: str, names: Sequence[int | str] | None) -> Targets:
    """A file's targets; `classes` names several labels, or classes in their order."""
    if kind == CLASSES:
        return Targets(*_classes(content, n, name))
    listed = names if names is not None else content["classes"].astype(str).tolist() if "classes" in content else None
    y = content["labels"]
    if kind == ORDERED and names is None and listed is not None and y.dtype.kind in "iu":
        return Targets(*_classes(content, n, name), ORDERED)
    return read_targets(y, n, name, kind, listed)


def _classes(content: dict[str, np.ndarray], n: int, name: str) -> tuple[np.ndarray, tuple[int | str, ...]]:
    """Class codes of a file's labels, and what the classes are called."""
    codes, labels = check.encode(check.labels(content["labels"], n, name))
    numbers: np.ndarray = np.asarray(labels)
    if numbers.dtype.kind == "i" and numbers.min(initial=0) < 0:
        raise LabelsError(
            f"{name}: labels out of range: found {numbers.min()}, class numbers start at 0; if it is a class, save .astype(str)"
        )
    if "classes" not in content or not len(numbers):
        return codes, labels
    names = tuple(content["classes"].astype(str).tolist())
    if numbers.dtype.kind != "i":
        raise LabelsError(f"{name}: labels must be numbers that `classes` names, got dtype {content['labels'].dtype}")
    if numbers.max() >= len(names):
        raise LabelsError(f"{name}: labels out of range: found {numbers.max()}, but `classes` names {len(names)}")
    return numbers[codes], names


def load_dataset(
    name: str, regression: bool = False, targets: str | None = None, names: Sequence[int | str] | None = None
) -> Dataset:
    """`digits` (as 64 features), `digits-images` (8 x 8 x 1), or the .npz file at a path."""
    embedded = {"digits": digits, "digits-images": digits_as_images}
    if name not in embedded:
        return load_npz(name, regression=regression, targets=targets, names=names)
    if regression or targets not in (None, CLASSES):
        raise LabelsError(f"{name} has classes; for regression give data of your own")
    return embedded[name]()
