"""A run's folder: figures for people and machines, and all that is needed to load the run again.

result.json        the figures
report.html        the same as a page
run.safetensors    the method, the task, the last broadcast, and every client's figures in full
shared.safetensors the shared head
heads/             every client's head, by name
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.engines.by_name import ByName
from gramfold.engines.result import ClientResult, Result, Run
from gramfold.errors import GramfoldError
from gramfold.evaluation import Scored
from gramfold.federation import Task
from gramfold.heads import load_head
from gramfold.methods import make_method, spec_of
from gramfold.report import render_page
from gramfold.version import __version__
from gramfold.wire import Packet
from gramfold.wire.record import Record, plain

FORMAT = 1
"""The version of result.json; new keys, which older readers ignore, do not raise it."""
RESULT, REPORT, RUN, SHARED, HEADS = "result.json", "report.html", "run.safetensors", "shared.safetensors", "heads"


@dataclass(frozen=True)
class SavedRun(Record, kind="run"):
    """The content of run.safetensors."""

    method: str
    parameters: Mapping[str, Any]
    given: Mapping[str, Any]
    """The parameters before tuning."""
    task: Mapping[str, Any]
    broadcast: Record
    clients: Sequence[Mapping[str, Any]]
    seconds: Mapping[str, float]
    chosen: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]


def page(results: Sequence[Result], *, seed: int, engine: str, device: str = "cpu", **more: Any) -> dict[str, Any]:
    """The content of result.json; `more` describes the data (`data`, `partition`)."""
    about = {"gramfold": __version__, "format": FORMAT, "seed": seed, "engine": engine, "device": device}
    return {**about, **more, "methods": [result.to_dict() for result in results]}


def write_page(folder: Path, content: Mapping[str, Any]) -> None:
    """Write result.json and report.html."""
    make_folder(folder)
    text = json.dumps(content, indent=1, allow_nan=False)
    wire.write_atomically(folder / RESULT, text.encode())
    wire.write_atomically(folder / REPORT, render_page(content).encode())


def read_page(source: Path) -> dict[str, Any]:
    """The content that `write_page` wrote, from result.json or its folder."""
    path = source / RESULT if source.is_dir() else source
    try:
        content = json.loads(wire.read(path))
        written = content.get("format", FORMAT)
    except (ValueError, AttributeError):
        raise GramfoldError(f"{path} is not a result of gramfold run") from None
    if not isinstance(written, int) or written > FORMAT:
        raise GramfoldError(f"{path} was written by a newer gramfold (format {written}, this reads {FORMAT}); upgrade")
    found: dict[str, Any] = content
    return found


def save_run(folder: Path, result: Result) -> None:
    """Write everything needed to load a run again: all but the page."""
    make_folder(folder)
    run = result.run
    saved = SavedRun(
        spec_of(run.method), plain(dict(run.method.parameters())), plain(dict(result.parameters)), plain(asdict(run.task)),
        run.broadcast, [_client_to_dict(client) for client in result.clients.values()], plain(dict(result.seconds)),
        plain(dict(result.chosen)), plain(list(result.history)),
    )  # fmt: skip
    wire.write_atomically(folder / RUN, *saved.pack().pieces())
    if result.global_head is not None:
        result.global_head.save(folder / SHARED)
    if result.heads:
        make_folder(folder / HEADS)
        for name, head in result.heads.items():
            head.save(folder / HEADS / f"{wire.file_name(name)}.safetensors")


def load_run(folder: Path) -> Result:
    """The result that `save_run` wrote, with the heads that were saved."""
    saved = SavedRun.unpack(Packet.from_bytes(wire.read(folder / RUN)))
    method = make_method(saved.method, **saved.parameters)
    clients = ByName({client["name"]: _client_from_dict(client) for client in saved.clients})
    files = {name: folder / HEADS / f"{wire.file_name(name)}.safetensors" for name in clients}
    return Result(
        method=method.name,
        parameters=saved.given,
        rounds=method.rounds,
        clients=clients,
        heads=ByName({name: load_head(path) for name, path in files.items() if path.exists()}),
        global_head=load_head(folder / SHARED) if (folder / SHARED).exists() else None,
        seconds=saved.seconds,
        run=Run(method, task_from_dict(saved.task), saved.broadcast),
        chosen=saved.chosen,
        history=saved.history,
    )


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GramfoldError(f"cannot make folder {folder}: {error.strerror}") from None


def task_from_dict(fields: Mapping[str, Any]) -> Task:
    labels = None if fields["labels"] is None else tuple(fields["labels"])
    return Task(**{**fields, "labels": labels, "shape": tuple(fields["shape"])})


def _client_to_dict(client: ClientResult) -> dict[str, Any]:
    shared = None if client.shared is None else client.shared.to_dict()
    figures = {**vars(client), "scored": client.scored.to_dict(), "shared": shared, "chosen": dict(client.chosen)}
    return dict(plain(figures))


def _client_from_dict(fields: Mapping[str, Any]) -> ClientResult:
    shared = None if fields["shared"] is None else Scored.from_dict(fields["shared"])
    return ClientResult(**{**fields, "scored": Scored.from_dict(fields["scored"]), "shared": shared})
