"""The pages in a real browser: nothing complains, one client is highlighted everywhere, light and dark, phone and paper."""

from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from browser import LAPTOP, PAPER, PHONE, Browser, pixels
from gramfold.report import render_page
from gramfold.report.bench import render_bench
from report_cases import BENCH, HOSTILE, result_of

pytestmark = pytest.mark.browser

COUNTED = (
    "[...document.querySelectorAll('svg[data-clients]')].filter(WHICH).map(plot => plot.querySelector('.mark').childElementCount)"
)
MARKED = COUNTED.replace("WHICH", "plot => !/ chose,/.test(plot.ariaLabel)")
CHOICES = COUNTED.replace("WHICH", "plot => / chose,/.test(plot.ariaLabel)")
"""What clients chose has a figure of its own for each; not every client has every part."""
WHO = "document.getElementById('who').textContent"
GROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
        assert not opened.complaints


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """A run of three methods over nine clients, three of them with hostile names."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 360)
    X = rng.standard_normal((4, 8))[codes] + rng.standard_normal((360, 8))
    names = [*HOSTILE, *"abcdef"]
    federation = gf.Federation.from_clients({name: (X[i::9], codes[i::9]) for i, name in enumerate(names)})
    content = result_of(
        federation,
        gf.Local(),
        gf.PACE(features="bias+linear+fourier:512"),
        gf.AFL("bias+linear"),
        labels=federation.label_counts(),
    )
    path = tmp_path_factory.mktemp("pages") / "report.html"
    path.write_text(render_page(content))
    return path


def place(browser: Browser, figure: int, x: float = 0.5, y: float = 0.5) -> tuple[float, float]:
    """Where a part of a figure with clients is on the screen, scrolled to."""
    script = f"""(() => {{
        const plot = document.querySelectorAll('svg[data-clients]')[{figure}];
        plot.scrollIntoView({{block: 'center'}});
        const box = plot.getBoundingClientRect();
        return [box.left + {x} * box.width, box.top + {y} * box.height];
    }})()"""
    left, top = browser.run(script)
    return left, top


def test_a_client_is_highlighted_in_all_figures_at_once(browser, report):
    browser.open(report)
    assert len(browser.run(MARKED)) >= 8
    assert not any(browser.run(MARKED) + browser.run(CHOICES)), "nobody yet"
    sizes = browser.run("[...document.querySelectorAll('svg[data-clients]')].findIndex(p => /^training/.test(p.ariaLabel))")
    browser.point(*place(browser, sizes))
    assert all(browser.run(MARKED)), "the mouse over one of them is enough"
    assert any(browser.run(CHOICES))
    assert "train" in browser.run(WHO)
    browser.point(5, 5)
    assert not any(browser.run(MARKED)), "and gone with the mouse"
    browser.point(*place(browser, sizes), click=True)
    browser.point(5, 5)
    assert all(browser.run(MARKED)), "a click keeps it"
    pinned = browser.run(WHO)
    browser.run(f"document.querySelectorAll('svg[data-clients]')[{sizes}].focus()")
    browser.press("ArrowRight")
    assert all(browser.run(MARKED))
    assert browser.run(WHO) != pinned, "the next one, by the keyboard"
    browser.press("Escape")
    assert not any(browser.run(MARKED))


def test_a_client_is_found_by_its_name(browser, report):
    browser.open(report)
    for name in HOSTILE:
        browser.run("void document.getElementById('client').focus(); document.getElementById('client').value = ''")
        browser.call("Input.insertText", text=name)
        assert name in browser.run(WHO)
        assert all(browser.run(MARKED))
    browser.open(report, "#client=c")
    assert browser.run(WHO).startswith("client c: ")


def test_the_table_of_clients_shows_names_as_they_are(browser, report):
    browser.open(report)
    browser.run("void (document.querySelector('details.all').open = true)")
    browser.run("new Promise(done => setTimeout(done, 50))")
    assert (
        browser.run("[...document.querySelectorAll('tr[data-client]')].slice(0, 3).map(row => row.cells[0].textContent)")
        == HOSTILE
    )
    assert browser.run("document.querySelectorAll('script').length") == 2


def test_another_method_and_another_order(browser, report):
    browser.open(report)
    words = "document.querySelector('.says').textContent"
    browser.run("(() => { const s = document.getElementById('method'); s.value = 2; s.dispatchEvent(new Event('change')); })()")
    assert browser.run(words).startswith("afl: ")
    column = "[...document.querySelector('table.sortable').tBodies[0].rows].map(row => parseFloat(row.cells[1].textContent))"
    browser.run("document.querySelectorAll('table.sortable th button')[1].click()")
    assert browser.run(column) == sorted(browser.run(column), reverse=True)


def test_light_and_dark(browser, report):
    grounds = {}
    for scheme in ("light", "dark"):
        browser.prefers(scheme)
        browser.open(report)
        browser.run("localStorage.clear()")
        browser.open(report)
        grounds[scheme] = browser.run(GROUND)
    assert grounds["light"] != grounds["dark"]
    browser.run("document.getElementById('theme').click()")
    assert browser.run(GROUND) == grounds["light"], "by hand, against the system"
    browser.open(report)
    assert browser.run(GROUND) == grounds["light"], "and it stays"
    browser.run("localStorage.clear()")
    browser.prefers("light")


@pytest.mark.parametrize("size", [PHONE, LAPTOP, PAPER], ids=["phone", "laptop", "paper"])
def test_every_size_shows_something_everywhere(browser, report, tmp_path, size):
    bench = tmp_path / "bench.html"
    bench.write_text(render_bench(BENCH))
    for page in (report, bench):
        browser.open(page, size=size)
        if size == PAPER:
            browser.paper()
        assert browser.run("document.documentElement.scrollWidth") <= size[0], "nothing sticks out"
        drawn = "[...document.querySelectorAll('figure')].map(one => one.querySelectorAll('.plot svg *').length)"
        assert min(browser.run(drawn)) > 5
        picture = pixels(browser.shot(whole=True)).astype(int)
        for part in np.array_split(picture, max(len(picture) // 400, 1)):
            assert np.ptp(part) > 60, "no part of the page is blank"
        if size == PAPER:
            assert browser.pdf().startswith(b"%PDF")
            browser.paper(False)


def test_many_clients_and_methods_stay_light(browser, tmp_path):
    rng = np.random.default_rng(0)
    accuracies = rng.uniform(0, 1, (30, 1000)).round(2)
    method = {
        "parameters": {}, "rounds": 1, "weighted_accuracy": None, "worst_decile_accuracy": None, "global_accuracy": None,
        "leave_one_out_accuracy": None, "calibration_error": None, "uplink_bytes": 1, "downlink_bytes": 1,
        "seconds": {"local": 1.0},
    }  # fmt: skip
    methods = [
        {**method, "name": f"method {m}", "mean_accuracy": row.mean(),
         "clients": [{"name": f"site {i}", "train": 10 + i, "test": 100, "accuracy": float(v)} for i, v in enumerate(row)]}
        for m, row in enumerate(accuracies)
    ]  # fmt: skip
    about = {"gramfold": "", "seed": 0, "data": {"name": "many"}, "partition": {"clients": 1000, "kind": "iid"}}
    (tmp_path / "many.html").write_text(render_page({**about, "methods": methods}))
    assert (tmp_path / "many.html").stat().st_size < 400_000
    browser.open(tmp_path / "many.html", "#client=site%20700")
    assert browser.run("document.querySelectorAll('*').length") < 6000
    assert all(browser.run(MARKED))
