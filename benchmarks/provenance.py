"""Where figures come from, and whether the code of their methods has changed since.

    python -m benchmarks.provenance            which scripts' files are stale, cheapest first, and what remakes them
    python -m benchmarks.provenance --adopt learned_default     a file made on another machine is here: take its stamp
    make figures                               the same, and which cells of benches are

Every cell of a bench (`benchmarks.kept`) has its commit, versions and machine with it, and for every method a hash of the code
that it is made of (its module and all that this imports of gramfold; comments, docstrings and empty lines do not count). Of
other result files the same stands in results/provenance.json. Below a table a page says which commit it is of, and whether the
code is another by now; docs/provenance.md names the methods. A test holds pages to that.
"""

import argparse
import ast
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import gramfold
from benchmarks import kept
from gramfold.methods import find_method
from gramfold.methods.registry import known_methods

ROOT = Path(__file__).parents[1]
RESULTS = kept.RESULTS
STAMPS = RESULTS / "provenance.json"
SOURCE = Path(gramfold.__file__).parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "flwr", "xgboost", "xrfm")
SKIPPED = {"gramfold", "gramfold.methods"}
"""Packages that import every method."""
ANALYTIC = ("pace", "apfl", "fedhip", "afl", "local")
PAGE = "provenance.md"
"""In docs, with what lines below tables have no room for."""


class Source(NamedTuple):
    """What makes a result file, of which methods it tells, and about how many minutes that takes on two cores."""

    command: str
    methods: tuple[str, ...]
    minutes: int


SOURCES = {
    "core": Source("core FILE.npz", ("apfl", "afl"), 2),
    "attack": Source("attack", ("pace",), 5),
    "liar": Source("liar", ("pace",), 5),
    "secure": Source("secure", (), 5),
    "dask_fold": Source("dask_fold", ("afl",), 3),
    "speed": Source("speed build/speed/bench.json", ("pace", "apfl"), 10),
    "memory": Source("speed build/memory/bench.json", ("pace", "apfl", "fedhip", "afl"), 3),
    "scale": Source("scale build/scale/bench.json", ("pace",), 15),
    "lying_server": Source("lying_server", ("afl", "pace"), 5),
    "flower_overhead": Source("flower_overhead", ("pace",), 5),
    "flower_size_afl": Source("flower_size --method afl", ("afl",), 5),
    "flower_size_pace": Source("flower_size --method pace", ("pace",), 5),
    "pace_cost_bias_linear": Source("pace_cost FILE.npz --features bias+linear", ("pace",), 5),
    "pace_cost_bias_linear_fourier4096": Source("pace_cost FILE.npz --features bias+linear+fourier:4096", ("pace",), 20),
    "front_door": Source("front_door", ("pace", "afl"), 30),
    "dp": Source("dp FILE.npz", ("pace", "afl"), 15),
    "deepafl": Source("deepafl FILE.npz", ("deepafl", "pace", "afl"), 40),
    "differ": Source("differ FOLDER", ANALYTIC, 15),
    "gpu": Source("gpu", ("pace", "apfl"), 3),
    "ceiling": Source("ceiling FILE.npz --device cuda", (), 10),
    "gradient_gpu": Source("gradient_gpu", ("heart-pfl",), 10),
    "gradient_table": Source("gradient_table FILE.npz --device cuda --jobs 14", (*ANALYTIC, "fedavg", "feddbe", "ditto"), 60),
    "gradient_images": Source("gradient_images FILE.npz --device cuda --jobs 13", ("fedavg", "heart-pfl"), 60),
    "ablation_parts": Source("ablation parts --cifar FILE.npz --shift FILE.npz --tables FOLDER", ("pace",), 10),
    "ablation_features": Source("ablation features --cifar FILE.npz", ("pace",), 30),
    "ablation_precision": Source("ablation precision --cifar FILE.npz", ("pace",), 30),
    "convolution_digits": Source("convolution", ("fedacnnl", "pfedacnnl", "pacecnn"), 30),
    "convolution_cifar100_20_classes": Source("convolution --data FILE.npz", ("fedacnnl", "pfedacnnl", "pacecnn"), 90),
    "filters": Source("filters", ("fedacnnl",), 60),
    "layers": Source("layers", ("fedacnnl",), 30),
    "series": Source("series", ANALYTIC, 5),
    "labels": Source("labels", ("pace", "afl", "local"), 10),
    "small_client": Source("small_client", ("pace",), 3),
    "wide_texts": Source("wide_texts", ("pace", "afl", "local"), 5),
}
"""GPU benches' minutes are a GPU's."""


# --- the code ---


@cache
def code_of(method: str) -> str:
    """A hash of the code that a method is made of."""
    digest = hashlib.sha256()
    for name in sorted(_reached(find_method(method).__module__)):
        digest.update(f"{name}\n{_bare(name)}\n".encode())
    return digest.hexdigest()[:12]


def _reached(start: str) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in SKIPPED and _file(name) is not None:
            found.add(name)
            waiting += _imports(name)
    return found


def _file(name: str) -> Path | None:
    base = SOURCE.joinpath(*name.split(".")[1:])
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


@cache
def _tree(name: str) -> tuple[str, ast.Module]:
    path = _file(name)
    assert path is not None
    text = path.read_text()
    return text, ast.parse(text)


def _imports(name: str) -> Iterator[str]:
    for node in ast.walk(_tree(name)[1]):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gramfold":
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "gramfold")


@cache
def _bare(name: str) -> str:
    """A module's lines of code."""
    text, tree = _tree(name)
    prose = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = (line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in prose)
    return "\n".join(line for line in lines if line and not line.startswith("#"))


