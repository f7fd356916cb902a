"""A secure sum is the plain integer sum, bit for bit, whoever drops out and whenever; what the server sees is noise."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sums import ASKED, STEPS, identity, kept, secure_sum, unmasked

from gramfold.errors import GramfoldError
from gramfold.privacy import Client, SecureSum, Server, graph
from gramfold.privacy.protocol import Confirmations, Inbox, Keys, Revealed, Roster, Shares, Survivors

pytest.importorskip("cryptography", reason="a secure sum needs the package cryptography")


def drawn(count: int, seed: int, words: int = 2, size: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f"client {k}": rng.integers(0, 2**64, (words, size), np.uint64, endpoint=False) for k in range(count)}


def integer_sum(vectors, names, words: int = 2) -> list[int]:
    """As Python adds up."""
    size = next(iter(vectors.values())).shape[1]
    return [sum(number(vectors[name][:, i]) for name in names) % 2 ** (64 * words) for i in range(size)]


def number(column: np.ndarray) -> int:
    return sum(int(word) << (64 * i) for i, word in enumerate(column))


def numbers(total: np.ndarray) -> list[int]:
    return [number(total[:, i]) for i in range(total.shape[1])]


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(3, 14), st.floats(0.51, 1.0), st.sampled_from([1, 2]), st.integers(0, 2**32 - 1))
def test_it_is_the_plain_sum_bit_for_bit_or_it_fails_in_words(data, count, threshold, words, seed):
    vectors, policy = drawn(count, seed, words), SecureSum(threshold)
    often = st.sampled_from((*STEPS, *("never",) * 12))
    drops = {name: data.draw(often, label=name) for name in vectors}
    left = {step: sum(STEPS.index(drop) > i for drop in drops.values()) for i, step in enumerate(STEPS)}
    needed = graph.needed(left["keys"], threshold) if left["keys"] else 0
    possible = left["mask"] >= 3 and min(left["share"], left["mask"], left["unmask"]) >= needed
    if not possible:
        with pytest.raises(GramfoldError, match="the secure sum failed"):
            secure_sum(vectors, policy, drops)
        return
    survivors = [name for name in vectors if STEPS.index(drops[name]) > STEPS.index("mask")]
    assert numbers(secure_sum(vectors, policy, drops)) == integer_sum(vectors, survivors, words)


@pytest.mark.parametrize("step", STEPS[1:-1])
@pytest.mark.parametrize("count", [4, 9, 30])
def test_so_many_may_drop_out_at_a_step_and_not_one_more(count, step):
    vectors, most = drawn(count, count), count - graph.needed(count, 2 / 3)
    for dropped in (most, most + 1):
        drops = dict.fromkeys(list(vectors)[:dropped], step)
        if dropped > most:
            with pytest.raises(GramfoldError, match="the secure sum failed"):
                secure_sum(vectors, SecureSum(), drops)
        else:
            survivors = [name for name in vectors if step in ("confirm", "unmask") or name not in drops]
            assert numbers(secure_sum(vectors, SecureSum(), drops)) == integer_sum(vectors, survivors)


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(st.integers(51, 200), st.integers(0, 2**32 - 1))
def test_beyond_fifty_clients_masks_are_few_and_the_sum_is_the_same(count, seed):
    vectors, rng = drawn(count, seed), random.Random(seed)
    drops = {name: rng.choice(STEPS[1:]) for name in rng.sample(list(vectors), count // 10)}
    survivors = [name for name in vectors if STEPS.index(drops.get(name, "never")) > STEPS.index("mask")]
    assert numbers(secure_sum(vectors, SecureSum(0.51), drops)) == integer_sum(vectors, survivors)


@pytest.mark.slow
def test_two_hundred_clients():
    vectors = drawn(200, 1)
    drops = {f"client {k}": STEPS[1 + k % 3] for k in range(9)}
    survivors = [name for name in vectors if STEPS.index(drops.get(name, "never")) > STEPS.index("mask")]
    assert numbers(secure_sum(vectors, SecureSum(), drops)) == integer_sum(vectors, survivors)


# --- what the server sees ---


def views(vectors: dict[str, np.ndarray], runs: int) -> dict[str, np.ndarray]:
    """The masked vectors of many sums, by client."""
    seen: dict[str, list[np.ndarray]] = {name: [] for name in vectors}
    for seed in range(runs):
        secure_sum(vectors, SecureSum(), seed=seed, look=lambda masked: seen[masked.name].append(masked.words))
    return {name: np.concatenate(parts, 1) for name, parts in seen.items()}


def uniform(words: np.ndarray) -> float:
    """The p-value of all bytes being equally frequent."""
    counts = np.bincount(np.ascontiguousarray(words).view(np.uint8).reshape(-1), minlength=256)
    return stats.chisquare(counts).pvalue


def test_masked_uploads_look_uniform_whatever_is_in_them():
    for content in (np.zeros((2, 4096), np.uint64), np.full((2, 4096), 7, np.uint64)):
        seen = views(dict.fromkeys("abcd", content), 4)
        for words in seen.values():
            assert uniform(words) > 1e-4
            assert np.unique(words).size == words.size


def test_inputs_with_the_same_sum_give_views_equal_in_distribution():
    rng, size = np.random.default_rng(0), 1024
    some = {name: rng.integers(0, 1000, (1, size), np.uint64) for name in "abc"}
    other = {"a": some["a"] + some["b"] + some["c"], "b": np.zeros((1, size), np.uint64), "c": np.zeros((1, size), np.uint64)}
    here, there = views(some, 8), views(other, 8)
    for coefficients in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 3, 5)):
        left, right = (sum(np.uint64(c) * view[n] for c, n in zip(coefficients, "abc", strict=True)) for view in (here, there))
        assert stats.ks_2samp(left.reshape(-1).astype(float), right.reshape(-1).astype(float)).pvalue > 1e-3
        assert min(uniform(left), uniform(right)) > 1e-4


# --- what a server or a client that lies comes up against ---


@pytest.fixture
def opened():
    """Four clients that have their shares, and their inboxes."""
    clients = {name: Client.begin(name, "s", bytes([k]) * 32) for k, name in enumerate("abcd", start=1)}
    server = Server("s", SecureSum(), ASKED)
    roster = server.roster([client.keys for client in clients.values()])
    for client in clients.values():
        server.take(client.share(roster))
    return server, clients, server.inboxes()


def test_no_step_is_taken_twice_not_even_by_a_client_that_was_put_away(opened):
    _, clients, inboxes = opened
    vector = np.zeros((2, 3), np.uint64)
    clients["a"].mask(inboxes["a"], vector, ASKED)
    for client in (clients["a"], kept(clients["a"])):
        with pytest.raises(GramfoldError, match="no step is taken twice"):
            client.mask(inboxes["a"], vector + np.uint64(1), ASKED)
    clients["a"].confirm(Survivors(["a", "b", "c", "d"]), identity("a"))
    for client in (clients["a"], kept(clients["a"])):
        with pytest.raises(GramfoldError, match="no step is taken twice"):
            client.confirm(Survivors(["a", "b", "c"]), identity("a"))
    with pytest.raises(GramfoldError, match="only 0 of at least 3 clients have signed"):
        clients["a"].unmask(Confirmations({}))
    with pytest.raises(GramfoldError, match="no step is taken twice"):
        clients["a"].unmask(Confirmations({}))


def test_nobody_gives_both_shares_of_one_client_and_secrets_are_gone_afterwards(opened):
    _, clients, inboxes = opened
    for name in "abd":
        clients[name].mask(inboxes[name], np.zeros((2, 3), np.uint64), ASKED)
    given = unmasked(clients, Survivors(["a", "b", "d"]))[0]
    assert (set(given.seeds), set(given.keys)) == ({"a", "b", "d"}, {"c"})
    assert not {clients["a"].seed, clients["a"].mask_private, clients["a"].cipher_private} - {""}
    assert not clients["a"].held


@pytest.mark.parametrize(("names", "why"), [("bcd", "this one among them"), ("ab", "it takes 3"), ("abx", "it takes 3")])
def test_a_list_of_survivors_that_hides_nobody_is_refused(opened, names, why):
    _, clients, inboxes = opened
    clients["a"].mask(inboxes["a"], np.zeros((2, 3), np.uint64), ASKED)
    with pytest.raises(GramfoldError, match=why):
        clients["a"].confirm(Survivors(list(names)), identity("a"))


def test_two_stories_about_one_client_reveal_nothing(opened):
    """A server that tells two clients that d dropped out, and two that it did not, gets no share at all."""
    _, clients, inboxes = opened
    stories = {"a": "abc", "b": "abcd", "c": "abc", "d": "abcd"}
    signed = {}
    for name, story in stories.items():
        clients[name].mask(inboxes[name], np.zeros((2, 3), np.uint64), ASKED)
        signed[name] = clients[name].confirm(Survivors(list(story)), identity(name)).signature
    for client in clients.values():
        with pytest.raises(GramfoldError, match="only 2 of at least 3 clients have signed"):
            client.unmask(Confirmations(signed))
        assert client.held, "and its shares are still its own"


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 60), st.floats(0.5, 1, exclude_min=True))
def test_a_secret_needs_more_than_half_of_its_holders(holders, threshold):
    assert holders < 2 * graph.needed(holders, threshold) <= 2 * holders


def test_keys_that_are_not_signed_or_not_known_are_refused():
    clients = [Client.begin(name, "s", bytes([k]) * 32) for k, name in enumerate("abc", start=1)]
    known = {client.name: client.keys.identity for client in clients}
    mallory = Client.begin("c", "s", bytes([9]) * 32)
    forged = Keys(**{**vars(mallory.keys), "identity": clients[2].keys.identity})
    stale = Client.begin("c", "another session", bytes([3]) * 32)
    for third, trusted, why in (
        (forged, None, "not signed by it"),
        (stale.keys, None, "not signed by it"),
        (mallory.keys, known, "is not the one that is known"),
        (Client.begin("m", "s", bytes([9]) * 32).keys, known, "is not known here"),
        (Client.begin("m", "s", bytes([2]) * 32).keys, None, "the same one"),
    ):
        roster = Roster("s", 2 / 3, [clients[0].keys, clients[1].keys, third])
        with pytest.raises(GramfoldError, match=why):
            kept(clients[0]).share(roster, trusted)
    clients[0].share(Roster("s", 2 / 3, [client.keys for client in clients]), known)


def test_a_changed_or_misdirected_share_is_noticed_and_the_masks_cancel_all_the_same(opened):
    server, clients, inboxes = opened
    sealed = inboxes["a"].sealed
    wrong = {**sealed, "b": sealed["b"][:-2] + f"{int(sealed['b'][-2:], 16) ^ 1:02x}"}
    for content in (wrong, {**sealed, "b": sealed["c"]}, {**sealed, "b": "zz"}):
        holder = kept(clients["a"])
        holder.mask(Inbox(content), np.zeros((2, 3), np.uint64), ASKED)
        assert set(holder.held) == {"a", "c", "d"}
    for name, client in clients.items():
        server.add(client.mask(Inbox(wrong) if name == "a" else inboxes[name], np.zeros((2, 3), np.uint64), ASKED))
    for revealed in unmasked(clients, server.survivors()):
        server.reveal(revealed)
    assert numbers(server.total()) == [0, 0, 0]


def test_who_breaks_the_shares_of_its_own_secrets_is_named():
    clients = {name: Client.begin(name, "s", bytes([k]) * 32) for k, name in enumerate("abcd", start=1)}
    server = Server("s", SecureSum(), ASKED)
    roster = server.roster([client.keys for client in clients.values()])
    for name, client in clients.items():
        shares = client.share(roster)
        server.take(Shares(name, dict.fromkeys(shares.sealed, "00" * 94)) if name == "b" else shares)
    inboxes = server.inboxes()
    for name, client in clients.items():
        server.add(client.mask(inboxes[name], np.zeros((2, 3), np.uint64), ASKED))
    for revealed in unmasked(clients, server.survivors()):
        server.reveal(revealed)
    with pytest.raises(GramfoldError, match="only 1 of at least 3 clients gave their share of the secret of 'b'"):
        server.total()


def test_a_wrong_share_ends_the_sum_and_does_not_change_it(opened):
    server, clients, inboxes = opened
    for name, client in clients.items():
        server.add(client.mask(inboxes[name], np.zeros((2, 3), np.uint64), ASKED))
    survivors = server.survivors()
    revealed = unmasked(clients, survivors)
    for one in revealed:
        server.reveal(Revealed("a", {**one.seeds, "b": f"{1:066x}"}, {}) if one.name == "a" else one)
    with pytest.raises(GramfoldError, match="do not fit together"):
        server.total()
    server.reveal(revealed[0])
    assert numbers(server.total()) == [0, 0, 0]


def test_what_is_no_masked_vector_is_not_added(opened):
    server, clients, inboxes = opened
    masked = clients["a"].mask(inboxes["a"], np.zeros((2, 3), np.uint64), ASKED)
    server.add(masked)
    with pytest.raises(GramfoldError, match="nobody waits for"):
        server.add(masked)
    for words in (np.zeros((1, 3), np.uint64), np.zeros((2, 3))):
        with pytest.raises(GramfoldError, match=r"is none|the others have"):
            server.add(type(masked)("b", words))


# --- the graph ---


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 300), st.binary(min_size=4, max_size=4))
def test_neighbours_know_each_other_and_all_are_one_group(count, seed):
    names = [str(k) for k in range(count)]
    found = graph.neighbours(names, seed)
    assert graph.connected(found, names)
    assert {len(near) for near in found.values()} == {graph.degree(count)}
    assert all(name in found[other] for name in names for other in found[name])
    assert all(name not in near for name, near in found.items())
    assert not graph.connected({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}, "abcd")


def test_the_order_follows_from_the_keys_and_from_nothing_else():
    names = [str(k) for k in range(80)]
    assert graph.neighbours(names, b"1") == graph.neighbours(names[::-1], b"1") != graph.neighbours(names, b"2")
    assert len({other for k in range(40) for other in graph.neighbours(names, bytes([k]))["0"]}) == 79


def test_a_policy_that_hides_nobody_is_refused():
    for bad in ({"threshold": 0.5}, {"threshold": 1.1}, {"minimum": 2}):
        with pytest.raises(GramfoldError, match=r"secure sum|hides nobody"):
            SecureSum(**bad)
    with pytest.raises(GramfoldError, match="only 2 of at least 3"):
        secure_sum(drawn(2, 0), SecureSum())
