"""A server that lies in its messages reads nothing that a site's policy keeps back. Every test here was an attack that worked."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lying import Server, save

import gramfold as gf
from gramfold.deploy.processes import Process
from gramfold.evaluation import Calibration, Scored
from gramfold.federation import Task
from gramfold.federation.blocks import stratified
from gramfold.numerics import seeds
from gramfold.privacy import DP
from gramfold.remote import figures
from gramfold.remote.policy import Policy
from gramfold.remote.state import secret
from gramfold.remote.tasks import agreed_task

ROWS, INPUTS = 24, 2
STRICT = {"release-require": "secure,dp", "release-times": 0, "release-samples": 10**6}
"""What lets nothing out."""
PROMISED: dict[str, Any] = {"secure": True, "dp": {"eps": 1.0, "delta": 1e-5}}
"""What the server says of its run."""


@pytest.fixture
def rows(rng) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((ROWS, INPUTS)), np.round(rng.uniform(1, 9, ROWS), 1) + 0.01


@pytest.fixture
def config(tmp_path, rows) -> dict[str, Any]:
    return {"name": "a", "data": save(tmp_path / "own.npz", *rows), "state-dir": str(tmp_path / "state"), "regression": True}


@pytest.fixture
def server(config) -> Server:
    return Server(config, gf.AFL(features="linear"), Task(INPUTS, None, 1, 0))


def diary(config: dict[str, Any]) -> list[dict[str, Any]]:
    path = Path(config["state-dir"]) / "sent.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- figures are a release ---


def read_by_errors(server: Server, questions: int = 30) -> np.ndarray:
    """Squared errors of the model that predicts nothing, on splits of the server's seed, solved for every row's square."""
    drawn, errors = [], []
    for seed in range(questions):
        server.task = replace(server.task, seed=seed)
        held_out = stratified(np.zeros(ROWS, int), 0.25, seeds.generator(seed, "split/a"))[1]
        told = server.ask("personalize", server.shared(np.zeros(INPUTS)), upload="0" * 32, **PROMISED).header
        drawn.append(np.bincount(held_out, minlength=ROWS))
        errors.append(told.get("scored", {}).get("squared_error", 0.0))
    return np.sqrt(np.abs(np.linalg.lstsq(np.array(drawn, float), np.array(errors), rcond=None)[0]))


@pytest.mark.parametrize("policy", [STRICT, {"release-require": "secure"}, {"release-times": 0}, {}], ids=repr)
def test_figures_do_not_read_the_rows_of_a_site(policy, config, server, rows):
    """432 messages read all 24 rows, with their labels to 5e-11, of a site that lets nothing out."""
    config |= policy
    read = read_by_errors(server)
    assert (np.abs(read - rows[1]) > 0.1 * rows[1]).all()
    assert not any("figures" in line for line in diary(config)), "no sum has the site's samples: nothing leaves"


def test_figures_leave_a_site_once_for_each_upload_and_are_in_its_diary(config, server):
    config["server"] = "federation.example.org"
    upload = server.upload().header["upload"]
    first = server.ask("personalize", server.shared([1.0, 0.0]), upload=upload).header
    again = server.ask("personalize", server.shared([1.0, 0.0]), upload=upload).header
    assert first["scored"] == again["scored"], "the same question has the same answer, however often"
    other = server.ask("personalize", server.shared([1.0, 1e-9]), upload=upload).header
    assert "1 of 1" in other["withheld"]
    assert "scored" not in other
    told = [line for line in diary(config) if "figures" in line]
    assert [line["server"] for line in told] == ["federation.example.org"] * 2
    assert told[0]["told"]["scored"] == first["scored"]
    assert told[0]["of"] == upload
    assert len({line["figures"] for line in told}) == 1


def test_a_site_can_say_how_many_figures_or_none(config, server):
    config["release-figures"] = 2
    upload = server.upload().header["upload"]
    told = [server.ask("personalize", server.shared([w, 0.0]), upload=upload).header for w in (1.0, 2.0, 3.0)]
    assert ["withheld" in header for header in told] == [False, False, True]
    config["release-figures"] = 0
    assert "0 of 0" in server.ask("personalize", server.shared([4.0, 0.0]), upload=upload).header["withheld"]


def test_figures_without_a_sum_are_a_release_of_their_own(config, server):
    """Methods without rounds ask for no upload; the map is the server's."""
    server.method = gf.Local(features="linear")
    assert "scored" in server.ask("personalize", server.begin()).header
    config["release-times"] = 1
    server.task = replace(server.task, seed=7)  # another map
    header = server.ask("personalize", server.begin()).header
    assert "allows 1 uploads, and 1 have left it" in header.get("error", "") + header.get("withheld", "")
    config["release-require"] = "secure"
    assert "scored" not in server.ask("personalize", server.begin(), **PROMISED).header


