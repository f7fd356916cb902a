"""A sentence on a page that states a finding is an assertion: a rerun that contradicts it fails the build."""

import pytest

from benchmarks.claims import Claim, claims, problem, unclaimed, words


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.name)
def test_the_result_files_say_what_the_page_says(claim):
    assert problem(claim) is None


def test_names_of_claims_are_their_own():
    names = [claim.name for claim in claims()]
    assert len(names) == len(set(names)) > 0


def test_a_claim_fails_where_figures_contradict_it_and_where_the_page_has_other_words(tmp_path):
    figures = {"ours": 2.0, "theirs": 1.0}
    (tmp_path / "page.md").write_text("Before. Ours is **ahead**\nby [1.0 points](results.md). After.")

    def ahead() -> str:
        assert figures["ours"] > figures["theirs"]
        return f"Ours is ahead by {figures['ours'] - figures['theirs']:.1f} points."

    claim = Claim("page.md", ahead)
    assert problem(claim, tmp_path) is None
    figures["ours"] = 3.0
    assert problem(claim, tmp_path) == "page.md: ahead: the page should say: Ours is ahead by 2.0 points."
    figures["ours"] = 0.5
    assert 'the result files say otherwise (assert figures["ours"] > figures["theirs"])' in problem(claim, tmp_path)


def test_sentences_with_figures_that_nobody_asserts_are_found(tmp_path):
    page = tmp_path / "page.md"
    prose = "It takes 5 s. It is *level*.\nThat is 2 % more. See `a2`."
    page.write_text(f"# 3 parts\n\n{prose}\n\n| 1 | 2 |\n\n<!-- made by x -->\n7 rows.\n<!-- end -->\n")
    assert unclaimed(page, ["It takes 5 s."]) == ["That is 2 % more."]


def test_links_stars_and_breaks_are_no_words():
    assert words("**Ahead** of\n[the best](papers.md#measured)") == "Ahead of the best"
