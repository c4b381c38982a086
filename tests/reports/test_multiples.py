"""An index with a thousand runs: a table, curves with the same axes, and cards of failures only."""

import re

import nbformat
import pytest
from reporting import notebook

from nummodel.reports import multiples, pages
from nummodel.reports.results import Outcome
from nummodel.reports.runs import Run


@pytest.fixture
def outcome(tmp_path):
    path = notebook(tmp_path, "big", parameters="size: int = 3\ngap: float = 1.0\nkind: str = 'a'")
    book = nbformat.read(path, as_version=4)

    def made(error="", value=None, **parameters):
        found = Outcome(Run(path, parameters), nbformat.from_dict(book), 1.0, error)
        record = {"what": "twice", "kind": "record", "model": value, "unit": ""}
        found.__dict__["claims"] = [record | {"ok": True, "verdict": "holds"}] * (not error)
        return found

    return made


def test_a_straight_line_is_drawn_as_one(outcome):
    """For each value of the other parameter; the axes are those of all."""
    runs = [
        outcome(value=2 * n * gap, size=n, gap=gap) for gap in (1.0, 0.5) for n in range(20, 0, -1)
    ]
    found = multiples.multiples(runs, ["size", "gap"], ["twice"], {})
    assert (found.name, found.over, found.x, found.y) == ("twice", "size", (1, 20), (1, 40))
    assert [panel.title for panel in found.panels] == ["gap = 1.0", "gap = 0.5"]
    for panel, slope in zip(found.panels, (2.0, 1.0), strict=True):
        for i, (x, y) in enumerate(panel.points):
            assert x == pytest.approx(multiples.WIDTH * i / 19)
            assert 1 - y / multiples.HEIGHT == pytest.approx((slope * (i + 1) - 1) / 39)


def test_what_has_no_number_is_not_drawn(outcome):
    words = [outcome(value=float(i), kind=kind) for i, kind in enumerate("abcdefghijklmnop")]
    assert multiples.multiples(words, ["kind"], ["twice"], {}) is None
    texts = [outcome(value=f"{n}", size=n) for n in range(20)]
    assert multiples.multiples(texts, ["size"], ["twice"], {}) is None


def test_an_index_of_a_thousand_runs(outcome):
    """The failed one comes first, as a card; the table has all runs; of the 25 curves over `gap`,
    which has more values than `size`, 24 are drawn."""
    runs = [outcome(value=n + gap, size=n, gap=float(gap)) for n in range(25) for gap in range(40)]
    runs[7] = outcome(error="ValueError: no", size=0, gap=7.0)
    html = pages.index(runs)
    assert html.count('class="card wrong"') == 1 == html.count("<article")
    assert html.count("<polyline") == multiples.PANELS and "Curves not drawn: 1." in html
    table = re.search(r"<tbody>(.*?)</tbody>", html, re.S)[1]
    assert table.count("<tr>") == 1000
    few = pages.index(runs[:12])
    assert few.count("<article") == 12 and "<polyline" not in few