# --- stamps ---


def stamp(name: str, **more: Any) -> None:
    """Note where the result file of this name comes from, now that it is written."""
    methods = SOURCES[name].methods if name in SOURCES else ()
    _note(name, {**made_here(), "code": {each: code_of(each) for each in methods}, **more})


def made_here() -> dict[str, Any]:
    """Commit, machine and versions of this moment."""
    return {
        "commit": commit(), "machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), "device": _device(),
        "versions": {"python": platform.python_version(), **_versions()},
    }  # fmt: skip


def adopt(name: str) -> None:
    """Note the stamp that a result file itself brings from another machine."""
    _note(name, json.loads((RESULTS / f"{name}.json").read_text())["stamp"])


def _note(name: str, found: Mapping[str, Any]) -> None:
    stamps = {**stamps_now(), name: found}
    STAMPS.write_text(json.dumps(dict(sorted(stamps.items())), indent=1) + "\n")


def stamps_now() -> dict[str, Any]:
    return json.loads(STAMPS.read_text()) if STAMPS.exists() else {}


def commit() -> str:
    """The commit that is checked out, with a + where code differs from it; what GRAMFOLD_COMMIT says where that is set, as on a
    machine that has a copy of the files alone."""
    if "GRAMFOLD_COMMIT" in os.environ:
        return os.environ["GRAMFOLD_COMMIT"]
    try:
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        changed = ["git", "status", "--porcelain", "--", "src", "benchmarks/*.py"]
        dirty = subprocess.run(changed, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _device() -> str:
    try:
        import torch
    except ImportError:
        return "cpu"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


# --- what pages say ---


def changed_since(name: str) -> list[str]:
    """The methods of a result file, or of some of a bench's cells, whose code is another by now."""
    return sorted({method for codes in _codes(name) for method in _changed(codes)})


def _codes(name: str) -> list[dict[str, str]]:
    """The code that each cell of a bench is of, or a result file; empty where it was not recorded."""
    unknown = dict.fromkeys(SOURCES[name].methods, "") if name in SOURCES else {}
    return [line["code"] for line in kept.read(name).values()] or [{**unknown, **stamps_now().get(name, {}).get("code", {})}]


def _changed(codes: Mapping[str, str]) -> list[str]:
    known = known_methods()
    return [method for method, code in codes.items() if method not in known or code_of(method) != code]


def age(*names: str) -> str:
    """What a page says below a table: of which commits its figures are, and whether the code is another by now."""
    return f"*Figures: {'; '.join(f'`{name}` ({_commits(name)}){_older(name)}' for name in names)}.*"


def _commits(name: str) -> str:
    commits = made_at(name)
    if not commits:
        return "commit not recorded"
    return f"commit {commits[0]}" if len(commits) == 1 else f"commits {commits[0]} to {commits[-1]}"


def _older(name: str) -> str:
    codes = _codes(name)
    old = sum(bool(_changed(each)) for each in codes)
    if _recorded(name) and not old:
        return ""
    part = "in part " if 0 < old < len([each for each in codes if each]) else ""
    return f", {part}[older than today's code]({PAGE})"


def _recorded(name: str) -> bool:
    """Whether it is known of which commit figures are, and of which code."""
    return bool(made_at(name)) and (name in SOURCES or any(_codes(name)) or bool(kept.read(name)))


def page() -> str:
    """docs/provenance.md: of every file what the lines below tables have no room for."""
    files = sorted({path.stem for path in (*RESULTS.glob("*.json"), *kept.KEPT.glob("*.jsonl")) if path != STAMPS})
    lines = ["| figures | commits | machine | methods whose code is another by now |", "| --- | --- | --- | --- |"]
    for name in files:
        commits, machines = ", ".join(made_at(name)) or "not recorded", "; ".join(_machines(name)) or "not recorded"
        changed = ", ".join(changed_since(name)) or ("none" if _recorded(name) else "not recorded")
        lines.append(f"| `{name}` | {commits} | {machines} | {changed} |")
    return "\n".join(lines)


def _machines(name: str) -> list[str]:
    found = [line["machine"] for line in kept.read(name).values()]
    if not found and (stamp := stamps_now().get(name)):
        found = [f"{stamp['cores']} cores, {stamp['device']}"]
    return [machine for machine in dict.fromkeys(found) if machine]


def made_at(name: str) -> list[str]:
    """The commits that a result file, or a bench's cells, are of, as far as that was recorded."""
    found = [line["commit"] for line in kept.read(name).values()] or [stamps_now().get(name, {}).get("commit")]
    return [commit for commit in dict.fromkeys(found) if commit and commit != "unknown"]


def stale() -> list[str]:
    """Result files that are missing or of older code, cheapest first."""
    return sorted((name for name in SOURCES if not made_at(name) or changed_since(name)), key=lambda n: SOURCES[n].minutes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adopt", help="a result file, by its name, that was made elsewhere and brings its stamp")
    given = parser.parse_args()
    if given.adopt:
        return adopt(given.adopt)
    listed()


def listed() -> None:
    names = stale()
    for name in names:
        made = SOURCES[name]
        why = ", ".join(changed_since(name)) or "no commit recorded"
        print(f"{name:36} {made.minutes:4} min   python -m benchmarks.{made.command}   ({why})")
    hours = sum(SOURCES[name].minutes for name in names) / 60
    print(f"{len(names)} of {len(SOURCES)} result files are stale; about {hours:.1f} hours in all")


if __name__ == "__main__":
    main()
