"""A server that lies to clients with trusted keys learns nothing that it was not promised: each attack works where nothing binds,
and gives noise, or nothing, as it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sums import kept
from test_secure_sum import drawn, integer_sum, numbers, uniform
from two_faced import TwoFacedServer, many_stories, same_for_all, unbound

from gramfold.errors import GramfoldError
from gramfold.privacy import Client, SecureSum, Server
from gramfold.privacy.protocol import Confirmations, Confirmed, Roster, Survivors, asked
from gramfold.wire import Packet

pytest.importorskip("cryptography", reason="a secure sum needs the package cryptography")


def asked_apart(vectors, victim: str) -> TwoFacedServer:
    """The others answer a question whose answer is zero: the sum would be the victim's."""
    nothing = {name: vector if name == victim else np.zeros_like(vector) for name, vector in vectors.items()}
    return TwoFacedServer(nothing, 2 / 3, {name: "00" if name == victim else "11" for name in vectors})


def test_another_question_for_one_client_gives_its_upload_only_where_nothing_binds():
    vectors, victim = drawn(5, 0, size=4096), "client 0"
    everyone = list(vectors)
    with unbound():
        server = asked_apart(vectors, victim)
        server.tell(same_for_all(everyone, everyone))
        assert numbers(server.sum_of(everyone)) == integer_sum(vectors, [victim])
    server = asked_apart(vectors, victim)
    assert len(server.tell(same_for_all(everyone, everyone))) == 4, "the others agree among themselves"
    assert "only 1 of at least 4 clients have signed that they were asked the same" in server.refused[victim]
    for names in (everyone, [victim], everyone[1:]):
        assert uniform(server.sum_of(names)) > 1e-6


def test_the_sum_of_those_who_were_asked_the_same_is_theirs_if_they_are_enough():
    """Whoever was asked something else counts as dropped out, no more."""
    vectors = drawn(5, 1)
    server = TwoFacedServer(vectors, 2 / 3, {name: "00" if name == "client 0" else "11" for name in vectors})
    same = list(vectors)[1:]
    assert len(server.tell(same_for_all(same, same))) == 4
    assert server.secret("keys", "client 0") is not None
    assert numbers(server.sum_of(same)) == integer_sum(vectors, same)


@pytest.mark.parametrize("count", [9, 25])
def test_many_stories_about_survivors_give_the_sum_of_a_few_only_where_nothing_binds(count):
    """Above a half is the lowest threshold there is; every client is told of more survivors than it asks for."""
    vectors = drawn(count, 2, size=2048)
    chosen, stories = many_stories(list(vectors))
    assert len(chosen) < count / 3 < min(map(len, stories.values()))
    with unbound():
        server = TwoFacedServer(vectors, 0.51, dict.fromkeys(vectors, "11"))
        assert len(server.tell(stories)) == count
        assert numbers(server.sum_of(chosen)) == integer_sum(vectors, chosen)
    server = TwoFacedServer(vectors, 0.51, dict.fromkeys(vectors, "11"))
    assert server.tell(stories) == []
    assert all("the server may be telling them different things; nothing was revealed" in why for why in server.refused.values())
    assert uniform(server.sum_of(chosen)) > 1e-6


def arcs(roster: Roster) -> list[list[str]]:
    """The ring of neighbours, cut into three: near the cuts everybody still has just above half of its neighbours."""
    first = sorted(roster.by_name)[0]
    ring, left = [first], set(roster.by_name) - {first}
    while left:  # the next on the ring has most neighbours in common
        near = set(roster.graph[ring[-1]])  # two ways round: the first is as good as the other
        ring.append(max(sorted(left & near), key=lambda name: len(near & set(roster.graph[name]))))
        left.discard(ring[-1])
    size = len(ring) // 3
    return [ring[:size], ring[size : 2 * size], ring[2 * size :]]


def test_a_ring_that_is_cut_into_arcs_is_not_summed_arc_by_arc():
    """Who has masks with whom follows from who sent shares, and all must know the same of that."""
    vectors = drawn(60, 5, size=1024)
    everyone, asked = list(vectors), dict.fromkeys(vectors, "11")
    with unbound():
        server = TwoFacedServer(vectors, 0.51, asked, pieces=arcs)
        assert len(server.tell(same_for_all(everyone, everyone))) == 60 > 3 * len(arcs(server.roster)[0]) - 1
        piece = arcs(server.roster)[0]
        assert numbers(server.sum_of(piece)) == integer_sum(vectors, piece)
    with pytest.raises(GramfoldError, match="from others than the neighbours that are said to have sent some"):
        TwoFacedServer(vectors, 0.51, asked, pieces=arcs)
    server = TwoFacedServer(vectors, 0.51, asked, pieces=arcs, told=True)
    piece = arcs(server.roster)[0]
    for names in (everyone, piece):
        assert server.tell(same_for_all(piece, names)) == []


