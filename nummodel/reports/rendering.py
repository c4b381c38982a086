"""Executed notebooks as HTML that needs no network: formulas are MathML, figures are inside.

Of a notebook, a page has the text, the outputs and the code, which is folded; what a section claims
and records stands below it as one table.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from functools import cache, lru_cache
from html import escape
from typing import Any

from nummodel.records import claims
from nummodel.reports.notebook import declared
from nummodel.reports.results import Outcome

WIDGET = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
SVG, PNG = "image/svg+xml", "image/png"
#: A space that must not end a line: the one between a figure and its unit.
BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:[mµn]?s|[KMG]B)\b)")
#: Between two sentences; not after a single letter, as in "e.g."
BETWEEN = re.compile(r"(?<=\w\w[.?!]|.[\d)%][.?!])\s+")
#: A heading of a page's body, and what it says.
HEADING = re.compile(r'<h([23]) id="([^"]*)">(.*?)<a class="anchor-link".*?</h\1>', re.DOTALL)
#: Texts, formulas and cells of code whose HTML is kept: runs of one notebook have these in common.
KEPT = 4096
#: Folds code and tracebacks; of an input that cannot be read, the message is all that is shown.
FOLDED = """{% extends "basic/index.html.j2" %}
{% block input_group %}
{% if cell.source.strip() %}
<details class="code"><summary>{{ "Parameters" if "parameters" in cell.metadata.tags else "Code" }}
</summary>{{ super() }}</details>
{% endif %}
{% endblock %}
{% block error %}
{% if output.ename == "InputError" %}
<div class="output_error"><pre>{{ output.evalue | escape }}</pre></div>
{% else %}
<details><summary>Traceback</summary>{{ super() }}</details>
{% endif %}
{% endblock %}
"""


def body(outcome: Outcome) -> str:
    """The page of a run without its head: the notebook below its title and its answer."""
    from nbformat import from_dict

    # Without the state of sliders, which are shown as they stood.
    kept = {name: part for name, part in outcome.notebook["metadata"].items() if name != "widgets"}
    cells = list(_with_tables(outcome))
    html, _ = _exporter().from_notebook_node(
        from_dict(outcome.notebook | {"cells": cells, "metadata": kept})
    )
    return html


def with_parameters(html: str, outcome: Outcome) -> str:
    """A page whose links to a parameter lead to the cell that declares it."""
    cells = outcome.notebook["cells"]
    tagged = (c for c in cells if "parameters" in c["metadata"].get("tags", []))
    cell = next((str(c.get("id", "")) for c in tagged), "")
    for name in declared(outcome.notebook):
        html = html.replace(f'href="#{name}"', f'href="#cell-id={cell}"')
    return html


def contents(html: str) -> list[tuple[str, str, str]]:
    """The headings of a page's body: "2" or "3", the anchor, and the text as HTML."""
    return HEADING.findall(html)


def figure(outcome: Outcome) -> tuple[str, str] | None:
    """Source and alternative text of the figure that stands for a run: that of the cell which the
    notebook's metadata name as `figure`, or else the first.
    """
    chosen = outcome.notebook["metadata"].get("nummodel", {}).get("figure")
    found = [
        (cell.get("id"), image)
        for cell in outcome.notebook["cells"]
        for output in cell.get("outputs", [])
        for shown in _still(output, outcome.notebook)
        if (image := _image(shown))
    ]
    named = [image for cell, image in found if cell == chosen]
    return next(iter(named + [image for _, image in found]), None)


def split(text: str, n: int) -> tuple[str, str]:
    """The first `n` sentences of a text, and the others."""
    ends = [between.span() for between in BETWEEN.finditer(text)]
    if len(ends) < n:
        return text, ""
    end, start = ends[n - 1]
    return text[:end], text[start:]


@lru_cache(KEPT)
def mathml(latex: str, display: str = "inline") -> str:
    """A formula as MathML, which browsers draw themselves; what cannot be read stays LaTeX."""
    from latex2mathml.converter import convert

    try:
        formula = convert(latex.strip(), display=display)
    except Exception:  # the converter raises many kinds
        return f"<code>{escape(latex)}</code>"
    return f'<div class="formula">{formula}</div>' if display == "block" else formula


