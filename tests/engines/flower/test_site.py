"""A site: its data comes from its own configuration only, and what it keeps survives on its own disk."""

import json

import numpy as np
import pytest

import gramfold as gf
from flower_cases import Sites
from gramfold.engines.flower.local_grid import app_node
from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.remote.messages import Message
from gramfold.remote.site import Site, head_file
from gramfold.remote.tasks import agreed_task, task_from_json, task_to_json
from gramfold.version import __version__
from gramfold.wire import Packet

LOADER = """
import numpy as np

def load(config):
    rng = np.random.default_rng(config["number"])
    X, y = rng.standard_normal((40, 8)), rng.integers(0, 4, 40)
    return (X, y, X[:10], y[:10]) if config["split"] else (X, y)

def regression(config):
    X, y = load({**config, "split": False})
    return X, y + 0.5

def images(config):
    return np.zeros((4, 6, 6, 3), np.uint8), np.array(["cat", "dog", "cat", "dog"])
"""


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


@pytest.fixture
def loader(tmp_path):
    path = tmp_path / "our_loader.py"
    path.write_text(LOADER)
    return path


def describe(config: dict) -> dict:
    return dict(Site(config).answer("task", lambda: Message({"gramfold": __version__})).header)


def test_a_loader_is_called_with_the_nodes_own_configuration(loader, sites):
    nodes = {}
    for k, name in enumerate(sites.names):
        sites.config[name] = {
            "name": name, "loader": f"{loader}:load", "number": k, "split": k % 2 == 0,
            "state-dir": sites.config[name]["state-dir"],
        }  # fmt: skip
        nodes[name] = app_node(sites.config[name])
    result = sites.run(gf.AFL(), nodes)
    sizes = [(client["train"], client["test"]) for client in result["methods"][0]["clients"]]
    assert sizes == [(40, 10) if k % 2 == 0 else (30, 10) for k in range(7)]


def test_a_loader_may_be_a_module(loader, sites, monkeypatch):
    monkeypatch.syspath_prepend(loader.parent)
    config = {"name": "a", "loader": "our_loader:load", "number": 0, "split": True}
    assert describe(config)["samples"] == 40


def test_a_message_cannot_say_where_the_data_lies(sites, tmp_path):
    """Only the node's configuration is asked, whatever the server's message holds."""
    evil = {"loader": "os:system", "data": "/etc/passwd", "state-dir": str(tmp_path / "evil"), "name": "evil"}
    header = {
        "gramfold": __version__, "method": "afl", "parameters": {}, "task": task_to_json(sites.federation.task), "run": "",
        "round": 0, "counted": [], "session": "../../evil", **evil,
    }  # fmt: skip
    broadcast = gf.AFL().begin(sites.federation.task).pack()
    answer = Site(sites.config["1"]).answer("local", lambda: Message(header, {"broadcast": broadcast}))
    assert answer.header["site"] == "1"
    assert answer.packets["upload"].meta["n"] == sites.federation.clients[1].train().n
    assert not (tmp_path / "evil").exists()


