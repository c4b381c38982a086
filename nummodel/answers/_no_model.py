"""The answer of `Limits` where no closed system speaks for the measurements: what these show alone,
why no change is predicted, and what to do next.
"""

from typing import Any, NamedTuple

import numpy as np

from nummodel.answers._words import at_last, in_use
from nummodel.nomenclature import show

#: A station that is in use for less than this share, on average, is not the limit.
CLEAR = 0.6
#: Throughputs stay the same within this share, and fall by more than the second.
SAME, FALLEN = 0.05, 0.1
#: Throughputs that stay the same do so while the load grows by this factor.
LONG = 1.5
#: A column is missed alone by this share or more, and by as many times more than any other.
MISSED, ALONE = 0.05, 3.0
#: The largest share that a utilisation can be, with its errors.
MOST = 1.02
#: How an answer begins that has no limit to name.
UNKNOWN = "What limits this system is not known"


def curve(used: Any) -> tuple[str, float, str]:
    """Whether throughput "grows", is "flat" or "falls", or none of them; from which load on; and a
    sentence.
    """
    N = np.unique(used.N)
    X = np.array([used.X[used.N == n].mean() for n in N])
    x, y, top = used.x, used.y, int(X.argmax())
    if len(N) > 2 and X[-1] < (1 - FALLEN) * X[top]:
        by = show(round(1 - X[-1] / X[top], 2), "%")
        ends = f"from {show(float(f'{X[top]:.3g}'))} to {show(float(f'{X[-1]:.3g}'))}"
        return (
            "falls",
            N[top],
            f"{UNKNOWN}: {y} falls by {by} from {x} = {show(N[top])} on, {ends} {at_last(used)}",
        )
    for i in range(len(N) - 1):
        if N[-1] >= LONG * N[i] and X[i:].max() <= (1 + SAME) * X[i:].min():
            most = show(float(f"{X[i:].mean():.3g}"))
            return "flat", N[i], f"{UNKNOWN}: {y} stays at about {most} from {x} = {show(N[i])} on"
    if len(N) > 2 and X[-1] > (1 + SAME) * X[-2]:
        said = f"{y} still grows {at_last(used)}, and what will limit it is not known"
        return "grows", N[-1], said
    return "", N[-1], "These measurements do not tell what limits the system"


class Missed(NamedTuple):
    """The one column that a system misses, whether at "all" loads or only at "low" ones, and by how
    much, in words.
    """

    name: str = ""
    where: str = ""
    much: str = ""


def alone(found: Any) -> Missed:
    """The one column that the system misses, if there is one."""
    if not found.study.measured or found.study.chosen == "closed":
        return Missed()
    table = found.beside()
    off = {n: table[f"{n}, off"].abs() for n in found.fit.results}
    worst = {n: float(v.max()) for n, v in off.items()}
    name, *rest = sorted(worst, key=worst.__getitem__, reverse=True)
    if worst[name] < max([MISSED, *(ALONE * worst[n] for n in rest)]):
        return Missed()
    signed, high = table[f"{name}, off"], table["N"] > table["N"].median()
    much = f"by up to {show(round(worst[name], 2), '%')}"
    if ALONE * off[name][high].max() <= worst[name]:
        return Missed(name, "low", f"{much}, and only at low loads")
    if np.ptp(signed.dropna()) <= abs(signed.mean()):
        much = f"by about {show(round(abs(signed.mean()), 2), '%')} at all loads"
        return Missed(name, "all", much)
    return Missed(name, "", much)


def answer(found: Any) -> str:
    """What the measurements show without a model, why no model speaks for them, what to do."""
    used, why = found.study.used, found.unmet.rstrip(".").partition(": the best one")[0]
    shape, since, seen = curve(used)
    missed = alone(found)
    shares = {n: in_use(found, n[2:]) for n in used.others if n.startswith("U_")}
    busy = {n: share for n, share in shares.items() if share <= MOST}
    low = bool(busy) and len(busy) == len(shares) and max(busy.values()) < CLEAR
    said = [seen]
    if busy:
        most = max(busy, key=busy.__getitem__)
        much = f"{most} was {show(busy[most], '%')} {at_last(used)}"
        first, last = (
            float(np.mean((used.others[most] / used.X)[used.N == N])) for N in (since, used.N.max())
        )
        if shape == "falls" and last > LONG * first > 0:
            times = f"{show(float(f'{last / first:.2g}'))} times as much of it as at"
            said.append(f"{much}, and a transaction took {times} {used.x} = {show(since)}")
        elif low and shape in ("flat", "falls"):
            said.append(
                f"{much}: a resource whose use is below {show(CLEAR, '%')} on average is not the "
                "limit, unless one of its servers is full while the others idle"
            )
        else:
            said.append(f"{much}, but that alone does not prove that it is the limit")
    why_not = why
    if missed.name not in ("", "X"):
        why_not += f"; the best one misses only {missed.name}, {missed.much}"
    said.append(f"What a change would bring is not known: {why_not}")
    then = "measure response times and the utilisation of each resource in the same runs as X, "
    then += "in columns R (in seconds), U_cpu and U_disk (shares of 1), and c_cpu (processors)"
    if missed.where == "all":
        servers = f" and c_{missed.name[2:]}" if missed.name[0] == "U" else ""
        then = f"check the unit of {missed.name}{servers}, and what else it counts"
    elif found.rejected and found.study.shared and len(busy) == len(shares):
        then = "stop what else runs on the machine, and measure again"
    elif shape == "falls":
        then = f"find out what changes from {used.x} = {show(since)} on, as waiters that spin, "
        then += "retries or swapping, and allow no more at once until then"
    elif low and shape == "flat" and not found.study.notes:
        then = "find out what requests wait for: a lock, a pool of connections, a rate "
        then += "limit or a service elsewhere"
    elif missed.where == "low" and missed.name[0] == "U":
        then = f"measure {missed.name} without any load, and with more decimals"
    elif shares or "R" in used.others:
        then = "check the units of all columns, the numbers of servers, and what else was running"
    return ". ".join([*said, f"What to do next: {then}."])