@lru_cache(KEPT)
def prose(markdown: str, page: str = "") -> str:
    """Markdown as HTML, with its formulas as MathML. Links to records lead to those of `page`."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def text(self, text: str) -> str:
            return super().text(BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text))

        def link(self, text: str, url: str, title: str | None = None) -> str:
            # Of another notebook, whose page stands beside this one, or of one of its records.
            if other := re.fullmatch(r"([\w-]+)\.ipynb(#.+)?", url):
                return f'<a class="page" href="{other[1]}.html{other[2] or ""}">{text}</a>'
            if not url.startswith("#"):
                return super().link(text, url, title)
            return f'<a class="figure" href="{page}{url}">{text}</a>'

        def table(self, text: str) -> str:
            return f'<div class="scroll"><table>{text}</table></div>'

        def inline_math(self, body: str) -> str:
            return mathml(body)

        def block_math(self, body: str) -> str:
            return mathml(body, "block")

    return MarkdownWithMath(renderer=Renderer(escape=False)).render(markdown)


@cache
def _exporter():
    """Makes bodies of pages. Its templates take longer to be compiled than to be filled."""
    from jinja2 import pass_context
    from nbconvert import HTMLExporter, TemplateExporter

    class Exporter(HTMLExporter):
        @pass_context
        def markdown2html(self, context, source):
            return prose(source)

        def from_notebook_node(self, nb, resources=None, **options):
            # Not HTMLExporter's, which parses the page again: that takes as long as making it.
            return TemplateExporter.from_notebook_node(self, nb, resources, **options)

    # What it would clean are its own highlighted sources.
    filters = {
        "clean_html": lambda html: html,
        "highlight_code": lambda source, metadata: _code(source, metadata.get("magics_language")),
    }
    quiet = {"exclude_input_prompt": True, "exclude_output_prompt": True}
    # Not all that there are, each of which validates the notebook, and most of which do no more.
    needed = ["nbconvert.preprocessors.HighlightMagicsPreprocessor"]
    more = quiet | {"default_preprocessors": needed}
    return Exporter(template_name="basic", raw_template=FOLDED, filters=filters, **more)


@lru_cache(KEPT)
def _code(source: str, language: str | None) -> str:
    """A cell of Python, or of the `language` that its first line names, with its colours."""
    from nbconvert.filters import Highlight2HTML

    metadata = {"magics_language": language} if language else {}
    return Highlight2HTML(pygments_lexer="ipython3")(source, metadata=metadata)


def _with_tables(outcome: Outcome) -> Iterator[Any]:
    """The cells of a page, and below each section a table of all that it has claimed."""
    from nbformat.v4 import new_code_cell, new_output

    made: list[claims.Claim] = []
    parts = 0
    for cell in [*_cells(outcome), None]:
        headed = cell and cell.cell_type == "markdown" and re.match("###? ", cell.source)
        if made and (cell is None or headed):
            parts += 1
            html = f'<p class="caption">Results of this section</p>{claims.table(made)}'
            table = new_output("display_data", data={"text/html": html})
            yield new_code_cell("", id=f"results-{parts}", outputs=[table])
            made = []
        if cell is None:
            return
        if cell.cell_type == "code":
            shown = [o for out in cell.outputs for o in _still(out, outcome.notebook)]
            read = [claims.read(o["data"][claims.MIME]) for o in shown if _claimed(o)]
            made += [c for c in read if not (outcome.found and c.what == "answer")]  # in the head
            cell.outputs = [o for o in shown if not _claimed(o)]
            for output in cell.outputs:
                _make_readable(output)
        yield cell


def _cells(outcome: Outcome) -> Iterator[Any]:
    """The cells below title and answer, each cut before its headings, as far as they are about this
    run. A step whose text is only about the notebook's example is left out with its code; so are
    the exercises, where the run is about a file of the reader's own, and sections in which nothing
    can be said, as the metadata `without` have them by the record that says why.
    """
    from nbformat import from_dict

    opening, about_example, exercises, empty = True, False, False, False
    without = outcome.notebook["metadata"].get("nummodel", {}).get("without", {})
    untold = [title for name in without if outcome.records.get(name) for title in without[name]]
    for cell in from_dict(outcome.notebook).cells:
        if cell.cell_type != "markdown":
            if not (about_example or exercises or empty):
                yield cell
            continue
        text = cell.source
        if opening:
            text = text.partition("\n")[2].strip().partition("\n\n")[2]
        about = outcome.about(text)
        about_example = not opening and bool(text.strip()) and not about.strip()
        opening = False
        parts = [about] if "```" in about else re.split("^(?=###? )", about, flags=re.MULTILINE)
        for i, part in enumerate(part for part in parts if part.strip()):
            if part.startswith("## "):
                exercises = outcome.own and part.startswith("## Try")
            if part.startswith("##"):
                empty = part.partition("\n")[0].lstrip("# ") in untold
            if not (exercises or empty):
                name = f"{cell.get('id', '')}{f'-{i}' if i else ''}"
                yield from_dict(cell | {"id": name, "source": part})


def _claimed(output: Any) -> bool:
    return claims.MIME in output.get("data", {})


def _still(output: Any, notebook: Any) -> list:
    """Sliders as what they showed when the notebook was executed, and where they stood."""
    from nbformat import from_dict
    from nbformat.v4 import new_output

    view = output.get("data", {}).get(WIDGET)
    if not view:
        return [output]
    models = notebook["metadata"].get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    names = models.get(view["model_id"], {}).get("state", {}).get("children", [])
    children = [models.get(name.removeprefix("IPY_MODEL_"), {}).get("state", {}) for name in names]
    values = [f"{c['description']} = {c['value']:.4g}" for c in children if "readout_format" in c]
    text = prose(f"Sliders in JupyterLab, here where they start: {'; '.join(values)}.")
    where = new_output("display_data", data={"text/html": text})
    return [where, *(from_dict(o) for c in children for o in c.get("outputs", []))]


def _make_readable(output: Any) -> None:
    """A formula becomes MathML, and a figure an image with alternative text."""
    bundle = output.get("data", {})
    latex = bundle.get("text/latex")
    if image := _image(output):
        source, alt = image
        told = output.get("metadata", {})
        width = told.get(SVG, told.get(PNG, {})).get("width")
        size = f' width="{int(width)}"' if width else ""
        bundle["text/html"] = f'<img src="{source}" alt="{escape(alt)}"{size}>'
    elif latex and "text/html" not in bundle:
        formula = latex.strip().strip("$").replace(r"\displaystyle", "")
        bundle["text/html"] = mathml(formula, "block")


def _image(output: Any) -> tuple[str, str] | None:
    """Source and alternative text of a figure that an output shows: as SVG, where there is one."""
    bundle = output.get("data", {})
    kind = next((kind for kind in (SVG, PNG) if kind in bundle), None)
    if kind is None or "text/html" in bundle:
        return None
    data = "".join(bundle[kind])
    if kind == SVG:
        data = b64encode(data.encode()).decode()
    told = output.get("metadata", {}).get(kind, {})
    return f"data:{kind};base64,{data.strip()}", told.get("alt", "A figure without description")
