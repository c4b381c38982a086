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
SURE = 0.99
#: Gains that differ by less are the same.
ALIKE = 0.005
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
    hidden = first == "lock" and "U_lock" not in found.study.measured
    best = max(found.gains[::2], key=lambda gain: gain.gain)
    said = [_what(found, hidden), _how_sure(found, first)]
    if best.low < WORTH:
        return ". ".join([*said, _nothing(found, best), f"{_more(found)}."])
    if hidden:
        what = "find out what requests wait for, as a disk, a lock or a pool of connections"
        said.append(f"What to do next: {what}; {_brings(found, best)}")
        others = [gain for gain in found.gains[::2] if gain.station != first]
        other = _brings(found, max(others, key=lambda gain: gain.high))
        return ". ".join([*said, f"{other[0].upper()}{other[1:]}."])
    said.append(f"What to do next: {_brings(found, best)}, if all else stays as it is")
    if not found.study.limit:
        return ". ".join([*said, f"{_more(found)}."])
    times = found.face.times()
    times[best.station] /= 2
    after = max(times, key=times.__getitem__)
    return ". ".join([*said, f"Then measure again, since after this change {after} is the limit."])


def _unmet(found: Any) -> str:
    used, why = found.study.used, found.unmet.rstrip(".")
    nothing = "So nothing is told of what a change would bring"
    busy = {n: _in_use(found, n[2:]) for n in used.others if n.startswith("U_")}
    if busy:
        most = max(busy, key=busy.__getitem__)
        nothing += f", although {most} was {show(busy[most], '%')} {_last(found)}"
    then = "measure response times and the utilisation of each resource in the same runs as X"
    if "work of others" in why:
        then = "stop what else runs on the machine, and measure again"
    elif busy or "R" in used.others:
        then = "check the units of all columns, the numbers of servers, and what else was running"
    said = [f"These measurements do not tell what limits the system: {why}", nothing]
    return ". ".join([*said, f"What to do next: {then}."])


def _what(found: Any, hidden: bool) -> str:
    """The station that limits and the next one, or that it is open which of them does."""
    first, second = found.stations[:2]
    if not found.study.limit:
        which = f"It is open whether {_named(first)} or {_named(second)} limits this system"
        return f"{which}: {first} {_most(found, first)}, {second} {_most(found, second)}"
    what = f"The limit of this system is {_named(first)}"
    if hidden:
        what = "The limit of this system is something that was not measured, called lock here"
    return f"{what}: it {_most(found, first)}; the next limit, {second}, {_most(found, second)}"


def _named(name: str) -> str:
    return "the processors (cpu)" if name == "cpu" else name


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
    return f"allows {found.study.used.y} = {show(most)} at most ({level}: {show(between)})"


def _how_sure(found: Any, first: str) -> str:
    sure = found.sureness
    how = "sure" if sure >= SURE else "likely" if found.study.limit else "not sure"
    said = f"This is {how} as far as errors of measurement go: with other errors of the same size, "
    said += f"{first} would still be the limit in {show(sure, '%')} of cases"
    if f"U_{first}" in found.study.measured:
        said += f", and {show(_in_use(found, first), '%')} of {first} was in use {_last(found)}"
    return said


def _more(found: Any) -> str:
    """What to do to know more: what of the file was not used, and higher loads."""
    unused = [text for text in found.study.used.warnings if " is not used: " in text]
    if unused:
        return f"What to do next: mend the file, of which {'; '.join(unused)}"
    more = show(2 * found.study.used.N.max())
    return f"What to do next: measure at higher loads, up to {found.study.used.x} = {more}"


def _change(found: Any, gain: Any) -> str:
    """A change in words; both changes of its station, if they bring the same."""
    name = gain.station
    second = f"a second {name}" if found.servers(name) == 1 else f"twice as many servers at {name}"
    words = WORDS.get(name, (second, f"half the time at {name} of a transaction"))
    both = [g for g in found.gains[::2] if g.station == name]
    alike = [w for g, w in zip(both, words, strict=True) if abs(g.gain - gain.gain) < ALIKE]
    return " or ".join(alike)


def _brings(found: Any, gain: Any) -> str:
    more = f"{show([gain.low, gain.high], '%')} more" if gain.high >= ALIKE else "no more"
    return f"{_change(found, gain)} would bring {more} {found.study.used.y} {_last(found)}"


def _nothing(found: Any, best: Any) -> str:
    """That nothing is sure to help; what would at twice the load, if that is sure."""
    said = f"No change of one station is sure to bring {show(WORTH, '%')} {_last(found)}"
    later = found.gains[found.gains.index(best) + 1]
    if later.low < WORTH:
        return said
    more, where = show([later.low, later.high], "%"), f"{found.study.used.x} = {show(later.N)}"
    return f"{said}; at {where}, {_change(found, best)} would bring {more} more"
