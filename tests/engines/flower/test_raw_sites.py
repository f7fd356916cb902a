"""Sites that name a folder or a table instead of an .npz file: the same as all of it in one place."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold.backbones import open_backbone
from gramfold.engines.flower.local_grid import LocalGrid, app_node, run_locally
from gramfold.extraction import load_data
from gramfold.remote.site import Site, head_file
from gramfold.sources import TableEncoder, read_table
from raw_cases import write_function, write_photos

pytest.importorskip("PIL", reason="images need pillow")


def run(sites: dict[str, dict[str, str]], tmp_path, **config) -> dict:
    """The content of result.json of a run over these sites."""
    grid = LocalGrid([app_node(site) for site in sites.values()], sites.keys())
    run_locally(grid, {"method": "pace", "out": str(tmp_path / "out"), "deadline-seconds": 300.0, "release-sites": 2, **config})
    return json.loads((tmp_path / "out" / "result.json").read_text())


def test_folders_of_photos_with_a_backbone(tmp_path):
    write_photos(tmp_path / "photos", 60, clients=("north", "south"))
    name = f"python:{write_function(tmp_path)}:colours"
    sites = {
        site: {"name": site, "data": f"{tmp_path}/photos/{site}", "backbone": name, "state-dir": f"{tmp_path}/state/{site}"}
        for site in ("north", "south")
    }
    result = run(sites, tmp_path)
    assert result["sites"]["answered"] == ["north", "south"]
    backbone = open_backbone(name)
    here = gf.run(gf.PACE(), gf.Federation.from_dataset(load_data(tmp_path / "photos", backbone)))
    samples = np.asarray(load_data(tmp_path / "photos", backbone).inputs)
    for site in sites:
        path = head_file(tmp_path / "state" / site, "pace")
        head = gf.load_head(path)
        assert head.origin == backbone.origin
        assert np.abs(head.predict_proba(samples) - here.heads[site].predict_proba(samples)).max() < 1e-9
        card = json.loads(path.with_suffix(".card.json").read_text())
        assert (card["whose"], card["data"]["training_samples_of_all"]) == (f"site {site}", here.run.task.samples)


def test_a_site_with_another_backbone_is_excluded_by_name(tmp_path):
    write_photos(tmp_path / "photos", 60, clients=("a", "b", "c"))
    path = write_function(tmp_path)
    (tmp_path / "other.py").write_text(Path(path).read_text().replace("(8, 8)", "(10, 10)").replace("::2, ::2", ":8:2, :8:2"))
    sites = {
        site: {
            "name": site, "data": str(tmp_path / "photos" / site), "state-dir": str(tmp_path / site),
            "backbone": f"python:{tmp_path / 'other.py' if site == 'b' else path}:colours",
        }
        for site in "abc"
    }  # fmt: skip
    result = run(sites, tmp_path)
    assert list(result["sites"]["excluded"]) == ["b"]
    assert "its backbone" in result["sites"]["excluded"]["b"]


def write_tables(tmp_path) -> dict[str, dict[str, str]]:
    """Two hospitals: one knows a category that the other has never seen, and one of them misses ages."""
    rng = np.random.default_rng(1)
    sites = {}
    for site, wards in (("east", ["icu", "er"]), ("west", ["er", "day"])):
        lines = ["age,ward,sick"]
        for i in range(40):
            age, ward = rng.normal(50, 10), wards[rng.integers(2)]
            sick = "yes" if age + 6 * (ward == "icu") - 6 * (ward == "day") > 52 else "no"
            lines.append(f"{'' if site == 'west' and i % 8 == 0 else round(age, 2)},{ward},{sick}")
        (tmp_path / f"{site}.csv").write_text("\n".join(lines))
        sites[site] = {
            "name": site, "data": f"{tmp_path}/{site}.csv", "label-column": "sick", "state-dir": f"{tmp_path}/state/{site}",
        }  # fmt: skip
    return sites


def test_tables_whose_encoder_the_sites_make_together(tmp_path):
    sites = write_tables(tmp_path)
    result = run(sites, tmp_path)
    assert result["sites"]["answered"] == ["east", "west"]
    rows = ["age,ward,sick,client"]
    for site in sites:
        rows += [f"{line},{site}" for line in (tmp_path / f"{site}.csv").read_text().splitlines()[1:]]
    (tmp_path / "all.csv").write_text("\n".join(rows))
    dataset = load_data(tmp_path / "all.csv", label_column="sick")
    here = gf.run(gf.PACE(), gf.Federation.from_dataset(dataset))
    assert here.run.task.inputs == 5, "age, whether it is missing, three wards"
    inputs = TableEncoder.reopen(here.run.task.origin)(read_table(tmp_path / "all.csv"))
    for site in sites:
        head = gf.load_head(head_file(tmp_path / "state" / site, "pace"))
        assert head.origin == here.run.task.origin
        assert np.abs(head.predict_proba(inputs) - here.heads[site].predict_proba(inputs)).max() < 1e-9
    sent = [json.loads(line) for line in (tmp_path / "state" / "east" / "sent.jsonl").read_text().splitlines()]
    assert sent[0]["statistics"] == ["age", "ward"], "the site's diary says what left it"
    assert sent[0]["words"] == {"ward": ["er", "icu"]}


def test_a_site_that_lacks_a_column_and_a_label_by_comparison(tmp_path):
    """Columns go by name over a network too: the sites' heads are those of the same files in one process."""
    sites = write_tables(tmp_path)
    west = tmp_path / "west.csv"
    west.write_text("\n".join(f"{age},{sick}" for age, _, sick in (line.split(",") for line in west.read_text().splitlines())))
    for site in sites.values():
        site["label-column"] = "sick = yes"
    result = run(sites, tmp_path)
    assert result["sites"]["answered"] == ["east", "west"]
    files = {name: site["data"] for name, site in sites.items()}
    here = gf.run(gf.PACE(), gf.Federation.from_clients(files, label_column="sick = yes"))
    for name, path in files.items():
        head = gf.load_head(head_file(tmp_path / "state" / name, "pace"))
        assert head.origin == here.run.task.origin
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*has no column 'ward', which is taken as missing")
            assert np.abs(head.predict_proba(path) - here.heads[name].predict_proba(path)).max() < 1e-9


