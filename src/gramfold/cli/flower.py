"""`gramfold flower`: an app for your own machines, and a network on this one to try it."""

import json
import time
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from gramfold.engines.flower import require_flwr
from gramfold.errors import FileError, OptionError
from gramfold.federation import Federation, load_dataset

flower = typer.Typer(help="Run over a real network: sites keep their data and their models.", no_args_is_help=True)


@flower.command()
def new(
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    sites: Annotated[str, typer.Option(help="The sites' names, separated by commas.")] = "north,east,south",
    server: Annotated[str, typer.Option(help="Where sites reach the server: HOST or HOST:PORT.")] = "localhost:8443",
) -> None:
    """Write what a server and its sites need: an app, certificates, a loader to fill in, and a README with every command."""
    require_flwr()
    from gramfold.deploy.template import write_project

    write_project(folder, [name.strip() for name in sites.split(",") if name.strip()], *_address(server))
    typer.echo(f"wrote {folder}; continue with {folder / 'README.md'}")


@flower.command()
def up(
    data: Annotated[str, typer.Argument(help="digits (embedded), or an .npz file with features and labels.")] = "digits",
    clients: Annotated[int, typer.Option(help="How many clients to partition the data into, each a site.", min=1)] = 3,
    partition: Annotated[str, typer.Option(help="How to partition the data into clients; see gramfold run.")] = "dirichlet:0.5",
    random_state: Annotated[int, typer.Option(help="The seed of everything random.", min=0)] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for everything the network writes.")] = Path(
        "gramfold-network"
    ),
    port: Annotated[int | None, typer.Option(help="The server's port; a free one if not given.", min=1, max=65535)] = None,
) -> None:
    """Start a complete network on this machine, to try it out; it runs until Ctrl-C."""
    require_flwr()
    from gramfold.deploy.processes import QUIET, command_path
    from gramfold.deploy.template import write_app
    from gramfold.deploy.toml import Value
    from gramfold.engines.flower.engine import check_sites, sites_of
    from gramfold.engines.flower.network import CONNECTION, Network
    from gramfold.remote.tasks import task_to_json

    if out.exists():
        raise FileError(f"{out} exists; choose a new folder with --out")
    federation = Federation.from_dataset(load_dataset(data), clients, partition, random_state=random_state)
    check_sites(federation)
    place = out.absolute()
    result = place / "result"
    settings: dict[str, Value] = {
        "task": task_to_json(federation.task),
        "random-state": random_state,
        "minimum-sites": len(federation),
        "release-sites": 1,  # all sites are on this machine
        "out": str(result),
    }
    write_app(place / "app", settings)
    typer.echo(f"starting {len(federation)} sites ...", err=True)
    with Network(place, sites_of(federation, place), port) as network:
        exports = " ".join(f"{key}={value}" for key, value in {**QUIET, "FLWR_HOME": quote(str(network.home))}.items())
        typer.echo(f"A server at {network.address} with {len(federation)} sites is running, until Ctrl-C. In another terminal:\n")
        typer.echo(f"export {exports}\n{quote(command_path('flwr'))} run {quote(str(place / 'app'))} {CONNECTION} --stream\n")
        typer.echo(f"The result will be in {result}, the sites' models and the logs in {place / 'sites'}.")
        while True:
            time.sleep(1)
            network.check()


@flower.command()
def identity(
    state: Annotated[Path, typer.Argument(help="The site's state-dir.")] = Path("state"),
) -> None:
    """At a site: print the public half of its key for secure sums, made if there is none, for the other sites' `trusted-keys`."""
    from gramfold.privacy import masks
    from gramfold.remote.secure_site import identity
    from gramfold.results.saved import make_folder

    masks.require_cryptography()
    make_folder(state)
    typer.echo(masks.identity_of(identity(state)).hex())


@flower.command()
def pin(folder: Annotated[Path, typer.Argument(help="Where to write the commands.")] = Path("pinned")) -> None:
    """At a site: write commands for the start of the SuperNode's PATH that run this gramfold, whatever a server sends."""
    require_flwr()
    from gramfold.engines.flower.pinned import write_pins

    typer.echo(f'PATH="{write_pins(folder).absolute()}:$PATH"')


@flower.command()
def outcome(out: Annotated[Path, typer.Argument(help="The `out` of a run.")] = Path("result")) -> None:
    """Say how the last run ended: exit code 2 and its reason if it failed. (`flwr run` ends with 0 either way.)"""
    from gramfold.remote.run import outcome as outcome_of

    sites = outcome_of(out)
    typer.echo(f"{len(sites['answered'])} sites have their heads: {', '.join(sites['answered'])}")
    for name, reason in sites["excluded"].items():
        typer.echo(f"excluded: {name}: {reason}")
    for name, reason in sites.get("withheld", {}).items():
        typer.echo(f"keeps its figures: {name}: {reason}")


@flower.command()
def forget(
    site: Annotated[str, typer.Argument(help="The site's name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The `out` of the runs it took part in.")] = Path("result"),
    database: Annotated[Path | None, typer.Option(help="The stopped SuperLink's database: empty it of all messages too.")] = None,
) -> None:
    """Erase a site from a server's folder: out of the sum, the files and later runs. Prints the receipt."""
    from gramfold.engines.flower.database import empty
    from gramfold.remote.erasure import forget as erase

    emptied = {} if database is None else {"database": str(database), "messages": empty(database)}
    typer.echo(json.dumps({**erase(out, site), **emptied}))


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon:
        return text, 443
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise OptionError(f"cannot read --server {text!r}; write HOST or HOST:PORT")
    return host, int(port)
