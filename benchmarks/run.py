"""What a newcomer waits for, and how fast fits and queues are, beside other tools in the same run.

Run by `make bench`. Prints tables and writes them to RESULTS.md beside this file, with date,
machine and versions. Machines are noisy: every figure is the median of several, side by side.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import peers

ROOT = Path(__file__).parent.parent


def main() -> None:
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "sympy"))
    where = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    text = "\n".join(
        [
            "# Measured speed",
            "",
            f"Measured on {date.today()}, with {where}, {versions}.",
            "",
            *startup(),
            "",
            *fits(),
            "",
            *locks(),
            "",
            *peers.compared(),
        ]
    )
    print(text)
    (Path(__file__).parent / "RESULTS.md").write_text(text + "\n")


def startup() -> list[str]:
    """A fresh clone with an empty environment (HOME, PATH) and an empty package cache."""
    home = Path(tempfile.mkdtemp())
    clone, environment = home / "clone", {"HOME": str(home), "PATH": os.environ["PATH"]}

    def run(*command: str) -> Callable[[], None]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return lambda: subprocess.run(command, cwd=clone, env=environment, check=True, **quiet)

    again = (".venv/bin/nummodel", "report", "--force")
    try:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = [
            (
                "first `make report` in a fresh clone, empty cache",
                45,
                seconds(run("make", "report"), 1),
            ),
            (
                "two notebooks again: `nummodel report 01 11 --force`",
                8,
                seconds(run(*again, "01", "11"), 5),
            ),
            ("all notebooks again: `nummodel report --force`", None, seconds(run(*again), 1)),
            ("`import nummodel`", 0.1, imports("import nummodel")),
            (
                "`from nummodel.models import scaling`",
                0.4,
                imports("from nummodel.models import scaling"),
            ),
        ]
    finally:
        shutil.rmtree(home)
    return [
        "| what | goal [s] | measured [s] | measured / goal |",
        "|---|---|---|---|",
        *(
            f"| {what} | {goal:g} | {took:.2f} | {took / goal:.2f} |"
            if goal
            else f"| {what} | | {took:.2f} | |"
            for what, goal, took in rows
        ),
    ]


def fits() -> list[str]:
    """2,000 bootstrap refits of the USL to 7 points, beside a loop of SciPy's curve_fit."""
    from scipy.optimize import curve_fit

    from nummodel.fits import bootstrap, fit
    from nummodel.fits._fit import resamples
    from nummodel.models import scaling
    from nummodel.records import columns

    points = columns.read("specsdm91")
    law = scaling.usl_throughput
    base = fit(law, {"N": points.N, "X": points.X})
    X, _ = resamples(base, "parametric", 2000, seed=1)
    start = list(base.estimate.values())

    def usl(N, X1, sigma, kappa):
        return X1 * N / (1 + sigma * (N - 1) + kappa * N * (N - 1))

    def loop() -> None:
        for x in X.T:
            curve_fit(usl, points.N, x, p0=start, maxfev=10_000)

    ratios, ours, theirs = [], [], []
    for _ in range(5):
        ours.append(seconds(lambda: bootstrap(base, count=2000, seed=1), 1))
        theirs.append(seconds(loop, 1))
        ratios.append(theirs[-1] / ours[-1])
    found = bootstrap(base, count=2000, seed=1).to_numpy()
    alone = np.array([list(fit(law, {"N": points.N, "X": x}).estimate.values()) for x in X.T])
    apart = np.abs(found - alone) / np.where(alone == 0, 1, np.abs(alone))
    return [
        "| 2,000 refits of the USL to 7 points | median of 5 [s] | times faster than the loop |",
        "|---|---|---|",
        f"| loop of `scipy.optimize.curve_fit`, no bounds | {median(theirs):.3f} | 1 |",
        f"| `bootstrap`, with bounds | {median(ours):.4f} | "
        f"{median(ratios):.0f} ({min(ratios):.0f} to {max(ratios):.0f}; goal 50) |",
        "",
        f"Each of the 2,000 refits differs from a single fit by at most {apart.max():.1e}, "
        "relatively.",
        "",
        closed(lambda: fit(law, {"N": points.N, "X": points.X})),
    ]


def closed(usl: Callable[[], object]) -> str:
    """A sentence: a closed system with three unknowns, fitted to eight points, beside the `usl`."""
    from nummodel.fits import fit
    from nummodel.models import networks, systems

    law, N = systems.closed(cpu=4, lock=1)["X"], 2 ** np.arange(8)
    stations = [networks.queue(0.03, 4), networks.queue(0.005)]
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal(len(N))
    X = networks.solve(stations, N, Z=0.5).X * noise
    ratios = []
    for _ in range(5):
        took = seconds(lambda: fit(law, {"N": N, "X": X}, "log"), 3)
        ratios.append(took / seconds(usl, 3))
    return (
        "A closed system with three unknowns, fitted to eight points, takes "
        f"{median(ratios):.1f} times as long as the USL fitted to seven "
        f"({min(ratios):.1f} to {max(ratios):.1f}; goal: under 100)."
    )


def locks() -> list[str]:
    """A ticket lock with as many threads as `locks.solve` takes, and a grid of such locks."""
    from nummodel.models import locks

    N, h = 100_000, 1e-4
    Z = np.geomspace(10, 1e6, 100)
    ways = {
        "100,000 threads, a grant of a few operations": lambda: locks.solve(
            lambda n: 1.0 + h * (n - 1), N, 1e5
        ),
        "the same, `ticket_grant`": lambda: locks.solve(
            lambda n: locks.ticket_grant(n, 1.0, h_waiter=h), N, 1e5
        ),
        "300 threads, 100 think times in one call": lambda: locks.solve(
            lambda n: locks.ticket_grant(n, 1.0, h_waiter=h), 300, Z
        ),
    }
    return [
        "| `locks.solve` for a ticket lock | goal [s] | median of 3 [s] |",
        "|---|---|---|",
        *(f"| {what} | 5 | {seconds(work, 3):.3f} |" for what, work in ways.items()),
        "",
        "The goal is meant for a grant of a few operations. `ticket_grant` checks its arguments in "
        "each call.",
    ]


def seconds(work: Callable[[], None], times: int) -> float:
    """The median of some runs."""
    took = []
    for _ in range(times):
        start = perf_counter()
        work()
        took.append(perf_counter() - start)
    return median(took)


def imports(statement: str) -> float:
    """The median of five new interpreters, without their own start."""
    code = f"from time import perf_counter as t; s = t(); {statement}; print(t() - s)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True) for _ in range(5)]
    return median(float(run.stdout) for run in runs)


if __name__ == "__main__":
    main()
