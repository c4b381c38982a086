"""How long the same work takes by us and by other tools, side by side, and whether they agree.

LINE, lmfit and ciw are Python packages, timed in this process; GNU Octave and R, with their
packages `queueing`, are timed by their own clocks. Importing or starting a tool is not counted, and
every function is called once before.
"""

import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np

#: Rounds in which all take their turns; who has taken more than PATIENCE seconds misses the rest.
ROUNDS, PATIENCE = 5, 20.0


class Peer(NamedTuple):
    """Another tool: `run` gives seconds and figures, which are the first of ours.

    `goal` is how many times as fast ours ought to be.
    """

    tool: str
    what: str
    run: Callable[[], tuple[float, np.ndarray]]
    goal: float | None = None


class Work(NamedTuple):
    """What is to be done, our figures, and who does the same."""

    what: str
    ours: Callable[[], np.ndarray]
    peers: list[Peer]


class Measured(NamedTuple):
    """Seconds of every round, ours in the same rounds, and how far from our figures."""

    ours: list[float]
    theirs: list[float]
    apart: float


def table(works: list[Work], tools: dict[str, str]) -> Iterator[str]:
    """Its lines; who has no version is absent."""
    yield "| the same work | ours [ms] | peer | peer [ms] | ours is faster, times | differs by |"
    yield "|---|---|---|---|---|---|"
    for work in works:
        ours, measured = measure(work, [peer for peer in work.peers if tools[peer.tool]])
        first = f"{work.what} | {short(1e3 * median(ours))}"
        for peer in work.peers:
            cells = row(peer, measured[peer]) if peer in measured else "absent | |"
            yield f"| {first} | {peer.tool} {peer.what} | {cells} |"
            first = "|"


def measure(work: Work, peers: list[Peer]) -> tuple[list[float], dict[Peer, Measured]]:
    """Our seconds, and every peer's, in turn."""
    figures, ours = work.ours(), []
    found = {peer: Measured([], [], 0.0) for peer in peers}
    for _ in range(ROUNDS):
        ours.append(timed(work.ours)[0])
        for peer, before in found.items():
            if sum(before.theirs) < PATIENCE:
                took, values = peer.run()
                apart = np.abs(values / figures[: len(values)] - 1).max()
                found[peer] = Measured([*before.ours, ours[-1]], [*before.theirs, took], apart)
    return ours, found


def row(peer: Peer, found: Measured) -> str:
    """The cells of one peer."""
    ratio = [b / a for a, b in zip(found.ours, found.theirs, strict=True)]
    times = short(median(ratio))
    if len(ratio) > 1:
        times += f" ({short(min(ratio))} to {short(max(ratio))})"
    if peer.goal:
        times += f"; goal {peer.goal:g}"
    apart = f"**{100 * found.apart:.0f} %**" if found.apart > 1e-3 else f"{found.apart:.0e}"
    return f"{short(1e3 * median(found.theirs))} | {times} | {apart}"


def short(figure: float) -> str:
    """Three digits, thousands set apart."""
    return f"{float(f'{figure:.3g}'):,.10g}"


def versions() -> dict[str, str]:
    """Tools and their versions; empty for those that are absent."""
    octave = (
        'pkg load queueing; p = pkg("list", "queueing"); '
        'printf("%s with queueing %s", version, p{1}.version)'
    )
    r = 'cat(paste0(getRversion(), " with queueing ", packageVersion("queueing")))'
    return {
        "LINE": _package("line-solver"),
        "lmfit": _package("lmfit"),
        "ciw": _package("ciw"),
        "Octave": _said("octave-cli", "-q", "--eval", octave),
        "R": _said("Rscript", "-e", r),
    }


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""


def timed(call: Callable) -> tuple[float, np.ndarray]:
    """Median seconds of a call, as many as fit into 0.1 s and at least one, and what it gives."""
    result = call()
    took: list[float] = []
    while not took or sum(took) < 0.1:
        start = perf_counter()
        call()
        took.append(perf_counter() - start)
    return median(took), result


def line_function(module: str, function: str) -> Callable:
    return getattr(import_module(f"line_solver.api.{module}"), function)


def by_octave(first: str, work: str, result: str) -> tuple[float, np.ndarray]:
    code = f'{first} tic; {work} t = toc; printf("%.17g\\n", t, {result});'
    return _interpreted("octave-cli", "-q", "--eval", f"pkg load queueing; warning off; {code}")


def by_r(first: str, work: str, result: str) -> tuple[float, np.ndarray]:
    code = f"{first}; s <- Sys.time(); {work}; t <- as.numeric(Sys.time() - s, units = 'secs')"
    show = f"cat('', sprintf('%.17g', c(t, {result})), sep = '\\n')"
    return _interpreted("Rscript", "-e", f"library(queueing); {code}; {show}")


def _interpreted(*command: str) -> tuple[float, np.ndarray]:
    """Seconds, and figures, a line each."""
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    took, *values = map(float, run.stdout.split())
    return took, np.array(values)


def matrix(values) -> str:
    """As Octave writes it."""
    return f"[{'; '.join(commas(row) for row in np.atleast_2d(values))}]"


def commas(values) -> str:
    return ", ".join(repr(float(v)) for v in values)
