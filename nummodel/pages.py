"""Executed notebooks as pages that need no network: formulas are MathML, figures are inside."""

from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from nummodel import claims, results
from nummodel.notebook import parameters
from nummodel.results import Outcome
from nummodel.runs import Run

WIDGET = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


def page(outcome: Outcome) -> str:
    """The page of one run."""
    from nbformat import from_dict

    notebook = outcome.notebook
    copy = from_dict(notebook)
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for out in cell.outputs for o in _still(out, notebook)]
            for output in cell.outputs:
                _formula_as_mathml(output)
                _described(output)
    body, _ = _exporter().from_notebook_node(copy)
    exercises = notebook.metadata.get("nummodel", {}).get("exercises", [])
    return _template("page.html.j2").render(body=body, outcome=outcome, exercises=exercises)


def index(outcomes: list[Outcome]) -> str:
    """The page that lists all runs and every claim, audits apart from the rest.

    Runs of the same notebook make a table, which a click on a head sorts.
    """
    rows = [(o, c) for o in outcomes for c in o.claims]
    groups = {
        "Claims": [r for r in rows if r[1]["kind"] not in ("audit", "record")],
        "Audits": [r for r in rows if r[1]["kind"] == "audit"],
        "Recorded values": [r for r in rows if r[1]["kind"] == "record"],
    }
    by_notebook: dict[Any, list[Outcome]] = {}
    for outcome in outcomes:
        by_notebook.setdefault(outcome.run.notebook, []).append(outcome)
    notebooks = [_beside(of_notebook) for of_notebook in by_notebook.values()]
    swept = len(notebooks) < len(outcomes)
    return _template("index.html.j2").render(
        outcomes=outcomes, notebooks=notebooks, groups=groups, swept=swept
    )


def _beside(outcomes: list[Outcome]) -> dict[str, Any]:
    """The runs of one notebook as the rows of a table, with defaults where nothing was given."""
    told, found = results.told(outcomes), results.varying(outcomes)
    known = parameters(outcomes[0].run.notebook) if told else {}
    rows = []
    for o in outcomes:
        given = [
            (o.run.parameters.get(n, known[n].default.strip("\"'") or "none"), n) for n in told
        ]
        checked = o.checked
        held = f"{sum(c['ok'] for c in checked)} of {len(checked)}" if checked else "none"
        rows.append((o, given, held, [o.records.get(n, "") for n in found]))
    return {"outcomes": outcomes, "told": told, "found": found, "rows": rows}


def mathml(latex: str, display: str = "inline") -> str:
    """A formula as MathML, which browsers draw themselves; what cannot be read stays LaTeX."""
    from html import escape

    from latex2mathml.converter import convert

    try:
        return convert(latex.strip(), display=display)
    except Exception:  # the converter raises many kinds
        return f"<code>{escape(latex)}</code>"


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
            # Not HTMLExporter's, which parses what it has made, at the cost of making it.
            return TemplateExporter.from_notebook_node(self, nb, resources, **options)

    # What it would clean are its own highlighted sources.
    filters = {
        "clean_html": lambda html: html,
        "highlight_code": Highlight2HTML(pygments_lexer="ipython3"),
    }
    quiet = {"exclude_input_prompt": True, "exclude_output_prompt": True}
    return Exporter(template_name="basic", filters=filters, **quiet)


def _prose(markdown: str) -> str:
    """Markdown as HTML, with its formulas as MathML."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def inline_math(self, body: str) -> str:
            return mathml(body)

        def block_math(self, body: str) -> str:
            return mathml(body, "block")

    return MarkdownWithMath(renderer=Renderer(escape=False)).render(markdown)


def _still(output: Any, notebook: Any) -> list:
    """A slider's output as what it showed when the notebook was executed."""
    view = output.get("data", {}).get(WIDGET)
    if not view:
        return [output]
    models = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    state = models.get(view["model_id"], {}).get("state", {})
    children = [c.removeprefix("IPY_MODEL_") for c in state.get("children", [])]
    return [o for c in children for o in models.get(c, {}).get("state", {}).get("outputs", [])]


def _formula_as_mathml(output: Any) -> None:
    bundle = output.get("data", {})
    latex = bundle.get("text/latex")
    if latex and "text/html" not in bundle:
        bundle["text/html"] = mathml(
            latex.strip().strip("$").replace(r"\displaystyle", ""), "block"
        )


def _described(output: Any) -> None:
    """So that who hears a page knows of a figure that came without alternative text."""
    for kind in output.get("data", {}):
        if kind.startswith("image/"):
            output.metadata.setdefault(kind, {}).setdefault("alt", "A figure without description")


def _label(run: Run) -> str:
    """A run in few words: the number of its notebook, and what it was told."""
    number, _, _ = run.notebook.stem.partition("-")
    told = ", ".join(f"{name} = {value}" for name, value in run.parameters.items())
    return f"{number if number.isdigit() else run.notebook.stem} {told}".strip()


@cache
def _template(name: str):
    from jinja2 import Environment, FunctionLoader
    from pygments.formatters import HtmlFormatter

    folder = files("nummodel") / "templates"
    loader = FunctionLoader(lambda n: (folder / n).read_text(encoding="utf-8"))
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["show"] = claims.show
    environment.filters["href"] = lambda name: quote(f"{name}.html", safe=",=+")
    environment.filters["label"] = _label
    environment.filters["first_line"] = lambda text: text.partition("\n")[0]
    environment.filters["prose"] = _prose
    environment.globals["code_css"] = HtmlFormatter(style="default").get_style_defs(".highlight")
    return environment.get_template(name)
