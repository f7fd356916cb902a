"""What a method, a feature map, a kind of upload or a transport of one's own is made of: see docs/extend.md.

These names stay where they are from one version to the next, or warn for one release before they go.
"""

from gramfold.engines import RunOptions
from gramfold.engines.driver import Driver
from gramfold.engines.transport import Contribution, Final, Finished, Fold, Round, Transport
from gramfold.features import DrawnMap, FeatureMap, Map, draw
from gramfold.federation import Client, Dataset, Federation, Samples, Task
from gramfold.heads import Head, Stream
from gramfold.methods import Batched, ClientData, Method, Tunable
from gramfold.methods.asked import Asked, AskedSums
from gramfold.methods.phases import Link, Phase, Question
from gramfold.methods.protocol import Revisable
from gramfold.methods.spaces import Space
from gramfold.moments import Implied, Moments
from gramfold.results.result import Result
from gramfold.uploads import NamedSums, Upload
from gramfold.uploads import register as register_upload
from gramfold.uploads import unpack as unpack_upload
from gramfold.wire import Packet
from gramfold.wire.record import Record

__all__ = [
    "Asked", "AskedSums", "Batched", "Client", "ClientData", "Contribution", "Dataset", "DrawnMap", "FeatureMap",
    "Federation", "Final", "Finished", "Fold", "Head", "Implied", "Link", "Map", "Method", "Moments", "NamedSums", "Packet",
    "Phase", "Question", "Record", "Result", "Revisable", "Round", "RunOptions", "Samples", "Space", "Stream", "Task",
    "Transport", "Tunable", "Upload", "draw", "register_upload", "run_over", "unpack_upload",
]  # fmt: skip

USUAL = RunOptions()


def run_over(transport: Transport, method: Method, options: RunOptions = USUAL, keep_heads: bool = True) -> Result:
    """Run a method over the clients that a transport reaches, with the task that it has."""
    prepared = options.prepared(method, transport.task)
    return Driver(prepared, transport, options).run(method, keep_heads)
