"""Numbers in a notebook's text: each names the record that it comes from, as a link does.

`[a third of 30 %](#share-of-the-lock)` is held against the record "share of the lock" alone. Of the
numbers in the link's text, those that stand in the record's name as well (2 % for 0.02) are
conditions. The others express the recorded value, rounded as they are printed; those of an
interval come in its order.
`[30 %](#share-of-the-lock "documented")` is the documented figure of a claim, and the name of a
parameter, as in `[32](#N)`, its default.
"""

import ast
import json
import re
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

from nummodel import models
from nummodel.records import claims, data
from nummodel.reports.notebook import declared

#: A link to a record: its text, the anchor, and whether the documented figure is meant.
LINK = re.compile(r'\[(?P<text>[^\[\]]*)\]\(#(?P<anchor>[^\s)]+)(?P<documented> "documented")?\)')
#: A number, and the unit behind it, also where it begins a range or a list: "20 to 40 %".
NUMBER = re.compile(
    r"(?<![\w.'/^])-?\d[\d,]*(?:\.\d+)?(?![\w'])"
    r"(?=(?P<unit>(?: ?(?:to|and|or|,|-) ?[\d.,]+)* ?(?:%|[mµn]?s\b|GB\b|million|billion)?))"
)
UNITS = {"%": 1e2, "ms": 1e3, "µs": 1e6, "ns": 1e9, "GB": 1e-9, "million": 1e-6, "billion": 1e-9}
#: Numbers that belong to a name, as in z/VM 5.3, Table 1, M/M/1, CPUs 0-3, 6-way or a year.
NAMES = re.compile(
    r"(?P<what>z/VM|V|Table|Figure|section|chapter|page|example|RAD|QBB|CPU|VMS|Rdb)s? "
    r"(?P<which>\d+(?:\.\d+)*(?:(?:-| to | and |, )\d+(?:\.\d+)*)*)"
    r"|(?P<ways>\d+(?:(?: to | and |, )\d+)*)-way|\b(?P<year>(?:19|20)\d\d)\b"
    r"|\bV(?P<release>\d+(?:\.\d+)+)"
    r"|\b(?P<version>\d+(?:\.\d+){2,})|\b(?P<queue>[A-Z]/[A-Z]/\d)\b",
    re.I | re.M,
)
#: What a link is about may follow: [5 % too low](#error-at-30-way) at 30-way.
BESIDE = re.compile(r"(?: (?:at|of) \d+-way)?")
#: Another notebook is named by a link to it.
OTHER = re.compile(r"\[[nN]otebook (\d\d)\]\(\1-[a-z-]+\.ipynb\)")
#: A title has its numbers without a link, since README repeats it word for word.
TITLE = re.compile(r"^# .*", re.M)
#: Words that stand for a minus sign.
BELOW = re.compile(r"\b(?:low|lower|less|fewer|below|fell|falls)\b")
WHOLE = re.compile(r"\d+(?:\.\d+)*")
#: Code, formulas, the targets of other links, and the numbers of a list.
ASIDE = re.compile(r"`[^`]*`|\$\$[^$]*\$\$|\$[^$]*\$|\]\([^)]*\)|^\d+\. ", re.M)


class Figure(NamedTuple):
    """A number as it is printed: its value, half a unit of its last digit, what its unit scales."""

    text: str
    value: float
    half: float
    scales: tuple[float, ...]


def texts(notebook: Any) -> Iterator[str]:
    """The markdown of a notebook but for its exercises, which have a test of their own, and for the
    list of sources.
    """
    for cell in notebook["cells"]:
        aside = cell["source"].startswith(("## Sources", "## Try"))
        if cell["cell_type"] == "markdown" and not aside:
            yield cell["source"]


def strange(notebook: Any, made: list[dict]) -> list[str]:
    """Where the text of a notebook disagrees with the claims and records that it `made`, or has a
    number that names none of them.
    """
    known = {claims.anchor(claim["what"]): claim for claim in made}
    names, numbers = known_names(notebook, made)
    told = {name: p.default.strip("\"'") for name, p in declared(notebook).items()}
    found = []
    for text in texts(notebook):
        for link in LINK.finditer(text):
            anchor = link["anchor"]
            if anchor in known:
                claim = known[anchor]
                value = claim["documented" if link["documented"] else "model"]
                wrong = not expresses(link["text"], claim["what"], value)
            else:
                wrong = anchor not in told or not expresses(link["text"], "", told[anchor])
            beside = names_in(BESIDE.match(text[link.end() :])[0])
            about = names_in(known[anchor]["what"]) if anchor in known else beside
            found += [link[0]] * (wrong or bool(about and not beside <= about))
        aside = ASIDE.sub(" ", OTHER.sub(" ", LINK.sub(" ", text)))
        found += [" ".join(name) for name in sorted(names_in(aside) - names)]
        found += [t for t in TITLE.findall(aside) if not set(WHOLE.findall(t)) <= numbers]
        rest = NAMES.sub(" ", TITLE.sub(" ", aside))
        for number in NUMBER.finditer(rest):
            found.append(rest[max(0, number.start() - 30) : number.end() + 15])
    return found


