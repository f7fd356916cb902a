"""The ServerApp: reads the run's configuration and runs it; figures, report and shared model are written to `out`."""

import logging
import sys
from contextlib import closing
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from gramfold.engines.flower.exchange import FlowerExchange
from gramfold.errors import GramfoldError
from gramfold.remote.run import LOG, record_failure, run_remote
from gramfold.remote.settings import Settings

__all__ = ["app"]

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One run of one method."""
    _log_to_standard_error()
    try:
        settings = Settings.read(context.run_config)
        with closing(FlowerExchange(grid, settings.deadline)) as exchange:
            run_remote(exchange, settings)
    except GramfoldError as error:
        LOG.error("error: %s", record_failure(Path(str(context.run_config.get("out"))), error))
        raise


class _StandardError(logging.Handler):
    """Writes to the current standard error, which Flower replaces."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


def _log_to_standard_error() -> None:
    if not LOG.handlers:
        handler = _StandardError()
        handler.setFormatter(logging.Formatter("%(asctime)s gramfold: %(message)s", "%H:%M:%S"))
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
