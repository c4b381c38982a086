"""Pages to send on: one of each run, and the index of all runs in a folder."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nummodel import __version__
from nummodel.nomenclature import show
from nummodel.records import claims, data
from nummodel.reports import rendering, results
from nummodel.reports.files import GENERATOR
from nummodel.reports.multiples import MANY, multiples
from nummodel.reports.notebook import declared
from nummodel.reports.results import Outcome
from nummodel.reports.runs import Run

#: A link to the page of another notebook.
PAGE = re.compile(
    r'<a class="page" href="(?P<name>[\w-]+)\.html(?:#[^"]*)?">(?P<text>.*?)</a>', re.DOTALL
)
#: In the index as long as some runs are not done.
RELOAD = '<meta http-equiv="refresh" content="30">'
#: Paragraphs of an answer in the head of a page, or sentences of an answer that is one paragraph,
#: and comparisons that are not folded there.
PARAGRAPHS, SENTENCES, VERDICTS = 2, 4, 4


def page(outcome: Outcome, names: Collection[str]) -> str:
    """The page of one run. It links to the pages with these `names`, and to no other notebook's.

    Its head has the question, the answer, a figure, and the outcome of all comparisons.
    """
    body = rendering.body(outcome)
    answer, more = rendering.split(outcome.found or outcome.answer, SENTENCES)
    if len(parts := outcome.found.splitlines()) > 1:
        answer, more = "\n".join(parts[:PARAGRAPHS]), "\n".join(parts[PARAGRAPHS:])
    groups = [group for group in _groups([outcome]) if group["verdicts"]]
    # Claims, or else audits; what went wrong first.
    compared = [c for group in groups[:1] for _, c in group["rows"]]
    compared.sort(key=lambda c: [*claims.MARKS].index(c["verdict"]), reverse=True)
    exercises = [
        (exercise, _answers(exercise["expect"], outcome))
        for exercise in outcome.notebook["metadata"].get("nummodel", {}).get("exercises", [])
        if not outcome.own
    ]
    html = _template("page.html.j2").render(
        outcome=outcome,
        answer=answer,
        more=more,
        figure=rendering.figure(outcome),
        groups=groups,
        verdicts=[compared[:VERDICTS], compared[VERDICTS:]],
        contents=rendering.contents(body),
        body=body,
        exercises=exercises,
    )
    html = rendering.with_parameters(html, outcome)
    return _linked(html, names)


def _linked(html: str, names: Collection[str]) -> str:
    """HTML that links to the pages with these `names`, and to no other notebook's."""
    return PAGE.sub(lambda link: link[0] if link["name"] in names else link["text"], html)


def _answers(expected: dict[str, Any], outcome: Outcome) -> Iterator[str]:
    """The name of each record that an exercise asks for, with the value and the unit to expect.

    A record that only the exercise makes, as the error of a run that it leaves out, has the unit of
    one whose name differs from its own in the number.
    """
    recorded = {claim["what"]: claim for claim in outcome.claims}
    alike = {re.sub(r"\d+", "", name): claim for name, claim in recorded.items()}
    for name, value in expected.items():
        claim = recorded.get(name, alike.get(re.sub(r"\d+", "", name), {}))
        text = show(value, claim.get("unit", ""))
        if isinstance(value, list) and not isinstance(claim.get("model"), list):
            text = re.sub("^(.*) to ", r"between \1 and ", text)
        yield f"{name}: {text}"


def index(outcomes: list[Outcome]) -> str:
    """The page that shows all runs as cards, those of the reader's own files and failed ones first,
    and lists all claims, audits apart.

    Above the cards, it has the questions of the documents that these runs are about. Runs of the
    same notebook also make a table, which a click on a head sorts. As long as some runs are not
    done, the index says how many are, and browsers reload it.
    """
    by_notebook: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_notebook.setdefault(outcome.run.notebook.stem, []).append(outcome)
    few = [o for o in outcomes if o.error or len(by_notebook[o.run.notebook.stem]) <= MANY]
    cards = [_card(o) for o in sorted(few, key=lambda o: not o.error)]
    return _template("index.html.j2").render(
        outcomes=outcomes,
        questions=_questions(outcomes),
        own=[card for card in cards if card["file"]],
        lessons=[card for card in cards if not card["file"]],
        notebooks=[_beside(of_notebook) for of_notebook in by_notebook.values()],
        groups=_groups(outcomes),
        reload=RELOAD,
        written=f"{datetime.now():%Y-%m-%d at %H:%M:%S}",
    )


