"""Clients that are read a batch at a time: the same heads as all at once, from files; and a run that stops goes on."""

import numpy as np
import pytest

import gramfold as gf
from gramfold import wire
from gramfold.engines.streamed import workers

CLIENTS = 60


def make(clients: int = CLIENTS, inputs: int = 5, values: bool = False, kind=np.float64, largest: int = 30):
    """Clients whose classes, or values, depend on their samples, a little otherwise at each."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((inputs, 3))
    for k in range(clients):
        n = 6 + k % largest
        X = rng.standard_normal((n, inputs))
        scores = X @ (shared + 0.7 * rng.standard_normal((inputs, 3))) + 0.5 * rng.standard_normal((n, 3))
        y = np.tanh(scores[:, :2]) if values else scores.argmax(1)
        yield f"c{k}", X.astype(kind), y


@pytest.fixture
def small(monkeypatch):
    """Several batches of few clients."""
    monkeypatch.setattr("gramfold.federation.generated.CLIENTS", 13)
    monkeypatch.setattr("gramfold.engines.streamed.run.BATCHES", 2)


METHODS = {
    "linear": gf.PACE(features="bias+linear", groups=False),
    "fourier": gf.PACE(features="bias+linear+fourier:60", refinement="bias+relu:40"),
    "wide": gf.PACE(features="bias+relu:300", refinement="bias+relu:300"),
    "sketch": gf.PACE(features="bias+relu:400", regime="sketch"),
    "learned": gf.PACE(features="columns+bias+linear+fourier:64@learned:1", groups=True, personal=False),
    "afl": gf.AFL(),
    "apfl": gf.APFL(),
    "local": gf.Local(),
}


@pytest.mark.parametrize("values", [False, True], ids=["classes", "values"])
@pytest.mark.parametrize("name", METHODS)
def test_heads_are_those_of_a_run_of_all_clients_at_once(small, tmp_path, name, values):
    method = METHODS[name]
    federation = gf.Federation.from_stream(lambda: make(values=values), regression=values)
    whole = gf.run(method, federation, progress=False)
    found = gf.run_streamed(method, federation, tmp_path / "run", progress=False)
    X = np.random.default_rng(1).standard_normal((40, 5))
    assert list(found) == list(whole.heads)
    for client, head in whole.heads.items():
        other, scores = found.head(client), head.scores(X)
        # sums are added up in another order, and a method of several rounds carries that on
        assert np.abs(other.scores(X) - scores).max() <= (1e-9 if name != "learned" else 1e-7) * max(1.0, np.abs(scores).max())
        assert other.chosen.keys() == head.chosen.keys()
        assert (other.labels, other.method, other.unforeseen) == (head.labels, head.method, head.unforeseen)
        if other.familiar is not None:
            assert np.allclose(other.novelty(X), head.novelty(X), atol=0.02)
    kept = [client.accuracy if not values else client.rmse for client in whole.clients.values()]
    assert np.allclose(found.figures["score"], kept)
    assert np.isclose(found.mean_score, np.mean(kept))
    assert found.figures["train"].sum() == federation.task.samples


def scores_of(run, X):
    return np.stack([run.head(name).scores(X) for name in run])


class StopError(Exception):
    pass


# 5 batches are folded, the sum is written after the second and the fourth, and 5 are personalised
@pytest.mark.parametrize(("after", "left"), [(1, 10), (2, 10), (3, 8), (4, 8), (5, 6), (6, 4), (8, 2), (10, 0)])
def test_a_run_that_is_stopped_goes_on_where_it_was(small, tmp_path, after, left):
    X, federation = np.eye(5), gf.Federation.from_stream(make, test_size=0.0)
    method = METHODS["fourier"]
    whole = gf.run_streamed(method, federation, tmp_path / "whole", progress=False)
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == after:
            raise StopError

    with pytest.raises(StopError):
        gf.run_streamed(method, federation, tmp_path / "run", progress=stop)
    with pytest.raises(gf.GramfoldError, match="call gf.run_streamed again" if after > 2 else "holds no streamed run"):
        gf.load_streamed(tmp_path / "run")
    again = []
    found = gf.run_streamed(method, federation, tmp_path / "run", progress=again.append)
    assert len(again) == left
    assert list(found) == list(whole)
    assert np.allclose(scores_of(found, X), scores_of(whole, X), rtol=0, atol=1e-11)
    assert gf.run_streamed(method, federation, tmp_path / "run", progress=pytest.fail).mean_score is None


def test_progress_says_how_far_a_pass_is(small, tmp_path):
    events = []
    gf.run_streamed("afl", make, tmp_path / "run", progress=events.append)
    assert [(event.phase.split(",")[0], event.done, event.total) for event in events] == [
        (phase, done, CLIENTS) for phase in ("folding", "personalizing") for done in (13, 26, 39, 52, 60)
    ]


def test_a_small_clients_head_is_its_samples_and_coordinates(tmp_path):
    method = gf.PACE(features="bias+relu:255", refinement="bias+relu:255", groups=False)

    def clients():
        rng = np.random.default_rng(0)
        for k, (name, X, y) in enumerate(make(120, 32, kind=np.float32)):
            yield name, X[:20], y[:20] if k % 2 else rng.permutation(y[:20])

    found = gf.run_streamed(method, clients, tmp_path / "run", progress=False)
    whole = gf.run(method, gf.Federation.from_stream(clients), progress=False)
    # 15 samples for training of 32 numbers (4 bytes) and up to two ways to add to 3 classes, and some figures
    assert found.bytes_per_head - (tmp_path / "run" / "streamed.safetensors").stat().st_size / 120 < 3500
    assert whole.heads["c25"].pack().wire_bytes > 30_000
    assert isinstance(found.head("c25").streams[0].weights, np.ndarray)


def test_a_file_that_was_written_to_is_noticed(tmp_path):
    found = gf.run_streamed("pace", make, tmp_path / "run", progress=False)
    path = tmp_path / "run" / "heads" / "000000.heads"
    content = bytearray(path.read_bytes())
    shard = wire.mapped(path)
    offset = len(content) - sum(shard[name].nbytes for name in ("contents", "layouts", "names"))
    content[offset + 11] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(gf.GramfoldError, match="is damaged: the head of client 'c0' is not as it was written"):
        gf.load_streamed(tmp_path / "run").head("c0")
    assert gf.load_streamed(tmp_path / "run").head("c7").labels == found.head("c7").labels


@pytest.mark.parametrize(
    ("method", "clients", "message"),
    [
        ("pace", [], "the stream has no clients"),
        ("pace", [*make(2), *make(1)], "client 'c0' comes again after others"),
        ("pace", [*make(1), *make(2, inputs=4)], "client 'c0' has 4 numbers per sample, 'c0' 5"),
        ("fedavg", make, r"would tune lr by trial runs, which run_streamed does not; set it: FedAvg\(lr=...\)"),
        (gf.FedHiP(at="server"), make, "use gf.run, or another method"),
        (gf.DeepAFL(), make, "use gf.run, or another method"),
        ("pace", gf.Federation.from_clients({"a": (np.eye(4), [0, 1, 0, 1])}), "make them with gf.Federation.from_stream"),
        ("afl", 5, "a stream is a function that yields"),
    ],
)
def test_what_cannot_be_run_so_is_said(tmp_path, method, clients, message):
    with pytest.raises(gf.GramfoldError, match=message):
        gf.run_streamed(method, clients, tmp_path / "run", progress=False)


def test_a_folder_is_of_one_run(tmp_path):
    gf.run_streamed("afl", make, tmp_path / "run", progress=False)
    for method, clients in (("pace", make), ("afl", lambda: make(59)), (gf.AFL(penalty=3.0), make)):
        with pytest.raises(gf.GramfoldError, match="holds a run with other clients or settings"):
            gf.run_streamed(method, clients, tmp_path / "run", progress=False)
    with pytest.raises(gf.GramfoldError, match="there is no client 'c60'"):
        gf.load_streamed(tmp_path / "run").head("c60")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(gf.GramfoldError, match="holds something else than a streamed run"):
        gf.run_streamed("afl", make, tmp_path / "other", progress=False)
    with pytest.raises(gf.GramfoldError, match="holds no streamed run"):
        gf.load_streamed(tmp_path / "other")


@pytest.mark.processes
@pytest.mark.parametrize("name", ["fourier", "learned"])
def test_processes_make_the_heads_that_one_makes(small, tmp_path, name):
    X, method = np.eye(5), METHODS[name]
    alone = gf.run_streamed(method, make, tmp_path / "alone", progress=False)
    events = []
    beside = gf.run_streamed(method, make, tmp_path / "beside", processes=2, progress=events.append)
    assert [event.done for event in events][-5:] == [13, 26, 39, 52, 60]
    assert np.array_equal(scores_of(alone, X), scores_of(beside, X))
    assert np.array_equal(alone.figures["score"], beside.figures["score"])


@pytest.mark.processes
def test_a_process_that_dies_is_said_and_costs_time_only(small, tmp_path, monkeypatch):
    begun, start = [], workers._started

    def started(folder):
        begun.append(start(folder))
        return begun[-1]

    def kill(event):
        if event.phase.startswith("personalizing"):
            for process in begun:
                process.kill()

    monkeypatch.setattr(workers, "_started", started)
    with pytest.raises(gf.GramfoldError, match=r"a worker process has died; call gf\.run_streamed again"):
        gf.run_streamed("afl", make, tmp_path / "run", processes=2, progress=kill)
    assert len(gf.run_streamed("afl", make, tmp_path / "run", processes=2, progress=False)) == CLIENTS
    assert all(process.poll() is not None for process in begun)
