"""What notebook 24 says of a lock: whether locks matter at all, what a row is, what to do next."""

import numpy as np
import pytest

from nummodel.answers.which_lock import answer, at_this_load

LOCK = {"lock": "a", "share": 0.9, "unknown": "hand-overs"}
CHANGES = {"a split": (0.2, 0.9)}


@pytest.mark.parametrize("threads", [2, 8, 64])
def test_the_share_of_time_in_which_somebody_waits_is_at_most_the_mean_number(threads):
    """Waits that overlap or not, drawn at random: what is left without them is no shorter."""
    random, seconds = np.random.default_rng(threads), 1000
    waits = random.random((threads, seconds)) < 0.004 / threads
    waits |= random.random(seconds) < 0.004 / threads  # all at once
    waiting = float(waits.sum(axis=0).mean())
    limits = at_this_load(waits.sum(), waiting, c=0)
    assert waits.any(axis=0).mean() <= waiting
    assert limits[0] == (waiting < 0.01)


def test_no_lock_is_a_limit_where_hardly_anybody_waits():
    """It says so first, from what this follows and what is open, and recommends no change."""
    load = at_this_load(wait=0.3, waiting=0.003, c=8)
    said = answer(**LOCK, waiting=0.003, c=8, first={"a": (0.9, 7.1)}, saves=CHANGES, load=load)
    assert said.startswith("No lock of this output is a limit at this load: in at most 0.3 %")
    assert "This leaves open what more threads bring" in said
    # Of these threads nobody waits in 99.7 % of the time, so no lock is full.
    assert "With 1 to 7.1 times the threads, this lock is full: a." in said
    assert "look for the limit elsewhere" in said and "split" not in said and "full al" not in said


def test_many_threads_hide_a_few_that_wait():
    """0.3 threads of 64 are 0.5 %; but if two threads are at work, they wait 15 % of their time."""
    none_limits, said = at_this_load(wait=30.0, waiting=0.3, c=64)
    assert not none_limits and "If 64 threads are at work all the time" in said
    assert "0.469 %" in said and "a few of them is open" in said
    assert at_this_load(wait=30.0, waiting=0.3, c=8) == (False, "")


def test_without_the_elapsed_time_it_is_open_whether_a_lock_limits():
    """0.5 s of waits are 1 % of 50 s."""
    none_limits, said = at_this_load(wait=0.5, waiting=None, c=8)
    assert not none_limits and "is open" in said and "counted for 50 s or longer, no lock" in said


@pytest.mark.parametrize(
    "row, tool, there, advice, never",
    [
        ("lock", "lock_stat", "is for a:", "with lock_stat on Linux", "call site"),
        ("lock", "perf_lock", "is for a:", "with lock_stat on Linux", "call site"),
        ("call site", "perf_lock", "at the call site a:", "perf lock contention -l", "for a"),
        ("lock", "fcx265", "is for a:", "FCX265 at several loads", "lock_stat"),
        ("lock", "zvm-lock-log", "is for a:", "FCX265 at several loads", "lock_stat"),
    ],
)
def test_rows_and_advice_are_those_of_the_tool(row, tool, there, advice, never):
    """z/VM has no lock_stat, and the rows of perf may be call sites."""
    said = answer(**LOCK, waiting=2.0, c=8, first={}, saves={}, row=row, tool=tool)
    assert there in said and advice in said and never not in said
    assert ("names call sites, not locks" in said) == (row == "call site")
