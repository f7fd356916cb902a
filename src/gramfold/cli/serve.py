"""`gramfold serve`: heads over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold import wire
from gramfold.cli import data as shared
from gramfold.errors import OptionError
from gramfold.imports import require


def serve(
    heads: Annotated[list[Path], typer.Argument(help="Heads' files; each answers under the name of its file.")],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 for everybody who reaches this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.", min=1, max=65535)] = 8080,
    backbone: shared.Backbone = None,
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda, for the backbone.")] = "cpu",
    key_file: Annotated[Path | None, typer.Option(help="A file with a key that every question must bring.")] = None,
    allow_host: Annotated[str, typer.Option(help="Names that the server answers under, separated by commas; * for all.")] = "",
    most_memory: Annotated[int, typer.Option(help="Megabytes that a head's maps may take.", min=1)] = 512,
) -> None:
    """Answer HTTP: /predict (JSON, or an uploaded image), /NAME/predict for one of several, /health, /metrics, / to try it."""
    require("uvicorn", "serve", "serving heads")
    from gramfold.serving.app import load_heads, make_app
    from gramfold.serving.server import server_of

    key = None if key_file is None else _key(key_file)
    app = make_app(load_heads(heads, device, backbone, most_memory * 2**20), _hosts(host, allow_host), key)
    typer.echo(f"serving {len(heads)} heads at http://{host}:{port}, until Ctrl-C")
    try:
        server_of(app, host, port).run()
    except SystemExit:  # its way to say that the port is taken
        raise OptionError(f"cannot listen on {host}:{port}; choose another with --port") from None


def _hosts(host: str, allowed: str) -> list[str]:
    """The names to answer under: those that are given, or those of where it listens; on all of a machine's addresses, all."""
    from gramfold.serving.limits import LOOPBACK

    given = [name.strip() for name in allowed.split(",") if name.strip()]
    if "*" in given or (not given and host in ("0.0.0.0", "::", "")):
        return []
    return [*given, host, *(LOOPBACK if host in ("127.0.0.1", "localhost", "::1") else ())]


def _key(file: Path) -> str:
    key = wire.read(file).decode(errors="replace").strip()
    if len(key) < 16 or not key.isascii() or not key.isprintable():
        raise OptionError(f"{file} must hold a key of at least 16 printable characters")
    return key