def names_in(text: str) -> set[tuple[str, str]]:
    """The names with a number, each as its kind and its number."""
    found = set()
    for name in NAMES.finditer(text):
        for kind, number in name.groupdict().items():
            if number and kind == "which":
                found.add((name["what"].lower(), number))
            elif number and kind != "what":
                found |= {(kind, one) for one in re.split(" to | and |, ", number)}
    return found


def known_names(notebook: Any, made: list[dict]) -> tuple[set[tuple[str, str]], set[str]]:
    """The names and the numbers in a notebook's code, records and sources, in its tables and their
    cards, and in the models that it uses; loads of a table are names such as 6-way.
    """
    cells = [c for c in notebook["cells"] if c["source"].startswith("## Sources")]
    cells += [c for c in notebook["cells"] if c["cell_type"] == "code"]
    known = "\n".join([*(c["source"] for c in cells), *(claim["what"] for claim in made)])
    names: set[tuple[str, str]] = set()
    for table in data.tables():
        if f'"{table}"' in known:
            card, frame = data.card(table), data.load(table)
            known += json.dumps(card) + (data.HOME / "data" / card["path"]).read_text()
            names |= {("ways", f"{N:g}") for N in frame.get("N", ())}
    for room in (Path(models.__file__).parent).glob("[a-z]*.py"):
        if re.search(rf"\b{room.stem}\b", known):
            names |= names_in(room.read_text())
    return names | names_in(known), set(WHOLE.findall(known))


def unguarded(notebook: Any, made: list[str], expected: set[str]) -> list[str]:
    """The calls of `claims.record` whose values nothing would notice to be wrong: neither a number
    in the text, nor an exercise's `expected` names, nor an assertion on what is recorded.
    """
    linked = {link["anchor"] for text in texts(notebook) for link in LINK.finditer(text)}
    guarded = {name for name in made if claims.anchor(name) in linked} | expected
    trees = [ast.parse(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    asserted = {n for node in nodes if isinstance(node, ast.Assert) for n in _names(node)}
    found = []
    for call in nodes:
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "claims.record":
            name = pattern(call.args[0])
            if not any(map(name.fullmatch, guarded)) and not _names(call.args[1]) & asserted:
                found.append(ast.unparse(call))
    return found


def _names(node: ast.AST) -> set[str]:
    """The variables in an expression, without modules."""
    inside = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    called = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    called |= {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return {n.id for n in inside if id(n) not in called}


def pattern(name: ast.expr) -> re.Pattern:
    """The names that an expression such as f"peak at {N}" may give."""
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    fixed = [re.escape(p.value) if isinstance(p, ast.Constant) else ".*" for p in parts]
    return re.compile("".join(fixed))


def expresses(text: str, name: str, value: Any) -> bool:
    """Whether the numbers in a link's text are those of the record's name and of its value."""
    conditions = [figure.value for figure in figures(name)]
    parts = [abs(part) if BELOW.search(text) else part for part in parts_of(value)]
    said = 0
    for figure in figures(text):
        given = any(isclose(s * c, figure.value) for s in (1, *figure.scales) for c in conditions)
        if given and not (parts[said:] and is_printed(figure, parts[said])):
            continue
        rest = [i for i in range(said, len(parts)) if is_printed(figure, parts[i])]
        if not rest:
            return False
        said = rest[0] + 1
    return said > 0 or (isinstance(value, (str, bool)) and not figures(text))


def parts_of(value: Any) -> list[float]:
    """The numbers of a value: of an interval its ends, of a text whatever it has."""
    if isinstance(value, str):
        try:
            return [float(value)]  # a parameter's default, as 5e-3
        except ValueError:
            return [figure.value for figure in figures(value)]
    ends = value if isinstance(value, list) else [value]
    return [float(end) for end in ends if isinstance(end, (int, float)) and end is not None]


def figures(text: str) -> list[Figure]:
    """The numbers in a text."""
    found = []
    for match in NUMBER.finditer(ASIDE.sub(" ", text)):
        digits = match[0].rstrip(",").replace(",", "")
        unit = next((u for u in sorted(UNITS, key=len)[::-1] if match["unit"].endswith(u)), "")
        scales = (UNITS[unit],) if unit == "%" else (1.0, *([UNITS[unit]] if unit else []))
        half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
        found.append(Figure(digits, float(digits), half, scales))
    return found


def is_printed(figure: Figure, value: float) -> bool:
    """Whether the figure is the value, rounded as it is printed."""
    off = [abs(scale * value - figure.value) for scale in figure.scales]
    return min(off) <= figure.half * (1 + 1e-9) or isclose(value, figure.value, rel_tol=1e-12)
