"""A Grid within one process: the same ServerApp, ClientApp and messages, without a network. For tests and for trying apps."""

import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid, ServerApp
from flwr.supercore.task_identity import TaskIdentity

from gramfold.engines.flower import client_app, server_app

Node = Callable[[Message], Message | list[Message] | None]
"""Answers a message with one message, several, or (for now) none; it is polled until it has answered."""
APP_FAILED = 2
"""Flower's code for a ClientApp that raised."""


def app_node(config: Mapping[str, Any], app: ClientApp = client_app.app) -> Node:
    """A node that runs a ClientApp with this node configuration, every message with a context of its own."""

    def answer(message: Message) -> Message:
        context = Context(1, message.metadata.dst_node_id, dict(config), RecordDict(), {})
        try:
            return app(message, context)
        except Exception as error:
            return Message(Error(APP_FAILED, f"{type(error)}:<'{error}'>"), reply_to=message)

    return answer


class LocalGrid(Grid):
    """Nodes by their registered names; an empty or absent name is none."""

    def __init__(self, nodes: Iterable[Node], names: Iterable[str] = ()) -> None:
        self._nodes = dict(enumerate(nodes, start=101))
        self._names = dict(zip(self._nodes, names, strict=False))
        self._out: dict[str, Message] = {}
        self._numbers, self._lock = count(1), threading.Lock()
        self.sent: list[Message] = []
        """All messages, in order."""
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> list[int]:
        return list(self._nodes)

    def get_nodes(self) -> list[NodeInfo]:
        return [NodeInfo(node_id=node, name=self._names.get(node, "")) for node in self._nodes]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for message in messages:
            with self._lock:
                name = f"message-{next(self._numbers)}"
            message.metadata.__dict__["_message_id"] = name
            self._out[name] = message
            self.sent.append(message)
            ids.append(name)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        answers: list[Message] = []
        for name in message_ids:
            message = self._out[name]
            answer = self._nodes[message.metadata.dst_node_id](_copy(message))
            answers += answer if isinstance(answer, list) else [] if answer is None else [answer]
        return answers

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        raise NotImplementedError("not supported: use push_messages, then pull_messages")


def run_locally(grid: LocalGrid, config: Mapping[str, Any], app: ServerApp = server_app.app) -> None:
    """Run a ServerApp over a grid with this run configuration."""
    app(grid, Context(1, 1, {}, RecordDict(), dict(config)))


def _copy(message: Message) -> Message:
    """The message as a receiver gets it: records of its own over the same bytes."""
    twin: Any = Message
    content: Any = {name: type(record)(dict(record.items())) for name, record in message.content.items()}  # type: ignore[arg-type]
    copied: Message = twin(content=RecordDict(content), metadata=message.metadata)
    return copied
