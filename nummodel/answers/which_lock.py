"""The answer of notebook 24 in words: which lock limits, how sure that is, and what helps."""

from collections.abc import Mapping

from nummodel.nomenclature import show

#: A change is sure to help if it saves at least this share of the waiting time. No lock is a limit
#: if somebody waits for one in less than this share of the elapsed time.
WORTH = 0.01
#: What to do next where holds are not counted, by the tool. z/VM has no lock_stat.
ZVM = (
    "take FCX265 at several loads, with the throughput of each (if the spinning time of a "
    "transaction grows with the load, {} limits more and more)"
)
NEXT = {"fcx265": ZVM, "zvm-lock-log": ZVM}
COUNT = "count how often {} is taken and how long it is held, with lock_stat on Linux"


def at_this_load(wait: float, waiting: float | None, c: int) -> tuple[bool, str]:
    """Whether no lock is a limit at the measured load, and what is said of this, or "".

    `wait` [s] is the time of all waits for all locks, and so many threads are `waiting` at a time,
    if that is known, on `c` processors, or 0. In no more than a share `waiting` of the time, at
    least one thread waits; only this time can become shorter.

    >>> print(at_this_load(wait=0.2, waiting=0.002, c=8)[1])
    No lock of this output is a limit at this load: in at most 0.2 % of the time, somebody waits \
for a lock. Without these waits, the same work would take less time by at most 0.2 %. This leaves \
open what more threads bring, what uses of free locks cost, and locks that this tool does not \
watch.
    """
    if waiting is None:
        long = show(float(f"{wait / WORTH:.3g}"), "s")
        return False, (
            "Whether any lock is a limit at this load is open, as the elapsed time is not known "
            f"(elapsed): if the tool counted for {long} or longer, no lock is."
        )
    if waiting < WORTH:
        at_most = "less than 0.1 %" if waiting < 0.001 else f"at most {show(waiting, '%')}"
        return True, (
            f"No lock of this output is a limit at this load: in {at_most} of the time, somebody "
            "waits for a lock. Without these waits, the same work would take less time by "
            f"{at_most}. This leaves open what more threads bring, what uses of free locks "
            "cost, and locks that this tool does not watch."
        )
    if waiting < WORTH * c:
        return False, (
            f"If {c} threads are at work all the time, they wait for locks in at most "
            f"{show(waiting / c, '%')} of this time, so locks hardly limit them all together. "
            "Whether a lock limits a few of them is open."
        )
    return False, ""


def answer(
    lock: str,
    share: float,
    waiting: float | None,
    c: int,
    first: Mapping[str, tuple[float, float]],
    saves: Mapping[str, tuple[float, float]],
    unknown: str,
    load: tuple[bool, str] = (False, ""),
    row: str = "lock",
    tool: str = "lock_stat",
) -> str:
    """Four sentences on a lock, below those on the measured `load`, as `at_this_load` has them.

    `share` of all waiting time is that of this lock, and so many threads are `waiting` for it at a
    time, if that is known, on `c` processors, or 0. `first` are the locks that may be full first,
    and how many times as many threads they can feed. `saves` has the least and the most that each
    change saves of its waiting time, as a share, or nothing without hold times; `unknown` is what
    is not known. `row` is "lock" or "call site": that of which the `tool` prints a row.

    >>> print(answer("a", 0.9, 2.0, 8, {"a": (0.3, 0.9)}, {"a split": (0.0, 1.0)}, "hand-overs"))
    Of all time that threads wait for locks, 90 % is for a: 2 threads wait for it at a time, \
25 % of 8 processors if they spin. It is full already: it can feed 0.3 to 0.9 times the threads \
there are. No change is sure to save waiting time: a split would save 0 to 100 %. This is open as \
long as these are not known: hand-overs.
    """
    none_limits, start = load
    start += "\n" if start else ""
    site = row != "lock"
    where = f"at the {row} {lock}" if site else f"for {lock}"
    often = ""
    if waiting and not none_limits:
        often = f": {show(waiting)} threads wait {'there' if site else 'for it'} at a time"
        often += f", {show(waiting / c, '%')} of {c} processors if they spin" if c else ""
    said = [f"{start}Of all time that threads wait for locks, {show(share, '%')} is {where}{often}"]
    if site:
        said.append(
            f"This output names {row}s, not locks: several of them may wait for one lock, and one "
            "of them for several locks"
        )
    name, (low, high) = next(iter(first.items()), ("", (1.0, 1.0)))
    if none_limits and first:
        times = [max(1.0, min(ends[i] for ends in first.values())) for i in (0, 1)]
        which = "this lock" if len(first) == 1 else "one of these locks"
        growth = (
            f"With {show([float(f'{v:.2g}') for v in times])} times the threads, {which} is full"
        )
        said.append(f"{growth}: {_three(first)}")
    if none_limits:
        elsewhere = "look for the limit elsewhere, as in processors and disks (notebook 22)"
        return ". ".join([*said, f"What to do next: {elsewhere}."])
    if not saves:
        more = [] if waiting else ["give the elapsed time (elapsed)"]
        more += [] if c else ["give the number of processors (c)"]
        more += ["name the locks with perf lock contention -l"] if site else []
        more += [NEXT.get(tool, COUNT).format("the lock" if site else lock)]
        what = "The tool counts neither uses nor hold times"
        said.append(f"{what}, so a change of the lock may save all of this waiting or nothing")
        return ". ".join([*said, f"What to do next: {', '.join(more)}."])
    if len(first) == 1:
        when = "full already" if low < 1 else "the first lock to be full"
        full = f"may be {when}" if low < 1 <= high else f"is {when}"
        name = "It" if name == lock else name
        feeds = f"it can feed {low:.2g} to {high:.2g} times the threads there are"
        said.append(f"{name} {full}: {feeds}")
    elif first:
        said.append(f"With more threads, one of these is full first: {_three(first)}")
    least = {name: ends[0] for name, ends in saves.items()}
    best = max(least, key=least.__getitem__)
    others = [f"{name} would save {show(list(ends), '%')}" for name, ends in saves.items()]
    why = "open as long as these are not known"
    if least[best] < WORTH:
        said.append(f"No change is sure to save waiting time: {', '.join(others)}")
        return ". ".join([*said, f"This is {why}: {unknown}."])
    sure = show(list(saves[best]), "%")
    said.append(f"What to do next: {best} would save {sure} of the time that threads wait for it")
    rest = [text for name, text in zip(saves, others, strict=True) if name != best]
    return ". ".join([*said, f"The rest is {why}: {unknown} ({', '.join(rest)})."])


def _three(first: Mapping[str, tuple[float, float]]) -> str:
    """The three locks that may be full soonest, and how many more may be."""
    names = sorted(first, key=lambda name: first[name][1])
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" or one of {more} more" if more > 0 else "")
