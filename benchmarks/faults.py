"""Would a fault be noticed? Made on purpose, one at a time, in a copy of the project.

Run by `make faults`. Each kind of fault is put to what is there to notice it: a number in a
notebook's text to the records that the text names; a recorded value to the text, the questions of
its document, the claims, the assertions and the exercises of its notebook; a formula to the tests
of its room and, if these do not notice, to the notebooks that use the room; a digit of a table to
the tests of tables, with the hash in its card renewed. What was not noticed is listed. The result
is written to FAULTS.md beside this file.
"""

import ast
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from datetime import date
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import click

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import prose  # noqa: E402

from nummodel.records import claims  # noqa: E402
from nummodel.reports import notebook, runs  # noqa: E402

PYTHON = ROOT / ".venv" / "bin" / "python"
COUNTS = {"numbers in prose": 200, "recorded values": 100, "formulas": 60, "table digits": 100}
GOALS = {"numbers in prose": 98, "recorded values": 90, "formulas": 100, "table digits": 100}
#: Those that the text of a notebook may notice, which has to agree before.
BY_TEXT = {"numbers in prose", "recorded values"}
#: Tests of a room of `nummodel/models`, where they have another name than it.
TESTS = {
    "_chain": ["test_locks", "test_nodes", "test_queueing"],
    "_convolution": ["test_convolution", "test_networks"],
    "_many": ["test_many", "test_systems"],
    "numa": ["test_numa", "test_memory"],
    "operational": ["test_networks", "test_storage", "../test_formula"],
    "scaling": ["test_scaling", "../test_formula", "../fits/test_fit"],
}
#: Longest that a mutant may take; a formula that never ends is noticed as well.
LONGEST = 300
#: All tests of a file, the slow ones, too.
TESTING = ["-m", "pytest", "-m", "", "-x", "-q"]
WRONG = """
def _wrong(value, by):
    if isinstance(value, (tuple, list)):
        return type(value)(_wrong(part, by) for part in value)
    return value if value is None else by * value
"""


class Fault(NamedTuple):
    """Where a fault was made, and whether it was noticed."""

    where: str
    noticed: bool


def prose_faults(made: dict[str, list[dict]], count: int, draw: random.Random) -> list[Fault]:
    """The last digit of a number in a notebook's text, off by one or two."""
    numbers = []
    for path in runs.notebooks():
        book = notebook.read(path)
        for i, cell in enumerate(book.cells):
            if cell.cell_type == "markdown" and cell.source in set(prose.texts(book)):
                # Of code, formulas and addresses only their length counts.
                plain = re.sub(prose.ASIDE, lambda m: " " * len(m[0]), cell.source)
                numbers += [
                    (path, i, m.end()) for m in re.finditer(r"(?<![\w#])\d+(\.\d+)?", plain)
                ]
    faults = []
    for path, i, end in draw.sample(numbers, min(count, len(numbers))):
        book = notebook.read(path)
        text = book.cells[i].source
        digit = int(text[end - 1])
        new = draw.choice([d for d in range(10) if 1 <= abs(d - digit) <= 2])
        book.cells[i].source = f"{text[: end - 1]}{new}{text[end:]}"
        where = f"{path.stem}: {text[max(0, end - 40) : end]}->{new}{text[end : end + 20]}"
        faults.append(Fault(where, bool(prose.strange(book, made[path.stem]))))
    return faults


