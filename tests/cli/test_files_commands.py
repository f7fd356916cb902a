"""A run as files on the command line: every step, again and again, and what people do wrong."""

import json

import numpy as np
import pytest

import gramfold as gf


@pytest.fixture
def sites(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(3):
        X = rng.standard_normal((60, 4))
        np.savez(tmp_path / f"site-{k}.npz", features=X, labels=(X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int))
    return [f"site-{k}.npz" for k in range(3)]


def call(gramfold, *arguments: str) -> str:
    code, out, err = gramfold(*arguments)
    assert code == 0, err
    return out


def test_from_the_first_file_to_the_heads(gramfold, sites, tmp_path):
    assert call(gramfold, "begin", "--method", "apfl", "-o", "0.task") == "0.task: apfl: parts describe their data\n"
    for number, said in (("0", "apfl: round 1 of 1"), ("1", "finished: apfl after 1 round")):
        for site in sites:
            out = call(gramfold, "fold", f"{number}.task", site, "-o", f"{number}-{site}.moments")
            assert out == f"{number}-{site}.moments: 45 samples of 1 client in 1 part\n"
        out = call(gramfold, "merge", *(f"{number}-{site}.moments" for site in sites), "-o", f"{number}.moments")
        assert out == f"{number}.moments: 135 samples of 3 clients in 3 parts\n"
        out = call(gramfold, "next", f"{number}.task", f"{number}.moments", "-o", f"{int(number) + 1}.task")
        assert out == f"{int(number) + 1}.task: {said}\n"
    for site in sites:
        out = call(gramfold, "personal", "2.task", site, "--heads", "heads", "--out", f"figures-{site}")
        assert out.startswith("heads: 1 head, mean accuracy ")
    federation = gf.Federation.from_clients({f"site-{k}": tmp_path / f"site-{k}.npz" for k in range(3)})
    expected = gf.run(gf.APFL(), federation)
    for k in range(3):
        head, rows = gf.load_head(tmp_path / "heads" / f"site-{k}.safetensors"), np.eye(4)
        assert (head.predict(rows) == expected.heads[f"site-{k}"].predict(rows)).all()
        assert (tmp_path / "heads" / f"site-{k}.card.md").exists()
    page = json.loads((tmp_path / "figures-site-0.npz" / "result.json").read_text())
    assert page["methods"][0]["clients"][0]["test"] == 15
    call(gramfold, "report", "figures-site-0.npz")


def test_a_step_may_be_repeated(gramfold, sites, tmp_path):
    call(gramfold, "begin", *sites, "--method", "afl", "-o", "0.task")
    call(gramfold, "fold", "0.task", sites[0], "-o", "a.moments")
    before = (tmp_path / "a.moments").read_bytes()
    assert call(gramfold, "fold", "0.task", sites[0], "-o", "a.moments").endswith(", as it was\n")
    assert (tmp_path / "a.moments").read_bytes() == before
    call(gramfold, "fold", "0.task", *sites[1:2], "-o", "b.moments")
    for _ in range(2):  # as a pattern such as *.moments gives them, the sum among them
        there = [path.name for path in sorted(tmp_path.glob("*.moments"))]
        assert call(gramfold, "merge", *there, "-o", "all.moments").endswith(": 90 samples of 2 clients in 2 parts\n")


def test_what_goes_wrong_is_one_line_and_leaves_nothing_behind(gramfold, sites, tmp_path):
    call(gramfold, "begin", *sites, "--method", "afl", "-o", "0.task")
    call(gramfold, "fold", "0.task", sites[0], "-o", "a.moments")
    call(gramfold, "fold", "0.task", sites[0], "-o", "again.moments")
    wrong = [
        (("merge", "a.moments", "again.moments", "-o", "all.moments"), "both hold part site-0"),
        (("next", "0.task", "0.task", "-o", "all.moments"), "is no part file"),
        (("fold", "0.task", "gone.npz", "-o", "all.moments"), "no such data: gone.npz"),
        (("fold", "a.moments", sites[0], "-o", "all.moments"), "is no task file"),
        (("personal", "0.task", sites[0], "--heads", "all.moments"), "the run is not finished"),
        (("begin", "--method", "fedavg", "-o", "all.moments"), "use gramfold run for it"),
        (("begin", "--method", "afl,apfl", "-o", "all.moments"), "begin one for each"),
        (("begin", "--method", "afl", "--test-size", "1.5", "-o", "all.moments"), "must lie in"),
    ]
    for arguments, what in wrong:
        code, out, err = gramfold(*arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert what in err
        assert not (tmp_path / "all.moments").exists()
