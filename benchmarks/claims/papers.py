"""What docs/papers.md says in its verdicts, of what `gramfold bench` left."""

from functools import cache
from typing import Any

from benchmarks.claims import claim
from benchmarks.papers import bench

PAGE = "docs/papers.md"
Rows = dict[str, dict[str, Any]]
ANALYTIC = ("local", "afl", "fedhip", "apfl as published", "apfl", "pace")


@cache
def _content(name: str) -> dict[str, Any]:
    found = bench(name)
    assert found is not None
    return found


def table(name: str, title: str) -> Rows:
    """Figures of a bench's table, by row and column."""
    found = next(each for each in _content(name)["tables"] if each["title"] == title)
    return {row[0]: dict(zip(found["columns"][1:], map(_figure, row[1:]), strict=True)) for row in found["rows"]}


def _figure(cell: Any) -> Any:
    return cell["mean"] if isinstance(cell, dict) else cell


def curve(title: str) -> list[list[float]]:
    plot = next(each for each in _content("apfl")["plots"] if each["title"] == title)
    return [list(point) for point in plot["series"][0]["points"]]


def by_value(parameter: str) -> dict[float, float]:
    """Accuracy by a parameter of APFL's."""
    return {float(key): row["accuracy %"] for key, row in table("apfl", f"APFL as published by {parameter}").items()}


@claim(PAGE)
def fedhip_is_behind_the_best_gradient_rival() -> str:
    away = list(table("apfl", "Ahead of the best rival")["fedhip"].values())
    apart = table("fedhip", "Labels that nobody shares")
    assert max(away) < 0
    assert apart["fedhip"]["own"] < apart["local"]["own"]
    return (
        f"it is {-max(away):.1f} to {-min(away):.1f} points behind the best gradient rival in every cut that was run, and where clients' labels are "
        f"disjoint no better than each client alone ({apart['fedhip']['own']:.1f} and {apart['local']['own']:.1f})"
    )


@claim(PAGE)
def fedhip_saves_against_many_rounds_alone() -> str:
    rows = table("fedhip", "What FedHiP saves")
    few, many = rows["fedavg, 10 rounds"], rows["fedavg, 100 rounds"]
    assert few["computation %"] < 0 < 80 < many["computation %"]
    assert many["communication %"] < 95
    return (
        f"against ten rounds of FedAvg it takes {-few['computation %']:.0f} % more time and saves {few['communication %']:.0f} % of the bytes, against a "
        f"hundred it saves {many['computation %']:.0f} % and {many['communication %']:.0f} %"
    )


@claim(PAGE)
def apfl_is_behind_feddbe() -> str:
    away = []
    for clients in (50, 100):
        rows = table("apfl", f"Accuracy, {clients} clients")
        away += [rows["feddbe"][cut] - rows["apfl"][cut] for cut in rows["apfl"]]
        away_published = [rows["apfl as published"][cut] - rows["apfl"][cut] for cut in rows["apfl"]]
        assert max(away_published) < 0
    assert min(away) > 0
    return f"FedDBE with a swept learning rate is {min(away):.1f} to {max(away):.1f} points ahead of it in every cut"


@claim(PAGE)
def apfl_saves_less_than_published() -> str:
    time, bytes_sent = (table("apfl", f"{what} that APFL saves")["fedavg"] for what in ("Time", "Traffic"))
    assert time["20 rounds"] < 93
    assert bytes_sent["20 rounds"] < 59.27
    assert time["200 rounds"] < 99.3
    assert bytes_sent["200 rounds"] < 95.93
    return (
        f"against FedAvg, the cheapest rival, {time['20 rounds']:.1f} % and {bytes_sent['20 rounds']:.1f} % after 20 rounds, {time['200 rounds']:.1f} % and "
        f"{bytes_sent['200 rounds']:.1f} % after 200"
    )


@claim(PAGE)
def apfls_tables_of_parameters() -> str:
    lam, gamma = (max(rows, key=lambda key: rows[key]) for rows in map(by_value, ("lam", "gamma")))
    betas = by_value("beta")
    level = [key for key, value in betas.items() if value > max(betas.values()) - 0.3]
    assert 0.3 <= lam <= 0.5
    assert 1 <= gamma <= 10
    assert 0.01 in level
    primary, refinement = (curve(f"By the {name} stream's dimension") for name in ("primary", "refinement"))
    assert primary == sorted(primary, key=lambda point: point[1])
    widest = max(refinement, key=lambda point: point[1])
    assert widest is not refinement[-1]
    return (
        f"lambda is best at {lam:g}, gamma at {gamma:g}, both in the published range; beta is level from {min(level):g} to {max(level):g}; the primary stream gains "
        f"with every dimension up to {primary[-1][0]:,.0f}, the refinement up to {widest[0]:,.0f}"
    )


