"""The ServerApp: reads the run's configuration, coordinates the run, and leaves figures, report and shared model in `out`."""

import logging
import sys
from contextlib import closing
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from gramfold import wire
from gramfold.engines.flower.coordinator import ERROR, LOG, Coordinator
from gramfold.engines.flower.exchange import Exchange
from gramfold.errors import GramfoldError
from gramfold.remote.settings import Settings
from gramfold.remote.site import one_line

__all__ = ["app"]

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One run of one method."""
    _log_to_standard_error()
    try:
        settings = Settings.read(context.run_config)
        with closing(Exchange(grid, settings.deadline)) as exchange:
            Coordinator(exchange, settings).run()
    except GramfoldError as error:
        reason, out = one_line(str(error)), Path(str(context.run_config.get("out")))
        LOG.error("error: %s", reason)
        if out.is_dir():
            wire.write_atomically(out / ERROR, f"{reason}\n".encode())
        raise


class _StandardError(logging.Handler):
    """Writes to what is standard error at the time: Flower puts its own there."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


def _log_to_standard_error() -> None:
    if not LOG.handlers:
        handler = _StandardError()
        handler.setFormatter(logging.Formatter("%(asctime)s gramfold: %(message)s", "%H:%M:%S"))
        LOG.addHandler(handler)
        LOG.setLevel(logging.INFO)
        LOG.propagate = False
