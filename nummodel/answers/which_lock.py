"""The answer of notebook 24 in words: which lock limits, how sure that is, and what helps."""

from collections.abc import Mapping

from nummodel.nomenclature import show

#: A change is sure to help if it saves at least this share of the waiting time.
WORTH = 0.01


def answer(
    lock: str,
    share: float,
    waiting: float | None,
    first: list[str],
    saves: Mapping[str, tuple[float, float]],
    unknown: str,
) -> str:
    """Four sentences on a lock.

    `share` of all waiting time is that of this lock, and so many threads are `waiting` for it at a
    time, if that is known. `first` are the locks that may be full first. `saves` has the least and
    the most that each change saves of its waiting time, as a share; `unknown` is what is not known.

    >>> print(answer("a", 0.9, 2.0, ["a"], {"a split": (0.0, 1.0)}, "hold times"))
    Of all time that threads wait for locks, 90 % is for a (2 threads at a time). With more \
threads, a is the first lock to be full. No change is sure to save waiting time: a split would \
save 0 to 100 %. This is open as long as these are not known: hold times.
    """
    often = f" ({show(waiting)} threads at a time)" if waiting else ""
    said = [f"Of all time that threads wait for locks, {show(share, '%')} is for {lock}{often}"]
    if len(first) == 1:
        said.append(f"With more threads, {first[0]} is the first lock to be full")
    elif first:
        said.append(f"With more threads, one of these is full first: {', '.join(first[:3])}")
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
