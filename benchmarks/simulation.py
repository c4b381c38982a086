"""Stations simulated customer by customer, beside what the formulas say. Run by `make simulate`.

A thousand independent runs of a station go side by side. The half-width of a figure is z standard
errors of the mean over the runs, with z so large that all intervals of the study hold at once 19
times in 20 (Bonferroni). A pilot, which is thrown away, fixes how long the runs are: so long that
the half-width stays under 1 %; if it does not, they are thrown away as well. Exact results go to
SIMULATION.md beside this file; Allen and Cunneen's approximation, with its error, to
data/allen-cunneen.csv.
"""

from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from scipy.special import ndtri

from nummodel.models import queueing as q
from nummodel.sweeps import sweep

RUNS, BLOCK = 1000, 500
HEADER = "c,rho_pct,cv2_a,cv2,simulated,half_width_pct,approximation,error_pct"


def gamma(mean: float, cv2: float) -> Callable[[np.random.Generator, tuple], np.ndarray]:
    """Times of a gamma distribution: all the same for cv2 = 0, exponential for 1."""
    if cv2 == 0:
        return lambda random, size: np.full(size, mean)
    if cv2 == 1:
        return lambda random, size: mean * random.standard_exponential(size)
    return lambda random, size: mean * cv2 * random.standard_gamma(1 / cv2, size)


class Station(NamedTuple):
    """Open, with `places` for customers if they are limited, or closed with `threads`.

    `gaps` lie between arrivals, or are the think times of a thread.
    """

    c: int
    gaps: Callable
    service: Callable
    places: int = 0
    threads: int = 0


def simulate(station: Station, random, steps: int, warm_up: int, t=np.inf, response=False):
    """Means of every run: wait (0 for who is turned away), share away, share longer than `t`.

    First come, first served: who arrives takes the server that is free first. That is all there is
    to a queue; no formula is used.
    """
    sums, every = np.zeros((3, RUNS)), np.arange(RUNS)
    now, away = np.zeros(RUNS), np.zeros(RUNS, dtype=bool)
    free = np.zeros((RUNS, station.c))  # when each server will be
    leaving = np.zeros((RUNS, station.places))  # when those who took a place last leave it
    ready = station.gaps(random, (RUNS, station.threads))  # when each thread has thought
    for step in range(steps + warm_up):
        if step % BLOCK == 0:
            gaps, services = (draw(random, (BLOCK, RUNS)) for draw in station[1:3])
        gap, service = gaps[step % BLOCK], services[step % BLOCK]
        if station.threads:
            thread = ready.argmin(axis=1)
            now = ready[every, thread]
        else:
            now = now + gap
        server = free.argmin(axis=1)
        soonest = free[every, server]
        wait = np.maximum(soonest - now, 0)
        end = now + wait + service
        if station.places:
            place = leaving.argmin(axis=1)
            away = leaving[every, place] > now
            leaving[every, place] = np.where(away, leaving[every, place], end)
            wait, end = np.where(away, 0, wait), np.where(away, soonest, end)
        free[every, server] = end
        if station.threads:
            ready[every, thread] = end + gap
        if step >= warm_up:
            sums += wait, away, wait + response * service > t
    return sums / steps


def estimate(station, figure: str, z, seed, warm_up, t=np.inf, response=False, half=0.009):
    """A figure of a station and its half-width, relative to it: "wait", "away" or "longer"."""
    random, steps, error = np.random.default_rng(seed), 2 * warm_up, np.inf
    while True:
        wait, away, longer = simulate(station, random, steps, warm_up, t, response)
        means = {"wait": wait, "away": away, "longer": longer}[figure]
        share = 1 - away if figure == "wait" else np.ones(RUNS)
        value = means.mean() / share.mean()
        pilot = error == np.inf
        # The standard error of a ratio is that of its linear part.
        error = (means - value * share).std(ddof=1) / share.mean() / np.sqrt(RUNS)
        error *= z / value
        if error < 0.01 and not pilot:
            return value, error
        steps = max(int(steps * (error / half) ** 2), warm_up)


