"""`gramfold serve`: heads over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold.cli import data as shared
from gramfold.errors import GramfoldError
from gramfold.imports import require


def serve(
    heads: Annotated[list[Path], typer.Argument(help="Heads' files; each answers under the name of its file.")],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 for everybody who reaches this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port.", min=1, max=65535)] = 8080,
    backbone: shared.Backbone = None,
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda, for the backbone.")] = "cpu",
) -> None:
    """Answer HTTP: /predict (JSON, or an uploaded image), /NAME/predict for one of several heads, /health, / to try it."""
    uvicorn = require("uvicorn", "serve", "serving heads")
    from gramfold.serving.app import load_heads, make_app

    app = make_app(load_heads(heads, device, backbone))
    typer.echo(f"serving {len(heads)} heads at http://{host}:{port}, until Ctrl-C")
    try:
        uvicorn.run(app, host=host, port=port, log_level="warning")
    except SystemExit:  # its way to say that the port is taken
        raise GramfoldError(f"cannot listen on {host}:{port}; choose another with --port") from None
