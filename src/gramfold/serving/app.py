"""The HTTP application, on starlette.

GET  /                   a page to try it
GET  /health             what is served
POST /predict            the only head's, or NAME/predict for one of several: JSON, or an image as a form's file or as it is
                         ?novelty=1: also how unusual each sample is
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gramfold.errors import GramfoldError
from gramfold.heads import load_head
from gramfold.imports import require
from gramfold.serving.page import render
from gramfold.serving.served import Backbones, Served, read_question
from gramfold.version import __version__

MOST_BYTES = 32 * 2**20
"""A question's length."""


def load_heads(paths: Sequence[Path], device: str = "cpu", backbone: str | None = None) -> dict[str, Served]:
    """Heads by name: that of their file, or of its folder where files have the same. `backbone`: see `reopen`."""
    backbones = Backbones(device, backbone)
    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else f"{path.absolute().parent.name}-{path.stem}" for path in paths]
    if len(set(names)) < len(names):
        raise GramfoldError("two of the heads have the same name; rename a file")
    taken = {"predict", "health"} & set(names)
    if taken:
        raise GramfoldError(f"a head cannot be called {min(taken)!r}; rename its file")
    return {name: Served(name, load_head(path), backbones) for name, path in zip(names, paths, strict=True)}


def make_app(heads: Mapping[str, Served]) -> Any:
    """An ASGI application; any server that speaks ASGI runs it."""
    require("starlette", "serve", "serving heads")
    require("python_multipart", "serve", "serving heads")
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    only = next(iter(heads.values())) if len(heads) == 1 else None

    async def page(request: Request) -> Response:
        return HTMLResponse(render([served.about() for served in heads.values()]))

    async def health(request: Request) -> Response:
        return JSONResponse({"gramfold": __version__, "heads": [served.about() for served in heads.values()]})

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
        if int(request.headers.get("content-length") or MOST_BYTES + 1) > MOST_BYTES:
            raise GramfoldError(f"a question must say its length, and have no more than {MOST_BYTES >> 20} MB")
        if kind == "multipart/form-data":
            async with request.form() as form:
                file = form.get("image")
                if file is None or isinstance(file, str):
                    raise GramfoldError("the form has no file `image`")
                image = await file.read()
            return lambda: served.see(image, novelty)
        body = await request.body()
        if kind.startswith("image/") or kind == "application/octet-stream":
            return lambda: served.see(body, novelty)
        question = read_question(body)
        return lambda: served.answer(question, novelty)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/health", health),
            Route("/predict", predict, methods=["POST"]),
            Route("/{name}/predict", predict, methods=["POST"]),
        ]
    )
