"""Whatever happens to a file or a message, it is refused in our words or is what it was; more of it: benchmarks/fuzz.py."""

import numpy as np
import pytest

from fuzzing import Specimen, fuzz, specimens
from gramfold.errors import GramfoldError

pytest.importorskip("torch", reason="gradient methods and networks need PyTorch")


def test_damage_is_refused_or_changes_nothing(tmp_path):
    everything = specimens(tmp_path)
    account = fuzz(everything, 40 * len(everything))
    assert account.violations == []
    assert account.outcomes["refused"] > 20 * len(everything)
    assert account.outcomes["another valid object"] > 0, "malice gets past the checksum"


def _anything(data: bytes) -> bytes:
    if len(data) < 10:
        raise GramfoldError("short")
    return data


@pytest.mark.parametrize(
    ("read", "use", "found"),
    [
        (_anything, lambda data: {}[data], "KeyError"),
        (_anything, lambda data: np.frombuffer(data, np.uint8), "silently another object"),
    ],
)
def test_the_fuzzer_sees_what_it_looks_for(read, use, found):
    good = b"0123456789abcdef"
    specimen = Specimen("x", good, read, lambda data: data if data == good else use(data), "npz")
    account = fuzz([specimen], 50)
    assert any(found in violation for violation in account.violations)
