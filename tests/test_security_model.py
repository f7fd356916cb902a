"""The security model says what holds, and by which test: every one that it names is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security_model.md").read_text()
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| ") and line.count("|") == 5]
CLAIMS = [row for row in ROWS if row[0].strip() not in ("mode", "---")]


@pytest.mark.parametrize("row", CLAIMS, ids=[f"{number}" for number in range(len(CLAIMS))])
def test_every_claim_names_what_holds_it_and_that_is_there(row):
    named = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)(?:::(\w+))?`", row[3])
    assert named, row
    for path, test in named:
        assert (ROOT / path).exists(), path
        tree = ast.parse((ROOT / path).read_text())
        assert not test or test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{path}::{test}"


def test_there_are_claims_for_every_mode():
    modes = {row[0].strip() for row in CLAIMS}
    assert {"plain", "secure", "+ `trusted-keys`", "+ noise"} <= modes
