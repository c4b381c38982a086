"""The package stays as small as `budget.toml` says. As a program, it prints the table.

Lines are counted in all files that git tracks in `nummodel/` and `packages/`, templates included.
"""

import ast
import subprocess
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).parent.parent
BUDGET = tomllib.loads((ROOT / "tests" / "budget.toml").read_text(encoding="utf-8"))
GROUPS = {name: group for name, group in BUDGET.items() if name != "total"}
KINDS = ("lines", "branching", "long")
#: A function branches if it has more ways than this, and a module is long above these lines.
WAYS, LINES = 15, 300
#: A figure may be above what is counted by this factor.
SLACK = 1.03
BRANCHES = (
    *(ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler),
    *(ast.comprehension, ast.Assert, ast.match_case),
)
pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists() or not which("git"), reason="no checkout of git"
)


def ways(function: ast.AST) -> int:
    """McCabe's number of a function: one, and one more for each place where it may branch."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            count += 1 + len(getattr(node, "ifs", ()))
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def group_of(path: str) -> str:
    """The first group of `budget.toml` that has the file."""
    for name, group in GROUPS.items():
        if path.startswith(tuple(group["files"])):
            return name
    raise LookupError(f"{path} is in no group of tests/budget.toml")


@cache
def counted() -> dict[str, Counter[str]]:
    """Lines, branching functions and long modules of each group, and in total."""
    command = ["git", "ls-files", "--", "nummodel", "packages"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {name: Counter[str]() for name in BUDGET}
    for name in listed.splitlines():
        path, counts = ROOT / name, Counter[str]()
        if not path.exists():  # it was deleted, and git does not know yet
            continue
        text = path.read_text(encoding="utf-8")
        counts["lines"] = len(text.splitlines())
        if path.suffix == ".py":
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, functions)]
            counts["branching"] = sum(ways(node) > WAYS for node in nodes)
            counts["long"] = int(counts["lines"] > LINES)
        found[group_of(name)].update(counts)
        found["total"].update(counts)
    return found


def table() -> str:
    """Each group: what is counted, its figure and its goal."""
    lines = [
        f"{'':<26}{'lines':>7}{'figure':>8}{'goal':>8}"
        f"  over {WAYS} ways{'figure':>8}  over {LINES} lines{'figure':>8}"
    ]
    for name, counts in counted().items():
        own = BUDGET[name]
        lines.append(
            f"{name:<26}{counts['lines']:>7,}{own['lines']:>8,}{own['goal']:>8,}"
            f"{counts['branching']:>14}{own['branching']:>8}{counts['long']:>16}{own['long']:>8}"
        )
    return "\n".join(lines)


def test_nothing_is_above_its_figure():
    above = [
        f"{name}: {kind} {counts[kind]:,}, expected at most {BUDGET[name][kind]:,}"
        for name, counts in counted().items()
        for kind in KINDS
        if counts[kind] > BUDGET[name][kind]
    ]
    assert not above, "\n".join([*above, table()])


def test_a_figure_follows_what_is_counted():
    """Else the package could grow again unnoticed."""
    slack = [
        f"{name}: {kind} {counts[kind]:,}, so lower its figure, {BUDGET[name][kind]:,}"
        for name, counts in counted().items()
        for kind in KINDS
        if BUDGET[name][kind] > SLACK * counts[kind]
    ]
    assert not slack, "\n".join([*slack, table()])


def test_ways_are_counted_as_mccabe_does():
    source = "def f(x):\n    if x and x > 1 or x < 0:\n        return [y for y in x if y]\n"
    assert ways(ast.parse(source)) == 1 + 1 + 2 + 2


if __name__ == "__main__":
    print(table())
