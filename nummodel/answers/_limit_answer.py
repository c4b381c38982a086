"""The answer of `Limits` in words: what limits, how sure that is, what to do next, and what it
would bring, in four sentences at most.

`found` is a `Limits`, and a gain is a `Gain`: both are in the room above, which calls this one.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits._closed import NEAR, farthest
from nummodel.nomenclature import show

#: A gain is worth a change if the lower end of its interval is at least this share.
WORTH = 0.01
#: From this share of the refits on, errors of measurement leave no doubt what limits.
SURE, LIKELY = 0.99, 0.9
#: A station limits where it is in use for this share of the time, and it is full at the second.
FULL, FULLY = 0.9, 0.95
#: A station that is in use for less than this share, on average, is not the limit.
CLEAR = 0.6
#: Throughputs stay the same within this share, and fall by more than the second.
SAME, FALLEN = 0.05, 0.1
#: Throughputs that stay the same do so while the load grows by this factor.
LONG = 1.5
#: A column is missed alone by this share or more, and by as many times more than any other.
MISSED, ALONE = 0.05, 3.0
#: Gains that differ by less are the same.
ALIKE = 0.005
#: The largest share that a utilisation can be, with its errors.
MOST = 1.02
#: How an answer begins that has no limit to name.
UNKNOWN = "What limits this system is not known"
#: What is done to a station, for a gain by twice as many of its servers and by half its demand.
WORDS = {
    "cpu": ("twice as many processors", "half the processor time of a transaction"),
    "lock": ("splitting the lock in two", "holding the lock half as long"),
}
#: The same of a station that was not measured.
UNMEASURED = {
    "cpu": ("twice as many servers", "half the time a request spends there"),
    "lock": (
        "twice as much of what was not measured",
        "half the time spent at what was not measured",
    ),
}
#: What a station may be that was not measured.
HIDDEN = {
    "cpu": "the processors, a pool of connections or several disks",
    "lock": "a lock, a pool of connections or a service elsewhere",
    "computes": "a lock that is held while its holder computes, for which it needs a processor",
}


def answer(found: Any) -> str:
    """What the measurements say; where no closed system explains them, what they show alone."""
    if found.unmet:
        return _unmet(found)
    first, hidden = found.stations[0], _hidden(found, found.stations[0])
    how, against = _verdict(found)
    said = [_what(found, how), _how_sure(found, how, against)]
    best = max(found.gains[::2], key=lambda gain: gain.gain)
    if found.unused:
        return ". ".join([*said, f"{_more(found)}."])
    if how == "open" and (full := _full(found)):
        return ". ".join([*said, _either(found, full), f"{_more(found)}."])
    if best.low < WORTH:
        return ". ".join([*said, _nothing(found, best), f"{_more(found)}."])
    if _knee(found) > found.study.used.N.max():
        best = max(found.gains[1::2], key=lambda gain: gain.gain)
    brings = _brings(found, best)
    if hidden:
        others = [gain for gain in found.gains[::2] if gain.station != first]
        other = _brings(found, max(others, key=lambda gain: gain.high))
        said.append(f"What to do next: find out what requests wait for; {brings}")
        return ". ".join([*said, f"{other[0].upper()}{other[1:]}."])
    if how == "open":
        return ". ".join([*said, f"{_more(found)}. {brings[0].upper()}{brings[1:]}."])
    times = found.face.times()
    times[best.station] /= 2
    after = max(times, key=times.__getitem__)
    then = float(found.face.at(best.N)) * (1 + best.gain)
    if after != best.station and then * times[after] >= FULL:
        brings += f", and not more because {named(found, after)} would limit then"
    return ". ".join([*said, f"What to do next: {brings}. Then measure again."])


def _hidden(found: Any, name: str) -> bool:
    """Whether a station stands for what was not measured: the lock for whatever one request has at
    a time, and the processors, without their utilisation, for whatever has several places.
    """
    return name in ("lock", "cpu") and f"U_{name}" not in found.study.measured


def _verdict(found: Any) -> tuple[str, list[str]]:
    """Whether it is sure, likely or open that the first station limits; and why not sure."""
    study, (first, *rest) = found.study, found.stations
    shares = {n: _in_use(found, n[2:]) for n in study.measured if n != "R"}
    full = shares.get(f"U_{first}", 0.0) >= FULLY
    only = full and all(shares.get(f"U_{n}", 0.0) < FULL for n in rest)
    cautions = study.cautions
    if found.rejected:
        much = show(float(f"{farthest(found.face):.1g}"), "%")
        cautions = [f"a test rejects the model, which is up to {much} off"]
    if not found.limit and not only:
        times = sorted(found.face.times().values())
        apart = f"the two differ by {show(round(times[-1] / times[-2] - 1, 2), '%')} only"
        if times[-2] > NEAR * times[-1]:
            return "open", [f"{apart}, and a model may be wrong by as much", *cautions]
        return "open", ["other stations fit nearly as well", *cautions]
    against = []
    if not found.limit:
        against.append(f"the model does not exclude {named(found, rest[0])}")
    if found.sureness < SURE:
        against.append(f"{show(1 - found.sureness, '%')} of the refits name another limit")
    if found.sureness < LIKELY:
        return "open", against
    if "c_lock" in found.face.free:
        alike = "a lock beside a delay that nobody measured, or too low a U_cpu"
        against.append(f"{alike}, makes the same curves as a pool")
    used = shares.get(f"U_{first}", 1.0)
    if used < FULL:
        against.append(f"it was {show(used, '%')} in use at most, so another limit may come first")
    if _hidden(found, first) and "U_cpu" not in shares:
        against.append("the processors were not measured, and requests may wait for them")
    elif _hidden(found, first) and max(shares.values()) >= CLEAR:
        busy = max(shares, key=shares.__getitem__)
        against.append(
            f"{busy} was {show(shares[busy], '%')}, so part of this may be a wait for it"
        )
    if len(study.measured) < 2:
        against.append(f"only {', '.join(study.measured)} was measured beside {study.used.y}")
    against += cautions if found.rejected or not full else []
    return "likely" if against else "sure", against


def _curve(used: Any) -> tuple[str, float, str]:
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
            f"{UNKNOWN}: {y} falls by {by} from {x} = {show(N[top])} on, {ends} {_last(used)}",
        )
    for i in range(len(N) - 1):
        if N[-1] >= LONG * N[i] and X[i:].max() <= (1 + SAME) * X[i:].min():
            most = show(float(f"{X[i:].mean():.3g}"))
            return "flat", N[i], f"{UNKNOWN}: {y} stays at about {most} from {x} = {show(N[i])} on"
    if len(N) > 2 and X[-1] > (1 + SAME) * X[-2]:
        said = f"{y} still grows {_last(used)}, and what will limit it is not known"
        return "grows", N[-1], said
    return "", N[-1], "These measurements do not tell what limits the system"


class Missed(NamedTuple):
    """The one column that a system misses, whether "all" loads or only "low" ones, and in words."""

    name: str = ""
    where: str = ""
    said: str = ""


def _alone(found: Any) -> Missed:
    """The one column that the system misses, if there is one."""
    if not found.study.measured or found.study.chosen == "closed":
        return Missed()
    table = found.beside()
    off = {n: table[f"{n}, off"].abs() for n in ("X", *found.face.others)}
    worst = {n: float(v.max()) for n, v in off.items()}
    name, *rest = sorted(worst, key=worst.__getitem__, reverse=True)
    if worst[name] < max([MISSED, *(ALONE * worst[n] for n in rest)]):
        return Missed()
    signed, high = table[f"{name}, off"], table["N"] > table["N"].median()
    said = f"the best one misses only {name}"
    if ALONE * off[name][high].max() <= worst[name]:
        return Missed(name, "low", f"{said}, and only at low loads")
    if np.ptp(signed.dropna()) <= abs(signed.mean()):
        much = show(round(abs(signed.mean()), 2), "%")
        return Missed(name, "all", f"{said}, by about {much} at all loads")
    return Missed(name, "", f"{said}, by up to {show(round(worst[name], 2), '%')}")


def _unmet(found: Any) -> str:
    """What the measurements show without a model, why no model speaks for them, what to do."""
    used, why = found.study.used, found.unmet.rstrip(".").partition(": the best one")[0]
    shape, since, seen = _curve(used)
    missed = _alone(found)
    shares = {n: _in_use(found, n[2:]) for n in used.others if n.startswith("U_")}
    busy = {n: share for n, share in shares.items() if share <= MOST}
    low = bool(busy) and len(busy) == len(shares) and max(busy.values()) < CLEAR
    said = [seen]
    if busy:
        most = max(busy, key=busy.__getitem__)
        much = f"{most} was {show(busy[most], '%')} {_last(used)}"
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
    why_not = f"{why}; {missed.said}" if missed.name not in ("", "X") else why
    said.append(f"What a change would bring is not known: {why_not}")
    then = "measure response times and the utilisation of each resource in the same runs as X, "
    then += "in columns R (in seconds), U_cpu and U_disk (shares of 1), and c_cpu (processors)"
    if missed.where == "all":
        servers = f" and c_{missed.name[2:]}" if missed.name[0] == "U" else ""
        then = f"check the unit of {missed.name}{servers}, and what else it counts"
    elif "other programs" in why and len(busy) == len(shares):
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


def _knee(found: Any) -> float:
    """The users from whom on the first station is full, if they never wait before."""
    values = found.face.values
    all_of_it = sum(v for n, v in values.items() if n[0] in "DZ")
    return float(found.full_at(found.stations[0])[0] * all_of_it)


def _what(found: Any, how: str) -> str:
    """The station that limits and the next one, or that it is open which of them does."""
    (first, second, *_), used = found.stations, found.study.used
    if how == "open" and (full := _full(found)):
        other = next(n for n in (first, second) if n != full)
        what = f"The limit of this system is probably {named(found, full)}, "
        what += f"which {_most(found, full)} and was {show(_in_use(found, full), '%')} in use "
        beside = f"if the model holds, {named(found, other)} allows no more either"
        return f"{what}{_last(used)}; {beside}: {_most(found, other, short=True)}"
    if how == "open":
        both = f"{named(found, first)} {_most(found, first)}"
        return f"It is open what limits this system: {both}, {named(found, second)} " + _most(
            found, second, short=True
        )
    probably = "probably " * (how == "likely")
    told = _hidden(found, second) or f"U_{second}" in found.study.measured
    next_one = f"{named(found, second)} allows {_most(found, second, short=True)}"
    if _hidden(found, first):
        perhaps = HIDDEN["computes" if found.system.computes else first]
        if f"c_{first}" in found.face.free and first == "lock":
            places = show(float(f"{found.servers(first):.2g}"))
            perhaps = f"a pool that serves about {places} requests at a time"
        what = f"Something that was not measured {probably}limits this system, perhaps {perhaps}: "
        what += f"it {_most(found, first)}"
        return f"{what}, while {next_one}" if told else what
    what = f"The limit of this system is {probably}{named(found, first)}, "
    if f"c_{first}" in found.face.free:
        what += f"as if it had {show(float(f'{found.servers(first):.2g}'))} servers, "
    what += f"which {_most(found, first)}"
    if (knee := _knee(found)) > used.N.max():
        what += f", from about {used.x} = {show(float(f'{knee:.2g}'))} on"
    if not np.isfinite(found.full_at(second)[0]):
        return f"{what}; no other limit shows in the measurements"
    return f"{what}; the next limit is {next_one.replace(' allows ', ', which allows ', 1)}"


def _full(found: Any) -> str:
    """Of the first two stations, the one that was measured and is full, if the other was not
    measured: that is only concluded from the curves, and the measurement counts for more.
    """
    first, second, *_ = found.stations
    for one, other in ((first, second), (second, first)):
        measured = f"U_{one}" in found.study.measured
        if measured and _hidden(found, other) and _in_use(found, one) >= FULLY:
            return one
    return ""


def _either(found: Any, full: str) -> str:
    """What a change of the full station brings, and what it would without what was not measured."""
    gain = next(g for g in found.gains if g.station == full)
    hidden = next(n for n in found.stations[:2] if n != full)
    alone = found.more({**found.face.values, f"D_{hidden}": 0.0}, full, "twice", gain.N)
    said = _brings(found, gain)
    without = f"{show(round(float(alone), 2), '%')} if {named(found, hidden)} is no limit"
    return f"{said[0].upper()}{said[1:]}, and {without}"


def named(found: Any, name: str) -> str:
    """A station in words."""
    if name == "cpu" and _hidden(found, name):
        return "an unmeasured resource with several servers"
    if name == "cpu":
        return "the processor capacity"
    if re.match(r"(sd|hd|vd|xvd|nvme|mmcblk|dm_|md)\w", name):
        return f"the disk {name}"
    return "what was not measured" if _hidden(found, name) else f"the {name}"


def _in_use(found: Any, name: str) -> float:
    """The measured utilisation of a station at the last load."""
    used = found.study.used
    return float(np.mean(used.others[f"U_{name}"][used.N == used.N.max()]))


def _last(used: Any) -> str:
    return f"at {used.x} = {show(used.N.max())}"


def _most(found: Any, name: str, short: bool = False) -> str:
    """The throughput at which a station is full, with its interval if it is one."""
    value, ends = found.full_at(name)
    if not np.isfinite(value):
        return "any load, as it takes hardly any time" if short else "takes hardly any time"
    # Three digits, as more would be below the errors.
    most, *between = (float(f"{x:.3g}") if np.isfinite(x) else None for x in (value, *ends))
    level = f"{100 * found.study.level:.15g} % interval: "
    interval = f" ({'' if short else level}{show(between)})" if between[0] != between[1] else ""
    return f"{'' if short else f'allows {found.study.used.y} = '}{show(most)}{interval}"


def _how_sure(found: Any, how: str, against: list[str]) -> str:
    """How sure it is, with what speaks for it and against it."""
    first, but = found.stations[0], "; ".join(against)
    if how == "open":
        begins = "That is not sure" if _full(found) else "The measurements do not settle this"
        return f"{begins}: {but}"
    same = (
        f"{show(found.sureness, '%')} of simulated repetitions of the measurements have this limit"
    )
    if f"U_{first}" in found.study.measured:
        same += f", and U_{first} was {show(_in_use(found, first), '%')} {_last(found.study.used)}"
    if how == "sure":
        return (
            f"That is sure if the model of users and resources holds, which no test rejects: {same}"
        )
    return f"That is likely, not sure: {same}; but {but}"


def _more(found: Any) -> str:
    """What to do to know more: what of the file was not used, what was not measured where
    throughput grows no more, and higher loads.
    """
    used = found.study.used
    if found.unused:
        return f"What to do next: mend the file, in which {'; '.join(found.unused)}"
    full = any(_in_use(found, n[2:]) >= FULLY for n in found.study.measured if n != "R")
    if _curve(used)[0] in ("grows", "") and not full:
        more = show(2 * used.N.max())
        return f"What to do next: measure at higher loads, up to {used.x} = {more}"
    unseen = [n for n in found.stations[:2] if f"U_{n}" not in found.study.measured]
    if not unseen:
        return "What to do next: repeat the highest loads, so that the errors become smaller"
    if _hidden(found, unseen[0]):
        return "What to do next: find out what requests wait for besides the measured resources"
    return f"What to do next: measure the utilisation of {named(found, unseen[0])}"


def words(found: Any, name: str) -> tuple[str, str]:
    """Both changes of a station: twice as many of its servers, and half its demand."""
    if _hidden(found, name):
        return UNMEASURED[name]
    several = f"twice as many servers at {name}"
    second = f"a second {name}" if found.servers(name) == 1 else several
    return WORDS.get(name, (second, f"half the time at the {name} (faster, or used less)"))


def _change(found: Any, gain: Any) -> str:
    """A change in words; both changes of its station, if they bring the same."""
    both = [g for g in found.gains if (g.station, g.N) == (gain.station, gain.N)]
    each = zip(both, words(found, gain.station), strict=True)
    return " or ".join(said for g, said in each if abs(g.gain - gain.gain) < ALIKE)


def _brings(found: Any, gain: Any) -> str:
    y, change = found.study.used.y, _change(found, gain)
    where = f"at {found.study.used.x} = {show(gain.N)}"
    if gain.high < ALIKE:
        return f"{change} would bring nothing {where}"
    most = "at most " * _hidden(found, gain.station)
    return f"{change} would bring {most}{_percent(gain, most)} more {y} {where}"


def _percent(gain: Any, most: str = "") -> str:
    """The interval of a gain, or its end, in whole percent where that is two digits or more."""
    ends = [round(end, 2 if abs(end) >= 0.1 else 3) for end in (gain.low, gain.high)]
    return show(ends if ends[0] < ends[1] and not most else ends[1], "%")


def _nothing(found: Any, best: Any) -> str:
    """That nothing is sure to help; what would at twice the load, if that is sure."""
    said = f"No change of one station is sure to bring {show(WORTH, '%')} {_last(found.study.used)}"
    later = found.gains[found.gains.index(best) + 1]
    if later.low < WORTH:
        return said
    where = f"{found.study.used.x} = {show(later.N)}"
    return f"{said}; at {where}, {_change(found, best)} would bring {_percent(later)} more"
