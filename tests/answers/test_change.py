"""Two tables compared: ratios, intervals that hold together, and how often noise is a change."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from inprocess import nummodel
from quick import one_in, slow
from scipy import stats

from nummodel.answers.change import compared, curve
from nummodel.models import networks
from nummodel.records.columns import Points

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from limits import GAINS, gained

LOADS = np.array([1.0, 2, 4, 8, 16, 32])


def usl(N):
    return 10 * N / (1 + 0.05 * (N - 1) + 0.001 * N * (N - 1))


def knee(N):
    """No law of the package."""
    return np.minimum(10 * N, 75)


def drawn(random, N, X, error):
    e = random.standard_normal(len(N))
    X = X * np.exp(0.03 * e) if error == "percentage" else X + 0.5 * e
    return Points(N, X, "absolute", "N", "X")


@pytest.mark.parametrize(
    "curve, repeats, pairs, low, high",
    [
        slow(usl, 3, 500, 0.03, 0.075),  # half the pairs of a kind: standard error 1.0 %
        slow(usl, 1, 120, 0.0, 0.11),  # 2.0 %
        (knee, 1, 60, 0.0, 0.11),
    ],
)
@pytest.mark.parametrize("error", one_in(2, ["percentage", "size"]))
def test_two_files_of_one_system_show_no_difference(curve, repeats, pairs, low, high, error):
    """Whatever the kind of the errors, and whether or not the USL is right: in about 5 % of pairs
    noise looks like a change, or in fewer.
    """
    random = np.random.default_rng(7)
    N = np.repeat(LOADS, repeats)
    changed = 0
    for _ in range(pairs):
        tables = [drawn(random, N, curve(N), error) for _ in range(2)]
        changed += not compared(tables, "auto", 0.95)["answer"].startswith("No difference shown")
    assert low <= changed / pairs <= high


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [1, 3])
def test_intervals_of_a_true_change_hold_it_together(repeats):
    """The throughput of each load is 1 to 1.6 times as high as before: in about 95 % of pairs all
    intervals hold their ratios, and the ratio of all loads.
    """
    random = np.random.default_rng(8)
    N = np.repeat(LOADS, repeats)
    after = 10 * LOADS / (1 + 0.03 * (LOADS - 1) + 0.0005 * LOADS * (LOADS - 1))
    truth = after / usl(LOADS)
    hold = helped = 0
    for _ in range(150):
        tables = [
            drawn(random, N, np.repeat(X, repeats), "percentage") for X in (usl(LOADS), after)
        ]
        got = compared(tables, "log", 0.95)
        rows = [*got["loads"], got["together"]]
        true = [*truth, np.exp(np.log(truth).mean())]
        hold += all(row["low"] <= t <= row["high"] for row, t in zip(rows, true, strict=True))
        helped += got["answer"].startswith("The change helps")
    assert 0.89 <= hold / 150 <= 1 and helped >= 143


@pytest.mark.slow
@pytest.mark.parametrize("name", GAINS)
def test_a_gain_is_found_where_the_law_misses_the_points(name, sets=60):
    """Of a system with a knee, without repeats: its known gain is in all intervals in about 95 % of
    sets, and is found. The scatter around the USL would hide it. `make limits` counts 300 sets of
    each gain. At exactly 95 %, fewer than the 56 of 60 that are asked for here hold it with a
    probability of 18 %, but the sets are the same each time.
    """
    hold, helped, how = gained(GAINS[name], sets, seed=11)
    assert hold >= 0.92 and helped >= 0.95
    assert not any("curves of the USL" in words for words in how)


def test_a_curve_keeps_its_digits_where_two_estimates_nearly_trade_off():
    """At its own loads the covariance of a fitted curve, if errors are alike, projects onto
    as many directions as there are estimates. The servers of a bottleneck that is met between
    two of the loads hardly show.
    """
    N = 2.0 ** np.arange(7)
    X = [10.248318729, 20.630058103, 43.583324373, 88.761360676, 87.563129684, 91.092435464,
         96.192621808]  # fmt: skip
    points = Points(N, np.array(X), "log", "N", "X")
    side = curve(points, N, log=True, system=True)
    *rest, third, second, first = np.linalg.eigvalsh(side.covariance).tolist()
    assert (third, second) == pytest.approx((first, first), rel=1e-6)
    assert rest == pytest.approx([0.0] * 4, abs=1e-6 * first)


def test_answers_are_in_good_english():
    """Neither "10 to 10 %" nor "1 loads"."""
    tables = [Points(LOADS, factor * LOADS, "log", "N", "X") for factor in (10, 11)]
    assert (
        "X is 10 % higher there. Over the 6 loads that" in compared(tables, "log", 0.95)["answer"]
    )
    one = [Points(np.full(4, 8.0), X, "log", "N", "X") for X in (np.ones(4), np.full(4, 2.0))]
    assert "Over the only load that both files have" in compared(one, "log", 0.95)["answer"]


@pytest.mark.parametrize("repeats", [(2, 10), slow((10, 2)), slow((3, 3))])
def test_files_with_errors_of_different_size_show_no_difference(repeats):
    """The file with few runs has errors ten times as large: a common size would be far too small.
    Noise looks like a change in about 5 % of pairs (standard error 1.5 %).
    """
    random, changed = np.random.default_rng(9), 0
    errors = (0.1, 0.01) if repeats[0] < 10 else (0.01, 0.1)
    for _ in range(200):
        tables = []
        for count, error in zip(repeats, errors, strict=True):
            N = np.repeat(LOADS, count)
            X = usl(N) * np.exp(error * random.standard_normal(len(N)))
            tables.append(Points(N, X, "log", "N", "X"))
        changed += not compared(tables, "log", 0.95)["answer"].startswith("No difference shown")
    assert changed / 200 <= 0.05 + 4.4 * 0.0154


def test_a_file_without_repeated_loads_is_told():
    tables = [
        Points(np.repeat(LOADS, k), usl(np.repeat(LOADS, k)) * factor, "log", "N", "X")
        for k, factor in ((1, 1.0), (3, 1.1))
    ]
    assert "one of the files repeats no load" in compared(tables, "log", 0.95)["warnings"][-1]


def test_one_load_is_students_test():
    """The interval of logarithms is that of two samples; of sums, it excludes 1 as they differ."""
    b, a = np.array([10.0, 10.4, 10.1]), np.array([10.5, 10.7, 10.3, 10.8])
    tables = [Points(np.full(len(X), 8.0), X, "log", "N", "X") for X in (b, a)]
    got = compared(tables, "log", 0.95)
    test = stats.ttest_ind(np.log(a), np.log(b)).confidence_interval(0.95)
    (row,) = got["loads"]
    assert [row["low"], row["high"]] == pytest.approx(np.exp(test), rel=0.002)  # is simulated
    assert row["before"] == pytest.approx(stats.gmean(b))
    p = stats.ttest_ind(a, b).pvalue
    for level, shown in ((1 - 1.1 * p, "higher"), (1 - 0.9 * p, None)):
        (row,) = compared(tables, "absolute", level)["loads"]
        assert row["shown"] == shown and row["ratio"] == pytest.approx(a.mean() / b.mean())


def test_a_throughput_that_may_be_zero_has_no_ratio_with_ends():
    b, a = np.array([1.0, 9.0, 0.1]), np.array([20.0, 21.0, 22.0])
    tables = [Points(np.ones(3), X, "absolute", "N", "X") for X in (b, a)]
    (row,) = compared(tables, "absolute", 0.999)["loads"]
    assert row["low"] is row["high"] is None and row["ratio"] == pytest.approx(a.sum() / b.sum())


def files(tmp_path, *texts):
    paths = [tmp_path / f"{i}.csv" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def test_what_the_command_prints(tmp_path):
    """A sentence, then a table; exact figures are compared exactly."""
    before = "threads,tps\n1,10\n2,19\n4,34\n8,53\n16,64\n"
    after = before.replace("53", "60").replace("64", "90")
    paths = files(tmp_path, before, after, before.replace("threads", "clients"))
    said = nummodel("compare", *paths[:2], "--level", "0.8")
    assert said.returncode == 0 and said.stderr == ""
    assert said.stdout.startswith("The change helps at threads = ")
    same = json.loads(nummodel("compare", paths[0], paths[0], "--json").stdout)
    assert same["answer"].startswith("No difference shown")
    assert [row["ratio"] for row in same["loads"]] == pytest.approx([1] * 5)
    other = nummodel("compare", paths[0], paths[2])
    assert "warning: tps against threads is compared with tps against clients" in other.stderr


def test_without_repeated_or_many_loads_nothing_is_claimed(tmp_path):
    paths = files(tmp_path, "N,X\n1,10\n2,19\n4,34\n", "N,X\n1,20\n2,38\n4,68\n8,99\n")
    got = json.loads(nummodel("compare", *paths, "--json").stdout)
    assert got["answer"].startswith("Whether X has changed cannot be said")
    assert [row["measured"] for row in got["loads"]] == pytest.approx([2, 2, 2])
    assert all(row["low"] is row["high"] is row["shown"] is None for row in got["loads"])
    assert "[" not in nummodel("compare", *paths).stdout


def test_bad_use_of_compare(tmp_path):
    paths = files(tmp_path, "N,X\n1,10\n2,19\n", "N,X\n3,20\n4,38\n")
    for arguments, what in (
        (paths, "no load in common"),
        ((paths[0], "missing.csv"), "No such file"),
        ((*paths, "--level", "2"), "level"),
        ((*paths, "--weights", "trust"), "weights 'trust'"),
        ((paths[0],), "AFTER"),
    ):
        done = nummodel("compare", *arguments)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
        assert done.stderr.startswith("nummodel: ") and what in done.stderr


def test_a_gain_of_a_system_with_think_time_is_found():
    """Of users who think for a second, the last loads gain half, and the first ones nothing. The
    USL misses such measurements, and their ratios are on no straight line.
    """
    N, random = np.array([10.0, 20, 40, 80, 120, 160, 200, 300]), np.random.default_rng(2)
    tables = []
    for D in (0.03, 0.02):
        X = networks.solve([networks.queue(D, 4), networks.queue(0.005)], N.astype(int), 1.0).X
        noisy = X * np.exp(0.01 * random.standard_normal(len(N)))
        tables.append(Points(N, noisy, "log", "N", "X"))
    found = compared(tables, "auto", 0.95)
    shown = {row["N"]: row["shown"] for row in found["loads"]}
    assert "closed systems" in found["how"]
    assert shown[10] is shown[20] is shown[40] is None
    assert shown[160] == shown[200] == shown[300] == "higher"
    last = found["loads"][-1]
    # 300 users ask for more than both ceilings: 4/0.03 and, of the lock, 1/0.005.
    assert last["low"] < 200 / (4 / 0.03) < last["high"] < 1.6
