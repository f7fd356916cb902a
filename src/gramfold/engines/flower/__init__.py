"""On a real network: sites are Flower SuperNodes, and this package is the only place that imports flwr.

server_app -> remote.run -> exchange       at the server: one run; messages out, answers in one by one
client_app -> remote.site                  at a site: its data, its memory, its head, all on its own disk
records                                    between them: a header and packets as Flower records
"""

import importlib.util

from gramfold.errors import InstallError


def require_flwr() -> None:
    """Raise, naming what to install, if flwr is missing."""
    if importlib.util.find_spec("flwr") is None:
        raise InstallError("this needs Flower: pip install 'gramfold[flower]'")
