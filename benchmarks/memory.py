"""Latency of memory under load, predicted from three figures of a machine that was left out.

Each machine is predicted from its idle latency, its greatest bandwidth and one point between them;
all else is learned from the other eight. Five laws are compared, with one point by five rules, also
with the delay of this point and with the latency at the greatest bandwidth, which is a fourth
figure. Run by `make memory`, which writes benchmarks/MEMORY.md.
"""

from collections.abc import Callable
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nummodel.models import numa
from nummodel.models.memory import Population, _law, _posterior, _predicted
from nummodel.records import data

OUTPUT = Path(__file__).parent / "MEMORY.md"
#: Latency over idle latency at the point where the rule says "latency doubled".
KNEE = 2.0
RULES = {"50 %": 0.5, "70 %": 0.7, "90 %": 0.9, "100 %": 1.0, "latency doubled": None}
#: The rule that was fixed before any machine was left out.
RULE = "70 %"
#: Points of medium load, whose delays tell how many lines can be under way.
MEDIUM = (0.4, 0.9)
#: What a machine is like before any was measured; 0.7 is the standard deviation of each logarithm.
START = Population(np.log([0.3, 0.1, 1.5]), 0.49 * np.eye(3), (0.0, 1.0))
#: What is known beside three figures: nothing, the delay of the point, or the latency at the
#: greatest bandwidth.
KNOWN = ("", "delay", "full")
#: How pauses and reads overlap (`by_delay`): not at all, in part, wholly.
OVERLAPS = {"one after the other": 1.0, "in part": 2.0, "at the same time": np.inf}

NOTES = """
## What was tried

The curves of all nine machines had been looked at before any law was written. Left-out machines
were predicted by some 260 combinations of law, rule, known figures and way of learning on
2026-11-23, and by some 500 more on 2026-11-25, which the tables above belong to. So figures of
machines that nobody has seen may be worse. Beside what the tables show:

- **Another law for three figures, learned by expectation and maximisation.** Until 2026-11-25 the
  law was M/G/1 with spare capacity and an exponent, and the population was found in 60 steps. With
  the point at 70 %, the mean error was 10.3 % and the worst 142 %; with the delay 5.4 % and 21.7 %,
  the least that any law reached by this rule. The law of notebook 05 had 11.0 % and 138 %, and with
  the delay 7.5 % and 66 %. Averaged over the rules but 100 %, with and without the delay, its mean
  error is 7.3 % now that each machine is fitted once, and that of the exponent was 7.4 %. So one
  law is enough. The figures of `START` were chosen in sight of what the machines have.
- **The law that is best on the other eight machines**, chosen for each machine: 11.7 % and 142 %.
- **The rule of 100 %** was added when the errors with the fourth figure had been seen.
- **By the delay.** Five laws, pauses of four overlaps, the overhead found with the figures and not
  given: with the point at 70 % and its delay, means of 5.8 to 8.4 % and worst errors of 39 to 63 %.
  An overlap that was learned, too: 5.3 and 5.7 %, 23 and 26 %.
- **One number for each machine.** The figures of a law were constants times powers of one number,
  which was solved for the point; constants and powers made the mean error of the other eight least.
  With the point at 70 %, the mean error was 9.6 to 12.5 % and the worst 73 to 93 %, for five
  choices of powers and two laws; one more choice, in which only the wait of a full memory varies,
  failed on Granite Rapids by a factor of thousands.
- **Likeness.** The prediction was the median of the curves of the other eight machines, each with
  the weight of its likeness at the point, and as it was, stretched, or adjusted to pass through the
  point. With the point at 70 %, the mean error was 9.9 to 10.8 % and the worst 58 to 96 %; with the
  point where latency has doubled, 5.2 to 6.9 % and 33 to 53 %.
- **Three figures fitted to all points** of a machine, which is no prediction: the laws that begin
  with rows still miss by 2.0 % in the mean and 10 to 11 % at worst. Skylake's latency steps from
  8 to 10 % above idle latency at the longest delays, and Granite Rapids has one point that is far
  above its neighbours.
- **Overhead of the loop.** The delay counts as it is printed. With 30 cycles more, for the reads
  themselves, mean errors were up to 0.4 % smaller with points at 50, 70 and 90 %, and up to 1.5 %
  larger with the point where latency has doubled. In this trial `places` was learned at the given
  points. The best of its 24 combinations had a mean error of 3.9 % and a worst one of 24 %: M/M/1
  with spare capacity, the delay as printed, and the point where latency has doubled. It was not
  taken, since neither this rule nor this law had been fixed before.
"""


