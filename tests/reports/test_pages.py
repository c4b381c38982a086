"""Pages to send on: what stands in the head, what is folded, what a page leaves out, the index, and
the PDF.
"""

import json
import os
import re
import sys
from html import unescape

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from quick import slow
from reporting import RECORD, finish, notebook
from reporting import command as start

from nummodel import plot
from nummodel.errors import InputError
from nummodel.reports import files, pages, pdf, rendering, report, runs
from nummodel.reports.runs import Run

CLAIMS = """from nummodel.records import claims
claims.check("near", model=3.1, documented=3.0, rtol=0.05, why="as drawn", kind="fit")
claims.check("far", model=9, documented=3, rtol=0.1, why="drawn", kind="prediction", expect="miss")
claims.check("sum", model=True, documented=True, kind="audit")
"""
DRAWN = """from nummodel import plot
picture = plot.Picture("Points {which}.")
plot.points(plot.axes(picture, "N", "X"), [1, 2], [1, 2])
picture"""


def written(folder, name, *cells, **metadata):
    """A notebook of cells: a text that begins with "#" or "|" is markdown, any other code."""
    path = notebook(folder, name, parameters="size: int = 3\nfile: str = ''")
    book = json.loads(path.read_text())
    for i, text in enumerate(cells):
        new = new_markdown_cell if text[0] in "#|" else new_code_cell
        book["cells"].append(new(text.removeprefix("|"), id=f"made-{i}"))
    book["metadata"]["nummodel"] = metadata
    path.write_text(json.dumps(book))
    return path


def page_of(path, folder, **parameters):
    outcome = report.execute_run(Run(path, parameters), folder)
    assert outcome.error == ""
    return (folder / f"{outcome.run.name}.html").read_text()


def text_of(html):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_the_head_has_question_answer_figure_and_verdicts(tmp_path):
    cells = (DRAWN.format(which="first"), DRAWN.format(which="second"), CLAIMS)
    path = written(tmp_path, "headed", *cells, figure="made-1")
    head = page_of(path, tmp_path / "out").partition("</header>")[0]
    told = ["Is headed right?", "Yes, by", 'alt="Points second."', "2 claims", "1 audit"]
    assert told == sorted(told, key=head.index)
    assert head.count("<img") == 1 and 'src="data:image/svg+xml;base64,' in head
    rows = [text_of(row) for row in re.findall("<tr>.*?</tr>", head, re.DOTALL)][1:]
    assert rows == [
        "far (prediction) 9 3 misses, as known , 200 % off (tolerance 10 %)",
        "near (fit) 3.1 3 holds , 3.3 % off (tolerance 5 %)",
    ]


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("It rises. It falls.", 2),
        ("With 1.5 s, e.g. here, it rises by 5 %. At 64 it is 40.5. N is 3.", 3),
        ("It is [5 % too low](#error). Is it? Yes!", 3),
        ("One only", 1),
    ],
)
def test_sentences_are_counted(text, sentences):
    parts, rest = [], text
    while rest:
        first, rest = rendering.split(rest, 1)
        parts.append(first)
    assert len(parts) == sentences and " ".join(parts) == text
    assert rendering.split(text, sentences) == (text, "")


def test_a_long_answer_is_folded_after_four_sentences(tmp_path):
    answer = " ".join(f"This is sentence {word}." for word in "one two three four five six".split())
    path = written(tmp_path, "long", f"{RECORD}\nclaims.record('answer', {answer!r})")
    head = page_of(path, tmp_path / "out", size=4).partition("</header>")[0]
    shown, folded = head.split("<details>")
    assert "sentence four." in shown and "sentence five." not in shown
    assert "sentence five. This is sentence six." in folded


def test_an_answer_of_paragraphs_is_folded_after_two(tmp_path):
    parts = [f"Part {word} says this. And that. And more." for word in ("one", "two", "three")]
    path = written(tmp_path, "parts", f"{RECORD}\nclaims.record('answer', {chr(10).join(parts)!r})")
    head = page_of(path, tmp_path / "out", size=4).partition("</header>")[0]
    shown, folded = head.split("<details>")
    assert f"</strong> {parts[0]}</p>" in shown and f"<p>{parts[1]}</p>" in shown
    assert f"<p>{parts[2]}</p>" in folded


