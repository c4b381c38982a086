"""Pages on a telephone, a tablet and a laptop, light, dark and printed: nothing is cut, only
tables, code and formulas scroll, and axe-core finds nothing serious.
"""

from itertools import product
from pathlib import Path

import pytest

from nummodel.reports import notebook, pages, runs
from nummodel.reports.results import Outcome

WIDTHS = (360, 768, 1366)
SCHEMES = ("light", "dark")
#: What A4 leaves between its margins, in pixels of CSS.
PAPER = 672
#: axe-core, which the make target has fetched.
AXE = Path(__file__).parents[2] / ".venv" / "axe.min.js"

# What nobody can scroll to: beyond the page, left of whatever scrolls, or hidden. A cell of the
# table of runs may end in an ellipsis.
CUT = """() => {
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
    return [...document.querySelectorAll('body *')].filter(cut).map(e => e.outerHTML.slice(0, 99));
}"""
UNFOLD = "() => document.querySelectorAll('details').forEach(details => { details.open = true; })"
SCROLLS = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
#: Figures beyond the text beside them.
WIDER = """() => [...document.querySelectorAll('img')]
    .filter(image => image.getBoundingClientRect().width
        > image.closest('main > *, article').getBoundingClientRect().width + 1)
    .map(image => image.alt)"""
#: What scrolls without a shade at its edge, or cannot be reached by the keyboard.
UNSEEN = """() => [...document.querySelectorAll('main *')]
    .filter(e => getComputedStyle(e).overflowX === 'auto' && e.scrollWidth > e.clientWidth)
    .filter(e => e.tabIndex || !getComputedStyle(e).backgroundImage.includes('gradient'))
    .map(e => e.outerHTML.slice(0, 99))"""
BACKGROUND = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
SERIOUS = """async () => (await axe.run({preload: false, resultTypes: ['violations']})).violations
    .filter(found => ['serious', 'critical'].includes(found.impact))
    .map(found => [found.id, found.nodes.length, found.nodes[0].html])"""


@pytest.fixture
def open_page(browser):
    """A function that opens a file; at the end, no request may have gone anywhere."""
    context = browser.new_context(offline=True)
    requests = []
    context.on("request", lambda request: requests.append(request.url))

    def opened(path):
        page = context.new_page()
        page.goto(path.as_uri(), timeout=30_000)
        return page

    yield opened
    context.close()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def check(page, accessible=True):
    """At every width, light and dark, with all that is folded shut and then open; and printed."""
    page.add_script_tag(content=AXE.read_text())
    for unfolded in (False, True):
        if unfolded:
            page.evaluate(UNFOLD)
        for scheme, width in product(SCHEMES, WIDTHS):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 740})
            where = f"{width} px, {scheme}, unfolded: {unfolded}"
            assert_fits(page, where)
            assert page.evaluate(UNSEEN) == [], where
            assert (max(page.evaluate(BACKGROUND)) < 60) == (scheme == "dark")
            if accessible and unfolded:
                assert page.evaluate(SERIOUS) == [], where
    # Still dark on the screen, when it is printed.
    page.set_viewport_size({"width": PAPER, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    assert min(page.evaluate(BACKGROUND)) == 255
    assert_fits(page, "printed")
    if accessible:
        assert page.evaluate(SERIOUS) == [], "printed"


def assert_fits(page, where):
    """Nothing is cut, and the page as a whole does not scroll sideways."""
    assert page.evaluate(CUT) == [] and page.evaluate(WIDER) == [], where
    assert not page.evaluate(SCROLLS), where


def test_a_page_fits_everywhere(open_page, report, name):
    check(open_page(report / f"{name}.html"))


def test_the_index_of_forty_runs_fits(open_page, report, tmp_path):
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
    page = open_page(tmp_path / "index.html")
    check(page, accessible=False)  # which takes a minute, and is checked on the real index
    assert page.locator(".runs tbody tr").count() == 40
    failed = page.locator(".card").evaluate_all("all => all.map(c => c.matches('.wrong'))")
    assert failed == [True] * 4 + [False] * 36
