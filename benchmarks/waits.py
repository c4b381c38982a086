"""What one waits for, before and after a change, in turn.

    python benchmarks/waits.py BEFORE AFTER

BEFORE and AFTER are commits. Each is cloned, without .venv, and `make report` and `make test` run
with HOME and PATH as their only environment. Packages come from uv's cache in HOME, if it has them.
The table is written to WAITS.md beside this file.
"""

import os
import re
import select
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parent.parent
LINK = re.compile(r'href="(\d\d-[^"]*\.html)"')
IMPORTS = "import numpy, scipy.optimize, click"
POINTS = "threads,tps\n1,10.4\n2,19.1\n4,34.2\n8,52.9\n12,61.0\n16,65.0\n32,58.7\n"
ROUNDS = 9


def main() -> None:
    rows = {
        "`make report`: first line [s]": [],
        "`make report`: first index that links to a page [s]": [],
        "`make report`: all of it [s]": [],
        "`nummodel fit` on seven points, over its imports": [],
        "`make test`: all of it, set-up included [s]": [],
        "`make test`: exit code": [],
        "load before": [],
    }
    for commit in sys.argv[1:]:
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            one, other = (cloned(commit, Path(folder) / name) for name in ("one", "other"))
            figures = [*look(one), fit(one), *test(other), load]
        for row, figure in zip(rows.values(), figures, strict=True):
            row.append(
                f"{figure:.2f}" if isinstance(figure, float) and figure < 10 else f"{figure:.0f}"
            )
        print(commit, figures, file=sys.stderr)
    lines = [f"# What one waits for: {date.today()}, {os.cpu_count()} cores", ""]
    lines += [f"| | {' | '.join(sys.argv[1:])} |", f"|---|{'---|' * len(sys.argv[1:])}"]
    lines += [f"| {name} | {' | '.join(row)} |" for name, row in rows.items()]
    Path(__file__).with_name("WAITS.md").write_text("\n".join(lines) + "\n")


def cloned(commit: str, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    subprocess.run(["git", "checkout", "--quiet", commit], cwd=folder, check=True)
    return folder


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("HOME", "PATH")}


def fit(clone: Path) -> float:
    """Time of the command over that of an interpreter that only imports, each in turn."""
    (clone / "points.csv").write_text(POINTS)
    python, nummodel = (clone / ".venv" / "bin" / name for name in ("python", "nummodel"))
    commands = [python, "-c", IMPORTS], [nummodel, "fit", "points.csv"]
    taken = [[seconds(command, clone) for command in commands] for _ in range(ROUNDS)]
    return median(fitted / imported for imported, fitted in taken)


def test(clone: Path) -> tuple[float, int]:
    """How long the tests take, and their exit code."""
    start = perf_counter()
    done = subprocess.run(["make", "test"], cwd=clone, env=environment(), capture_output=True)
    return perf_counter() - start, done.returncode


def seconds(command: list, folder: Path) -> float:
    start = perf_counter()
    subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=True)
    return perf_counter() - start


def look(clone: Path) -> tuple[float, float, float]:
    """Seconds to the first line, to the first index that links to a page, and to the end."""
    start, line, index = perf_counter(), 0.0, 0.0
    making = subprocess.Popen(
        ["make", "report"],
        cwd=clone,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = making.stdout.fileno()
    text = b"start"
    while text:
        if select.select([said], [], [], 0.05)[0]:
            text = os.read(said, 65536)
            line = line or perf_counter() - start
        if not index and readable(clone / "report"):
            index = perf_counter() - start
    if making.wait() != 0:
        sys.exit(f"{clone}: make report failed")
    return line, index, perf_counter() - start


def readable(report: Path) -> bool:
    """Whether there is an index that links to a page that is there."""
    index = report / "index.html"
    links = LINK.findall(index.read_text(encoding="utf-8")) if index.exists() else []
    return any((report / link).exists() for link in links)


if __name__ == "__main__":
    main()
