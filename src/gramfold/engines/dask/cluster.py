"""Runs on a cluster, from its address to the result."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from gramfold.engines.driver import Driver
from gramfold.engines.events import Progress
from gramfold.engines.options import RunOptions
from gramfold.engines.workers import cpu_count
from gramfold.errors import NetworkError, OptionError
from gramfold.federation import Federation
from gramfold.imports import require
from gramfold.methods import Method, Tunable
from gramfold.numerics import threads
from gramfold.results.result import Result
from gramfold.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed import Client

PATIENCE = 60
"""Seconds until a scheduler must have answered, and until it must have a worker."""


@contextmanager
def on_dask(federation: Federation, options: RunOptions) -> "Iterator[Callable[..., Result]]":
    """Run methods one after another on one cluster; one that was started here is stopped at the end of the block."""
    require("distributed", "dask", "the dask engine")
    if options.privacy or options.checkpoint is not None:
        raise OptionError("the dask engine knows no secure sums, noise or checkpoint; omit them")
    with _connected(options.cluster) as cluster:
        yield partial(_run, federation=federation, options=options, cluster=cluster)


def _run(
    method: Method,
    *,
    federation: Federation,
    options: RunOptions,
    cluster: "Client",
    progress: Progress | None = None,
    keep_heads: bool = True,
) -> Result:
    from gramfold.engines.dask.transport import OnDask

    unset = method.undecided if isinstance(method, Tunable) else ()
    if unset:
        raise OptionError(
            f"{method.name} would tune {unset[0]} by trial runs, which the dask engine does not; set it, for example "
            f"--set {method.name}.{unset[0]}=..."
        )
    with threads.engine():
        prepared = options.prepared(method, federation.task)
        transport = OnDask(prepared, federation, options, cluster, progress)
        return Driver(prepared, transport, options).run(method, keep_heads or options.heads is not None)


@contextmanager
def _connected(given: Any) -> "Iterator[Client]":
    """The client of a cluster: one that is given, one at an address, or one of a new cluster on this machine."""
    from distributed import Client, LocalCluster

    if isinstance(given, Client):
        _check_workers(given)
        yield given
        return
    if given is None:
        own = LocalCluster(n_workers=cpu_count(), threads_per_worker=1, dashboard_address=":0")
        with own, Client(own, set_as_default=False) as client:
            yield client
        return
    try:
        client = Client(str(given), timeout=PATIENCE, set_as_default=False)
    except (TimeoutError, OSError, ValueError) as error:
        raise NetworkError(f"no Dask scheduler answers at {given}: {error}; start one with: dask scheduler") from None
    with client:
        _check_workers(client)
        yield client


def _check_workers(client: "Client") -> None:
    """Raise unless there are workers, and all run this gramfold."""
    from gramfold.engines.dask import tasks

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise NetworkError(f"the cluster has had no worker for {PATIENCE} s; start some with: dask worker ADDRESS") from None
    try:
        found = client.run(tasks.version)
    except ImportError as error:
        raise NetworkError(f"the cluster's workers cannot import gramfold ({error}); install {__version__} there") from None
    other = next((name for name in found.values() if name != __version__), None)
    if other is not None:
        raise NetworkError(f"this is gramfold {__version__}, a worker of the cluster has {other}; install the same")