class Machine(NamedTuple):
    """By rising delay [cycles], shares `u` of the greatest bandwidth and latencies `r` over idle
    latency. `own` is the share of the thread that measures, times `r`, and `R0` the idle latency
    [ns]. `given`: rows that are never predicted, since a figure is from them; `peak`: the row of
    the greatest bandwidth; `B`: this bandwidth [GB/s].
    """

    delay: np.ndarray
    u: np.ndarray
    r: np.ndarray
    own: float
    R0: float
    given: list[int]
    peak: int
    B: float

    @property
    def loaders(self) -> np.ndarray:
        """Shares of the greatest bandwidth that threads read which pause between two reads."""
        return self.u - self.own / self.r

    @property
    def places(self) -> np.ndarray:
        return self.loaders * np.maximum(self.delay, 1) / self.R0


def machines() -> dict[str, Machine]:
    """The nine machines. For the Xeon Silver no idle latency was measured by itself: the latency at
    the longest delay takes its place.
    """
    tables = {"Xeon 8269CY": data.load("loaded-latency")}
    tables["Xeon Silver 4110"] = data.load("loaded-latency-4110")
    tables |= dict(iter(data.load("loaded-latency-others").groupby("machine", sort=False)))
    idle = data.load("idle-latency-others").groupby("machine")["R"].min().to_dict()
    idle["Xeon 8269CY"] = data.load("idle-latency").query("node == memory")["R"].min()
    found = {}
    for name, table in tables.items():
        B, R, delay = (
            table.sort_values("delay")[column].to_numpy(float) for column in ("B", "R", "delay")
        )
        R0 = idle.get(name, R[-1])
        own, given = numa.LINE / (B.max() * R0), [] if name in idle else [len(B) - 1]
        peak = int(B.argmax())
        found[name] = Machine(delay, B / B.max(), R / R0, own, 1e9 * R0, given, peak, B.max() / 1e9)
    return found


def point(machine: Machine, rule: str) -> int:
    """The row that is given: of those with a longer delay than the greatest bandwidth has, unless
    the latency decides."""
    wanted = RULES[rule]
    if wanted is None:
        return int(np.argmin(np.abs(np.log(machine.r / KNEE))))
    if wanted == 1:
        return machine.peak
    return machine.peak + 1 + int(np.argmin(np.abs(machine.u[machine.peak + 1 :] - wanted)))


# --- laws: latency over idle latency, of three figures each ------------------------------------


def margin(u, figures):
    """Rows, and an M/M/1 queue whose capacity is above the greatest bandwidth."""
    row, line, full = np.exp(figures)
    return 1 + row * u + line * u / (line / full + 1 - u)


def bursts(u, figures):
    """Rows, and a queue that is observed for a limited time (Akcelik's delay formula)."""
    row, line, full = np.exp(figures)
    c, free = line / full**2, 1 - u
    return 1 + row * u + (np.sqrt(free**2 + 4 * c * line * u) - free) / (2 * c)


def power(u, figures):
    """M/G/1 with spare capacity, whose wait grows with a power of the load that has no theory."""
    line, exponent, full = np.exp(figures + np.array([0.0, 1.6, 0.0]))
    return 1 + line * u**exponent / (line / full + 1 - u)


def knee(u, figures):
    """Rows, and a wait that is a high power of the load: nearly nothing below a knee."""
    row, power, full = np.exp(figures + np.array([0.0, 5.0, 0.0]))
    return 1 + row * u + full * u**power


