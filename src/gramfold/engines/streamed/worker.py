"""A process that makes heads: batches come in on its standard input, answers go out on its standard output.

A message is its length in eight bytes, and a packet. The worker writes the heads of a batch into the folder itself.
"""

import os
import sys
from pathlib import Path
from typing import BinaryIO

from gramfold.engines.streamed.personal import Personal
from gramfold.errors import GramfoldError
from gramfold.federation.streams import ClientBatch
from gramfold.numerics import threads
from gramfold.results.shards import StreamedRun, joined, shard_file, taken_apart, write_shard
from gramfold.wire import Packet

WORD = 8


def send(stream: BinaryIO, packet: Packet) -> None:
    content = packet.to_bytes()
    stream.write(len(content).to_bytes(WORD, "little"))
    stream.write(content)
    stream.flush()


def receive(stream: BinaryIO) -> Packet | None:
    """The next message; None where there will be none."""
    begin = stream.read(WORD)
    if len(begin) < WORD:
        return None
    content = stream.read(int.from_bytes(begin, "little"))
    return Packet.from_bytes(content)


def packed(number: int, batch: ClientBatch) -> Packet:
    """A batch of clients as a message."""
    arrays = {
        "inputs": batch.inputs, "targets": batch.targets, "starts": batch.starts, "held_out": batch.held_out,
        **joined("names", [name.encode() for name in batch.names]),
    }  # fmt: skip
    return Packet(arrays, {"batch": number})


def unpacked(packet: Packet) -> tuple[int, ClientBatch]:
    names = [part.decode() for part in taken_apart("names", packet.arrays)]
    number: int = packet.meta["batch"]
    return number, ClientBatch(names, packet["inputs"], packet["targets"], packet["starts"], packet["held_out"])


def serve(folder: Path, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer until there is nothing more to do."""
    run = StreamedRun.load(folder)
    personal = Personal(run.known_method(), run.known_task(), run.broadcast, dict(run.memory))
    while (packet := receive(incoming)) is not None:
        number, batch = unpacked(packet)
        try:
            write_shard(shard_file(folder, number), personal.kept(batch))
        except GramfoldError as error:
            send(outgoing, Packet({}, {"batch": number, "error": str(error)}))
        else:
            send(outgoing, Packet({}, {"batch": number}))


def main() -> None:
    outgoing = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed here is no answer
    with threads.engine(), threads.limit(1):
        serve(Path(sys.argv[1]), sys.stdin.buffer, outgoing)
