"""A run at the server, from waiting for sites to writing its folder."""

import logging
from collections.abc import Callable
from pathlib import Path

from gramfold import wire
from gramfold.engines.driver import Driver
from gramfold.engines.events import Event
from gramfold.engines.folder import page, write_page
from gramfold.engines.result import Result
from gramfold.engines.saved import make_folder
from gramfold.errors import GramfoldError
from gramfold.remote.messages import Exchange, one_line
from gramfold.remote.settings import Settings
from gramfold.remote.transport import Remote

LOG = logging.getLogger("gramfold.remote")
EVENTS, ERROR = "events.jsonl", "error.txt"


def run_remote(exchange: Exchange, settings: Settings) -> Result:
    """Run a method over the sites of an exchange; figures, report and shared model are written to `out`."""
    out = settings.out
    make_folder(out)
    (out / ERROR).unlink(missing_ok=True)
    (out / EVENTS).unlink(missing_ok=True)
    transport = Remote(exchange, settings, event_writer(out / EVENTS))
    driver = Driver(settings.method, transport, keep_total=None if settings.privacy.dp is None else False)
    while not driver.finished:
        driver.step()
    result = driver.result(settings.method)
    task = transport.task
    result.save(out)
    write_page(out, page(
        [result], seed=task.seed, engine="flower",
        data={"name": "sites", "samples": task.samples, "inputs": task.inputs, "outputs": task.outputs},
        partition={"kind": "site", "clients": len(result.clients), "dropped": 0},
        sites=transport.account(result.clients.keys()),
    ))  # fmt: skip
    LOG.info("%d sites have their heads; figures in %s", len(result.clients), out / "result.json")
    return result


def event_writer(path: Path) -> Callable[[Event], None]:
    """Events as lines of JSON, for processes that watch the run."""

    def write(event: Event) -> None:
        with path.open("a") as file:
            file.write(event.to_json() + "\n")

    return write


def record_failure(out: Path, error: GramfoldError) -> str:
    """Write the reason, as one line, to the run's folder, and return it."""
    reason = one_line(str(error), 2000)
    if out.is_dir():
        wire.write_atomically(out / ERROR, f"{reason}\n".encode(), public=True)
    return reason
