"""A run at the server, from waiting for sites to writing its folder."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.engines.driver import Driver
from gramfold.engines.events import Event
from gramfold.errors import GramfoldError, OptionError
from gramfold.remote.erasure import ERROR, enforce
from gramfold.remote.messages import Exchange, one_line
from gramfold.remote.settings import Settings
from gramfold.remote.transport import Remote
from gramfold.results.folder import EVENTS, page, read_page, write_page
from gramfold.results.result import Result
from gramfold.results.saved import make_folder

LOG = logging.getLogger("gramfold.remote")
UNFINISHED = "the last run is under way, or has ended without a word; see the server's log"
"""What error.txt says until a run has succeeded or failed: a run that was killed has not succeeded."""


def run_remote(exchange: Exchange, settings: Settings) -> Result:
    """Run a method over the sites of an exchange; figures, report and shared model are written to `out`."""
    out = settings.out
    make_folder(out)
    with _locked(out):
        return _run(exchange, settings, out)


def _locked(out: Path) -> AbstractContextManager[None]:
    return wire.locked(out, f"another run is writing to {out}; wait for its end or choose another `out`")


def _run(exchange: Exchange, settings: Settings, out: Path) -> Result:
    for name in enforce(out):
        LOG.warning("%s was forgotten and has come back with a backup: it is taken out again", name)
    wire.write_atomically(out / ERROR, f"{UNFINISHED}\n".encode())
    (out / EVENTS).unlink(missing_ok=True)
    transport = Remote(exchange, settings, event_writer(out / EVENTS))
    driver = Driver(transport.method, transport, settings.options)
    result = driver.run(settings.method)
    task = transport.task
    result.save(out)
    write_page(out, page(
        [result], seed=task.seed, engine="flower",
        data={"name": "sites", "samples": task.samples, "inputs": task.inputs, "outputs": task.outputs},
        partition={"kind": "site", "clients": len(result.clients), "dropped": 0},
        sites=transport.account(result.clients.keys()),
    ), False)  # fmt: skip
    (out / ERROR).unlink(missing_ok=True)
    LOG.info("%d sites have their heads; figures in %s", len(result.clients), out / "result.json")
    return result


def event_writer(path: Path) -> Callable[[Event], None]:
    """Events as lines of JSON, for processes that watch the run."""

    def write(event: Event) -> None:
        wire.append(path, f"{event.to_json()}\n".encode())

    return write


def outcome(out: Path) -> dict[str, Any]:
    """The `sites` of the last run's result; raises with its words if it failed."""
    if (out / ERROR).exists():
        raise OptionError(wire.read(out / ERROR).decode(errors="replace").strip())
    sites: Any = read_page(out).get("sites")
    if not isinstance(sites, dict):
        raise OptionError(f"{out} holds no result of a run over sites")
    return sites


def record_failure(out: Path, error: GramfoldError) -> str:
    """Write the reason, as one line, to the run's folder, unless another run has it now; and return it."""
    reason = one_line(str(error), 2000)
    if not out.is_dir():
        return reason
    with suppress(GramfoldError), _locked(out):
        wire.write_atomically(out / ERROR, f"{reason}\n".encode())
    return reason
