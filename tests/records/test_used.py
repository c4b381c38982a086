"""Every figure of the four documents is used: in a claim of a notebook, or in an audit of its card.

A figure is a column of a table, or a row where a table lists figures, each with its lowest and
highest value. A notebook uses a figure if a claim, a record or an assertion depends on it: on its
name, or on a variable that was made with it, or on a variable that was made with such a variable.
A figure that a notebook only shows is not used. What nothing uses is listed here, with the reason.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from nummodel.records import data
from nummodel.reports import notebook, runs

#: How the titles of the four documents begin.
DOCUMENTS = ("IBM, z/VM Performance Report", "J. Covert", "LinuxKI toolset", "N. Lastovica")
TABLES = [
    name
    for name in data.tables()
    if any(source["title"].startswith(DOCUMENTS) for source in data.card(name)["sources"])
]
UNUSED = {
    "zvm-scaling": {"run_id": "a name, not a figure"},
    "zvm-text": {
        "most processors of 5.2": "a limit of support, which nothing measured sets",
        "most processors of 5.3": "a limit of support, and the size of the largest run",
    },
    "rdb-counts": {
        "scan_lines": "lines of a listing; no time belongs to them",
        **dict.fromkeys(("rows_per_transaction", "loaders"), "how rows were loaded, on both alike"),
    },
    "gs-topology": dict.fromkeys(("hoses", "memories"), "the same in all three systems"),
    "gs-examples": {
        "reserved memory of a RAD, example 1": "the same on each RAD: data are striped evenly",
    },
    "gs-example3": {
        "reporter processes": "one, which the model takes for granted",
    },
}


def figures(table: str) -> set[str]:
    """The columns of a table without its key; of a list of figures, its rows."""
    (key, *_), frame = data.card(table)["schema"]["primaryKey"], data.load(table)
    return set(frame[key]) if {"low", "high"} <= set(frame) else set(frame) - {key}


def audited(table: str) -> set[str]:
    """The columns that an identity of the card holds against each other."""
    found = set()
    for identity in data.card(table).get("identities", []):
        sources = identity["arguments"].values()
        found |= {identity["column"], *(s for s in sources if isinstance(s, str))}
        found |= {s["column"] for s in sources if isinstance(s, dict)}
    return found


def made(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The name of each variable, function and loop variable, and what it is made with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.For | ast.comprehension):
            yield from ((name, node.iter) for name in names(node.target))
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from ((name, node.value) for name in names(target))


def names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def outcomes(tree: ast.AST) -> Iterator[ast.AST]:
    """What is claimed, recorded or asserted. What a claim is called is no part of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "claims.check",
            "claims.record",
        ):
            yield from node.args[1:]
            yield from (k.value for k in node.keywords if k.arg in ("model", "documented"))


def used(source: str) -> set[str]:
    """The texts that the outcomes of a program depend on, and the attributes; of a text with gaps,
    such as f"load_{system}", a pattern.
    """
    tree = ast.parse(source)
    makers: dict[str, list[ast.AST]] = {}
    for name, node in made(tree):
        makers.setdefault(name, []).append(node)
    todo, seen = list(outcomes(tree)), set()
    found = set()
    while todo:
        node = todo.pop()
        for name in names(node) - seen:
            seen.add(name)
            todo += makers.get(name, [])
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute):
                found.add(part.attr)
            elif isinstance(part, ast.JoinedStr):
                fixed = [p.value if isinstance(p, ast.Constant) else None for p in part.values]
                if re.search(r"\w{3}", "".join(filter(None, fixed))):  # else it could be anything
                    found.add("".join(".+" if p is None else re.escape(p) for p in fixed))
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                found |= {re.escape(text) for text in (part.value, *part.value.split())}
    return found


def code(path) -> str:
    cells = notebook.read(path).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


USED = [used(code(path)) for path in runs.notebooks()]


def left(table: str) -> set[str]:
    """The figures of a table that nothing uses."""
    patterns = set().union(*(texts for texts in USED if re.escape(table) in texts))
    rest = figures(table) - audited(table)
    return {name for name in rest if not any(re.fullmatch(p, name) for p in patterns)}


def test_each_document_has_a_table():
    titles = [source["title"] for name in TABLES for source in data.card(name)["sources"]]
    assert all(any(title.startswith(one) for title in titles) for one in DOCUMENTS)


@pytest.mark.parametrize("table", TABLES)
def test_every_figure_is_used_or_listed(table):
    assert left(table) == set(UNUSED.get(table, {}))


def test_each_entry_of_the_list_has_a_reason():
    assert set(UNUSED) <= set(TABLES)
    assert all(len(reason.split()) > 3 for entry in UNUSED.values() for reason in entry.values())


PROGRAM = """
runs = data.load("a-table")
runs["shown alone"]
ratio = runs["top"] / runs.bottom + figures[f"{runs}"]
for name, start in (("first", 1), ("second", 2)):
    rate = known(f"{name}_rate") * start

def known(figure):
    return runs.loc[figure, "low high".split()[0]]

idle = runs["never used"]
assert (runs["asserted"] > 0).all()
claims.check("as the name says", model=ratio.max(), documented=rate, why="reason")
"""


def test_what_is_shown_alone_is_not_used():
    found = used(PROGRAM)
    names_of_figures = {"top", "bottom", "first_rate", "low", "asserted"}
    assert all(any(re.fullmatch(p, name) for p in found) for name in names_of_figures)
    for unused in ("shown alone", "never used", "as the name says", "reason"):
        assert not any(re.fullmatch(p, unused) for p in found)