def test_a_method_with_a_path_for_a_name_writes_nothing_but_the_refusal(sites, tmp_path):
    header = {
        "gramfold": __version__, "method": "../../evil", "parameters": {}, "task": task_to_json(sites.federation.task), "run": "",
    }  # fmt: skip
    answer = Site(sites.config["1"]).answer("local", lambda: Message(header, {"broadcast": Packet()}))
    assert "unknown method" in answer.header["error"]
    written = [path.relative_to(tmp_path / "state") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert list(map(str, written)) == ["1/sent.jsonl"]  # the site's own note of the refusal


def test_a_site_may_have_one_class_and_nothing_to_test_on(sites):
    with np.load(sites.data("1")) as file:
        content = {key: file[key] for key in file.files}
    np.savez(sites.data("1"), **{**content, "labels": 0 * content["labels"], "train": np.ones(len(content["train"]), bool)})
    result = sites.run(gf.PACE(learn=False))
    assert result["sites"]["answered"] == sites.names
    one = result["methods"][0]["clients"][1]
    assert (one["train"], one["test"], one["accuracy"]) == (len(content["train"]), 0, None)


def test_what_a_site_keeps(sites):
    method = gf.PACE(learn=False)
    sites.run(method)
    state = sites.folder / "state" / "3"
    head = gf.load_head(head_file(state, "pace"))
    assert head.method == "pace"
    (session,) = (path for path in (state / "pace").iterdir() if path.is_dir())
    kept = sorted(path.name.partition("-")[0] for path in session.iterdir())
    assert kept == ["memory.safetensors", "places.json", "upload"]
    (upload,) = session.glob("upload-*.safetensors")
    assert gf.Moments.load(upload).n == sites.federation.clients[3].train().n
    assert not list(state.rglob("*.tmp"))


def test_an_upload_has_the_same_id_however_often_it_is_asked_for(sites):
    header = {
        "gramfold": __version__, "method": "afl", "parameters": {}, "task": task_to_json(sites.federation.task), "run": "",
        "round": 0, "counted": [],
    }  # fmt: skip
    broadcast = gf.AFL().begin(sites.federation.task).pack()

    def upload_id(name: str, **more: object) -> str:
        answer = Site(sites.config[name]).answer("local", lambda: Message({**header, **more}, {"broadcast": broadcast}))
        return answer.header["upload"]

    assert upload_id("1") == upload_id("1")
    different = [upload_id("1"), upload_id("2"), upload_id("1", parameters={"penalty": 1.0}), upload_id("1", round=1)]
    assert len(set(different)) == 4


# --- the task that sites agree on ---


def test_what_a_site_says_of_its_data(loader, sites):
    base = {"name": "a", "number": 0, "split": False}
    features, client = describe(sites.config["1"]), sites.federation.clients[1]
    assert (features["site"], features["gramfold"], features["inputs"], features["shape"]) == ("1", __version__, 8, [])
    assert features["labels"] == sorted({*client.train().targets.tolist(), *client.test().targets.tolist()})
    assert (features["declared"], features["samples"]) == (False, client.train().n)
    assert describe({**base, "loader": f"{loader}:regression"})["labels"] is None
    images = describe({**base, "loader": f"{loader}:images"})
    assert (images["shape"], images["labels"], images["inputs"]) == ([6, 6, 3], ["cat", "dog"], 108)


def test_a_file_with_classes_lists_them(tmp_path):
    np.savez(tmp_path / "a.npz", features=np.eye(4), labels=np.array([0, 0, 1, 1]), classes=np.array(["x", "y", "z"]))
    answer = describe({"name": "a", "data": str(tmp_path / "a.npz")})
    assert (answer["labels"], answer["declared"], answer["samples"]) == (["x", "y", "z"], True, 3)


def site(labels=(0, 1), declared=False, **more) -> dict:
    outputs = 1 if labels is None else len(labels)
    base = {"inputs": 8, "shape": [], "labels": labels and list(labels), "outputs": outputs, "declared": declared, "samples": 10}
    return {**base, **more}


def test_sites_without_a_list_have_all_their_labels_together():
    assert agreed_task({"a": site((2, 0)), "b": site((1,))}, 5) == Task(8, (0, 1, 2), 3, 5, 20)


def test_a_declared_list_holds_for_all():
    assert agreed_task({"a": site((1, 0, 2), declared=True), "b": site((0,))}, 5).labels == (1, 0, 2)


@pytest.mark.parametrize(
    ("sites", "match"),
    [
        (
            {"a": site(("x", "y"), True), "b": site(("y", "x"), True)},
            "'a' and 'b' list different classes: x, y and y, x",
        ),
        ({"a": site(), "b": site(inputs=9)}, "'a' and 'b' differ in their numbers per sample: 8 and 9"),
        ({"a": site(), "b": site(shape=[2, 2, 2])}, "sample shape"),
        ({"a": site(), "b": site(None)}, "continuous targets"),
        ({"a": site(None), "b": site(None, outputs=2)}, "differ in their targets: 1 and 2"),
        ({"a": site((0, 1)), "b": site(("x", "y"))}, "mix class numbers and class names"),
        ({"a": site((1,)), "b": site((1,))}, "only one class"),
    ],
)
def test_sites_that_do_not_agree(sites, match):
    with pytest.raises(GramfoldError, match=match) as caught:
        agreed_task(sites, 0)
    assert "\n" not in str(caught.value)


def test_a_task_survives_json():
    for task in (Task(3, ("a", "b"), 2, 1, 10), Task(12, None, 2, 0), Task(108, (0, 1), 2, 0, None, (6, 6, 3))):
        assert task_from_json(task_to_json(task)) == task
    for text in ("", "[]", "{}", json.dumps({"inputs": "many", "labels": None, "outputs": 1, "seed": 0})):
        with pytest.raises(GramfoldError, match="cannot read the task"):
            task_from_json(text)
