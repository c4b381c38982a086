"""Executed notebooks as pages that need no network: formulas are MathML, figures are inside."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any
from urllib.parse import quote

from nummodel.nomenclature import show
from nummodel.records import claims
from nummodel.reports import results
from nummodel.reports.files import GENERATOR
from nummodel.reports.notebook import declared
from nummodel.reports.results import Outcome
from nummodel.reports.runs import Run

WIDGET = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
#: A link to the page of another notebook.
PAGE = re.compile(r'<a class="page" href="(?P<name>[\w-]+)\.html">(?P<text>.*?)</a>', re.DOTALL)
#: A space that must not end a line: the one between a figure and its unit.
BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:[mµn]?s|[KMG]B)\b)")

#: In the index as long as some runs are not done.
RELOAD = '<meta http-equiv="refresh" content="30">'


def page(outcome: Outcome, names: Collection[str]) -> str:
    """The page of one run. It links to the pages with these `names`, and to no other notebook's."""
    from nbformat import from_dict

    notebook = outcome.notebook
    copy = from_dict(notebook)
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            cell.source = outcome.about(cell.source)
        if cell.cell_type == "code":
            outputs = [o for out in cell.outputs for o in _still(out, notebook)]
            cell.outputs = [
                o for claimed, some in groupby(outputs, _claimed) for o in _together(claimed, some)
            ]
            for output in cell.outputs:
                _make_readable(output)
    body, _ = _exporter().from_notebook_node(copy)
    for name, cell in _told(notebook).items():
        body = body.replace(f'href="#{name}"', f'href="#cell-id={cell}"')
    body = PAGE.sub(lambda link: link[0] if link["name"] in names else link["text"], body)
    exercises = [
        (exercise, _answers(exercise["expect"], outcome))
        for exercise in notebook.metadata.get("nummodel", {}).get("exercises", [])
    ]
    # The parameters and the answer of this run stand below the title, before the text.
    title, end, rest = body.partition("</h1>") if "</h1>" in body else ("", "", body)
    return _template("page.html.j2").render(
        title=title + end, body=rest, outcome=outcome, exercises=exercises
    )


def _answers(expected: dict[str, Any], outcome: Outcome) -> Iterator[str]:
    """The name of each record that an exercise asks for, with the value and the unit to expect."""
    recorded = {claim["what"]: claim for claim in outcome.claims}
    for name, value in expected.items():
        claim = recorded.get(name, {})
        text = show(value, claim.get("unit", ""))
        if isinstance(value, list) and not isinstance(claim.get("model"), list):
            text = re.sub("^(.*) to ", r"between \1 and ", text)
        yield f"{name}: {text}"


def index(outcomes: list[Outcome]) -> str:
    """The page that lists all runs and, folded under each notebook, every claim, audits apart.

    Runs of the same notebook make a table, which a click on a head sorts. As long as some runs are
    not done, the index says how many are, and browsers reload it.
    """
    by_notebook: dict[Any, list[Outcome]] = {}
    for outcome in outcomes:
        by_notebook.setdefault(outcome.run.notebook, []).append(outcome)
    return _template("index.html.j2").render(
        outcomes=outcomes,
        notebooks=[_beside(of_notebook) for of_notebook in by_notebook.values()],
        groups=_groups(outcomes),
        marks=claims.MARKS,
        reload=RELOAD,
        written=f"{datetime.now():%Y-%m-%d at %H:%M:%S}",
    )


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
    groups = _groups(outcomes)
    return {"outcomes": outcomes, "told": given, "found": varying, "rows": rows, "groups": groups}


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


def mathml(latex: str, display: str = "inline") -> str:
    """A formula as MathML, which browsers draw themselves; what cannot be read stays LaTeX."""
    from latex2mathml.converter import convert

    try:
        formula = convert(latex.strip(), display=display)
    except Exception:  # the converter raises many kinds
        return f"<code>{escape(latex)}</code>"
    return f'<div class="formula">{formula}</div>' if display == "block" else formula


