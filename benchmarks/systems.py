"""How well do closed systems and the USL forecast a closed system? Made data with known truths.

A system has c processors, a lock and users who think. Its parameters are drawn at random, and so
are the loads at which it is measured and the size of the errors. The laws are fitted to these
measurements, and asked for X at twice and at four times the last load. The closed system is told
its number of processors, and finds the demands and the think time. Run by `make systems`; the
figures go to benchmarks/SYSTEMS.md.
"""

from datetime import date
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from nummodel.fits import Fit, closed, fit
from nummodel.models import systems
from nummodel.models.scaling import LAWS
from nummodel.records import data
from nummodel.sweeps import sweep

#: What was measured besides N.
MEASURED = (("X",), ("X", "R"), ("X", "U_cpu"), ("X", "R", "U_cpu"))
DISTANCES = (2, 4)
#: Tables, and the stations of each system: processors as they are documented, and a lock. Each
#: process of the ray tracer has a processor of its own, so that its computing is think time.
PUBLISHED: dict[str, dict[str, Any]] = {
    "specsdm91": {"cpu": 16, "lock": 1},
    "raytracer": {"lock": 1},
    "cisco": {"cpu": None, "lock": 1},
    "mysql56": {"cpu": 4, "lock": 1, "threads": "cpu"},
}


def drawn(seed: int) -> tuple[dict, dict, dict]:
    """A system: its laws, its true quantities, and measurements of it."""
    random = np.random.default_rng(seed)
    c = int(np.rint(64 ** random.random()))
    laws = systems.closed(cpu=c, lock=1)
    D = 10 ** random.uniform(-1.5, 0)
    lock = D * random.uniform(0, 0.2)
    truth = {"D_cpu": D - lock, "D_lock": lock, "Z": random.uniform(0, 10) * random.integers(2)}
    full = sum(truth.values()) / max((D - lock) / c, lock)  # users who would keep one of them busy
    last = max(full * 2 ** random.uniform(-1, 2), 8.0)
    count = random.integers(5, 13)
    N = np.unique(np.rint(np.geomspace(max(1, last / 30), last, count)))
    error = random.uniform(0.01, 0.05)
    measured = {"N": N}
    for name, law in laws.items():
        noise = np.exp(error * random.standard_normal(len(N)))
        measured[name] = law.unchecked(N=N, **truth) * noise
    measured["U_cpu"] = np.minimum(measured["U_cpu"], 1.0)
    return laws, truth, measured


def chosen_for(measured: dict) -> Fit | None:
    """The fit of the law that `nummodel fit` chooses from loads and throughputs."""
    fits, _ = closed.fit_all(measured["N"], measured["X"])
    return fits.get(closed.choose(fits)[0] or "")


def claims_peak(seed: np.ndarray) -> np.ndarray:
    """Whether the law that `nummodel fit` chooses for a system has a peak."""
    chosen = chosen_for(drawn(seed[0])[2])
    return np.array([bool(chosen and chosen.peak())])


def one(seed: np.ndarray) -> pd.DataFrame:
    """The forecasts of every law for one system: a row for each law and distance."""
    laws, truth, measured = drawn(seed[0])
    at = [d * measured["N"][-1] for d in DISTANCES]
    true = laws["X"].unchecked(N=np.array(at), **truth)
    rows = []

    def judged(name, table, peak):
        for distance, x, value, low, high in zip(
            DISTANCES, true, table.value, table.low, table.high, strict=True
        ):
            rows.append(
                {
                    "law": name,
                    "distance": distance,
                    "error": abs(np.log(value / x)),
                    "inside": low <= x <= high,
                    "width": np.log(high / low) if low > 0 else np.inf,
                    "peak": peak,
                }
            )

    for names in MEASURED:
        some = {n: measured[n] for n in ("N", *names)}
        judged(f"closed system, {', '.join(names)}", fit(laws, some).curve(at), False)
    chosen = chosen_for(measured)
    if chosen:
        judged("the law chosen by `nummodel fit`, X", chosen.curve(at), chosen.peak() is not None)
    usl = fit(LAWS["usl"], {"N": measured["N"], "X": measured["X"]}, "log")
    judged("USL, X", usl.curve(at), usl.peak() is not None)
    return pd.DataFrame(rows)