@claim(PAGE)
def personal_networks_gain() -> str:
    rows = table("fedacnnl", "A network for each client")
    shared = rows["fedacnnl ours"]
    gains = {data: rows["pfedacnnl ours, groups 1"][data] - shared[data] for data in shared}
    others = [gain for data, gain in gains.items() if data != "mnist"]
    assert 0 < gains["mnist"] < 4
    assert min(others) > 8
    for groups in (2, 4):
        assert all(rows[f"pfedacnnl ours, groups {groups}"][data] < rows["pfedacnnl ours, groups 1"][data] for data in shared)
    return (
        f"{gains['mnist']:.1f} points on MNIST, {min(others):.1f} to {max(others):.1f} on the other data; less with more groups"
    )


@claim(PAGE)
def networks_without_gradients_take_less_time() -> str:
    saved: dict[str, list[float]] = {}
    for name, row in table("fedacnnl", "Time to the same accuracy").items():
        _, network, rival = name.split(", ")
        if rival == "fedavg":
            saved.setdefault(network.removeprefix("fedacnnl "), []).append(float(str(row["less time %"]).removeprefix("> ")))
    assert min(saved["five"]) < 83
    assert min(min(saved[name]) for name in ("lenet", "ours", "convex")) > 83
    return (
        f"against FedAvg's small CNN on a thousand images of four data sets: `lenet` at least {min(saved['lenet']):.0f} %, the default network "
        f"{min(saved['ours']):.0f} %, `five` {min(saved['five']):.0f} %"
    )


@claim(PAGE)
def pace_is_ahead_of_plain_rivals_there() -> str:
    away = list(table("apfl", "Ahead of the best rival")["pace"].values())
    assert min(away) > 0
    return f"PACE is {min(away):.1f} to {max(away):.1f} points ahead of the best of them in this bench, whose rivals lack the class prior that PACE has"


@claim(PAGE)
def rivals_pass_apfl_as_clients_become_alike() -> str:
    for clients in (50, 100):
        rows = table("apfl", f"Accuracy, {clients} clients")
        away = [rows["feddbe"][cut] - rows["apfl"][cut] for cut in rows["apfl"]]
        assert 0 < away[0] < away[1] < away[2]
        assert rows["fedavg"]["dirichlet:1.0"] > rows["apfl"]["dirichlet:1.0"]
    return (
        "FedDBE is ahead of it in every partition, the more so the less clients differ, and at dirichlet:1.0 so is plain FedAvg."
    )


@claim(PAGE)
def five_layers_beside_the_published_network() -> str:
    title = "One network for all, all images"
    published = next(each for each in _content("fedacnnl")["tables"] if each["title"] == title)
    theirs = dict(zip(published["columns"][1:], (cell["published"] for cell in published["rows"][0][1:]), strict=True))
    rows = table("fedacnnl", title)
    gaps = {data: rows["fedacnnl five"][data] - theirs[data] for data in ("fashion-mnist", "mnist", "cifar10")}
    ours = rows["fedacnnl ours"]["cifar10"] - theirs["cifar10"]
    return (
        f"On all images `five` is {gaps['fashion-mnist']:.1f} points above the published centralised network of five layers (Zhuang et al.) on "
        f"Fashion-MNIST, {-gaps['mnist']:.1f} below it on MNIST and {-gaps['cifar10']:.1f} below it on CIFAR-10, where gramfold's default network, in two "
        f"rounds instead of five, is {ours:.1f} above it."
    )


@claim(PAGE)
def fedavg_does_not_reach_these_networks() -> str:
    reached = {
        tuple(name.split(", ")[:2]) for name, row in table("fedacnnl", "Time to the same accuracy").items()
        if name.endswith(", fedavg") and not str(row["less time %"]).startswith(">")
    }  # fmt: skip
    networks = {network: {data for data, name in reached if name == f"fedacnnl {network}"} for network in ("ours", "five")}
    assert networks == {"ours": set(), "five": {"cifar10"}}
    return "It never was as accurate as the default network on any data, nor as `five` but on CIFAR-10."


@claim(PAGE)
def a_closed_form_is_level_with_heart_pfl_and_its_rivals() -> str:
    trained = table("heart-pfl", "HEART-PFL and its rivals, from the same network")
    frozen = table("heart-pfl", "Frozen features of the same network, in closed form")
    assert abs(frozen["pace"]["accuracy"] - max(row["accuracy"] for row in trained.values())) < 1
    return "PACE on the network's frozen features is level with the best of them in one round."
