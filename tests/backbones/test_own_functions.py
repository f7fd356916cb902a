"""A function is a backbone as it stands; what is none is told in one line what to give."""

import numpy as np
import pytest

import gramfold as gf


def lengths(texts):
    return np.array([[len(text), text.count("a"), 1.0] for text in texts])


lengths.kind = "texts"  # type: ignore[attr-defined]


def test_a_function_is_a_backbone_as_it_stands():
    table = {"text": ["a b", "abc", "long one", "aaa"] * 5, "label": ["x", "y", "x", "y"] * 5}
    found = gf.load_data(table, lengths, label_column="label")
    assert np.allclose(found.inputs, lengths(table["text"]))
    assert found.origin is not None
    assert found.origin.name == f"python:{__name__}:lengths"


def test_a_function_that_does_not_say_it_takes_texts_is_told_how():
    with pytest.raises(gf.GramfoldError, match=r"takes texts, say so first: function\.kind = 'texts'"):
        gf.load_data({"text": ["a b", "abc"] * 5, "label": [0, 1] * 5}, lambda texts: lengths(texts))


def test_what_is_no_backbone_is_refused():
    said = "a backbone is a name, a network of torch or a function of a list of samples, not a int"
    with pytest.raises(gf.GramfoldError, match=said):
        gf.load_data({"text": ["a"], "label": [0]}, 3, label_column="label")