def test_a_site_draws_its_own_split(config, server):
    """The same rows are held out whatever the seed of the task; another site of the same name holds out others."""

    def split(seed: int) -> str:
        from gramfold.remote.site import Site

        return Site(config).client(replace(server.task, seed=seed)).train().digest()

    assert len({split(seed) for seed in range(5)}) == 1
    before = split(0)
    (Path(config["state-dir"]) / "site.key").unlink()
    assert split(0) != before


def test_figures_have_the_digits_of_their_standard_error(rng):
    bins = rng.multinomial(1000, np.ones(15) / 15).astype(float)
    exact = Scored(1000, 843, 1234.5678, Calibration(bins, bins * 0.912345, bins * 0.9), 512.3456, 0.912345, 0.812345, 987.654)
    told = figures.rounded(exact)
    assert (told.right, told.squared_error, told.surprise) == (840, 1230.0, 510.0)
    assert (told.auc, told.balanced_accuracy, told.variation) == (0.91, 0.81, 990.0)
    assert told.calibration.count.sum() <= 1000
    assert abs(told.calibration.expected_error - exact.calibration.expected_error) < 0.5 / np.sqrt(1000)
    few = Scored(20, 13, 0.0)
    assert figures.rounded(few).right == 13
    assert figures.rounded(Scored(0)) == Scored(0)


def test_choices_have_few_digits():
    told = figures.released(
        50, Scored(10, 5), None, {"beta": 0.123456789, "leave_one_out_accuracy": 0.8123, "regime": "sum", "k": 12}
    )
    assert told["chosen"] == {"beta": 0.123, "leave_one_out_accuracy": 0.81, "regime": "sum", "k": 12}


def test_where_the_policy_asks_for_noise_figures_have_it(config, tmp_path, rng):
    """Only the shared model's, for nothing covers what the site's own head says of its training samples; and the same twice."""
    X, y = rng.standard_normal((400, INPUTS)), rng.integers(0, 2, 400)
    config |= {"data": save(tmp_path / "classes.npz", X, y), "regression": False}
    shared = Scored(100, 60)
    state = Path(config["state-dir"])
    assert figures.policy_eps(Policy.read({"release-eps": 2.0}), {"dp": {"eps": 1.0}}) == 2.0
    assert figures.policy_eps(Policy.read({"release-require": "dp"}), {"dp": {"eps": 1.0}}) == 1.0
    assert figures.policy_eps(Policy.read({}), {"dp": {"eps": 1.0}}) is None
    told = [figures.with_noise(state, f"{i}", shared, 1.0, True) for i in range(400)]
    assert told[0] == figures.with_noise(state, "0", shared, 1.0, True)
    assert all("scored" not in one and "chosen" not in one and "train" not in one for one in told)
    # Laplace noise of scale 2 has a standard deviation of 2 sqrt 2; 400 draws are within a fifth of it, nearly surely
    assert np.std([one["shared"]["right"] for one in told]) == pytest.approx(2 * np.sqrt(2), rel=0.25)
    assert len(secret(state)) == 32
    assert "shared" not in figures.with_noise(state, "0", shared, 1.0, False)


# --- policies are the site's ---