def test_tables_and_files_of_continuous_labels(tmp_path):
    sites = write_tables(tmp_path)
    for site in sites.values():
        text = Path(site["data"]).read_text().replace(",,", ",0,").splitlines()[1:]
        ages = [line.split(",")[0] or "50" for line in text]
        Path(site["data"]).write_text("size,ward,cost\n" + "".join(f"{i},er,{age}\n" for i, age in enumerate(ages)))
        site |= {"label-column": "cost", "regression": True}
    result = run(sites, tmp_path, method="afl")
    assert result["sites"]["answered"] == ["east", "west"]
    assert result["methods"][0]["mean_rmse"] > 0
    for name, site in sites.items():
        dataset = load_data(site["data"], label_column="cost", regression=True)
        np.savez(tmp_path / f"{name}.npz", features=dataset.inputs, labels=dataset.targets)
        site |= {"data": f"{tmp_path}/{name}.npz", "state-dir": f"{tmp_path}/other/{name}"}
    result = run(sites, tmp_path, method="afl", out=str(tmp_path / "other-out"))
    assert gf.load_head(head_file(tmp_path / "other" / "east", "afl")).labels is None


def test_a_table_without_an_encoder_is_refused(tmp_path):
    sites = write_tables(tmp_path)
    task = json.dumps({"inputs": 2, "labels": ["no", "yes"], "outputs": 2, "seed": 0})
    with pytest.raises(gf.GramfoldError, match="the run's task no encoder for it"):
        run(sites, tmp_path, task=task)


def test_images_without_a_backbone_are_refused(tmp_path):
    write_photos(tmp_path / "photos", 6)
    site = Site({"name": "a", "data": str(tmp_path / "photos"), "state-dir": str(tmp_path / "s")})
    with pytest.raises(gf.GramfoldError, match="holds images; name a backbone"):
        site.source(None)


@pytest.mark.parametrize("policy", [{"release-require": "secure"}, {"release-samples": 1000}])
def test_statistics_do_not_pass_a_sites_policy(policy, tmp_path):
    site = Site({**write_tables(tmp_path)["east"], **policy})
    with pytest.raises(gf.GramfoldError, match="travel in the clear, and this site's policy asks for more"):
        site._task({}, {})
