"""Where a method runs."""

from os import PathLike
from pathlib import Path

from gramfold.engines.inprocess import run_inprocess
from gramfold.engines.result import ClientResult, Result
from gramfold.engines.workers import Progress
from gramfold.errors import GramfoldError
from gramfold.federation import Federation
from gramfold.methods import Method

ENGINES = ("inprocess",)


def run(
    method: Method,
    federation: Federation,
    *,
    engine: str = "inprocess",
    device: str = "cpu",
    progress: Progress | None = None,
    keep_heads: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    evaluate_every: int = 0,
) -> Result:
    """Run a method over a federation and evaluate every client's final model.

    `device` is "cpu" (NumPy) or a torch device such as "cuda". `keep_heads=False` drops each head once it is evaluated.
    `checkpoint` is a folder: a run that was stopped, by Ctrl-C or otherwise, goes on from there when called again.
    `evaluate_every` adds the clients' mean test accuracy to the history every so many rounds, for the report only.
    """
    if engine not in ENGINES:
        raise GramfoldError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
    return run_inprocess(
        method,
        federation,
        device=device,
        progress=progress,
        keep_heads=keep_heads,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        evaluate_every=evaluate_every,
    )


__all__ = ["ENGINES", "ClientResult", "Progress", "Result", "run"]
