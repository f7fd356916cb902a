"""Where a method runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from gramfold.engines.events import Event, Progress, reported
from gramfold.engines.inprocess import USUAL, run_inprocess
from gramfold.engines.options import RunOptions
from gramfold.errors import OptionError
from gramfold.federation import Federation
from gramfold.methods import Method, make_method
from gramfold.privacy import DP, Privacy, SecureSum
from gramfold.results.figures import ClientResult
from gramfold.results.folder import load_result
from gramfold.results.result import Result

ENGINES = ("inprocess", "flower", "dask")


class RunMethod(Protocol):
    """Runs a method over an engine's federation."""

    def __call__(self, method: Method, *, progress: Progress | None = None, keep_heads: bool = True) -> Result: ...


@contextmanager
def open_engine(engine: str, federation: Federation, options: RunOptions = USUAL) -> Iterator[RunMethod]:
    """Run methods one after another; what the engine needs is started once and stopped at the end of the block."""
    if engine != "dask" and not (options.cluster is options.heads is None):
        raise OptionError("cluster= and heads= are for engine='dask'; elsewhere leave them out: result.heads has the heads")
    if engine == "inprocess":
        yield partial(run_inprocess, federation=federation, options=options)
    elif engine == "flower":
        if (
            options.device != "cpu"
            or options.checkpoint is not None
            or options.evaluate_every
            or options.keep_total
            or options.keep_clients
        ):
            raise OptionError("the flower engine does not support device, checkpoint, evaluate_every, keep_total or keep_clients")
        from gramfold.engines.flower import require_flwr

        require_flwr()
        from gramfold.engines.flower.engine import on_flower

        with on_flower(federation, options.privacy) as run_method:
            yield run_method
    elif engine == "dask":
        from gramfold.engines.dask import on_dask

        with on_dask(federation, options) as run_method:
            yield run_method
    else:
        raise OptionError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")


def run(
    method: Method | str,
    federation: Federation,
    *,
    engine: str = "inprocess",
    device: str = "cpu",
    progress: Progress | bool = True,
    keep_heads: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    evaluate_every: int = 0,
    keep_total: bool | None = None,
    keep_clients: bool = False,
    secure: SecureSum | None = None,
    dp: DP | None = None,
    cluster: Any = None,
    heads: str | PathLike[str] | None = None,
    precision: str | None = None,
) -> Result:
    """Run a method over a federation and evaluate every client's final model.

    `method` is one with its parameters, such as gf.PACE(), or a name as in `gramfold methods`, for that method with its defaults.
    `engine` is "inprocess", or "flower": a site per client, on a real network on this machine, to try a deployment; or "dask": on
    the workers of a `cluster`, the address of its scheduler or a distributed.Client (None: one on this machine), which then write
    every client's head into the folder `heads`, as METHOD/CLIENT.safetensors, where one is given.
    `device` is "cpu" (NumPy) or a torch device such as "cuda". `keep_heads=False` drops each head once it is evaluated.
    `progress` shows how far a run is that takes more than a moment, on standard error (a bar, a notebook's line, or lines now and
    then); False shows nothing, and a function is called with each `Event` instead.
    `checkpoint` is a folder: a run that was stopped, by Ctrl-C or otherwise, resumes from it when called again.
    `evaluate_every` adds the clients' mean test accuracy to the history every so many rounds, for the report only.
    `keep_total` says whether the result holds the sum of the clients' moments, from which samples can be added and forgotten
    (`Result.update`); if not said it does up to 64 MB, which is about 2,800 features.
    `keep_clients` says whether it also holds what each client sent, so that one can leave without its samples (`Result.leave`).
    `precision` is what numbers travel in, "float64", "float32", "float16" or "int8" (uploads alone, the rest then in float16);
    sums are float64 always, and the result says how far rounding may have moved them (`chosen["rounding"]`).
    `secure`, a gf.SecureSum(), hides all uploads but their sum from the server; `dp`, a gf.DP(eps=...), adds noise to them.
    """
    if isinstance(method, str):
        method = make_method(method)
    if not isinstance(method, Method):
        raise OptionError(f"a method is a name such as 'pace', or an instance such as gf.PACE(); got {method!r}")
    if not isinstance(federation, Federation):
        raise OptionError(
            f"run needs a Federation, got {type(federation).__name__}; make one by gf.Federation.split(X, y), "
            "from_clients({name: data}) or from_dataset(gf.load_data(data))"
        )
    if precision is not None:
        method = replace(method, precision=precision)
    folder = None if checkpoint is None else Path(checkpoint)
    written = None if heads is None else Path(heads)
    options = RunOptions(Privacy(secure, dp), device, folder, evaluate_every, keep_total, keep_clients, cluster, written)
    with reported(progress, method.name) as report, open_engine(engine, federation, options) as run_method:
        return run_method(method, progress=report, keep_heads=keep_heads)


__all__ = [
    "ENGINES",
    "ClientResult",
    "Event",
    "Progress",
    "Result",
    "RunMethod",
    "RunOptions",
    "load_result",
    "open_engine",
    "run",
]
