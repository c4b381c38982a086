"""Which processors will be full, how much throughput can still grow, and what would a change bring?

Three questions that `answers.limits` answers are held against what is known: the curves of servers
that went on to 512 threads, and made systems with known truths (`systems.drawn`), changed in the
same way as the systems that were fitted to their measurements. So is whether a change helped, as
`answers.change` says of tables with a known gain. Run by `make limits`; the figures go to
benchmarks/LIMITS.md. `--example` writes data/simulated-shop.csv instead.
"""

import csv
import heapq
from collections import deque
from datetime import date
from pathlib import Path
from tempfile import NamedTemporaryFile

import click
import forecast
import numpy as np
import pandas as pd
import systems as made

from nummodel.answers import full, limits
from nummodel.answers._limit_answer import WORTH
from nummodel.answers.change import compared
from nummodel.fits._forecast import SPREAD, Trend
from nummodel.models import networks
from nummodel.records.columns import Points
from nummodel.sweeps import sweep

HOME = Path(__file__).parent
#: The load at which servers are judged, and the cuts from which.
FAR, CUTS = 512, (16, 64)
#: Logical processors of the servers.
PROCESSORS = 80

#: Gains are told to a hundredth of a percent.
ROUNDED = 0.5e-4
NOTES = """
## Will the processors be full, and how much can throughput still grow?

35 curves of database servers with 80 logical processors reach 512 threads (`mysql2026`; the 36th
stops before). From what was measured up to a cut, `full.chance_full` tells the probability that
user and system time are above 90 % at 512 threads, as in 5 of the 35: from 2/3 on the answer is
yes, up to 1/3 it is no, and else it is open. `full.growth` tells the highest throughput at the
later loads over that at the cut, held against what was measured. The thresholds are round numbers
that were not changed after the first look at these answers, and nothing else was. The intervals
of forecasts were calibrated on all curves, these servers included; the last two rows have
intervals that were calibrated without them. The other constants of a forecast were set by hand,
by somebody who knew these curves.
"""

#: Of two tables: loads, and what a change multiplies the throughput at each of them by.
TABLES = np.array([1.0, 2, 4, 8, 16, 32, 48, 64])
GAINS = {
    "1.12 at every load": np.full(8, 1.12),
    "N^0.06, 1 to 1.28": TABLES**0.06,
    "1.3 above 8, else 1": np.where(TABLES > 8, 1.3, 1.0),
}

#: The example: stations with their numbers of servers and demands [s], the think time, and loads.
SHOP = {"cpu": (8, 0.032), "disk": (1, 0.0032), "lock": (1, 0.0016)}
THINK, LOADS, SECONDS = 0.2, (1, 2, 5, 10, 20, 40, 60, 80, 120), 120.0


def simulated(N: int, random: np.random.Generator) -> dict[str, float]:
    """What is measured of N users in `SECONDS` after as long a time to settle: X, mean R, and
    utilisations. All times are exponential; each station serves in the order of arrival.
    """
    names, begin, end = list(SHOP), SECONDS, 2 * SECONDS
    free = {n: c for n, (c, _) in SHOP.items()}
    busy, waiting = dict.fromkeys(names, 0.0), {n: deque() for n in names}
    sent, times, events = {}, [], []
    for user in range(N):
        heapq.heappush(events, (random.exponential(THINK), user, -1))

    def serve(now, user, place):
        length = random.exponential(SHOP[names[place]][1])
        busy[names[place]] += max(0.0, min(now + length, end) - max(now, begin))
        heapq.heappush(events, (now + length, user, place))

    while events[0][0] < end:
        now, user, place = heapq.heappop(events)
        if place >= 0 and waiting[names[place]]:
            serve(now, waiting[names[place]].popleft(), place)
        elif place >= 0:
            free[names[place]] += 1
        if place == len(names) - 1:  # the response is there
            times += [now - sent[user]] * (now >= begin)
            heapq.heappush(events, (now + random.exponential(THINK), user, -1))
            continue
        if place < 0:
            sent[user] = now
        if free[names[place + 1]]:
            free[names[place + 1]] -= 1
            serve(now, user, place + 1)
        else:
            waiting[names[place + 1]].append(user)
    share = {f"U_{n}": busy[n] / SECONDS / SHOP[n][0] for n in names if n != "lock"}
    return {"N": N, "X": len(times) / SECONDS, "R": float(np.mean(times)), **share}


