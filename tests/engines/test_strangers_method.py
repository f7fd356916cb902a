"""A method that is not gramfold's, in somebody's own module, runs wherever gramfold's do. (At a real SuperNode: test_network.)"""

import json
from importlib.metadata import EntryPoint

import pytest

import gramfold as gf
from gramfold.methods import Method, find_method, make_method, registry, spec_of
from stranger import ClassMeans

SPEC = "stranger:ClassMeans"


def test_it_is_found_by_its_module_and_by_its_entry_point(monkeypatch):
    assert find_method(SPEC) is ClassMeans
    assert spec_of(ClassMeans(own=2.0)) == SPEC
    assert make_method(SPEC, own=2.0) == ClassMeans(own=2.0)
    offered = EntryPoint("class-means", SPEC, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [offered])
    assert find_method("class-means") is ClassMeans
    assert spec_of(ClassMeans()) == "class-means"


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ("nothing", "unknown method 'nothing'; known: local, afl"),
        ("no.such.module:Class", "cannot import method"),
        ("stranger:Nothing", "cannot import method"),
        ("stranger:Means", "is not a method"),
        ("json:loads", "is not a method"),
        (":x", "cannot import method"),
    ],
)
def test_what_is_no_method_is_refused_in_one_line(spec, match):
    with pytest.raises(gf.GramfoldError, match=match) as caught:
        find_method(spec)
    assert "\n" not in str(caught.value)


def test_its_parameters_are_checked():
    with pytest.raises(gf.GramfoldError, match="own must be a number"):
        make_method(SPEC, own="much")
    with pytest.raises(gf.GramfoldError, match="has no parameter theirs"):
        make_method(SPEC, theirs=1)


def test_in_process(federation, blobs):
    result = gf.run(ClassMeans(), federation)
    assert result.mean_accuracy > 0.7
    assert result.uplink_bytes > 0
    X, y = blobs
    assert result.join(X[:5], y[:5]).predict(X).shape == (len(X),)


def test_on_the_command_line(gramfold, monkeypatch):
    code, out, _ = gramfold("run", "--clients", "3", "--methods", f"afl,{SPEC}", "--set", f"{SPEC}.own=3", "--json")
    assert code == 0
    afl, theirs = json.loads(out)["methods"]
    assert (afl["name"], theirs["name"], theirs["parameters"]) == ("afl", "class-means", {"own": 3})


def test_over_the_in_process_grid_where_the_site_lists_it(tmp_path, federation):
    pytest.importorskip("flwr", reason="the flower engine needs Flower")
    from flower_cases import Sites
    from gramfold.engines.flower.local_grid import app_node

    sites, method = Sites(tmp_path, federation), ClassMeans(own=2.0)
    for name in sites.names[1:]:
        sites.config[name]["methods"] = f"other.module:Theirs, {SPEC}"
    nodes = {name: app_node(sites.config[name]) for name in sites.names}
    result = sites.run(method, nodes)
    assert result["sites"]["answered"] == sites.names[1:]
    assert "does not allow method 'stranger:ClassMeans'" in next(iter(result["sites"]["excluded"].values()))
    expected = gf.run(method, sites.without(sites.names[0]))
    assert sites.distance(method, expected) < 1e-9


def test_a_base_class_is_enough_of_a_contract():
    """What a stranger must write: four functions. All else has a default."""
    assert Method.__abstractmethods__ == {"begin", "local", "aggregate", "personalize"}