@settings(max_examples=15, deadline=None)
@given(st.data(), st.integers(4, 12), st.sampled_from([0.51, 2 / 3, 0.9]))
def test_clients_reveal_against_one_list_of_survivors_whatever_they_are_told(data, count, threshold):
    names = [f"client {k}" for k in range(count)]
    lists = data.draw(st.lists(st.sets(st.sampled_from(names), min_size=3), min_size=1, max_size=3))
    questions = data.draw(st.lists(st.sampled_from(["00", "11"]), min_size=count, max_size=count))
    server = TwoFacedServer(drawn(count, 3), threshold, dict(zip(names, questions, strict=True)))
    stories = {name: data.draw(st.sampled_from(lists)) for name in names}
    told = {one.name for one in server.tell(stories)}
    assert len({(frozenset(stories[name]), server.asked[name]) for name in told}) <= 1
    for name in names:
        assert server.secret("seeds", name) is None or server.secret("keys", name) is None
    assert not told or len(stories[next(iter(told))]) >= server.roster.fewest


def test_signatures_of_others_lists_sessions_and_strangers_do_not_count():
    vectors = drawn(4, 4)
    everyone, other = list(vectors), TwoFacedServer(vectors, 2 / 3, dict.fromkeys(vectors, "11"))
    server = TwoFacedServer(vectors, 2 / 3, dict.fromkeys(vectors, "11"))

    def signed(by: TwoFacedServer, names: list[str]) -> dict[str, str]:
        return {name: kept(by.clients[name]).confirm(Survivors(names), by.identities[name]).signature for name in names}

    here, elsewhere, fewer = signed(server, everyone), signed(other, everyone), signed(server, everyone[:3])
    assert other.roster.digest != server.roster.digest, "keys are drawn anew, so that what was signed before is of no use"
    wrong = [
        elsewhere,
        fewer,
        dict.fromkeys(everyone, here[everyone[0]]),
        {**dict.fromkeys(everyone, "00"), everyone[0]: here[everyone[0]]},
        {f"stranger {k}": signature for k, signature in enumerate(here.values())},
    ]
    for signatures in wrong:
        client = kept(server.clients[everyone[0]])
        client.confirm(Survivors(everyone), server.identities[everyone[0]])
        with pytest.raises(GramfoldError, match=r"only [01] of at least 3 clients have signed"):
            client.unmask(Confirmations(signatures))


def test_a_server_notices_who_was_asked_something_else():
    clients = {name: Client.begin(name, "s", bytes([k]) * 32) for k, name in enumerate("abcd", start=1)}
    server = Server("s", SecureSum(), "11")
    roster = server.roster([client.keys for client in clients.values()])
    for client in clients.values():
        server.take(client.share(roster))
    inboxes, names = server.inboxes(), Survivors(list("abcd"))
    for name, client in clients.items():
        server.add(client.mask(inboxes[name], np.zeros((2, 3), np.uint64), "00" if name == "a" else "11"))
    with pytest.raises(GramfoldError, match="signed something else than what it was asked"):
        server.confirm(clients["a"].confirm(names, bytes([1]) * 32))
    with pytest.raises(GramfoldError, match="signed something else"):
        server.confirm(Confirmed("b", "00" * 64))
    with pytest.raises(GramfoldError, match="only 0 of at least 3 clients confirmed"):
        server.confirmations()


def test_what_is_asked_is_all_of_it():
    question = {"method": "afl", "task": "{}", "parameters": {"penalty": None}, "round": 0, "dp": {"eps": 1.0}}
    broadcast = Packet({"weights": np.arange(3.0)}, {"map": "bias+linear"})
    digests = [asked(question, broadcast)]
    digests += [asked({**question, key: "other"}, broadcast) for key in question]
    digests += [asked({**question, "more": 1}, broadcast)]
    digests += [asked(question, Packet({"weights": np.arange(3.0)}, {"map": "bias"}))]
    digests += [asked(question, Packet({"weights": np.array([0, 1, 2 + 1e-15])}, {"map": "bias+linear"}))]
    assert len(set(digests)) == len(digests)
    assert asked(dict(reversed(question.items())), broadcast) == digests[0]


def test_a_client_does_not_unmask_a_sum_of_too_few_samples():
    clients = {name: Client.begin(name, "s", bytes([k]) * 32, samples=10 * k) for k, name in enumerate("abcd", start=1)}
    server = Server("s", SecureSum(), "11")
    roster = server.roster([client.keys for client in clients.values()])
    assert roster.samples == 100
    for client in clients.values():
        server.take(client.share(roster))
    clients["a"].mask(server.inboxes()["a"], np.zeros((2, 3), np.uint64), "11", least=61)
    with pytest.raises(GramfoldError, match="have 60 of at least 61 samples"):
        kept(clients["a"]).confirm(Survivors(list("abc")), bytes([1]) * 32)
    assert kept(clients["a"]).confirm(Survivors(list("abd")), bytes([1]) * 32).name == "a"
