"""Numbers in a notebook's text: each names the record that it comes from, as a link does.

`[a third of 30 %](#share-of-the-lock)` is held against the record "share of the lock" alone. Of the
numbers in the link's text, those that stand in the record's name as well (2 % for 0.02) are
conditions, each once. The others express the recorded value, rounded as they are printed; those of
an interval or a list come in its order, and none of them is left out in between.
`[30 %](#share-of-the-lock "documented")` is the documented figure of a claim, and the name of a
parameter, as in `[32](#N)`, its default.

If the value is a text, a link's text without numbers contains it. If the value is true or false, a
word such as "not" says false, unless the record's name has such a word as well. A word such as
"low" stands for a minus sign, unless the name says a loss, a gap or a share.

A name with a number, such as V7.1, has to be known. The notebook knows the names in its code, in
its tables and in its sources; a sentence, or a column of a table, also knows the names of the
records to which it has links. The label of a run, or a range of processors, needs such a link if
the notebook knows another one that differs in one digit. If there are runs at 30-way and 32-way,
"At 30-way it is [5 %](#error-at-30-way)." is right. The sentence "At 30-way it fails." is wrong,
because nothing would notice 32-way there.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal, localcontext
from itertools import groupby, zip_longest
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

from nummodel import models
from nummodel.records import claims, data
from nummodel.reports import pages
from nummodel.reports.notebook import declared, summary

#: The kind of a name with a number, and its number, as in ("ways", "30").
Name = tuple[str, str]
#: A link to a record: its text, the anchor, whether the documented figure is meant, and what it is
#: about: [5 % too low](#error-at-30-way) at 30-way.
LINK = re.compile(
    r'\[(?P<text>[^\[\]]*)\]\(#(?P<anchor>[^\s)]+)(?P<documented> "documented")?\)'
    r"(?P<beside>(?: (?:at|of) \d+-way)?)"
)
#: A number, and the unit behind it, also where it begins a range or a list: "20 to 40 %".
NUMBER = re.compile(
    r"(?<![\w.'/^])-?\d[\d,]*(?:\.\d+)?(?:(?=(?:st|nd|rd|th)\b)|(?![\w']))"
    r"(?=(?P<unit>(?: ?(?:to|and|or|,|-) ?[\d.,]+)* ?(?:%|[mµn]?s\b|GB\b|million|billion)?))"
)
UNITS = {"%": 1e2, "ms": 1e3, "µs": 1e6, "ns": 1e9, "GB": 1e-9, "million": 1e-6, "billion": 1e-9}
#: Numbers that belong to a name: z/VM 5.3, Table 1, M/M/1, CPUs 0-3, 8269CY, 6-way or a year.
NAMES = re.compile(
    r"(?P<what>z/VM|V|Table|Figure|section|chapter|page|example|RAD|QBB|CPU|VMS|Rdb)s? "
    r"(?P<which>\d+(?:\.\d+)*(?:(?:-| to | and |, )\d+(?:\.\d+)*)*)"
    r"|(?P<ways>\d+(?:(?: to | and |, )\d+)*)-way|\b(?P<year>(?:19|20)\d\d)\b"
    r"|\bV(?P<release>\d+(?:\.\d+)+)|\b(?P<model>\d+(?-i:[A-Z])+)\b"
    r"|\b(?P<version>\d+(?:\.\d+){2,})|\b(?P<queue>[A-Z]/[A-Z]/\d)\b",
    re.I | re.M,
)
#: Another notebook is named by a link to it.
OTHER = re.compile(r"\[[nN]otebook (\d\d)\]\(\1-[a-z-]+\.ipynb\)")
#: A title has its numbers without a link, but README repeats it word for word.
TITLE = re.compile(r"^# (.*)", re.M)
#: Words that stand for a minus sign, but not those of a limit: less than 5, below 5, fell to 5.
BELOW = re.compile(r"\b(?:low|lower|less|fewer|below|fell|falls)\b(?!(?: than| to)? \d)")
#: Names of losses, and of sizes that have no sign; "law over queue, less one" does have one.
LOSS = re.compile(r"^(?:gap|share)\b|\b(?:lost|loss|less(?! one)|fewer|below|lower|fell|saves)\b")
DENIAL = re.compile(r"\b(?:no|not|never|none|neither|nor|cannot)\b", re.I)
WHOLE = re.compile(r"\d+(?:\.\d+)*")
#: A line that the next one continues: neither is a heading, and the next one begins no list item.
WRAPPED = re.compile(r"^([^#\n].*)\n(?!\s*(?:[-*+] |\d+\. |#|$))", re.M)
SENTENCE = re.compile(r"(?<=[.?!])(?<!^\d\.)(?<!^\d\d\.)\s+|\n", re.M)
#: Code, formulas, the targets of other links, and the numbers of a list.
ASIDE = re.compile(r"`[^`]*`|\$\$[^$]*\$\$|\$[^$]*\$|\]\([^)]*\)|^\d+\. ", re.M)


class Figure(NamedTuple):
    """A number as it is printed, its value, and what its unit scales."""

    text: str
    value: float
    scales: tuple[float, ...]


def texts(notebook: Any) -> Iterator[str]:
    """The markdown of a notebook without sources, and without exercises, which are tested."""
    for cell in notebook["cells"]:
        aside = cell["source"].startswith(("## Sources", "## Try"))
        if cell["cell_type"] == "markdown" and not aside:
            yield cell["source"]


def strange(notebook: Any, made: list[dict]) -> list[str]:
    """Where the text disagrees with the claims and records `made`, or a number names none."""
    rows = {n: {"what": "", "model": p.default.strip("\"'")} for n, p in declared(notebook).items()}
    rows |= {claims.anchor(claim["what"]): claim for claim in made}
    names, numbers = known_names(notebook, made)
    readme = (data.HOME / "README.md").read_text(encoding="utf-8")
    wrong = []
    for text in texts(notebook):
        for title in TITLE.findall(text):
            wrong += [title] * (title not in readme or not set(WHOLE.findall(title)) <= numbers)
        for passage in passages(OTHER.sub(" ", TITLE.sub(" ", text))):
            about: list[Name] = []
            for link in LINK.finditer(passage):
                claim = rows.get(link["anchor"], {"what": ""})
                value = claim.get("documented" if link["documented"] else "model")
                own = names_in(claim["what"])
                labels = names_in(NUMBER.sub(" ", link["text"]) + link["beside"])
                right = expresses(link["text"], claim["what"], value)
                wrong += [link[0]] * (not right or bool(Counter(labels) - Counter(own)))
                about += own
            aside = ASIDE.sub(" ", LINK.sub(" ", passage))
            free = [n for n in names_in(aside) if not (is_sure(n, about) or is_sure(n, names))]
            wrong += [f"{kind} {number} in: {passage}" for kind, number in free]
            rest = NAMES.sub(" ", aside)
            wrong += [rest[max(0, n.start() - 30) : n.end() + 15] for n in NUMBER.finditer(rest)]
    return wrong


def of_questions(notebook: Any, name: str) -> dict:
    """The notebook with the rows of docs/questions.md that are about it, and no other text."""
    said = {*texts(notebook)}
    rows = "\n".join(pages.questions([name])).replace(f"{name}.ipynb#", "#")
    rows = rows.replace(summary(notebook)[0], "")
    cells = [cell for cell in notebook["cells"] if cell["source"] not in said]
    return {"cells": [*cells, {"cell_type": "markdown", "source": rows, "metadata": {}}]}


def passages(text: str) -> Iterator[str]:
    """The sentences of a text, and the columns of its tables."""
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")):
        if is_table:
            yield from map(" ".join, zip_longest(*(row.split("|") for row in lines), fillvalue=""))
        else:
            yield from SENTENCE.split(WRAPPED.sub(r"\1 ", "\n".join(lines)))


def names_in(text: str) -> list[Name]:
    """The names with a number, each as its kind and its number."""
    names = []
    for match in NAMES.finditer(text):
        for kind, number in match.groupdict().items():
            if number and kind == "which":
                names.append((match["what"].lower(), number))
            elif number and kind != "what":
                names += [(kind, one) for one in re.split(" to | and |, ", number)]
    return names


def is_sure(name: Name, among: Iterable[Name]) -> bool:
    """Whether a name is one of these; of runs and processors, if no other differs in one digit."""
    rivals = [number for kind, number in among if kind == name[0] and kind in ("ways", "cpu")]
    return name in among and not any(near(number, name[1]) for number in rivals)


def near(one: str, other: str) -> bool:
    """Whether two numbers differ in one digit."""
    pairs = [a + b for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and len(pairs) == 1 and pairs[0].isdigit()


def known_names(notebook: Any, made: list[dict]) -> tuple[set[Name], set[str]]:
    """The names and numbers in a notebook's code, records, sources, tables with their cards, and
    models; loads of a table are names such as 6-way, and years are those of the sources.
    """
    sources = [c["source"] for c in notebook["cells"] if c["source"].startswith("## Sources")]
    code = [c["source"] for c in notebook["cells"] if c["cell_type"] == "code"]
    known = "\n".join([*sources, *code, *(claim["what"] for claim in made)])
    names: set[Name] = set()
    for table in data.tables():
        if f'"{table}"' in known:
            card, frame = data.card(table), data.load(table)
            known += json.dumps(card) + (data.HOME / "data" / card["path"]).read_text()
            names |= {("ways", f"{N:g}") for N in frame.get("N", ())}
    for room in (Path(models.__file__).parent).glob("[a-z]*.py"):
        if re.search(rf"\b{room.stem}\b", known):
            names.update(names_in(room.read_text()))
    names = {name for name in [*names, *names_in(known)] if name[0] != "year"}
    names |= {name for name in names_in("\n".join(sources)) if name[0] == "year"}
    return names, set(WHOLE.findall(known))


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
    """Whether the numbers in a link's text, or its words, are those of the record it names."""
    if isinstance(value, bool):
        denied = bool(DENIAL.search(text)) != bool(DENIAL.search(name))
        return not figures(text) and value != denied
    if not figures(text):
        return isinstance(value, str) and value.lower() in text.lower()
    sign = -1 if BELOW.search(text) and not LOSS.search(name) else 1
    parts = [sign * part for part in parts_of(value)]
    # The text may give only some of the parts, one after another: try each as the first of them.
    for start in range(len(parts)):
        conditions, values = figures(name), []
        for figure in figures(text):
            rest = parts[start + len(values) :]
            scale = figure.scales[-1]
            given = [c for c in conditions if figure.text in (c.text, f"{scale * c.value:.10g}")]
            if rest and is_printed(figure, rest[0]):
                values.append(figure)
            elif given:
                conditions.remove(given[0])
            else:
                break
        else:
            others = parts[:start] + parts[start + len(values) :] if isinstance(value, list) else []
            # 30 alone may be a mistake for the 32 of [30, 32]; 66 % may say all of 65.5 to 66.5 %.
            rivals = [(f, p) for f in values for p in printed(f, others, ROUND_HALF_DOWN)]
            if values and not any(near(figure.text, rival) for figure, rival in rivals):
                return True
    return False


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
        found.append(Figure(digits, float(digits), scales))
    return found


def is_printed(figure: Figure, value: float) -> bool:
    """Whether the figure is the value, rounded as it is printed; zero is no small value."""
    exact = isclose(value, figure.value, rel_tol=1e-12, abs_tol=1e-12)
    return exact or (figure.value != 0 and figure.text in printed(figure, [value]))


def printed(figure: Figure, values: list[float], rounding: str = ROUND_HALF_UP) -> list[str]:
    """Values in the form of the figure."""
    places = len(figure.text.partition(".")[2])
    with localcontext(rounding=rounding):
        return [f"{Decimal(f'{s * v:.12g}'):.{places}f}" for s in figure.scales for v in values]
