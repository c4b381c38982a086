"""The answer of `Limits` in words: what limits, how sure that is, what to do next, and what it
would bring, in four sentences at most.

`found` is a `Limits`, and a gain is a `Gain`: both are in the module `limits`, which calls this
one.
"""

from typing import Any

import numpy as np

from nummodel.answers import _no_model
from nummodel.answers._no_model import CLEAR, curve
from nummodel.answers._words import allows, at_last, in_use, is_hidden, is_pool, named, words
from nummodel.answers.bottleneck import NEAR, farthest
from nummodel.answers.full import FULL
from nummodel.fits import closed
from nummodel.nomenclature import show

#: A response time is told if it falls by this share or more.
FALLS = 0.05
#: A gain is worth a change if the lower end of its interval is at least this share.
WORTH = 0.01
#: From this share of the refits on, errors of measurement leave no doubt what limits.
SURE, LIKELY = 0.99, 0.9
#: A station is certainly full if this share of its servers is in use.
FULLY = 0.95
#: Gains that differ by less are the same.
ALIKE = 0.005
#: What a station may be that was not measured.
HIDDEN = {
    "cpu": "the processors, a pool of connections or several disks",
    "lock": "a lock, a pool of connections or a service elsewhere",
    "computes": "a lock that is held while its holder computes, for which it needs a processor",
}


def answer(found: Any) -> str:
    """What the measurements say; where no closed system explains them, what they show alone."""
    if found.unmet:
        return _no_model.answer(found)
    first, hidden = found.stations[0], is_hidden(found, found.stations[0])
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
        if is_pool(found):
            other += ", if it is a pool"
        said.append(f"What to do next: find out what requests wait for; {brings}")
        return ". ".join([*said, f"{other[0].upper()}{other[1:]}."])
    if how == "open":
        return ". ".join([*said, f"{_more(found)}. {brings[0].upper()}{brings[1:]}."])
    times = closed.times(found.fit)
    times[best.station] /= 2
    after = max(times, key=times.__getitem__)
    then = float(found.fit.at(best.N)) * (1 + best.gain)
    if after != best.station and then * times[after] >= FULL:
        brings += f"; not more, because {named(found, after)} would limit then"
    return ". ".join([*said, f"What to do next: {brings}. Then measure again."])


def _verdict(found: Any) -> tuple[str, list[str]]:
    """Whether it is sure, likely or open that the first station limits; and why not sure."""
    study, (first, *rest) = found.study, found.stations
    shares = {n: in_use(found, n[2:]) for n in study.measured if n != "R"}
    full = shares.get(f"U_{first}", 0.0) >= FULLY
    only = full and all(shares.get(f"U_{n}", 0.0) < FULL for n in rest)
    cautions = study.cautions
    if found.rejected:
        much = show(float(f"{farthest(found.fit):.1g}"), "%")
        cautions = [f"a test rejects the model, which is up to {much} off"]
    if not found.limit and not only:
        times = sorted(closed.times(found.fit).values())
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
    if is_pool(found):
        alike = "a lock beside a delay that nobody measured, or too low a U_cpu"
        against.append(f"{alike}, makes the same curves as a pool")
    used = shares.get(f"U_{first}", 1.0)
    if used < FULL:
        against.append(f"it was {show(used, '%')} in use at most, so another limit may come first")
    if is_hidden(found, first) and "U_cpu" not in shares:
        against.append("the processors were not measured, and requests may wait for them")
    elif is_hidden(found, first) and max(shares.values()) >= CLEAR:
        busy = max(shares, key=shares.__getitem__)
        against.append(
            f"{busy} was {show(shares[busy], '%')}, so part of this may be a wait for it"
        )
    if len(study.measured) < 2:
        against.append(f"only {', '.join(study.measured)} was measured beside {study.used.y}")
    if found.left_out:
        against.append(f"no closed system explains {found.left_out} as well")
    against += cautions if found.rejected or not full else []
    return "likely" if against else "sure", against


