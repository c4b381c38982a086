"""The pages of a report, opened from the disk by a browser that has no network."""

import json
from urllib.parse import unquote

import pytest

IMAGES = "all => all.map(i => ({alt: i.alt, decoded: i.complete && i.naturalWidth > 0}))"

DRAWN = """all => all.map(formula => {
    const box = formula.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
})"""

# A browser that does not know MathML writes a fraction in one line.
STACKED = """all => all.map(fraction => {
    const [above, below] = [...fraction.children].map(part => part.getBoundingClientRect());
    return above.top < below.top && above.bottom <= below.top + 1;
})"""

# What is LaTeX in the source of a code cell may stay LaTeX.
PROSE = """() => {
    document.querySelectorAll('.input').forEach(cell => cell.remove());
    return document.body.innerText;
}"""


@pytest.fixture
def visit(browser, report):
    """A function that opens a page of the report; at the end, what happened meanwhile is judged."""
    context = browser.new_context(offline=True)
    requests, errors = [], []
    context.on("request", lambda request: requests.append(request.url))
    context.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda thrown: errors.append(str(thrown.error)))

    def open_page(name):
        page = context.new_page()
        page.goto((report / f"{name}.html").as_uri(), timeout=30_000)
        return page

    yield open_page
    context.close()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert errors == []


def test_notebook_page(visit, notebook):
    page = visit(notebook)

    images = page.locator("img").evaluate_all(IMAGES)
    assert images, "no figure"
    assert [i for i in images if not i["decoded"]] == []
    assert [i for i in images if not i["alt"].strip()] == []

    formulas = page.locator("math").evaluate_all(DRAWN)
    assert formulas and all(formulas), f"formulas, and whether they are drawn: {formulas}"
    assert all(page.locator("mfrac").evaluate_all(STACKED)), "a fraction is not drawn as one"

    prose = page.evaluate(PROSE)
    raw = [line for line in prose.splitlines() if "\\" in line or "$$" in line]
    assert raw == [], "LaTeX that did not become a formula"


def test_index_lists_all_notebooks_and_claims(visit, report):
    page = visit("index")
    pages = {path.name for path in report.glob("*.html")} - {"index.html"}
    links = page.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    leads_to = {unquote(link.partition("#")[0]) for link in links}
    assert leads_to == pages | {"results.csv", "claims.json"}

    cells = page.locator("td").all_text_contents()
    for claim in json.loads((report / "claims.json").read_text(encoding="utf-8")):
        why = f" ({claim['why']})" if claim["why"] else ""
        assert claim["what"] + why in cells


def test_every_notebook_has_a_page(report, notebook):
    assert (report / f"{notebook}.html").is_file()
