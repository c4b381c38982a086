"""What `prose` notices in small texts: each of these faults was once made and not noticed."""

import prose
import pytest


def book(text, sources=""):
    """A notebook with this text."""
    cells = [("markdown", text), ("markdown", f"## Sources\n\n{sources}"), ("code", "seed = 2018")]
    return {"cells": [{"cell_type": k, "source": s, "metadata": {}} for k, s in cells]}


def record(name, value, documented=None):
    return {"what": name, "model": value, "documented": documented}


RUNS = [record(f"error at {n}-way", error) for n, error in ((12, 0.03), (30, 0.05), (32, 0.17))]
RUNS += [record("misses", [30, 32]), record("gain of V7.2 over V7.1", 0.014)]
TABLE = "|error|{}|{}|\n|---|---|---|\n|law|[5 %](#error-at-30-way)|[17 %](#error-at-32-way)|"
SETS = [
    record("share at the locks by sets, g = 0.02", "1: 0.89, 2: 0.75, 4: 0.22, 7: 0.09"),
    record("share with four sets, g = 0.05", 0.052),
]
CPUS = [record("clients on CPUs 0-3", True), record("use of CPUs 1-3", 0.75)]
LIMITS = [
    record("hold, s", 1e-6),
    record("latency, ns", [143.2, 144.4]),
    record("share", [0.0002, 0.002]),
    record("share across", 0.667, [0.655, 0.665]),
    record("wait of the 100th customer", 0.41),
]
SIZES = [record("error, law over run", -0.05), record("error of the queue", 0.05)]
SIZES += [record("law over queue, less one", 0.05), record("lost to waiters", 0.05)]
WORDS = [record("used most", "the lock"), record("sets help", False), record("none pays", True)]


@pytest.mark.parametrize(
    ("right", "wrong", "made"),
    [
        # a label of a run in a sentence
        (
            "At 30-way it is [5 %](#error-at-30-way).",
            "At 32-way it is [5 %](#error-at-30-way).",
            RUNS,
        ),
        ("At [30 and 32-way](#misses) it fails.", "At 30 and 32-way it fails.", RUNS),
        ("The last run does not fit.", "The 32-way run does not fit.", RUNS),
        # the head of a table
        (TABLE.format("30-way", "32-way"), TABLE.format("32-way", "32-way"), RUNS),
        (TABLE.format("30-way", "32-way"), TABLE.format("32-way", "30-way"), RUNS),
        ("V7.2 came after V7.1.", "V7.3 came after V7.1.", RUNS),
        # a wrapped line, and a list whose items are no sentence together
        (
            "At\n30-way it is\n[5 %](#error-at-30-way).",
            "At\n32-way it is\n[5 %](#error-at-30-way).",
            RUNS,
        ),
        (
            "- It is [5 %](#error-at-30-way)\n  at 30-way\n- and more beyond",
            "- It is [5 %](#error-at-30-way)\n- at 30-way, and more beyond",
            RUNS,
        ),
        (
            "9. Start.\n10. It is [5 %](#error-at-30-way).",
            "9. Start.\n10. It is [6 %](#error-at-30-way).",
            RUNS,
        ),
        # a text, and whether something is true
        ("[The lock](#used-most) is busy.", "[The disk](#used-most) is busy.", WORDS),
        ("They [do not help](#sets-help).", "They [help](#sets-help).", WORDS),
        ("[None](#none-pays) pays.", "[One](#none-pays) pays.", WORDS),
        # a sign in words
        (
            "The law is [5 % too low](#error-law-over-run).",
            "The law is [5 % too low](#error-of-the-queue).",
            SIZES,
        ),
        (
            "[5 % above](#law-over-queue-less-one)",
            "[5 % below](#law-over-queue-less-one)",
            SIZES,
        ),
        ("It is [5 % lower](#lost-to-waiters).", "It is [-5 %](#lost-to-waiters).", SIZES),
        ("It is [less than 5 %](#error-of-the-queue).", "[5 % less](#error-of-the-queue)", SIZES),
        # conditions in a link
        (
            "[at a growth of 2 %, 4 sets leave 0.22](#share-at-the-locks-by-sets-g-0-02)",
            "[at a growth of 1 %, 4 sets leave 0.22](#share-at-the-locks-by-sets-g-0-02)",
            SETS,
        ),
        (
            "[4 sets leave 0.22 and 7 sets 0.09](#share-at-the-locks-by-sets-g-0-02)",
            "[2 sets leave 0.22 and 7 sets 0.09](#share-at-the-locks-by-sets-g-0-02)",
            SETS,
        ),
        (
            "[5.2 % at a growth of 5 %](#share-with-four-sets-g-0-05)",
            "[5.0 % at a growth of 5 %](#share-with-four-sets-g-0-05)",
            SETS,
        ),
        (
            "[V7.2 is 1.4 % faster than V7.1](#gain-of-v7-2-over-v7-1)",
            "[V7.2 is 1.4 % faster than V7.2](#gain-of-v7-2-over-v7-1)",
            RUNS,
        ),
        # a part of one range that makes another
        ("A rule for the four processors.", "A rule for CPUs 0-3.", CPUS),
        (
            "It is [75 %](#use-of-cpus-1-3) for CPUs 1-3.",
            "For CPUs 0-3 it is [75 %](#use-of-cpus-1-3).",
            CPUS,
        ),
        # a rounding that has two ways, a zero that is none, and a half
        ("[13 %](#half-way)", "[12 %](#half-way)", [record("half way", 0.125)]),
        ("[1 µs](#hold-s)", "[0 µs](#hold-s)", LIMITS),
        ("[143 to 144 ns](#latency-ns)", "[143 ns](#latency-ns)", LIMITS),
        ("[0.02 to 0.2 %](#share)", "[0.0 %](#share)", LIMITS),
        ('[66 %](#share-across "documented")', '[65 %](#share-across "documented")', LIMITS),
        # ordinals, and numbers that end with letters
        (
            "[the 100th waits 41 %](#wait-of-the-100th-customer)",
            "the 101th waits [41 %](#wait-of-the-100th-customer)",
            LIMITS,
        ),
        ("Two Xeon Platinum 8269CY", "Two Xeon Platinum 8268CY", LIMITS),
        # a title, which README has word for word
        (
            "# What limits 64 threads on 32 processors?",
            "# What limits 64 threads on 64 processors?",
            LIMITS,
        ),
        # a year that the sources do not have
        ("It was measured in 2019.", "It was measured in 2018.", LIMITS),
    ],
)
def test_a_wrong_digit_is_noticed(right, wrong, made):
    sources = "Output on two Xeon Platinum 8269CY (2019), 64 threads, 32 processors"
    assert prose.strange(book(right, sources), made) == []
    assert prose.strange(book(wrong, sources), made) != []