def _knee(found: Any) -> float:
    """The users from whom on the first station is full, if they never wait before."""
    values = found.fit.values
    all_of_it = sum(v for n, v in values.items() if n[0] in "DZ")
    return float(found.full_at(found.stations[0])[0] * all_of_it)


def _what(found: Any, how: str) -> str:
    """The station that limits and the next one, or that it is open which of them does."""
    (first, second, *_), used = found.stations, found.study.used
    if how == "open" and (full := _full(found)):
        other = next(n for n in (first, second) if n != full)
        what = f"The limit of this system is probably {named(found, full)}, "
        what += f"which {allows(found, full)} and was {show(in_use(found, full), '%')} in use "
        beside = f"if the model holds, {named(found, other)} may allow no more either"
        return f"{what}{at_last(used)}; {beside}: {allows(found, other, short=True)}"
    if how == "open":
        both = f"{named(found, first)} {allows(found, first)}"
        return f"It is open what limits this system: {both}, {named(found, second)} " + allows(
            found, second, short=True
        )
    probably = "probably " * (how == "likely")
    told = is_hidden(found, second) or f"U_{second}" in found.study.measured
    next_one = f"{named(found, second)} allows {allows(found, second, short=True)}"
    if is_hidden(found, first):
        perhaps = HIDDEN["computes" if found.system.computes else first]
        if first == "lock" and is_pool(found):
            places = show(float(f"{found.servers(first):.2g}"))
            perhaps = f"a pool that serves about {places} requests at a time"
        what = f"Something that was not measured {probably}limits this system, perhaps {perhaps}: "
        what += f"it {allows(found, first)}"
        return f"{what}, while {next_one}" if told else what
    what = f"The limit of this system is {probably}{named(found, first)}, "
    if f"c_{first}" in found.fit.free:
        what += f"as if it had {show(float(f'{found.servers(first):.2g}'))} servers, "
    what += f"which {allows(found, first)}"
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
        if measured and is_hidden(found, other) and in_use(found, one) >= FULLY:
            return one
    return ""


def _either(found: Any, full: str) -> str:
    """What a change of the full station brings, and what it would without what was not measured."""
    gain = next(g for g in found.gains if g.station == full)
    hidden = next(n for n in found.stations[:2] if n != full)
    alone = found.more({**found.fit.values, f"D_{hidden}": 0.0}, full, "twice", gain.N)
    said = _bring(found, gain, _alike(found, gain))
    without = f"{show(round(float(alone), 2), '%')} if {named(found, hidden)} is no limit"
    return f"{said[0].upper()}{said[1:]}, or {without}"


def _how_sure(found: Any, how: str, against: list[str]) -> str:
    """How sure it is, with what speaks for it and against it."""
    first, but = found.stations[0], "; ".join(against)
    if how == "open":
        begins = "That is not sure" if _full(found) else "The measurements do not settle this"
        return f"{begins}: {but}"
    share = show(found.sureness, "%")
    same = f"{'all' if share == '100 %' else f'{share} of'} simulated repetitions of the "
    same += "measurements have this limit"
    if f"U_{first}" in found.study.measured:
        same += f", and U_{first} was {show(in_use(found, first), '%')} {at_last(found.study.used)}"
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
    if found.left_out:
        return f"What to do next: find out what {found.left_out} counts; {'; '.join(found.unused)}"
    if found.unused:
        return f"What to do next: mend the file, in which {'; '.join(found.unused)}"
    full = any(in_use(found, n[2:]) >= FULLY for n in found.study.measured if n != "R")
    if curve(used)[0] in ("grows", "") and not full:
        more = show(2 * used.N.max())
        return f"What to do next: measure at higher loads, up to {used.x} = {more}"
    unseen = [n for n in found.stations[:2] if f"U_{n}" not in found.study.measured]
    if not unseen:
        return "What to do next: repeat the highest loads, so that the errors become smaller"
    if is_hidden(found, unseen[0]):
        return "What to do next: find out what requests wait for besides the measured resources"
    return f"What to do next: measure the utilisation of {named(found, unseen[0])}"


