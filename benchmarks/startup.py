"""What a newcomer waits for: a fresh clone's first and second report, and the imports.

Run by `make bench`. The clone has an empty environment (HOME, PATH) and an empty package cache.
Prints a table and writes it to RESULTS.md beside this file, with date, machine and versions.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parent.parent


def seconds(command: list[str], **options) -> float:
    start = perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    return perf_counter() - start


def imports(statement: str) -> float:
    """The best of five new interpreters, less the interpreter itself."""
    code = f"from time import perf_counter as t; s = t(); {statement}; print(t() - s)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    home = Path(tempfile.mkdtemp())
    clone, environment = home / "clone", {"HOME": str(home), "PATH": os.environ["PATH"]}
    try:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = [
            (
                "first `make report` in a fresh clone, empty cache",
                45,
                seconds(["make", "report"], cwd=clone, env=environment),
            ),
            ("second `make report`", 8, seconds(["make", "report"], cwd=clone, env=environment)),
            ("`import nummodel`", 0.1, imports("import nummodel")),
            ("`from nummodel import scaling`", 0.4, imports("from nummodel import scaling")),
        ]
    finally:
        shutil.rmtree(home)
    lines = [
        "# What the set-up costs",
        "",
        f"{date.today()}, {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}.",
        "",
        "| what | goal [s] | measured [s] | ratio |",
        "|---|---|---|---|",
        *(f"| {what} | {goal:g} | {took:.2f} | {took / goal:.2f} |" for what, goal, took in rows),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).parent / "RESULTS.md").write_text(text)


if __name__ == "__main__":
    main()