LAWS = {
    "rows, channels and lines (`numa.loaded_latency`)": _law,
    "M/G/1 with spare capacity and an exponent": power,
    "rows, and M/M/1 with spare capacity": margin,
    "rows, and a queue of limited time": bursts,
    "rows, and a knee": knee,
}
OURS = next(iter(LAWS))


# --- learning from machines, predicting another ------------------------------------------------


def learned(law: Callable, known: list[Machine]) -> Population:
    """Mean and covariance of the figures of `known` machines, each found from all of its rows."""
    found = [_posterior(law, START, m.u, m.r) for m in known]
    figures = np.array([f for f, _ in found])
    covariance = np.cov(figures.T, bias=True) + np.mean([c for _, c in found], 0)
    logs = [np.log(m.r[m.peak] / m.places[medium(m)]) for m in known]
    means, inside = np.array([x.mean() for x in logs]), np.mean([x.var() for x in logs])
    places = float(means.mean()), float(np.sqrt(means.var(ddof=1) + inside))
    return Population(figures.mean(0), covariance, places)


def medium(machine: Machine) -> np.ndarray:
    longer = np.arange(len(machine.u)) > machine.peak
    return longer & (machine.u >= MEDIUM[0]) & (machine.u <= MEDIUM[1])


def posterior(law, population, machine: Machine, rule: str, known: str):
    """Figures and covariance from what is `known`, and the rows that are to be predicted."""
    i = point(machine, rule)
    rows = sorted({i, machine.peak}) if known == "full" else [i]
    places = machine.places[i] if known == "delay" and i > machine.peak else None
    rest = [k for k in range(len(machine.u)) if k not in rows + machine.given]
    return *_posterior(law, population, machine.u[rows], machine.r[rows], places), rest


def missed(law, population, machine: Machine, rule: str, known: str):
    """Errors and their standard deviations, both of ln R, and loads, of all rows not given."""
    figures, covariance, rest = posterior(law, population, machine, rule, known)
    middle, deviation = _predicted(law, figures, covariance, machine.u[rest])
    return middle - np.log(machine.r[rest]), deviation, machine.u[rest]


# --- by the delay of a row, without its bandwidth ----------------------------------------------


def pauses(machine: Machine, overlap: float, rows, lines: float, r) -> np.ndarray:
    """Time of the pauses from one line to the next of a closed system of `lines`, times `lines`.

    The time from one line to the next, `lines`/bandwidth, is made of a pause and a read: their sum
    if one comes after the other, the longer one if they overlap wholly.
    """
    cycle = lines / machine.loaders[rows]
    if np.isinf(overlap):
        return cycle
    return np.maximum(cycle**overlap - r**overlap, (0.05 * cycle) ** overlap) ** (1 / overlap)


def loop(machine: Machine, overlap: float) -> tuple[float, float]:
    """Overhead of a pause [cycles], and by how much a cycle more makes the time from one line to
    the next longer, times lines under way in a full memory [ns]. From the rows of a known machine
    below 60 % of the greatest bandwidth.
    """
    rows = (np.arange(len(machine.u)) > machine.peak) & (machine.u < 0.6)
    lines, delay = machine.r[machine.peak], machine.delay[rows]
    pause = pauses(machine, overlap, rows, lines, machine.r[rows])
    table = np.stack([delay, np.ones(len(delay))], 1) / pause[:, None]
    cycle, constant = np.linalg.lstsq(table, np.ones(len(delay)), rcond=None)[0]
    return constant / cycle, cycle * machine.R0


def by_delay(law, population, machine: Machine, rule: str, known: str, overlap, overhead):
    """Errors of ln R and ln B of all rows not given, whose delays are known, not their bandwidths:
    the bandwidth is that at which the closed system needs the latency that the law gives.
    """
    figures, _, rest = posterior(law, population, machine, rule, known)
    i, lines = point(machine, rule), float(law(np.ones(1), figures)[0])
    at_point = float(law(machine.u[[i]], figures)[0])
    cycle = pauses(machine, overlap, i, lines, at_point) / (machine.delay[i] + overhead)
    pause = cycle * np.maximum(machine.delay[rest] + overhead, 1)
    low, high = np.full(len(rest), -30.0), np.zeros(len(rest))
    for _ in range(50):
        middle = (low + high) / 2
        r = law(np.exp(middle), figures)
        between = np.linalg.norm([pause, r], ord=overlap, axis=0)
        more = lines / between + machine.own / r > np.exp(middle)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.log(law(np.exp(high), figures) / machine.r[rest]), high - np.log(machine.u[rest])


