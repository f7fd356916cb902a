"""A cluster of real worker processes gives what one process gives, whatever becomes of its workers."""

import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold.engines import Event
from gramfold.errors import OptionError
from gramfold.methods import ANALYTIC
from gramfold.wire import read_sealed
from strategies import relative

distributed = pytest.importorskip("distributed", reason="needs the extra dask")
ALL = [*(method() for method in ANALYTIC), gf.FedHiP(at="server")]


@pytest.fixture(scope="module")
def cluster():
    """Two workers of a thread each."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


def same(one: gf.engines.Result, other: gf.engines.Result, X: np.ndarray, tolerance: float = 1e-9) -> None:
    assert list(one.heads) == list(other.heads)
    for name, head in one.heads.items():
        scores = head.scores(X)
        finite = np.isfinite(scores)
        assert relative(other.heads[name].scores(X)[finite], scores[finite]) < tolerance
    assert one.mean_accuracy == other.mean_accuracy
    assert one.rounds == other.rounds
    for name, client in one.clients.items():
        assert client.scored.n == other.clients[name].scored.n
        assert client.uplink_bytes == other.clients[name].uplink_bytes
        # a number that was chosen may have a digit more or less in its JSON
        assert abs(client.downlink_bytes - other.clients[name].downlink_bytes) <= 64


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_a_run_is_that_of_one_process(method, federation, blobs, cluster):
    # sums in another order; a further round starts from the rounding of the one before
    same(gf.run(method, federation), gf.run(method, federation, engine="dask", cluster=cluster), blobs[0])


def samples(seed: int, n: int = 60, inputs: int = 8) -> tuple[np.ndarray, np.ndarray]:
    codes = np.arange(n) % 4
    rng = np.random.default_rng(seed)
    return np.random.default_rng(0).standard_normal((4, inputs))[codes] * 1.5 + rng.standard_normal((n, inputs)), codes


def load(folder: Path, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A client's samples, as a file of its own would be read; that it was read, and where, is written down."""
    with (folder / str(seed)).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return samples(seed)


def apart(folder: Path, clients: int = 24) -> gf.Federation:
    """Clients of whom nothing is here but where they can be read."""
    folder.mkdir()
    return gf.Federation.from_clients({str(k): partial(load, folder, k) for k in range(clients)}, labels=range(4))


def readers(folder: Path) -> set[int]:
    return {int(line) for path in folder.iterdir() for line in path.read_text().split()}


def test_clients_travel_as_references_and_are_read_where_they_are_worked_on(cluster, tmp_path):
    federation = apart(tmp_path / "read")
    for path in (tmp_path / "read").iterdir():
        path.unlink()
    gf.run(gf.AFL(), federation, engine="dask", cluster=cluster)
    assert len(list((tmp_path / "read").iterdir())) == 24
    assert readers(tmp_path / "read") <= set(cluster.run(os.getpid).values())


def killing(cluster, phase: str, after: int):
    """A progress that kills a worker, once, when so many clients of a phase are done."""
    victims = list(cluster.run(os.getpid).values())[:1]

    def progress(event: Event) -> None:
        if victims and event.phase == phase and event.done >= after:
            os.kill(victims.pop(), signal.SIGKILL)

    return progress, victims


@pytest.mark.parametrize(("method", "phase"), [(gf.AFL(), "local"), (gf.PACE(features="bias+linear"), "personalize")], ids=repr)
def test_a_worker_killed_in_mid_run_changes_nothing(method, phase, cluster, tmp_path):
    federation = apart(tmp_path / "read")
    expected = gf.run(method, federation)
    progress, victims = killing(cluster, phase, 6)
    found = gf.run(method, federation, engine="dask", cluster=cluster, progress=progress)
    assert not victims, "nobody was killed"
    same(expected, found, samples(99)[0])
    assert expected.run.total is not None
    assert found.run.total is not None
    assert found.run.total.n == expected.run.total.n, "a client counts twice, or not at all"


@pytest.mark.parametrize("method", [gf.AFL(), gf.DeepAFL(features="linear", refinement="relu:64", depth=2)], ids=repr)
def test_samples_that_died_with_their_worker_are_sent_anew(method, cluster):
    X, codes = samples(0, 8_000, 200)
    federation = gf.Federation.split(X, codes, clients=8, partition="dirichlet:0.5", random_state=1)
    expected = gf.run(method, federation)
    progress, victims = killing(cluster, "personalize", 1)
    found = gf.run(method, federation, engine="dask", cluster=cluster, progress=progress)
    assert not victims, "nobody was killed"
    same(expected, found, X[:100])


def test_heads_are_written_by_workers(cluster, federation, blobs, tmp_path):
    expected = gf.run(gf.PACE(), federation)
    found = gf.run(gf.PACE(), federation, engine="dask", cluster=cluster, heads=tmp_path / "heads")
    assert found.heads == {}
    assert found.mean_accuracy == expected.mean_accuracy
    folder = tmp_path / "heads" / "pace"
    assert {path.stem for path in folder.glob("*.safetensors")} == set(expected.heads)
    for name, head in expected.heads.items():
        assert relative(gf.load_head(folder / f"{name}.safetensors").scores(blobs[0]), head.scores(blobs[0])) < 1e-9
        card, other = expected.cards()[name], read_sealed(folder / f"{name}.card.json")
        assert other["figures"].keys() == card["figures"].keys()
        for key, figure in card["figures"].items():
            assert other["figures"][key] == (None if figure is None else pytest.approx(figure, rel=1e-6)), key
        assert (other["whose"], other["data"], other["map"]) == (card["whose"], card["data"], card["map"])
        assert other["federation"]["clients"] == card["federation"]["clients"] == 7


def test_the_command_runs_on_a_cluster(cluster, gramfold, tmp_path):
    ask = ["run", "--methods", "afl,apfl", "--clients", "5", "--engine", "dask", "--cluster", cluster.scheduler.address]
    code, out, err = gramfold(*ask, "--heads", "heads", "--out", "run")
    assert code == 0, err
    assert "apfl" in out
    assert {path.name for path in (tmp_path / "heads").iterdir()} == {"afl", "apfl"}
    assert len(list((tmp_path / "heads" / "apfl").glob("*.safetensors"))) == 5


def test_what_a_cluster_cannot_do_is_said(federation, cluster, monkeypatch):
    with pytest.raises(gf.GramfoldError, match="no secure sums, noise or checkpoint"):
        gf.run(gf.AFL(), federation, engine="dask", cluster=cluster, dp=gf.DP(eps=8))
    with pytest.raises(OptionError):
        gf.run(gf.AFL(), federation, cluster="tcp://127.0.0.1:8786")
    monkeypatch.setattr("gramfold.engines.dask.cluster.PATIENCE", 0.2)
    with pytest.raises(gf.GramfoldError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        gf.run(gf.AFL(), federation, engine="dask", cluster="tcp://127.0.0.1:9")