@cache
def _exporter():
    """Makes bodies of pages. Its templates take longer to be compiled than to be filled."""
    from jinja2 import pass_context
    from nbconvert import HTMLExporter, TemplateExporter
    from nbconvert.filters import Highlight2HTML

    class Exporter(HTMLExporter):
        @pass_context
        def markdown2html(self, context, source):
            return _prose(source)

        def from_notebook_node(self, nb, resources=None, **options):
            # Not HTMLExporter's, which parses the page again: that takes as long as making it.
            return TemplateExporter.from_notebook_node(self, nb, resources, **options)

    # What it would clean are its own highlighted sources.
    filters = {
        "clean_html": lambda html: html,
        "highlight_code": Highlight2HTML(pygments_lexer="ipython3"),
    }
    quiet = {"exclude_input_prompt": True, "exclude_output_prompt": True}
    return Exporter(template_name="basic", filters=filters, **quiet)


def _prose(markdown: str, page: str = "") -> str:
    """Markdown as HTML, with its formulas as MathML. Links to records lead to those of `page`."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def text(self, text: str) -> str:
            return super().text(BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text))

        def link(self, text: str, url: str, title: str | None = None) -> str:
            if other := re.fullmatch(r"([\w-]+)\.ipynb", url):  # whose page stands beside this one
                return f'<a class="page" href="{other[1]}.html">{text}</a>'
            if not url.startswith("#"):
                return super().link(text, url, title)
            return f'<a class="figure" href="{page}{url}">{text}</a>'

        def inline_math(self, body: str) -> str:
            return mathml(body)

        def block_math(self, body: str) -> str:
            return mathml(body, "block")

    return MarkdownWithMath(renderer=Renderer(escape=False)).render(markdown)


def _told(notebook: Any) -> dict[str, str]:
    """The parameters of a notebook, with the cell that declares them."""
    tagged = (c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
    cell = next((str(c.get("id", "")) for c in tagged), "")
    return dict.fromkeys(declared(notebook), cell)


def _claimed(output: Any) -> bool:
    return claims.MIME in output.get("data", {})


def _together(claimed: bool, outputs: Iterable[Any]) -> list:
    """What a cell has claimed and recorded, one after another, as one table."""
    from nbformat.v4 import new_output

    if not claimed:
        return list(outputs)
    made = [claims.read(output["data"][claims.MIME]) for output in outputs]
    return [new_output("display_data", data={"text/html": claims.table(made)})]


def _still(output: Any, notebook: Any) -> list:
    """Sliders as what they showed when the notebook was executed, and where they stood."""
    from nbformat.v4 import new_output

    view = output.get("data", {}).get(WIDGET)
    if not view:
        return [output]
    models = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    names = models.get(view["model_id"], {}).get("state", {}).get("children", [])
    children = [models.get(name.removeprefix("IPY_MODEL_"), {}).get("state", {}) for name in names]
    values = [f"{c['description']} = {c['value']:.4g}" for c in children if "readout_format" in c]
    text = _prose(f"Sliders in JupyterLab, here where they start: {'; '.join(values)}.")
    where = new_output("display_data", data={"text/html": text})
    return [where, *(o for c in children for o in c.get("outputs", []))]


def _make_readable(output: Any) -> None:
    """A formula becomes MathML. A figure without alternative text gets one that says so."""
    bundle = output.get("data", {})
    latex = bundle.get("text/latex")
    if latex and "text/html" not in bundle:
        formula = latex.strip().strip("$").replace(r"\displaystyle", "")
        bundle["text/html"] = mathml(formula, "block")
    for kind in bundle:
        if kind.startswith("image/"):
            output.metadata.setdefault(kind, {}).setdefault("alt", "A figure without description")


def _href(name: str) -> str:
    return quote(os.fsencode(f"{name}.html"), safe=",=+")


def _label(run: Run) -> str:
    """A run's parameters, or its notebook."""
    given = ", ".join(f"{name} = {value}" for name, value in run.parameters.items())
    return given or run.notebook.stem


@cache
def _template(name: str):
    from jinja2 import Environment, FunctionLoader
    from pygments.formatters import HtmlFormatter

    folder = files("nummodel.reports") / "templates"
    loader = FunctionLoader(lambda n: (folder / n).read_text(encoding="utf-8"))
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "show": show,
        "href": _href,
        "label": _label,
        "first_line": lambda text: text.partition("\n")[0],
        "prose": _prose,
    }
    css = HtmlFormatter(style="default").get_style_defs(".highlight")
    environment.globals |= {"generator": GENERATOR, "code_css": css}
    return environment.get_template(name)