def line_through(machine: Machine, rule: str) -> np.ndarray:
    """The baseline: a straight line through idle memory and the point."""
    i = point(machine, rule)
    rest = [k for k in range(len(machine.u)) if k != i and k not in machine.given]
    R = 1 + (machine.r[i] - 1) * machine.u[rest] / machine.u[i]
    return np.log(R / machine.r[rest])


def off(logs) -> np.ndarray:
    return np.abs(np.expm1(logs))


# --- what is written --------------------------------------------------------------------------


def width(law, pairs, known: dict[str, Machine], left: str, rule: str) -> float:
    """Standard deviations that hold 95 % of the rows of the other machines, each predicted without
    itself and without `left`; all machines weigh alike, with and without the delay.
    """
    sizes = []
    for name in known:
        if name != left:
            for figure in ("", "delay"):
                error, deviation, _ = missed(
                    law, pairs[frozenset({name, left} - {""})], known[name], rule, figure
                )
                sizes.append(np.quantile(np.abs(error / deviation), np.linspace(0, 1, 101)))
    return float(np.quantile(np.concatenate(sizes), 0.95))


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def score(errors: dict[str, np.ndarray]) -> str:
    every = np.concatenate(list(errors.values()))
    return f"{percent(every.mean())} | {percent(every.max())}"


def alike(one: str, other: str, known: dict[str, Machine]) -> str:
    """Two machines that a point of medium load hardly tells apart. The worse of two errors is least
    if one figure p is said for both a < b: p/a - 1 = 1 - p/b = (b - a)/(b + a).
    """
    first, second = known[one], known[other]
    i, longer = point(first, RULE), slice(second.peak, None)
    r = np.interp(first.u[i], second.u[longer][::-1], second.r[longer][::-1])
    ends = [m.r[m.peak] for m in (first, second)]
    least = percent(abs(ends[0] - ends[1]) / sum(ends))
    return (
        f"{one} has an idle latency of {first.R0:.1f} ns and a greatest bandwidth of "
        f"{first.B:.0f} GB/s, {other} {second.R0:.1f} ns and {second.B:.0f} GB/s. At "
        f"{percent(first.u[i])} % of it, a read takes {first.r[i]:.2f} times the idle latency on "
        f"{one}, and {r:.2f} times on {other} (between two rows, on a straight line). At the "
        f"greatest bandwidth, it takes {ends[0]:.2f} and {ends[1]:.2f} times the idle latency. "
        f"Whoever predicts the same for both from a point at this load is at least {least} % off "
        "on one of them."
    )


def foretold(known: dict[str, Machine]) -> list[str]:
    """How well the latency at the greatest bandwidth is foretold by least squares of logarithms,
    learned from the other eight machines.
    """
    figures = {}
    for n, m in known.items():
        i = point(m, RULE)
        figures[n] = dict(zip("RBru", np.log([m.R0, m.B, m.r[i] - 1, 1 - m.u[i]]), strict=True))
    words = {"R": "idle latency", "B": "greatest bandwidth", "r": "latency at the point"}
    words |= {"u": "bandwidth at the point"}
    lines = ["| known of the machine | mean | worst |", "|---|---|---|"]
    for names in ("", "R", "B", "RB", "ru", "ruR", "ruB", "ruRB"):
        errors = []
        for left, machine in known.items():
            others = [n for n in known if n != left]
            table = [[1.0, *(figures[n][name] for name in names)] for n in others]
            full = [np.log(known[n].r[known[n].peak]) for n in others]
            slopes = np.linalg.lstsq(np.array(table), np.array(full), rcond=None)[0]
            found = slopes @ [1.0, *(figures[left][name] for name in names)]
            errors.append(off(found - np.log(machine.r[machine.peak])))
        what = ", ".join(words[name] for name in names) or "nothing: the mean of the others"
        lines.append(f"| {what} | {percent(np.mean(errors))} | {percent(np.max(errors))} |")
    return lines