def questions(notebooks: Collection[str]) -> list[str]:
    """The table of docs/questions.md, of which the rows that are about these notebooks: lines of
    Markdown with links to notebooks in the same folder; none if there is no such row.
    """
    text = (data.HOME / "docs" / "questions.md").read_text(encoding="utf-8")
    head, rule, *rows = re.findall(r"^\|.*", text.replace("../notebooks/", ""), re.MULTILINE)
    asked = [row for row in rows if any(f"]({name}.ipynb) |" in row for name in notebooks)]
    return [head, rule, *asked] if asked else []


def _questions(outcomes: list[Outcome]) -> dict[str, Any]:
    """Number and table of the questions that the runs are about, with links to pages there are."""
    lines = questions({outcome.run.notebook.stem for outcome in outcomes})
    html = rendering.prose("\n".join(lines))
    paged = {outcome.run.name for outcome in outcomes if outcome.paged and not outcome.unfinished}
    return {"number": max(len(lines) - 2, 0), "html": _linked(html, paged)}


def _card(outcome: Outcome) -> dict[str, Any]:
    """A run with its figure, the first sentence of its answer, and how its comparisons went.

    Of an answer about the reader's own file, there are two sentences, and one more if the first has
    no figure: the first may only say what was measured, and not what follows from that.
    """
    text = "" if outcome.unfinished else outcome.found or outcome.answer
    count = 1
    if outcome.own:
        count = 2 if re.search("[0-9]", rendering.split(text, 1)[0]) else 3
    return {
        "outcome": outcome,
        "file": Path(outcome.run.parameters["file"]).name if outcome.own else "",
        "figure": rendering.figure(outcome),
        "sentence": rendering.split(text, count)[0],
        "groups": [group for group in _groups([outcome]) if group["verdicts"]],
    }


def _beside(outcomes: list[Outcome]) -> dict[str, Any]:
    """The runs of one notebook as the rows of a table, with defaults where nothing was given."""
    given, varying = results.given(outcomes), results.varying(outcomes)
    known = declared(outcomes[0].notebook) if given else {}
    default = {n: known[n].plain if n in known else "" for n in given}
    rows = []
    for o in outcomes:
        values = [(o.run.parameters.get(n, default[n] or "none"), n) for n in given]
        held = "" if o.unfinished else "none"
        if o.checked:
            held = f"{sum(c['ok'] for c in o.checked)} of {len(o.checked)}"
        rows.append((o, values, held, [o.records.get(n, "") for n in varying]))
    return {
        "outcomes": outcomes,
        "told": given,
        "found": varying,
        "rows": rows,
        "groups": _groups(outcomes),
        "curves": multiples(outcomes, given, varying, default) if len(outcomes) > MANY else None,
    }


def _groups(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Claims, audits and recorded values with their runs, and how many of them went how."""
    names = {"record": "recorded value", "audit": "audit"}
    groups = []
    for what in ("claim", "audit", "recorded value"):
        rows = [(o, c) for o in outcomes for c in o.claims if names.get(c["kind"], "claim") == what]
        counts = Counter(c["verdict"] for _, c in rows if c["kind"] != "record")
        verdicts = {name: counts[name] for name in claims.MARKS if counts[name]}
        groups.append({"what": what, "rows": rows, "verdicts": verdicts})
    return groups


def _href(name: str) -> str:
    return quote(os.fsencode(f"{name}.html"), safe=",=+")


def _label(run: Run) -> str:
    """A run's parameters, or its notebook."""
    given = ", ".join(f"{name} = {value}" for name, value in run.parameters.items())
    return given or run.notebook.stem


def _code_css(style: str) -> str:
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(style=style).get_style_defs(".highlight")


@cache
def _template(name: str):
    from jinja2 import Environment, FunctionLoader

    folder = files("nummodel.reports") / "templates"
    loader = FunctionLoader(lambda n: (folder / n).read_text(encoding="utf-8"))
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "show": show,
        "href": _href,
        "label": _label,
        "anchor": claims.anchor,
        "first_line": lambda text: text.partition("\n")[0],
        "prose": rendering.prose,
        "inline": lambda text: (
            rendering.prose(text).strip().removeprefix("<p>").removesuffix("</p>")
        ),
    }
    environment.globals |= {
        "generator": GENERATOR,
        "version": __version__,
        "marks": claims.MARKS,
        "code_css": _code_css("default"),
        "dark_code_css": _code_css("github-dark"),
    }
    return environment.get_template(name)