def record_faults(
    made: dict[str, list[dict]], count: int, draw: random.Random, folder: Path
) -> list[Fault]:
    """A recorded number with a factor, with its sign changed, or with another index."""
    calls = [
        (path, i, call)
        for path in runs.notebooks()
        for i, cell in enumerate(notebook.read(path).cells)
        if cell.cell_type == "code"
        for call in ast.walk(ast.parse(cell.source))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "claims.record"
    ]
    drawn = []
    for path, i, call in draw.sample(calls, len(calls)) * 2:
        name = prose.pattern(call.args[0])
        values = [c["model"] for c in made[path.stem] if name.fullmatch(c["what"])]
        if len(drawn) < count and any(map(_a_number, values)):
            drawn.append((path, i, call, name, draw.choice(["factor", "sign", "index"])))
    folder.mkdir()
    books = {}
    for k, (path, i, call, name, kind) in enumerate(drawn):
        book = notebook.read(path)
        source = book.cells[i].source
        value = ast.get_source_segment(source, call.args[1])
        kind, wrong = _wrong(value, kind)
        book.cells[i].source = _replaced(source, call.args[1], wrong)
        book.cells[2].source += WRONG
        file = folder / f"fault-{k:03}.ipynb"
        file.write_text(json.dumps(book, ensure_ascii=False), encoding="utf-8")
        books[file] = path, name, f"{path.stem}: {value} -> {wrong}"
    found = _executed([{"notebook": str(file)} for file in books], folder / "once")
    faults, again, asked = [], [], []
    for file, (path, name, where) in books.items():
        changed, error = found[file.stem]
        book = notebook.read(path)
        told = book, prose.of_questions(book, path.stem)
        strange = any(prose.strange(text, changed) for text in told)
        if error or strange or not all(c["ok"] for c in changed):
            faults.append(Fault(where, True))
            continue
        exercises = book.metadata["nummodel"]["exercises"]
        own = [e for e in exercises if any(map(name.fullmatch, e["expect"]))]
        again += [{"notebook": str(file), "parameters": e["parameters"]} for e in own]
        asked.append((file, where, own))
    found = _executed(again, folder / "again") if again else {}
    for file, where, own in asked:
        noticed = False
        for exercise in own:
            given = exercise["parameters"]
            in_order = {n: given[n] for n in notebook.parameters(file) if n in given}
            changed, error = found[runs.Run(file, in_order).name]
            values = {c["what"]: c["model"] for c in changed}
            noticed |= bool(error) or not all(
                name in values and claims.agrees(values[name], expected)
                for name, expected in exercise["expect"].items()
            )
        faults.append(Fault(where, noticed))
    return faults


def formula_faults(count: int, draw: random.Random, copies: Queue) -> list[Fault]:
    """An operator or a number in the body of a formula."""
    places = []
    for path in sorted((ROOT / "nummodel" / "models").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(source)):
            if isinstance(function, ast.FunctionDef):
                places += [(path, node) for node in _arithmetic(function)]
    drawn = draw.sample(places, count)
    with ThreadPoolExecutor(copies.qsize()) as pool:
        return list(pool.map(lambda place: _formula_fault(*place, copies), drawn))


def _formula_fault(path: Path, node: ast.BinOp, copies: Queue) -> Fault:
    source = path.read_text(encoding="utf-8")
    was = ast.get_source_segment(source, node)
    other = deepcopy(node)
    other.op = OTHER[type(node.op)]()
    text = _replaced(source, node, f"({ast.unparse(other)})")
    tests = TESTS.get(path.stem, [f"test_{path.stem}"])
    command = [*TESTING, f"nummodel/models/{path.name}"]
    command += [f"tests/models/{name}.py" for name in tests]
    copy = copies.get()
    try:
        changed = copy / "nummodel" / "models" / path.name
        changed.write_text(text, encoding="utf-8")
        noticed = _fails(command, copy)
        if not noticed:
            room = path.stem.strip("_")
            books = [p for p in runs.notebooks() if re.search(rf"\b{room}\b", p.read_text())]
            keys = " or ".join(p.stem for p in books)
            command = [*TESTING, "tests/reports/test_notebooks.py", "-k", keys]
            noticed = bool(books) and _fails(command, copy)
        changed.write_text(source, encoding="utf-8")
    finally:
        copies.put(copy)
    where = f"{path.stem}, line {node.lineno}: {was} -> {ast.unparse(other)}"
    return Fault(where.replace("\n", " "), noticed)


