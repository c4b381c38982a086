"""What one waits for, before and after a change, side by side.

    python benchmarks/waits.py BEFORE AFTER

BEFORE and AFTER are commits. Each is cloned, without .venv; `make report` and then `make test` run
with HOME and PATH as their only environment, those of both commits at the same time, so that both
share the cores alike. Packages come from uv's cache in HOME, if it has them.
The table is written to WAITS.md beside this file.
"""

import os
import re
import select
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parent.parent
LINK = re.compile(r'href="(\d\d-[^"]*\.html)"')
IMPORTS = "import numpy, scipy.optimize, click"
POINTS = "threads,tps\n1,10.4\n2,19.1\n4,34.2\n8,52.9\n12,61.0\n16,65.0\n32,58.7\n"
ROUNDS = 9
NOTE = "Both commits ran at the same time, and shared the cores."


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
    commits, load = [named(commit) for commit in sys.argv[1:]], os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(commits)) as pool:
        ones = [cloned(commit, Path(folder) / f"one-{commit}") for commit in commits]
        others = [cloned(commit, Path(folder) / f"other-{commit}") for commit in commits]
        looks = list(pool.map(look, ones))
        fits = fit(ones)
        tests = list(pool.map(test, others))
    for first, ratio, (taken, code) in zip(looks, fits, tests, strict=True):
        figures = [*first, ratio, taken, code, load]
        print(figures, file=sys.stderr)
        for row, figure in zip(rows.values(), figures, strict=True):
            row.append(str(code) if figure is code else f"{figure:.{2 if figure < 10 else 0}f}")
    lines = [f"# What one waits for: {date.today()}, {os.cpu_count()} cores", "", NOTE, ""]
    lines += [f"| | {' | '.join(commits)} |", f"|---|{'---|' * len(commits)}"]
    lines += [f"| {name} | {' | '.join(row)} |" for name, row in rows.items()]
    Path(__file__).with_name("WAITS.md").write_text("\n".join(lines) + "\n")


def named(commit: str) -> str:
    """A commit by its hash, also where it was asked for as HEAD."""
    asked = ["git", "rev-parse", "--short", commit]
    return subprocess.run(
        asked, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def cloned(commit: str, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    subprocess.run(["git", "checkout", "--quiet", commit], cwd=folder, check=True)
    return folder


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("HOME", "PATH")}


def fit(clones: list[Path]) -> list[float]:
    """Time of the command over that of an interpreter that only imports, all in turn."""
    ratios: list[list[float]] = [[] for _ in clones]
    for clone in clones:
        (clone / "points.csv").write_text(POINTS)
    for _ in range(ROUNDS):
        for clone, found in zip(clones, ratios, strict=True):
            python, nummodel = (clone / ".venv" / "bin" / name for name in ("python", "nummodel"))
            imported = seconds([python, "-c", IMPORTS], clone)
            found.append(seconds([nummodel, "fit", "points.csv"], clone) / imported)
    return [median(found) for found in ratios]


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