def published() -> list[str]:
    """Published tables: the laws are fitted to the first 60 % of the rows, and predict the rest."""
    lines = [
        "| table | law | errors at the loads that were left out |",
        "|---|---|---|",
    ]
    for name, servers in PUBLISHED.items():
        rows = data.load(name)
        used = max(3, round(0.6 * len(rows)))
        N, X = rows.N.to_numpy(float), rows.X.to_numpy(float)
        first, laws = {"N": N[:used], "X": X[:used]}, {}
        laws["closed system"] = fit(systems.closed(**servers)["X"], first, "log")
        for law in ("usl", "amdahl"):
            laws[law] = fit(LAWS[law], first, "log")
        for law, result in laws.items():
            errors = result.at(N[used:]) / X[used:] - 1
            each = ", ".join(
                f"{100 * e:+.0f} % at {n:g}" for n, e in zip(N[used:], errors, strict=True)
            )
            lines.append(f"| {name} ({used} of {len(N)} rows) | {law} | {each} |")
    return lines


def table(rows: pd.DataFrame) -> list[str]:
    """The figures of all draws, a line for each law and distance."""
    lines = [
        "| law, from | distance | error: median | 90th percentile | interval holds | its width: "
        "median | a peak is claimed |",
        "|---|---|---|---|---|---|---|",
    ]
    for (law, distance), group in rows.groupby(["law", "distance"], sort=False):
        median, ninth = (100 * np.expm1(group.error.quantile(q)) for q in (0.5, 0.9))
        width = 100 * np.expm1(group.width.quantile(0.5))
        held, peaks = 100 * group.inside.mean(), 100 * group.peak.mean()
        lines.append(
            f"| {law} | {distance} times the last load | {median:.1f} % | {ninth:.1f} % "
            f"| {held:.1f} % | {width:.0f} % | {peaks:.0f} % |"
        )
    return lines


@click.command()
@click.option("--draws", default=300)
@click.option("--forecasts", default=300, help="draws that are forecast, which takes longer")
@click.option("--seed", default=2026)
@click.option("--jobs", default=2)
@click.option("--output", default=str(Path(__file__).parent / "SYSTEMS.md"))
def main(draws: int, forecasts: int, seed: int, jobs: int, output: str) -> None:
    """Draw systems, fit and forecast them."""
    seeds = range(seed, seed + draws)
    # Kept until `make clean`, so that a study that was stopped goes on.
    folder = Path(__file__).parent / ".sweeps" / f"systems-{seed}-{draws}-{forecasts}"
    some = {"seed": seeds}, {"seed": seeds[:forecasts]}
    peaks = sweep(claims_peak, some[0], folder / "peaks", jobs, chunk=1)
    rows = sweep(one, some[1], folder / "forecasts", jobs, chunk=1)
    claimed = sum(peaks.to_table()["value"].to_pylist())
    lines = [
        "# Forecasts of closed systems",
        "",
        f"`make systems` drew {draws} systems at random on {date.today()} (seed {seed}). None of "
        "these systems has a peak. The law that `nummodel fit` chooses from loads and throughputs "
        f"claims one for {claimed} of the {draws}, {100 * claimed / draws:.1f} %.",
        "",
        f"Forecasts of the first {min(draws, forecasts)} of these systems: errors are those of X, "
        "in percent of the truth; intervals are those of the curve at 95 %. The closed systems "
        "know how many processors they have; `nummodel fit` knows N and X only.",
        "",
        *table(rows.to_table().to_pandas()),
        "",
        "## Published tables",
        "",
        "Fitted to the first 60 % of the rows, with `log` weights; errors of the other rows.",
        "",
        *published(),
    ]
    Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