OTHER = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}


def _arithmetic(function: ast.FunctionDef) -> Iterator[ast.BinOp]:
    """What a function computes, without what it says when it refuses, and without its signature."""
    aside = {
        id(inner)
        for node in ast.walk(function)
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.arguments, ast.FunctionDef))
        and node is not function
        for inner in ast.walk(node)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and type(node.op) in OTHER and id(node) not in aside:
            yield node


def table_faults(count: int, draw: random.Random, copies: Queue) -> list[Fault]:
    """A digit of a published table, with the hash in its card renewed."""
    cells = []
    for path in sorted((ROOT / "data").glob("*.csv")):
        text = path.read_text(encoding="utf-8")
        head = text.index("\n") + 1
        places = [head + m.start() for m in re.finditer(r"\d", text[head:])]
        cells += [(path, at) for at in draw.sample(places, min(20, len(places)))]
    drawn = [(*cell, draw.randint(1, 9)) for cell in draw.sample(cells, count)]
    with ThreadPoolExecutor(copies.qsize()) as pool:
        return list(pool.map(lambda one: _table_fault(*one, copies), drawn))


def _table_fault(path: Path, at: int, more: int, copies: Queue) -> Fault:
    text, cards = path.read_text(encoding="utf-8"), (ROOT / "data" / "datapackage.json").read_text()
    wrong = f"{text[:at]}{(int(text[at]) + more) % 10}{text[at + 1 :]}"
    hashes = [hashlib.sha256(t.encode()).hexdigest() for t in (text, wrong)]
    assert hashes[0] in cards
    copy = copies.get()
    try:
        (copy / "data" / path.name).write_text(wrong, encoding="utf-8")
        (copy / "data" / "datapackage.json").write_text(cards.replace(*hashes))
        noticed = _fails([*TESTING, "tests/records/test_data.py"], copy)
        (copy / "data" / path.name).write_text(text, encoding="utf-8")
        (copy / "data" / "datapackage.json").write_text(cards)
    finally:
        copies.put(copy)
    line = text[:at].count("\n") + 1
    return Fault(f"{path.name}:{line}: {wrong.splitlines()[line - 1][:80]}", noticed)


def _fails(command: list[str], copy: Path) -> bool:
    """Whether tests notice; those of the unchanged copy pass, as `main` makes sure."""
    try:
        done = subprocess.run(
            [PYTHON, *command],
            cwd=copy,
            capture_output=True,
            timeout=LONGEST,
            env=_environment(copy),
        )
    except subprocess.TimeoutExpired:
        return True
    if done.returncode not in (0, 1, 2):
        sys.exit(f"faults: {' '.join(command)}: {done.stdout.decode()[-2000:]}")
    return done.returncode != 0


def _environment(copy: Path) -> dict[str, str]:
    """So that the copy is imported, and not what is installed."""
    return os.environ | {"PYTHONPATH": str(copy)}


def _a_number(value: Any) -> bool:
    """Whether a factor changes a value."""
    ends = value if isinstance(value, list) else [value]
    return any(isinstance(e, (int, float)) and not isinstance(e, bool) and e for e in ends)


def _wrong(value: str, kind: str) -> tuple[str, str]:
    """An expression with a fault, and of which kind."""
    index = re.search(r"\[(-?\d+)\]", value)
    if kind == "index" and index:
        other = {"0": "1", "-1": "-2"}.get(index[1], str(int(index[1]) - 1))
        return kind, f"{value[: index.start()]}[{other}]{value[index.end() :]}"
    by = "-1" if kind == "sign" else "1.1"
    return ("sign" if kind == "sign" else "factor"), f"_wrong({value}, {by})"


