"""The answer of notebook 24 in words: which lock limits, how sure that is, and what helps."""

from collections.abc import Mapping

from nummodel.nomenclature import show

#: A change is sure to help if it saves at least this share of the waiting time.
WORTH = 0.01


def answer(
    lock: str,
    share: float,
    waiting: float | None,
    c: int,
    first: Mapping[str, tuple[float, float]],
    saves: Mapping[str, tuple[float, float]],
    unknown: str,
) -> str:
    """Four sentences on a lock.

    `share` of all waiting time is that of this lock, and so many threads are `waiting` for it at a
    time, if that is known, on `c` processors, or 0. `first` are the locks that may be full first,
    and how many times as many threads they can feed. `saves` has the least and the most that each
    change saves of its waiting time, as a share, or nothing without hold times; `unknown` is what
    is not known.

    >>> print(answer("a", 0.9, 2.0, 8, {"a": (0.3, 0.9)}, {"a split": (0.0, 1.0)}, "hand-overs"))
    Of all time that threads wait for locks, 90 % is for a: 2 threads wait for it at a time, \
25 % of 8 processors if they spin. It is full already: it can feed 0.3 to 0.9 times the threads \
there are. No change is sure to save waiting time: a split would save 0 to 100 %. This is open as \
long as these are not known: hand-overs.
    """
    often = f": {show(waiting)} threads wait for it at a time" if waiting else ""
    often += f", {show(waiting / c, '%')} of {c} processors if they spin" if waiting and c else ""
    said = [f"Of all time that threads wait for locks, {show(share, '%')} is for {lock}{often}"]
    if not saves:
        more = [] if waiting else ["give the elapsed time (elapsed)"]
        more += [] if c else ["give the number of processors (c)"]
        more += [
            f"count how often {lock} is taken and how long it is held, with lock_stat on Linux"
        ]
        what = "The tool counts neither uses nor hold times"
        said.append(f"{what}, so a change of the lock may save all of this waiting or nothing")
        return ". ".join([*said, f"What to do next: {', '.join(more)}."])
    name, (low, high) = next(iter(first.items()), ("", (1.0, 1.0)))
    if len(first) == 1:
        when = "full already" if low < 1 else "the first lock to be full"
        full = f"may be {when}" if low < 1 <= high else f"is {when}"
        name = "It" if name == lock else name
        feeds = f"it can feed {low:.2g} to {high:.2g} times the threads there are"
        said.append(f"{name} {full}: {feeds}")
    elif first:
        said.append(f"With more threads, one of these is full first: {', '.join(list(first)[:3])}")
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
