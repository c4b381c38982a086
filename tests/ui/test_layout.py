"""Pages on a phone and on a laptop: nothing is cut, and only tables, code and formulas scroll."""

import pytest

from nummodel.reports import notebook, pages, runs
from nummodel.reports.results import Outcome

WIDTHS = {"phone": 360, "laptop": 1366}

# What nobody can scroll to: beyond the page, left of whatever scrolls, or hidden. A cell of the
# table of runs may end in an ellipsis.
CUT = """() => {
    for (const details of document.querySelectorAll('details')) details.open = true;
    const cut = element => {
        const box = element.getBoundingClientRect(), style = getComputedStyle(element);
        if (!box.width || style.textOverflow === 'ellipsis') return false;
        const hides = style.overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1
            || style.overflowY === 'hidden' && element.scrollHeight > element.clientHeight + 1;
        let frame = element.parentElement;
        while (frame && getComputedStyle(frame).overflowX !== 'auto') frame = frame.parentElement;
        const left = frame ? frame.getBoundingClientRect().left : 0;
        const right = frame ? Infinity : document.documentElement.clientWidth;
        return hides || box.left < left - 1 || box.right > right + 1;
    };
    return [...document.querySelectorAll('main *')].filter(cut).map(e => e.outerHTML.slice(0, 99));
}"""
SCROLLS = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"

at_both = pytest.mark.parametrize("device", WIDTHS)


@pytest.fixture
def shown(browser, device):
    """A function that shows a file as wide as the device."""
    page = browser.new_page(viewport={"width": WIDTHS[device], "height": 740})
    yield lambda path: page.goto(path.as_uri()) and page
    page.close()


@at_both
def test_a_notebook_fits(shown, report, notebook):
    page = shown(report / f"{notebook}.html")
    assert page.evaluate(CUT) == [] and not page.evaluate(SCROLLS)


@at_both
def test_the_index_fits(shown, report):
    page = shown(report / "index.html")
    assert page.evaluate(CUT) == [] and not page.evaluate(SCROLLS)


@at_both
def test_the_index_of_forty_runs_fits(shown, report, tmp_path):
    """Four notebooks with ten parameter sets each, one of which failed."""
    outcomes = []
    for name, parameter in {"01": "sigma", "03": "D_lock", "11": "level", "23": "far"}.items():
        (path,) = (run.notebook for run in runs.plan([name]))
        executed = notebook.read(report / path.with_suffix(".ipynb").name)
        for step in range(1, 11):
            error = "ValueError: no such thing, and why that is is a long story" * (step == 3)
            run = runs.Run(path, {parameter: step / 100})
            outcomes.append(Outcome(run, executed, 1.0 + step, error))
    (tmp_path / "index.html").write_text(pages.index(outcomes), encoding="utf-8")
    page = shown(tmp_path / "index.html")
    assert page.evaluate(CUT) == [] and not page.evaluate(SCROLLS)
    assert page.locator(".runs tbody tr").count() == 40
