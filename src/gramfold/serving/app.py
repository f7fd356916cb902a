"""The HTTP application, on starlette.

GET  /                   a page to try it
GET  /health             what is served
GET  /metrics            how many were asked and how they ended, for Prometheus
POST /predict            the only head's, or NAME/predict for one of several: JSON, or an image as a form's file or as it is
                         ?novelty=1: also how unusual each sample is
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramfold.errors import GramfoldError, ServingError
from gramfold.heads import Head, load_head
from gramfold.imports import require
from gramfold.report.text import size
from gramfold.serving.limits import LOOPBACK, Gate
from gramfold.serving.page import render
from gramfold.serving.served import Backbones, Served, read_question
from gramfold.version import __version__

MOST_MEMORY = 2**29
"""Bytes of what a head's maps draw when they are first asked."""


def load_heads(
    paths: Sequence[Path], device: str = "cpu", backbone: str | None = None, most_memory: int = MOST_MEMORY
) -> dict[str, Served]:
    """Heads by name: that of their file, or of its folder where files have the same. `backbone`: see `reopen`."""
    backbones = Backbones(device, backbone)
    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else f"{path.absolute().parent.name}-{path.stem}" for path in paths]
    if len(set(names)) < len(names):
        raise ServingError("two of the heads have the same name; rename a file")
    taken = {"predict", "health"} & set(names)
    if taken:
        raise ServingError(f"a head cannot be called {min(taken)!r}; rename its file")
    return {name: Served(name, _fitting(path, most_memory), backbones) for name, path in zip(names, paths, strict=True)}


def _fitting(path: Path, most_memory: int) -> Head:
    """The head in a file, unless its maps, of which the file has only a description, would take too much memory."""
    head = load_head(path)
    maps = {stream.map.fingerprint: stream.map for stream in (*head.streams, *head.refinement)}
    takes = 8 * sum(getattr(map_, "drawn_numbers", 0) for map_ in maps.values())
    if takes > most_memory:
        raise ServingError(f"{path} would take {size(takes)} of memory, more than {size(most_memory)}; see --most-memory")
    return head


def make_app(heads: Mapping[str, Served], hosts: Sequence[str] = LOOPBACK, key: str | None = None) -> Gate:
    """An ASGI application; any server that speaks ASGI runs it. `hosts`: the names that it answers under, none for all; `key`:
    what every question must bring."""
    require("starlette", "serve", "serving heads")
    require("python_multipart", "serve", "serving heads")
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # a broken form is the question's fault, and is said there
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    only = next(iter(heads.values())) if len(heads) == 1 else None

    async def page(request: Request) -> Response:
        return HTMLResponse(render([served.about() for served in heads.values()]))

    async def health(request: Request) -> Response:
        return JSONResponse({"gramfold": __version__, "heads": [served.about() for served in heads.values()]})

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(gate.metrics())

    async def predict(request: Request) -> Response:
        name = request.path_params.get("name")
        served = only if name is None else heads.get(name)
        if served is None:
            known = ", ".join(f"/{known}/predict" for known in heads)
            return JSONResponse({"error": f"no such head; there are: {known}"}, 404)
        try:
            answers = await run_in_threadpool(await _question(request, served))
        except GramfoldError as error:
            return JSONResponse({"error": " ".join(str(error).split())}, 400)
        return JSONResponse({"head": served.name, **answers})

    async def _question(request: Request, served: Served) -> Callable[[], dict[str, Any]]:
        """What is to be computed; raises where the question cannot be read."""
        novelty = request.query_params.get("novelty", "").lower() in ("1", "true")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "multipart/form-data":
            image = await _uploaded(request)
            return lambda: served.see(image, novelty)
        body = await request.body()
        if kind.startswith("image/") or kind == "application/octet-stream":
            return lambda: served.see(body, novelty)
        return lambda: served.answer(read_question(body), novelty)

    async def _uploaded(request: Request) -> bytes:
        """The form's file."""
        try:
            async with request.form(max_files=1, max_fields=8) as form:
                file = form.get("image")
                image = None if file is None or isinstance(file, str) else bytes(await file.read())
        except Exception as error:  # its parser raises what it likes
            raise ServingError(f"the form cannot be read: {type(error).__name__}") from None
        if image is None:
            raise ServingError("the form has no file `image`")
        return image

    routes = [
        Route("/", page),
        Route("/health", health),
        Route("/metrics", metrics),
        Route("/predict", predict, methods=["POST"]),
        Route("/{name}/predict", predict, methods=["POST"]),
    ]
    gate = Gate(Starlette(routes=routes), hosts, key)
    return gate
