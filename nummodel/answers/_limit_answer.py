"""The answer of `Limits` in words: what limits, how sure that is, what to do next, and what it
would bring, in four sentences at most.

`found` is a `Limits`, and a gain is a `Gain`: both are in the room above, which calls this one.
"""

from typing import Any

import numpy as np

from nummodel.nomenclature import show

#: A gain is worth a change if the lower end of its interval is at least this share.
WORTH = 0.01
#: From this share of the refits on, errors of measurement leave no doubt what limits.
SURE, LIKELY = 0.99, 0.9
#: A station limits where it is in use for this share of the time.
FULL = 0.9
#: Gains that differ by less are the same.
ALIKE = 0.005
#: The largest share that a utilisation can be, with its errors.
MOST = 1.02
#: What is done to a station, for a gain by twice as many of its servers and by half its demand.
WORDS = {
    "cpu": ("twice as many processors", "half the processor time of a transaction"),
    "lock": ("splitting the lock in two", "holding the lock half as long"),
}


def answer(found: Any) -> str:
    """What the measurements say; where no closed system explains them, that."""
    if found.unmet:
        return _unmet(found)
    first = found.stations[0]
    hidden = _hidden(found, first)
    best = max(found.gains[::2], key=lambda gain: gain.gain)
    said = [_what(found, first, hidden), _how_sure(found, first, hidden)]
    if found.unused:
        return ". ".join([*said, f"{_more(found)}."])
    if best.low < WORTH:
        return ". ".join([*said, _nothing(found, best), f"{_more(found)}."])
    if hidden:
        others = [gain for gain in found.gains[::2] if gain.station != first]
        other = _brings(found, max(others, key=lambda gain: gain.high))
        said.append(f"What to do next: find out what requests wait for; {_brings(found, best)}")
        return ". ".join([*said, f"{other[0].upper()}{other[1:]}."])
    brings = _brings(found, best)
    if not found.study.limit:
        return ". ".join([*said, f"{_more(found)}. {brings[0].upper()}{brings[1:]}."])
    times = found.face.times()
    times[best.station] /= 2
    after = max(times, key=times.__getitem__)
    then = float(found.face.at(best.N)) * (1 + best.gain)
    if after != best.station and then * times[after] >= FULL:
        brings += f", and not more because {named(found, after)} would limit then"
    return ". ".join([*said, f"What to do next: {brings}. Then measure again."])


def _hidden(found: Any, name: str) -> bool:
    """Whether a station is the one that stands for everything that was not measured."""
    return name == "lock" and "U_lock" not in found.study.measured


def _unmet(found: Any) -> str:
    used, why = found.study.used, found.unmet.rstrip(".")
    said = [
        "These measurements do not tell what limits the system, or what a change would bring",
        f"The reason: {why}",
    ]
    shares = {n: _in_use(found, n[2:]) for n in used.others if n.startswith("U_")}
    busy = {n: share for n, share in shares.items() if share <= MOST}
    if busy:
        most = max(busy, key=busy.__getitem__)
        much = f"{most} was {show(busy[most], '%')} {_last(found)}"
        said.append(f"{much}, but that alone does not prove that it is the limit")
    then = "measure response times and the utilisation of each resource in the same runs as X, "
    then += "in columns R (in seconds), U_cpu and U_disk (shares of 1), and c_cpu (processors)"
    if "other programs" in why and len(busy) == len(shares):
        then = "stop what else runs on the machine, and measure again"
    elif shares or "R" in used.others:
        then = "check the units of all columns, the numbers of servers, and what else was running"
    return ". ".join([*said, f"What to do next: {then}."])


def _what(found: Any, first: str, hidden: bool) -> str:
    """The station that limits and the next one, or that it is open which of them does."""
    second = found.stations[1]
    next_one = f"{named(found, second)} {_most(found, second)}"
    if not found.study.limit:
        which = f"It is open whether {named(found, first)} or {named(found, second)} limits"
        return f"{which} this system: {named(found, first)} {_most(found, first)}, {next_one}"
    if hidden:
        what = "Something that was not measured limits this system, perhaps a lock, a pool of "
        what += f"connections or a service elsewhere: it {_most(found, first)}"
        return f"{what}, while {next_one}"
    what = f"The limit of this system is {named(found, first)}, which {_most(found, first)}"
    if not np.isfinite(found.full_at(second)[0]):
        return f"{what}; no other limit shows in the measurements"
    return f"{what}; the next limit is {next_one.replace(' allows ', ', which allows ', 1)}"