def test_the_name_of_a_sum_is_not_what_is_counted(config, server):
    """release-times counted the server's names for runs: one name, asked with other broadcasts, was one release."""
    config["release-times"] = 1
    first = server.upload().header
    assert first["upload"] == server.upload().header["upload"]
    server.task = replace(server.task, seed=1)
    assert "allows 1 uploads, and 1 have left it" in server.upload().header["error"]
    server.task = replace(server.task, seed=0)
    named = server.upload(run="another name").header
    assert "allows 1 uploads" in named["error"]


def test_the_id_of_an_upload_covers_the_broadcast(config, tmp_path, rng):
    X, y = rng.standard_normal((ROWS, INPUTS)), rng.integers(0, 2, ROWS)
    config |= {"data": save(tmp_path / "classes.npz", X, y), "regression": False, "release-times": 1}
    server = Server(config, gf.AFL(features="relu:4"), Task(INPUTS, (0, 1), 2, 0))
    begun = server.begin()
    mine = server.ask("local", begun).header
    other = Server(config, server.method, replace(server.task, seed=5)).begin()  # the map of another seed, under the same header
    theirs = server.ask("local", other).header
    assert "upload" in mine
    assert "allows 1 uploads" in theirs["error"]


def test_noise_with_a_delta_near_one_is_none(config):
    policy = Policy.read({"release-eps": 1.0})
    policy.check_run({"method": "pace", "dp": {"eps": 1.0, "delta": 1e-5}})
    for lie in ({"eps": 1.0, "delta": 0.999}, {"eps": 1.0, "delta": "small"}, {"eps": True, "delta": 1e-5}, True, {"eps": -1.0}):
        with pytest.raises(gf.GramfoldError, match="of at most"):
            policy.check_run({"method": "pace", "dp": lie})
    Policy.read({"release-delta": 1e-3}).check_run({"method": "pace", "dp": vars(DP(8.0, 1e-3))})
    with pytest.raises(gf.GramfoldError, match="release-delta"):
        Policy.read({"release-delta": 0})


def test_a_map_with_more_in_its_description_is_another_map(config, server):
    """A metric map passed as the one that is allowed, with a further key."""
    config["release-maps"] = "linear"
    assert "upload" in server.upload().header
    begun = server.begin()
    allowed = begun.space.map
    metric = gf.features.MetricMap({"plain": allowed.description, "blocks": [], "map": allowed.description["map"]}, {})
    longer = gf.features.DrawnMap({**{k: v for k, v in allowed.description.items() if k != "kind"}, "more": 1})
    for other in (metric, longer):
        lied = server.ask("local", replace(begun, space=replace(begun.space, map=other)))
        assert "this run has another" in lied.header["error"]


def test_a_list_of_maps_admits_no_network(config, tmp_path, rng):
    pytest.importorskip("torch")
    X, y = rng.standard_normal((ROWS, INPUTS)), rng.integers(0, 2, ROWS)
    config |= {"data": save(tmp_path / "classes.npz", X, y), "regression": False, "release-maps": "linear"}
    server = Server(config, gf.FedAvg(rounds=2), Task(INPUTS, (0, 1), 2, 0))
    assert "this run has none that could be checked" in server.upload().header["error"]


def test_classes_that_are_asked_for_as_values_are_classes(config, tmp_path, rng):
    X, y = rng.standard_normal((ROWS, INPUTS)), np.r_[np.zeros(ROWS - 1), 1.0]
    np.savez(tmp_path / "classes.npz", features=X, labels=y, train=np.ones(ROWS, bool))
    config |= {"data": str(tmp_path / "classes.npz"), "regression": False, "release-class-samples": 5}
    as_values = Server(config, gf.AFL(features="linear"), Task(INPUTS, None, 1, 0))
    assert "classes with fewer than 5 samples" in as_values.upload().header["abstains"]
    config["regression"] = True  # the site itself says that they are values
    assert "upload" in as_values.upload().header


# --- refusals tell no cells ---

WORD = "Hans Mueller, 1951-03-02, HIV+"
LOADERS = {
    "a value that is no number": f"import numpy as np\ndef load(site): return np.array([['{WORD}']]).astype(float), np.zeros(1)",
    "an error of its own": f"def load(site): raise ValueError('{WORD}')",
    "a class nobody has": f"import numpy as np\ndef load(site): return np.ones((4, 2)), np.array(['{WORD}'] * 4)",
}