def example(seed: int) -> None:
    """Write the table of the example. Nobody measured its lock."""
    random = np.random.default_rng(seed)
    with (HOME.parent / "data" / "simulated-shop.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["N", "X_per_s", "R", "U_cpu", "U_disk", "c_cpu"])
        for N in LOADS:
            at = simulated(N, random)
            figures = [f"{at['X']:.2f}", *(f"{at[n]:.4f}" for n in ("R", "U_cpu", "U_disk"))]
            rows.writerow([N, *figures, SHOP["cpu"][0]])


def in_time(curves: list[forecast.Curve]) -> list[forecast.Curve]:
    """The curves that reach `FAR`, without whole versions that stop before."""
    return [c for c in curves if c.N[-1] == FAR]


def judged(curve: forecast.Curve, cut: int) -> dict:
    """Whether the processors will be full at `FAR`, and by how much throughput can still grow,
    by what was measured up to the cut, and what came of both.
    """
    seen = curve.N <= cut
    N, X, U, later = curve.N[seen], curve.X[seen], curve.U[seen], curve.N[~seen]
    p = float(full.chance_full(N, X, U, [FAR])[0])
    middle, low, high = full.growth({"N": N, "X": X, "U_cpu": U}, later)
    grew = max(curve.X[~seen].max() / X[-1], 1.0)
    return {
        "curve": curve.name,
        "cut": cut,
        "p": p,
        "verdict": full.verdict(p),
        "full": curve.U[-1] > full.FULL,
        "error": np.expm1(abs(np.log(middle / grew))),
        "inside": low <= grew <= high,
        "width": high / low,
    }


def learned(constants) -> None:
    """Let intervals have these constants, as if no other curves had been known."""
    Trend.spread.__defaults__ = (constants,)
    Trend.quantiles.__defaults__ = (constants, None)


def servers() -> list[str]:
    """Two tables: verdicts and growth at each cut, by all curves, and without these servers."""
    curves, others = in_time(forecast.servers()), forecast.many()
    without = forecast.calibrate(forecast.cuts(others, forecast.everywhere))
    lines = [
        "| cut | intervals learned from | yes: right of all | no: right of all | open "
        "| growth: error, median | 90th percentile | inside | width, median |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for how, constants in (("all curves", SPREAD), ("other sources only", without)):
        learned(constants)
        for cut in CUTS:
            rows = pd.DataFrame([judged(c, cut) for c in curves])
            yes, no = (rows[rows.verdict == v] for v in ("yes", "no"))
            wide = f"a factor of {rows.width.median():.2f}"
            still = len(rows) - len(yes) - len(no)
            lines.append(
                f"| {cut} threads | {how} | {int(yes.full.sum())} of {len(yes)} "
                f"| {int((~no.full).sum())} of {len(no)} | {still} of {len(rows)} "
                f"| {100 * rows.error.median():.0f} % | {100 * rows.error.quantile(0.9):.0f} % "
                f"| {int(rows.inside.sum())} of {len(rows)} | {wide} |"
            )
    learned(SPREAD)
    return lines


def explained() -> str:
    """Of how many servers a closed system explains all loads, and what is full first."""
    found: dict[str, int] = {}
    curves = forecast.servers()
    for curve in curves:
        columns = {"N": curve.N, "X": curve.X, "R": curve.R, "U_cpu": curve.U}
        system = read(pd.DataFrame(columns), PROCESSORS)
        first = "rejected" if system.unmet else system.stations[0]
        found[first] = found.get(first, 0) + 1
    named = ", ".join(f"{name}: {count}" for name, count in found.items() if name != "rejected")
    return (
        f"A closed system of processors and a lock was also fitted to all loads of the "
        f"{len(curves)} servers. It is rejected for {found.get('rejected', 0)}, and nothing is "
        f"said of changes to these. Of the others, the station that is full first is {named}. "
        "Disks were not measured, so lock stands for them as well."
    )


def read(table: pd.DataFrame, processors: int) -> limits.Limits:
    """What is told of the measurements in a table."""
    with NamedTemporaryFile("w", suffix=".csv") as file:
        table.assign(c_cpu=processors).to_csv(file.name, index=False)
        return limits.read(file.name)


def changed(seed: np.ndarray) -> pd.DataFrame:
    """The gains of each change of a made system, measured as a table, and the true ones: a row for
    each change and load. Of a system that the measurements do not tell, one row without gains.
    """
    number = int(seed[0])
    laws, truth, measured = made.drawn(number)
    table = pd.DataFrame({n: measured[n] for n in ("N", "X", "R", "U_cpu")})
    found = read(table, laws["X"].system.servers["cpu"])
    if found.unmet:
        return pd.DataFrame([{"seed": number, "told": False}])
    servers = laws["X"].system.servers
    longest = max(servers, key=lambda n: truth[f"D_{n}"] / servers[n])
    rows = []
    keys = [(n, c) for n in found.stations for c in limits.CHANGES for _ in range(2)]
    for (name, change), gain in zip(keys, found.gains, strict=True):
        true = more(truth, servers, name, change, gain.N)
        rows.append(
            {
                "seed": number,
                "told": True,
                "change": f"{gain.station}: {change}",
                "load": "twice the last" if gain.N > measured["N"].max() else "the last",
                "inside": gain.low - ROUNDED <= true <= gain.high + ROUNDED,
                "width": gain.high - gain.low,
                "large": true >= WORTH,
                "limit": found.study.limit is not None,
                "right": found.stations[0] == longest,
            }
        )
    return pd.DataFrame(rows)


def more(truth: dict, servers: dict, name: str, change: str, N: float) -> float:
    """The true gain of a change, by the exact solution of both networks: a second processor serves
    the same queue, and a second lock has its own.
    """
    before = {n: (truth[f"D_{n}"], c, 1) for n, c in servers.items()}
    D, c, _ = before[name]
    after = {"half": (D / 2, c, 1), "twice": (D, 2 * c, 1) if name == "cpu" else (D / 2, c, 2)}
    X = [
        networks.solve(
            [networks.queue(D, c) for D, c, count in each.values() for _ in range(count)],
            round(N),
            truth["Z"],
        ).X
        for each in (before, before | {name: after[change]})
    ]
    return float(X[1] / X[0] - 1)


def systems(rows: pd.DataFrame) -> list[str]:
    """How often intervals hold the true gain, of all and of those that are worth a change."""
    lines = [
        "| change | load | gains | interval holds | of gains from 1 % on | holds | width, median |",
        "|---|---|---|---|---|---|---|",
    ]
    told = rows[rows.told]
    for (change, load), some in told.groupby(["change", "load"]):
        large = some[some.large.astype(bool)]
        lines.append(
            f"| {change} | {load} | {len(some)} | {100 * some.inside.mean():.1f} % | {len(large)} "
            f"| {100 * large.inside.mean():.1f} % | {100 * large.width.median():.1f} % |"
        )
    return lines


def gained(gain: np.ndarray, draws: int, seed: int) -> tuple[float, float, set[str]]:
    """How often all intervals of `nummodel compare` hold a known gain, and how often it is found,
    between tables of a system with a knee, without repeats, whose points the USL misses; and by
    which curves the tables were compared.
    """
    random, true = np.random.default_rng(seed), [*gain, np.exp(np.log(gain).mean())]
    hold, helped, how = [], [], set()
    for _ in range(draws):
        noise = np.exp(0.015 * random.standard_normal((2, len(gain))))
        X = np.minimum(10 * TABLES, 75) * [np.ones(len(gain)), gain] * noise
        told = compared([Points(TABLES, x, "absolute", "N", "X") for x in X], "auto", 0.95)
        pairs = zip([*told["loads"], told["together"]], true, strict=True)
        hold.append(all(row["low"] <= t <= row["high"] for row, t in pairs))
        helped.append(told["answer"].startswith("The change helps"))
        how.add(told["how"])
    return float(np.mean(hold)), float(np.mean(helped)), how


@click.command()
@click.option("--draws", default=300)
@click.option("--seed", default=2026)
@click.option("--jobs", default=2)
@click.option("--example", "only_example", is_flag=True, help="write data/simulated-shop.csv")
@click.option("--output", default=str(HOME / "LIMITS.md"))
def main(draws: int, seed: int, jobs: int, only_example: bool, output: str) -> None:
    """Judge the curves of servers, and draw systems."""
    if only_example:
        return example(seed)
    # Kept until `make clean`, so that a study that was stopped goes on.
    folder = HOME / ".sweeps" / f"limits-{seed}-{draws}"
    found = sweep(changed, {"seed": range(seed, seed + draws)}, folder, jobs, chunk=1)
    rows = found.to_table().to_pandas()
    once = rows.groupby("seed").first()
    told, sure = once[once.told], once[once.limit.fillna(False).astype(bool)]
    known = []
    for name, gain in GAINS.items():
        hold, helped, _ = gained(gain, draws, seed)
        known.append(f"| {name} | {draws} | {100 * hold:.1f} % | {100 * helped:.1f} % |")
    lines = [
        "# What limits a system, and what a change brings",
        "",
        f"`make limits` computed these tables on {date.today()}.",
        "",
        *NOTES.strip().splitlines(),
        "",
        *servers(),
        "",
        explained(),
        "",
        "## Made systems, changed",
        "",
        f"{draws} systems were drawn at random (seed {seed}): 1 to 64 processors, a lock and users "
        "who may think, measured at 5 to 12 loads with errors of 1 to 5 %. N, X, R, the "
        "utilisation of the processors and their number are known. Each change is made in the true "
        f"system and in the fitted one. {len(once) - len(told)} systems were not told, for lack of "
        f"fit or because another system fits as well. Of the other {len(told)}, the station that "
        f"limits was named for {len(sure)}, and for {int(sure.right.sum())} of these it is right.",
        "",
        *systems(rows),
        "",
        "## A known gain between two tables",
        "",
        "Throughputs of a system with a knee, which the Universal Scalability Law misses, before "
        "and after a change: 8 loads without repeats, errors of 1.5 %. `nummodel compare` gives "
        "95 % intervals that hold together, and says whether the change helps.",
        "",
        "| gain | sets | all intervals hold it | found |",
        "|---|---|---|---|",
        *known,
    ]
    Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