def named(found: Any, name: str) -> str:
    if name == "cpu":
        return "the processor capacity"
    return "what was not measured" if _hidden(found, name) else f"the {name}"


def _in_use(found: Any, name: str) -> float:
    """The measured utilisation of a station at the last load."""
    used = found.study.used
    return float(np.mean(used.others[f"U_{name}"][used.N == used.N.max()]))


def _last(found: Any) -> str:
    return f"at {found.study.used.x} = {show(found.study.used.N.max())}"


def _most(found: Any, name: str) -> str:
    value, ends = found.full_at(name)
    if not np.isfinite(value):
        return "takes hardly any time"
    # Three digits, as more would be below the errors.
    most, *between = (float(f"{x:.3g}") if np.isfinite(x) else None for x in (value, *ends))
    level = f"{100 * found.study.level:.15g} % interval"
    return f"allows {found.study.used.y} = {show(most)} on average ({level}: {show(between)})"


def _how_sure(found: Any, first: str, hidden: bool) -> str:
    sure, doubts = found.sureness, found.study.cautions
    how = "likely" if sure >= LIKELY else "open"
    if sure >= SURE and found.study.limit and not doubts:
        how = "sure"
    what = (
        "none of the measured resources is the limit" if hidden else f"{named(found, first)} limits"
    )
    said = f"It is {how} {'whether' if how == 'open' else 'that'} {what}, as long as the model of "
    said += f"users and resources holds, which no test rejects: in {show(sure, '%')} of its "
    said += "repetitions, with other random errors of the same size, the limit is the same"
    if f"U_{first}" in found.study.measured:
        said += f"; U_{first} was {show(_in_use(found, first), '%')} {_last(found)}"
    return f"{said}; but {'; '.join(doubts)}" if doubts else said


def _more(found: Any) -> str:
    """What to do to know more: what of the file was not used, and higher loads."""
    if found.unused:
        return f"What to do next: mend the file, in which {'; '.join(found.unused)}"
    more = show(2 * found.study.used.N.max())
    return f"What to do next: measure at higher loads, up to {found.study.used.x} = {more}"


def words(found: Any, name: str) -> tuple[str, str]:
    """Both changes of a station: twice as many of its servers, and half its demand."""
    if _hidden(found, name):
        return "two of what was not measured", "half the time spent at what was not measured"
    several = f"twice as many servers at {name}"
    second = f"a second {name}" if found.servers(name) == 1 else several
    return WORDS.get(name, (second, f"half the time of a transaction at the {name}"))


def _change(found: Any, gain: Any) -> str:
    """A change in words; both changes of its station, if they bring the same."""
    both = [g for g in found.gains[::2] if g.station == gain.station]
    each = zip(both, words(found, gain.station), strict=True)
    return " or ".join(said for g, said in each if abs(g.gain - gain.gain) < ALIKE)


def _brings(found: Any, gain: Any) -> str:
    y, change = found.study.used.y, _change(found, gain)
    if gain.high < ALIKE:
        return f"{change} would bring nothing {_last(found)}"
    return f"{change} would bring {_percent(gain)} more {y} {_last(found)}"


def _percent(gain: Any) -> str:
    """The interval of a gain, in whole percent where that is two digits or more."""
    ends = [round(end, 2 if abs(end) >= 0.1 else 3) for end in (gain.low, gain.high)]
    return show(ends if ends[0] < ends[1] else ends[0], "%")


def _nothing(found: Any, best: Any) -> str:
    """That nothing is sure to help; what would at twice the load, if that is sure."""
    said = f"No change of one station is sure to bring {show(WORTH, '%')} {_last(found)}"
    later = found.gains[found.gains.index(best) + 1]
    if later.low < WORTH:
        return said
    where = f"{found.study.used.x} = {show(later.N)}"
    return f"{said}; at {where}, {_change(found, best)} would bring {_percent(later)} more"