@pytest.mark.parametrize("what", LOADERS)
@pytest.mark.parametrize("kind", ["local", "task", "personalize"])
def test_what_a_loader_stumbles_over_stays_at_the_site(what, kind, tmp_path):
    (tmp_path / "ours.py").write_text(LOADERS[what])
    config = {"name": "a", "loader": f"{tmp_path}/ours.py:load", "state-dir": str(tmp_path / "state")}
    server = Server(config, gf.AFL(features="linear"), Task(INPUTS, ("x", "y"), 2, 0))
    answer = server.ask(kind, server.begin())
    if kind == "task" and what == "a class nobody has":
        return  # the list of classes is what a description is for
    assert "error" in answer.header
    assert not any(part in json.dumps(answer.header) for part in ("Hans", "1951", "HIV", str(tmp_path)))
    (line,) = diary(config)
    assert "Hans" in line["refused"], "its own log has the whole of it"


def test_a_cell_that_is_no_number_stays_though_its_column_is_named(tmp_path):
    """A server that says that names are numbers was told one, by the column's refusal."""
    (tmp_path / "numbers.csv").write_text(
        "patient,age,sick\n" + "".join(f"{i % 9},{30 + i % 7},{'ny'[i % 2]}\n" for i in range(40))
    )
    names = (f"Patient Number{i % 5},{30 + i % 7},{'ny'[i % 2]}\n" for i in range(40))
    (tmp_path / "names.csv").write_text("patient,age,sick\n" + "".join(names))
    one, other = (
        {"name": what, "data": str(tmp_path / f"{what}.csv"), "label-column": "sick", "state-dir": str(tmp_path / what)}
        for what in ("numbers", "names")
    )
    described = dict(Server(one, gf.AFL(features="linear"), Task(1, ("n", "y"), 2, 0)).ask("task").header)
    server = Server(other, gf.AFL(features="linear"), agreed_task({"numbers": described}, 0))
    header = server.upload().header
    assert "Patient Number" not in json.dumps(header)
    assert "column 'patient'" in header["error"]


def test_an_unknown_error_is_a_code_that_the_sites_own_log_has(config, server):
    Path(config["data"]).write_bytes(b"PK")
    words = server.upload().header["error"]
    (line,) = diary(config)
    assert line["code"] in words or "not a readable .npz file" in words
    assert config["data"] not in words


def test_local_paths_do_not_leave(config, server):
    config["state-dir"] = "/dev/null/private-place"
    assert "private-place" not in server.upload().header["error"]
    config["data"] = "/home/somebody/secret.npz"
    assert "somebody" not in server.upload().header["error"]


# --- secure sums ---


def test_every_secure_sum_is_another_release_whatever_it_is_called(tmp_path, federation):
    pytest.importorskip("cryptography")
    from flower_cases import Sites

    sites = Sites(tmp_path, federation)
    sites.config["2"]["release-times"] = 1
    assert sites.run(gf.AFL(), secure=True)["sites"]["excluded"] == {}
    again = sites.run(gf.AFL(), secure=True, out="again")
    assert "allows 1 uploads, and 1 have left it already" in again["sites"]["excluded"]["2"]


# --- file modes ---


def test_nobody_else_reads_what_a_server_keeps(tmp_path, federation):
    from flower_cases import Sites

    sites = Sites(tmp_path, federation)
    sites.run(gf.AFL())
    for path in (sites.folder / "out").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_what_processes_write_is_nobody_elses(tmp_path):
    """Flower's database among it."""
    process = Process(["sh", "-c", "echo x > link.db"], tmp_path / "log", {"PATH": "/usr/bin:/bin"}, tmp_path)
    for _ in range(200):
        if not process.running:
            break
        time.sleep(0.05)
    assert (tmp_path / "link.db").stat().st_mode & 0o077 == 0


def test_nobody_else_reads_what_a_site_keeps(config, server):
    server.ask("personalize", server.shared([1.0, 0.0]), upload=server.upload().header["upload"])
    state = Path(config["state-dir"])
    for path in (state, *state.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