def told(errors) -> str:
    cells = [
        "mean {} %, worst {} %".format(*score(errors[OURS, rule, figure]).split(" | "))
        for rule, figure in ((RULE, ""), (RULE, "delay"), ("100 %", ""), (RULE, "full"))
    ]
    return (
        f"With {OURS}, the law that `memory` uses, the goal is missed from a point at {RULE} "
        f"({cells[0]}), also with the delay of the point ({cells[1]}). It is met on these nine "
        f"machines if the one point is the latency at the greatest bandwidth ({cells[2]}), or with "
        f"this latency as a fourth figure ({cells[3]})."
    )


def delays(known: dict[str, Machine], without: dict[str, Population]) -> list[str]:
    lines = [
        "",
        f"## By the delay of a row: {OURS}",
        "",
        "A row can be asked for by its delay, too. One line comes after another in a time that is "
        "made of a pause (the delay and an overhead) and of a read, whose latency depends on the "
        "bandwidth that follows. The delay of the point tells how long all threads need for a "
        "cycle; the overhead is the mean over the other eight machines.",
        "",
        "| pause and read | given point | mean | worst | mean of B | worst of B "
        "| mean, with the latency at the greatest bandwidth | worst, with this latency |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title, overlap in OVERLAPS.items():
        found = {n: loop(m, overlap) for n, m in known.items()}
        for rule in [r for r in RULES if r != "100 %"]:  # a full memory hides the pauses
            scores = {}
            for figure in ("delay", "full"):
                logs = {}
                for n, machine in known.items():
                    mean = np.mean([found[m][0] for m in known if m != n])
                    logs[n] = by_delay(_law, without[n], machine, rule, figure, overlap, mean)
                scores[figure] = [score({n: off(x[k]) for n, x in logs.items()}) for k in (0, 1)]
            cells = " | ".join([*scores["delay"], scores["full"][0]])
            lines.append(f"| {title} | {rule} | {cells} |")
    overheads, places = np.array(list(found.values())).T
    spread = np.log(places).std(ddof=1)
    return [
        *lines,
        "",
        "The delay does not tell what is missing, the lines under way in a full memory. The "
        f"overhead of a machine is {overheads.min():.0f} to {overheads.max():.0f} cycles. Even if "
        "it were known, lines times the time of a cycle would differ between machines, with a "
        f"standard deviation of {percent(np.expm1(spread))} %, since threads have different "
        "numbers of lines under way at different clocks. The latency of a full memory is in "
        "proportion to the lines. If this latency is known, the bandwidth of a row predicts its "
        "latency better than its delay does.",
        "",
    ]


def report(known: dict[str, Machine]) -> list[str]:
    names = list(known)
    without = {
        (law, n): learned(law, [known[m] for m in names if m != n])
        for law in LAWS.values()
        for n in names
    }
    kinds = [(rule, figure) for rule in RULES for figure in KNOWN]
    logs = {
        (title, *kind): {n: missed(law, without[law, n], known[n], *kind) for n in names}
        for title, law in LAWS.items()
        for kind in kinds
    }
    errors = {key: {n: off(found[n][0]) for n in names} for key, found in logs.items()}
    lines = [
        f"# Latency under load from three figures: {date.today()}",
        "",
        __doc__.split("\n\n")[1].replace("\n", " ").split(" Run by")[0],
        f"The rule of {RULE}, which was fixed first, gives the row whose bandwidth is nearest to "
        f"{RULE} of the greatest one; all other rows are predicted. Goal: mean error 4 %, worst "
        "15 %. Errors are in percent of the measured latency, over all rows of nine machines.",
        "",
        told(errors),
        "",
        "## Laws, side by side",
        "",
        "| law | given point | mean | worst | mean, with delay | worst, with delay "
        "| mean, with the latency at the greatest bandwidth | worst, with this latency |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title in LAWS:
        for rule in RULES:
            cells = " | ".join(score(errors[title, rule, figure]) for figure in KNOWN)
            lines.append(f"| {title} | {rule} | {cells} |")
    for rule in RULES:
        straight = {n: off(line_through(known[n], rule)) for n in names}
        lines.append(
            f"| straight line through idle memory and the point | {rule} | {score(straight)} "
            "| | | | |"
        )
    lines += delays(known, {n: without[_law, n] for n in names})
    lines += [
        f"## {OURS}, a point at {RULE}, machine by machine",
        "",
        "| machine | point [% of bandwidth] | mean | worst | worst at | mean, with delay | worst "
        "| worst at | mean, with the latency at the greatest bandwidth | worst | worst at |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for n in names:
        cells = [n, percent(known[n].u[point(known[n], RULE)])]
        for figure in KNOWN:
            error, u = errors[OURS, RULE, figure][n], logs[OURS, RULE, figure][n][2]
            cells += [percent(error.mean()), percent(error.max()), percent(u[error.argmax()])]
        lines.append(f"| {' | '.join(cells)} |")
    low = [
        np.concatenate([errors[OURS, RULE, f][n][logs[OURS, RULE, f][n][2] < 0.95] for n in names])
        for f in KNOWN
    ]
    below = ", ".join(f"{percent(e.mean())} % (worst {percent(e.max())} %)" for e in low)
    lines += [
        "",
        f"Below 95 % of the greatest bandwidth the mean error is {below}: with three figures, with "
        "the delay, and with the latency at the greatest bandwidth.",
        "",
        "## Intervals",
        "",
        "The width of an interval was learned from the other eight machines, each of them "
        "predicted without itself and without the machine in question. 95 % ought to hold.",
        "",
        "| given point | hold, three figures | hold, with delay | hold, with the latency at the "
        "greatest bandwidth | least of a machine |",
        "|---|---|---|---|---|",
    ]
    pairs = {
        frozenset(pair): learned(_law, [known[m] for m in names if m not in pair])
        for pair in combinations(names, 2)
    }
    for rule in RULES:
        widths = {n: width(_law, pairs, known, n, rule) for n in names}
        held = [
            {n: (np.abs(e / s) <= widths[n]).mean() for n, (e, s, _) in logs[OURS, rule, f].items()}
            for f in KNOWN
        ]
        cells = [f"{100 * np.mean(list(h.values())):.0f} %" for h in held]
        least = min((share, n) for h in held for n, share in h.items())
        lines.append(f"| {rule} | {' | '.join(cells)} | {100 * least[0]:.0f} %, {least[1]} |")
    every = learned(_law, list(known.values()))
    single = {frozenset({n}): without[_law, n] for n in names}
    final = width(_law, single, known, "", RULE)
    return [
        *lines,
        "",
        "## What three figures cannot tell",
        "",
        alike("Haswell", "Denverton", known),
        "",
        alike("Cascade Lake A", "Cascade Lake B", known),
        "",
        "So a law must tell such machines apart to meet 15 % from a point of medium load. Least "
        "squares of logarithms, learned from the other eight machines, cannot: by whichever of the "
        "figures, the latency at the greatest bandwidth is foretold about as badly as by the mean "
        "of the other machines, or worse. Errors are in percent of it:",
        "",
        *foretold(known),
        "",
        NOTES.strip(),
        "",
        "## Constants of nummodel/models/memory.py",
        "",
        "From all nine machines:",
        "",
        "```",
        f"mean {every.mean.round(4).tolist()}",
        f"covariance {every.covariance.round(4).tolist()}",
        f"places {np.round(every.places, 3).tolist()}",
        f"WIDTH {final:.2f}",
        "```",
    ]


if __name__ == "__main__":
    OUTPUT.write_text("\n".join(report(machines())) + "\n")
    print(f"memory: {OUTPUT}")