def test_a_page_of_what_cannot_be_read_says_why_and_has_no_traceback(tmp_path):
    told = "mine.csv:3: rps is 'abc', expected a number"
    cell = f'from nummodel.errors import InputError\nraise InputError("{told}")'
    report.execute_run(Run(written(tmp_path, "unread", cell)), tmp_path / "out")
    body = (tmp_path / "out" / "unread.html").read_text().partition("</header>")[2]
    shown = body.partition('<div class="output_error">')[2].partition("</div>")[0]
    assert text_of(shown).strip() == told and "Traceback" not in body


def test_the_traceback_of_another_error_is_folded(tmp_path):
    report.execute_run(Run(written(tmp_path, "broken", "1 / 0")), tmp_path / "out")
    body = (tmp_path / "out" / "broken.html").read_text()
    folded = body.partition("<details><summary>Traceback</summary>")[2].partition("</details>")[0]
    assert "ZeroDivisionError" in folded


def test_a_section_has_one_table_of_all_that_it_records(tmp_path):
    """Also where a heading stands in the middle of a cell."""
    record = "from nummodel.records import claims\nclaims.record({!r}, 1)"
    first, between, second = record.format("first"), "|Text between.", record.format("second")
    third, fourth = record.format("third"), record.format("fourth")
    cells = ("## One", first, between, second, "|More of one.\n\n### Two\n\nText.", third)
    path = written(tmp_path, "tables", *cells, "## Three\n\n```\n## no heading\n```", fourth)
    page = page_of(path, tmp_path / "out")
    rows = [re.findall('<tr id="([^"]*)"', t) for t in re.findall("<table.*?</table>", page, re.S)]
    assert rows == [["first", "second"], ["third"], ["fourth"]]
    told = ["Text between.", "More of one.", 'id="second"', ">Two<", 'id="third"', ">Three<"]
    body = page[page.index("Text between.") - 1 :]
    assert told == sorted(told, key=body.index)
    ids = re.findall(' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and "<h2" not in page[page.index("no heading") - 5 :][:20]


def test_code_is_folded_and_headings_are_in_the_contents(tmp_path):
    path = written(tmp_path, "folded", "## One & *two*", "size * 2", "### Three", "size * 3")
    page = page_of(path, tmp_path / "out")
    code = re.findall(r'<details class="code"><summary>(\w+)\s*</summary>.*?</details>', page, re.S)
    assert code == ["Parameters", "Code", "Code"]
    unfolded = re.sub("<details.*?</details>", "", page, flags=re.S)
    assert '<div class=" highlight' in page and '<div class=" highlight' not in unfolded
    linked = re.findall('<li class="level(.)"><a href="#([^"]*)">(.*?)</a>', page)
    assert [text for _, _, text in linked] == ["One &amp; <em>two</em>", "Three"]
    assert [level for level, _, _ in linked] == ["2", "3"]
    assert {f'id="{anchor}"' for _, anchor, _ in linked} <= set(re.findall('id="[^"]*"', page))


def test_a_page_about_a_file_says_nothing_of_the_example(tmp_path):
    """Nor does it have the exercises. With the notebook's own file, it has all of it."""
    cells = (
        "## One\n\nFor ENIAC it is 3.\n\nThis is general.\n\n- ENIAC again\n- a rule",
        "'code of one'",
        "|Only ENIAC here.",
        "'code for ENIAC'",
        "## Try\n\n1. What of UNIVAC?",
        "## Sources\n\n- ENIAC's manual\n- a book",
    )
    exercise = {"question": "What of UNIVAC?", "parameters": {"size": 4}, "expect": {}}
    path = written(tmp_path, "about", *cells, example=["ENIAC"], exercises=[exercise])
    mine = tmp_path / "mine.csv"
    mine.write_text("N,X\n1,2\n")
    own = text_of(page_of(path, tmp_path / "out", file=str(mine)).partition("<main>")[2])
    assert "ENIAC" not in own and "UNIVAC" not in own
    assert "This is general." in own and "a rule" in own and "a book" in own and "Sources" in own
    whole = text_of(page_of(path, tmp_path / "out").partition("<main>")[2])
    assert all(cell.strip("#|'").split("\n")[0].strip() in whole for cell in cells)
    assert "Answers to Try" in whole


@pytest.mark.slow
def test_a_figure_is_the_same_whenever_it_is_drawn_and_small_with_many_points():
    def drawn(n):
        picture = plot.Picture("Many points.")
        plot.points(plot.axes(picture, "N", "X"), range(n), range(n))
        return picture.image("svg")

    assert drawn(3) == drawn(3) != drawn(4)
    assert len(drawn(50_000)) < 200_000


# The index


@pytest.mark.slow
def test_the_index_shows_all_runs_of_the_folder_failed_ones_first(tmp_path):
    out = tmp_path / "out"
    good = written(tmp_path, "good", DRAWN.format(which="drawn"), CLAIMS)
    bad = written(tmp_path, "bad", "1 / 0")
    report.make(runs.plan([str(good)], ["size=4"]), out, jobs=1)
    (out / "foreign.ipynb").write_text(good.read_text())
    report.make([Run(bad)], out, jobs=1)
    outcomes = report.make([Run(good)], out, jobs=1)
    assert [outcome.run.name for outcome in outcomes] == ["good"], "of this command"
    index = (out / "index.html").read_text()
    cards = re.findall("<article.*?</article>", index, re.DOTALL)
    links = [re.search('href="([^"]*)"', card)[1] for card in cards]
    assert links == ["bad.html", "good.html", "good,size=4.html"]
    assert "ZeroDivisionError" in cards[0] and 'class="card wrong"' in cards[0]
    for card in cards[1:]:
        assert 'src="data:image/svg+xml;base64,' in card and "Is good right?" in card
        assert "Yes, by" in card and "1 misses, as known" in text_of(card)
    assert "size = 4" in cards[2] and "2 by earlier commands" in text_of(index)
    told = json.loads((out / "claims.json").read_text())
    assert [claim["run"] for claim in told] == ["good"] * 3 + ["good,size=4"] * 3
    before = (out / "index.html").stat().st_mtime_ns
    report.make([Run(good)], out, jobs=1)
    assert (out / "index.html").stat().st_mtime_ns == before, "nothing has changed"


@pytest.mark.slow
def test_runs_of_the_readers_own_files_stand_first_and_name_them(tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("N,X\n1,2\n")
    lesson, good = written(tmp_path, "a", "1 / 0"), written(tmp_path, "b", CLAIMS)
    bad = written(tmp_path, "c", "1 / 0")
    planned = [Run(lesson), *(Run(path, {"file": str(mine)}) for path in (good, bad))]
    report.make(planned, tmp_path / "out", jobs=1)
    index = (tmp_path / "out" / "index.html").read_text()
    own, lessons = text_of(index.partition("Your own files</h2>")[2]).split("The notebooks ", 1)
    asked = ["mine.csv: Is c right?", "mine.csv: Is b right?"]
    assert [own.index(told) for told in asked] == sorted(own.index(told) for told in asked)
    assert "Is a right?" in lessons and "Is a right?" not in own


@pytest.mark.parametrize(
    "rates, start, then",
    [
        ((10, 19, 36, 66, 115, 180), "The highest tps measured is 180", "No limit was measured:"),
        slow(
            (10, 19, 33, 52, 73, 90), "No peak was measured. The highest", "The fitted law has its"
        ),
    ],
)
def test_a_card_says_more_than_what_was_measured(rates, start, then, tmp_path):
    """A stranger knows the highest throughput; where it stops growing is in the next sentence."""
    rows = "".join(f"{2**i},{rate}\n" for i, rate in enumerate(rates))
    (tmp_path / "mine.csv").write_text(f"threads,tps\n{rows}")
    (run,) = runs.plan(["21"], [f"file={tmp_path / 'mine.csv'}"])
    card = text_of(pages.index([report.execute_run(run, tmp_path)]).partition("</article>")[0])
    assert start in card and then in card and "At twice" not in card


def test_a_page_of_an_earlier_command_is_linked(tmp_path):
    one = written(tmp_path, "one", "1")
    two = written(tmp_path, "two", "## Links\n\nSee [one](one.ipynb).")
    for path in (one, two):
        report.make([Run(path)], tmp_path / "out", jobs=1)
    assert 'href="one.html">one</a>' in (tmp_path / "out" / "two.html").read_text()


@pytest.mark.slow
def test_the_index_has_the_page_of_a_command_that_ended_meanwhile(tmp_path):
    one = written(tmp_path, "one", "1")
    report.make([Run(one)], tmp_path / "other", jobs=1)
    copies = "import shutil\nfor name in ('one.html', 'one.ipynb'):\n    shutil.copy("
    copies += f"{str(tmp_path / 'other')!r} + '/' + name, {str(tmp_path / 'out')!r})"
    report.make([Run(written(tmp_path, "two", copies))], tmp_path / "out", jobs=1)
    assert 'href="one.html"' in (tmp_path / "out" / "index.html").read_text()


# PDF

BROWSER = """#!{python}
import sys
(part,) = (a.partition("=")[2] for a in sys.argv if a.startswith("--print-to-pdf="))
assert "--host-resolver-rules=MAP * ~NOTFOUND" in sys.argv
with open(part, "w") as file:
    file.write("%PDF of " + sys.argv[-1])
{then}
"""


@pytest.fixture
def a_browser(tmp_path, monkeypatch):
    """A function that puts a browser on the path, which writes a file and then does as it is told,
    and no other.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(pdf, "PLACES", ())
    monkeypatch.setenv("PATH", str(folder))

    def put(then=""):
        path = folder / "chromium"
        path.write_text(BROWSER.format(python=sys.executable, then=then))
        path.chmod(0o755)
        return str(path)

    return put


@pytest.mark.slow
def test_pages_are_printed_by_the_browser_that_is_there(tmp_path, a_browser):
    path = written(tmp_path, "one", "1")
    a_browser()
    asked = (path, "-p", "size=4", "--output", "out", "--pdf")
    code, out, err = finish(start(*asked, cwd=tmp_path))
    assert (code, out) == (0, "out/index.html\nout/one,size=4.pdf\n"), err
    printed = tmp_path / "out" / "one,size=4.pdf"
    assert re.fullmatch(rb"%PDF of file://\S+/one%2Csize%3D4.html\n?.*", printed.read_bytes(), re.S)
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(".")]
    before = printed.stat().st_mtime_ns
    assert finish(start(*asked, cwd=tmp_path))[:2] == (code, out)
    assert printed.stat().st_mtime_ns == before, "it is up to date"


def test_without_a_browser_nothing_is_executed(tmp_path, a_browser):
    path = written(tmp_path, "one", "1")
    code, out, err = finish(start(path, "--output", "out", "--pdf", cwd=tmp_path))
    assert (code, out) == (2, "") and not (tmp_path / "out").exists()
    expected = "expected Chromium, Chrome or Edge on the PATH (Debian: apt install chromium)"
    assert err == f"nummodel: --pdf: no browser found, {expected}\n"
    with pytest.raises(InputError, match="no browser found"):
        pdf.browser()


@pytest.mark.slow
@pytest.mark.parametrize("then", ["sys.exit(1)", "import os; os.remove(part)"])
def test_a_browser_that_fails_is_told_in_a_line(tmp_path, a_browser, then):
    path = written(tmp_path, "one", "1")
    a_browser(then)
    code, out, err = finish(start(path, "--output", "out", "--pdf", cwd=tmp_path))
    assert (code, out) == (1, "out/index.html\n")
    assert err.splitlines()[-1] == (
        "nummodel: out/one.pdf: chromium has failed, or has printed nothing in 120 s"
    )
    assert sorted(os.listdir(tmp_path / "out"))[0] == "claims.json", "no parts"


def test_the_pdf_of_somebody_else_stays(tmp_path, a_browser):
    browser, page = a_browser(), tmp_path / "one.html"
    page.write_text("a page")
    (tmp_path / "one.pdf").write_bytes(b"%PDF mine")
    with pytest.raises(FileExistsError, match="not written by a report"):
        pdf.write(page, browser)
    (tmp_path / "one.pdf").unlink()
    assert pdf.write(page, browser).read_bytes().endswith(files.PRINTED)