def exact_cases() -> dict[str, tuple[dict, float]]:
    """What to estimate, and the formula's answer. Service takes 1."""
    cases: dict[str, tuple[dict, float]] = {}
    one = gamma(1, 1)
    for rho, c, K in ((0.9, 1, 8), (0.8, 4, 12), (1.0, 4, 10), (1.5, 16, 24)):
        at = {"station": Station(c, gamma(1 / (rho * c), 1), one, places=K), "warm_up": 20 * K}
        name, given = f"M/M/{c}/{K} at rho = {rho}", (rho * c, 1, c, K)
        cases[f"{name}, share turned away"] = at | {"figure": "away"}, q.mmck_blocking(*given)
    for N, c, Z in ((10, 1, 8), (20, 4, 4), (64, 16, 2), (64, 16, 4)):
        at = {"station": Station(c, gamma(Z, 1), one, threads=N), "warm_up": 20 * N}
        wait = q.repairman_waiting(N, 1, c, Z)
        cases[f"M/M/{c}//{N} at Z = {Z}, wait"] = at | {"figure": "wait"}, wait
    for rho, c, p in ((0.8, 1, 0.95), (0.8, 4, 0.5), (0.75, 4, 0.95), (0.8, 10, 0.9)):
        at = {"station": Station(c, gamma(1 / (rho * c), 1), one), "figure": "longer"}
        at["warm_up"] = int(20 / (1 - rho) ** 2)
        name = f"M/M/{c} at rho = {rho}, share above the {100 * p:g} % quantile"
        given = rho * c, 1, c, p
        t = q.mmc_response_percentile(*given)
        cases[f"{name} of response times"] = at | {"t": t, "response": True}, 1 - p
        t = q.mmc_waiting_percentile(*given)
        if t > 0:
            cases[f"{name} of waits"] = at | {"t": t}, 1 - p
    return cases


def general_cases() -> list[tuple[int, float, float, float]]:
    """c, rho, cv2 of arrivals and of service."""
    pairs = [p for p in product((0.25, 1, 4), (0, 0.25, 1, 4)) if p not in ((0.25, 0), (4, 0))]
    return [(c, rho, *pair) for rho in (0.5, 0.7, 0.9) for c in (1, 2, 8) for pair in pairs]


def general(c: int, rho: float, cv2_a: float, cv2: float) -> dict:
    """What to estimate: the wait of G/G/c."""
    warm_up = int(10 * (1 + (cv2_a + cv2) / 2) / (1 - rho) ** 2)
    station = Station(c, gamma(1 / (rho * c), cv2_a), gamma(1, cv2))
    return {"station": station, "figure": "wait", "warm_up": warm_up}


def run(case: np.ndarray, z: float, seed: int) -> dict[str, np.ndarray]:
    """The estimate of one case, of all that there are, exact ones first, and its half-width."""
    number = int(case[0])
    exact = [at for at, _ in exact_cases().values()]
    others = general_cases()
    at = exact[number] if number < len(exact) else general(*others[number - len(exact)])
    value, error = estimate(**at, z=z, seed=[seed, number])
    return {"value": np.array([value]), "error": np.array([error])}


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--jobs", default=2, show_default=True)
@click.option("--output", default="data/allen-cunneen.csv", show_default=True, type=Path)
def main(seed: int, jobs: int, output: Path) -> None:
    """Simulate all cases."""
    exact, others = exact_cases(), general_cases()
    count = len(exact) + len(others)
    z = ndtri(1 - 0.025 / count)
    # Kept until `make clean`, so that a study that was stopped goes on.
    folder = Path(__file__).parent / ".sweeps" / f"simulation-{seed}"
    model = partial(run, z=z, seed=seed)
    table = sweep(model, {"case": range(count)}, folder, jobs, chunk=1).to_table()
    found = list(zip(table["value"].to_pylist(), table["error"].to_pylist(), strict=True))
    lines = [
        "# Formulas of stations, and simulations of them",
        "",
        f"Simulated on {date.today()} with seed {seed}.",
        "",
        f"The study has {count} figures. With a probability of 95 % all intervals hold "
        f"together (z = {z:.2f}). The widest half-width is "
        f"{100 * max(error for _, error in found):.2f} %. "
        "The last column says whether the formula lies within the half-width.",
        "",
        "| station and figure | formula | simulated | half-width | inside |",
        "|---|---|---|---|---|",
    ]
    for (name, (_, answer)), (value, error) in zip(exact.items(), found, strict=False):
        lines.append(row(name, answer, value, error))
    rows = [HEADER]
    for (c, rho, cv2_a, cv2), (value, error) in zip(others, found[len(exact) :], strict=True):
        answer = q.ggc_waiting(rho * c, 1, c, cv2_a, cv2)
        off, half = 100 * (answer / value - 1), 100 * error
        figures = f"{value:.4g},{half:.2f},{answer:.4g},{off:.1f}"
        rows.append(f"{c},{100 * rho:g},{cv2_a:g},{cv2:g},{figures}")
        if cv2_a == 1 and (c == 1 or cv2 == 1):
            name = f"M/M/{c}" if cv2 == 1 else f"M/G/{c} with cv2 = {cv2:g}"
            lines.append(row(f"{name} at rho = {rho}, wait", answer, value, error))
    output.write_text("\n".join(rows) + "\n")
    (Path(__file__).parent / "SIMULATION.md").write_text("\n".join(lines) + "\n")
    click.echo("\n".join(lines))


def row(name: str, answer: float, value: float, error: float) -> str:
    """A line of the table."""
    inside = "yes" if abs(value - answer) <= error * value else "NO"
    return f"| {name} | {answer:.5g} | {value:.5g} | {100 * error:.2f} % | {inside} |"


if __name__ == "__main__":
    main()
