"""A site that runs its own program, whatever program the server sends.

Flower's server sends every site the app of a run, and the SuperNode starts it by the name of a command, `flwr-clientapp`, which
installs and imports it: whoever has the server has every site. There is no list of apps that a site allows (flwr 1.41 knows apps
signed by others, for which the open-source server has no signatures). But commands are found by PATH, and there a site can put
its own: the ClientApp of the gramfold that is installed at the site, and for all other kinds of task none.
"""

import importlib
import sys
from pathlib import Path
from shlex import quote
from typing import Any

from gramfold import wire
from gramfold.engines.flower import require_flwr
from gramfold.errors import NetworkError

CLIENT = "flwr-clientapp"
OTHERS = ("flwr-agentapp", "flwr-connector", "flwr-model", "flwr-serverapp", "flwr-simulation")
"""The commands that a server could have a SuperNode start beside it."""


def write_pins(folder: Path) -> Path:
    """Write the commands to put first on a SuperNode's PATH; returns their folder."""
    require_flwr()
    started = {str(command) for command in importlib.import_module("flwr.supercore.constant").TASK_TYPE_TO_COMMAND.values()}
    unknown = started - {CLIENT, *OTHERS}
    if unknown or CLIENT not in started:
        raise NetworkError(f"this Flower starts {', '.join(sorted(unknown)) or 'no ' + CLIENT}, which gramfold does not know")
    refusal = 'echo "this site runs gramfold, and no other program" >&2\nexit 1\n'
    wire.private_folder(folder)
    for command in (CLIENT, *OTHERS):
        own = f'exec {quote(sys.executable)} -P -m {__name__} "$@"\n'
        path = folder / command
        wire.write_atomically(path, f"#!/bin/sh\n{own if command == CLIENT else refusal}".encode())
        path.chmod(0o700)
    return folder


def main() -> None:
    """Flower's own command, with the app of a run neither installed nor imported: this site's answers."""
    runtime: Any = importlib.import_module("flwr.supernode.runtime.run_clientapp")
    replaced = {"install_from_fab": _nothing, "install_app_dependencies": _refused, "get_load_client_app_fn": _own}
    for name, own in replaced.items():
        if not callable(getattr(runtime, name, None)):  # another Flower: rather no answer than somebody else's program
            sys.exit(f"this Flower has no {name}: its apps cannot be kept out; install the version that gramfold names")
        setattr(runtime, name, own)
    importlib.import_module("flwr.supernode.cli.flwr_clientapp").flwr_clientapp()


def _nothing(*_: Any, **__: Any) -> None:
    """The app that came is left where it is."""


def _refused(*_: Any, **__: Any) -> None:
    raise NetworkError("this site installs nothing for a run")


def _own(*_: Any, **__: Any) -> Any:
    from gramfold.engines.flower import client_app

    return lambda *_: client_app.app


if __name__ == "__main__":
    main()