def _replaced(source: str, node: ast.expr, text: str) -> str:
    lines = source.splitlines(keepends=True)
    before = (
        "".join(lines[: node.lineno - 1]).encode()
        + lines[node.lineno - 1].encode()[: node.col_offset]
    )
    rest = lines[node.end_lineno - 1].encode()[node.end_col_offset :]
    return (before + text.encode() + rest).decode() + "".join(lines[node.end_lineno :])


def _executed(asked: list[dict], folder: Path) -> dict[str, tuple[list[dict], str]]:
    """Claims and error of each run, by its name."""
    folder.mkdir(parents=True)
    listed = folder / "runs.yaml"
    listed.write_text(json.dumps(asked))
    output = folder / "report"
    command = ["-m", "nummodel", "report", "--params", listed, "--jobs", "2", "--output", output]
    done = subprocess.run([PYTHON, *command], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"faults: {done.stderr}")
    found = {}
    for path in output.glob("*.ipynb"):
        book = notebook.read(path)
        found[path.stem] = list(claims.collected(book)), book.metadata["nummodel_run"]["error"]
    return found


def right(folder: Path) -> dict[str, list[dict]]:
    """What the notebooks claim and record as they are, which their texts agree with."""
    found = _executed([{"notebook": p.stem[:2]} for p in runs.notebooks()], folder / "right")
    for path in runs.notebooks():
        if wrong := prose.strange(notebook.read(path), found[path.stem][0]):
            sys.exit(f"faults: {path.stem} disagrees with its records already: {wrong}")
    return {stem: claimed for stem, (claimed, _) in found.items()}


def copied(folder: Path) -> Path:
    """The commit that is checked out, and what was changed since, without .venv."""
    folder.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, files.stdout.decode().split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--kind", "kinds", multiple=True, type=click.Choice([*COUNTS]))
@click.option("--share", default=1.0, show_default=True, help="Of the faults of each kind.")
def main(seed: int, kinds: tuple[str, ...], share: float) -> None:
    """Make the faults, count those that were noticed, and list the others."""
    faults: dict[str, list[Fault]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = (
            right(folder) if set(kinds or COUNTS) & {*COUNTS} - {"formulas", "table digits"} else {}
        )
        copies: Queue = Queue()
        for i in range(2):
            copies.put(copied(folder / f"copy{i}"))
        for kind, count in COUNTS.items():
            if kinds and kind not in kinds:
                continue
            draw, count = random.Random(f"{seed} {kind}"), round(share * count)
            click.echo(f"faults: {count} {kind}", err=True)
            if kind == "numbers in prose":
                faults[kind] = prose_faults(made, count, draw)
            elif kind == "recorded values":
                faults[kind] = record_faults(made, count, draw, folder / "records")
            elif kind == "formulas":
                faults[kind] = formula_faults(count, draw, copies)
            else:
                faults[kind] = table_faults(count, draw, copies)
            write(faults, seed)
    click.echo(Path(__file__).with_name("FAULTS.md").read_text(encoding="utf-8"))


def write(faults: dict[str, list[Fault]], seed: int) -> None:
    """The table, and what was not noticed."""
    lines = [
        f"# Faults made on purpose: {date.today()}",
        "",
        f"Made by `make faults SEED={seed}`, one at a time.",
        "",
        "| kind | made | noticed | share | goal |",
        "|---|---|---|---|---|",
    ]
    for kind, some in faults.items():
        noticed = sum(fault.noticed for fault in some)
        share = f"{100 * noticed // len(some)} %"  # no fault is lost by rounding
        lines.append(f"| {kind} | {len(some)} | {noticed} | {share} | {GOALS[kind]} % |")
    missed = [(kind, f) for kind, some in faults.items() for f in some if not f.noticed]
    if missed:
        lines += ["", "Not noticed:", ""]
        lines += [f"- {kind}: `{f.where.replace('`', '')}`" for kind, f in missed]
    text = "\n".join(lines) + "\n"
    Path(__file__).with_name("FAULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
