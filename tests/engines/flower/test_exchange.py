"""Answers come out one by one, in whatever order they come, and none holds up another or lasts beyond its folding."""

import threading
import time
import weakref
from contextlib import closing

import pytest
from flwr.app import Message, RecordDict

from flower_cases import held_back
from gramfold.engines.flower import exchange as exchanges
from gramfold.engines.flower.exchange import FlowerExchange
from gramfold.engines.flower.local_grid import LocalGrid
from gramfold.remote import messages


def echo(message: Message) -> Message:
    return Message(message.content, reply_to=message)


def contents(grid: LocalGrid) -> list[tuple[int, messages.Message]]:
    return [(node, messages.Message({"node": node})) for node in grid.get_node_ids()]


def test_every_node_answers_once_and_for_itself():
    grid = LocalGrid([echo] * 20)
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        arrived = [(arrival.request.node, arrival.read().header["node"]) for arrival in exchange.ask("query", contents(grid))]
    assert sorted(arrived) == [(node, node) for node in grid.get_node_ids()]


def test_one_answer_at_a_time():
    """While one answer is being handled, no other is pulled."""
    pulled = []

    def answer(message: Message) -> Message:
        pulled.append(message.metadata.dst_node_id)
        return echo(message)

    grid = LocalGrid([answer] * 10)
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        for handled, _ in enumerate(exchange.ask("query", contents(grid))):
            time.sleep(0.02)
            assert len(pulled) == handled + 1


def test_nothing_of_an_answer_is_held_once_it_is_handled():
    replies = []

    class Content(RecordDict):
        pass

    def answer(message: Message) -> Message:
        content = Content()
        replies.append(weakref.ref(content))
        return Message(content, reply_to=message)

    grid = LocalGrid([answer] * 3)
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        for arrival in exchange.ask("query", contents(grid)):
            assert arrival.read is not None
        del arrival
        for _ in range(100):  # a thread lets go of its last message when it looks for the next
            if not any(reply() is not None for reply in replies):
                break
            time.sleep(0.05)
    assert not [reply for reply in replies if reply() is not None]


def test_who_does_not_answer_in_time_is_told_apart_and_comes_out_later():
    ready, answered = threading.Event(), threading.Event()

    def late(message: Message) -> Message | None:
        if not ready.is_set():
            return None
        answered.set()
        return echo(message)

    last = held_back(echo, answered)
    grid = LocalGrid([lambda message: echo(message) if message.metadata.message_type == "query" else last(message), late])
    with closing(FlowerExchange(grid, 4.0)) as exchange:
        first = list(exchange.ask("query", contents(grid)))
        assert [(arrival.request.node, arrival.error) for arrival in first] == [(101, ""), (102, "no answer within 4 s")]
        exchange.deadline = 300.0
        ready.set()
        seen = [(arrival.request.node, arrival.late) for arrival in exchange.ask("evaluate", contents(grid)[:1])]
    assert seen == [(102, True), (101, False)]


def test_a_network_that_fails_is_an_answer_too():
    class Broken(LocalGrid):
        def pull_messages(self, message_ids):
            raise ConnectionError("refused")

    grid = Broken([echo])
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        (arrival,) = exchange.ask("query", contents(grid))
    assert arrival.error == "the network failed: ConnectionError: refused"


def test_a_message_that_cannot_be_sent():
    class Full(LocalGrid):
        def push_messages(self, messages):
            return []

    grid = Full([echo])
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        (arrival,) = exchange.ask("query", contents(grid))
    assert "too large" in arrival.error


def test_nodes_are_waited_for():
    grid = LocalGrid([echo])
    threading.Timer(0.3, lambda: grid._nodes.update({102: echo})).start()
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        assert list(exchange.nodes(2)) == [101, 102]
    with closing(FlowerExchange(grid, 0.1)) as exchange:
        assert list(exchange.nodes(3)) == [101, 102]


def test_expected_nodes_beyond_those_needed_are_not_waited_for_until_the_deadline(monkeypatch):
    monkeypatch.setattr(exchanges, "CONNECT_SECONDS", 0.1)
    grid = LocalGrid([echo])
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        assert list(exchange.nodes(1, expected=2)) == [101]


@pytest.mark.parametrize("blocked", [2, 5])
def test_blocked_pulls_lose_their_turn(blocked, monkeypatch):
    monkeypatch.setattr(exchanges, "PATIENCE", (1.0, 0.05))
    over = threading.Event()
    grid = LocalGrid([lambda message: over.wait(60) and None] * blocked + [echo] * 3)
    with closing(FlowerExchange(grid, 300.0)) as exchange:
        answers = []
        for arrival in exchange.ask("query", contents(grid)):
            answers.append(arrival.request.node)
            if len(answers) == 3:
                break
    over.set()
    assert sorted(answers) == grid.get_node_ids()[blocked:]