def _changes(found: Any, gain: Any) -> list[tuple[Any, str]]:
    """Both changes of a station with their gains, as one if they bring the same. Processors of a
    shared machine, or disks on one bus, may be a little slower when there are more of them.
    """
    both = [g for g in found.gains if (g.station, g.N) == (gain.station, gain.N)]
    more, less = words(found, gain.station)
    several = gain.station == "cpu" or found.servers(gain.station) > 1
    if several and not is_hidden(found, gain.station) and both[0].high >= ALIKE:
        more += ", if they do not slow each other down,"
    if abs(both[0].gain - both[1].gain) < ALIKE:
        return [(gain, f"{more} or {less}")]
    return list(zip(both, (more, less), strict=True))


def _alike(found: Any, gain: Any) -> str:
    """The changes of a station that bring what this one does."""
    each = _changes(found, gain)
    return " or ".join(change for g, change in each if abs(g.gain - gain.gain) < ALIKE)


def _brings(found: Any, gain: Any) -> str:
    """What the changes of a station bring, the best one last."""
    if is_hidden(found, gain.station):
        return _bring(found, gain, _alike(found, gain))
    changes = sorted(_changes(found, gain), key=lambda each: each[0].gain)
    some = [each for each in changes if each[0].high >= ALIKE] or changes[-1:]
    said = _bring(found, *some[0])
    for other, change in some[1:]:
        then = _response(found, other)
        said += f", and {change} {_percent(other)}{f', with {then}' if then else ''}"
    return said


def _bring(found: Any, gain: Any, change: str) -> str:
    """What a change brings, and what response time."""
    used = found.study.used
    where = f"at {used.x} = {show(gain.N)}"
    if gain.high < ALIKE:
        return f"{change} would bring nothing {where}"
    if is_hidden(found, gain.station):
        return f"{change} would bring at most {_percent(gain, True)} more {used.y} {where}"
    then = _response(found, gain)
    if then:
        before = np.mean(found.study.measured["R"][used.N == gain.N])
        now = show(float(f"{before:.2g}"), "s" if used.seconds else "")
        then = f", with a mean response time of {then} instead of {now}"
    return f"{change} would bring {_percent(gain)} more {used.y} {where}{then}"


def _response(found: Any, gain: Any) -> str:
    """The mean response time after a change at the last load; "" if it is not known, or stays about
    the same.
    """
    used, R = found.study.used, found.study.measured.get("R")
    if R is None or gain.N != used.N.max() or not np.isfinite(gain.R).all():
        return ""
    if gain.R[1] > (1 - FALLS) * np.mean(R[used.N == gain.N]):
        return ""
    low, high = (float(f"{end:.2g}") for end in gain.R)
    return show([low, high] if low < high else high, "s" if used.seconds else "")


def _percent(gain: Any, most: bool = False) -> str:
    """The interval of a gain, or its end, in whole percent where that is two digits or more."""
    ends = [round(end, 2 if abs(end) >= 0.1 else 3) for end in (gain.low, gain.high)]
    if most or ends[0] == ends[1]:
        return f"{'' if most else 'about '}{show(ends[1], '%')}"
    return show(ends, "%")


def _nothing(found: Any, best: Any) -> str:
    """That nothing is sure to help; what would at twice the load, if that is sure."""
    said = (
        f"No change of one station is sure to bring {show(WORTH, '%')} {at_last(found.study.used)}"
    )
    later = found.gains[found.gains.index(best) + 1]
    if later.low < WORTH:
        return said
    where = f"{found.study.used.x} = {show(later.N)}"
    return f"{said}; at {where}, {_alike(found, later)} would bring {_percent(later)} more"
