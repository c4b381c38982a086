"""Response times of two tables compared, and throughputs that are not the same column."""

import json

import numpy as np
import pytest
from inprocess import nummodel

from nummodel.answers.responses import compared
from nummodel.records.columns import Points

LOADS = np.array([1.0, 2, 4, 8, 16, 32])


def measured(random, R, repeats, error=0.03):
    R = np.repeat(R, repeats) * np.exp(error * random.standard_normal(len(R) * repeats))
    N = np.repeat(LOADS, repeats)
    return Points(N, N / R, "absolute", "N", "X", others={"R": R}, seconds=True)


@pytest.mark.parametrize("repeats", [3, 1])
def test_intervals_of_a_true_change_hold_it(repeats):
    """Response times of 1.1 to 0.7 of those before, along a straight line over log N: all intervals
    together hold the truth in about 95 % of 200 pairs (standard error 1.5 %).
    """
    random = np.random.default_rng(3)
    before, factor = 0.01 + 0.002 * LOADS, 1.1 * LOADS ** (np.log(0.7 / 1.1) / np.log(32))
    true = [*factor, np.exp(np.log(factor).mean())]
    hold = 0
    for _ in range(200):
        tables = [measured(random, R, repeats) for R in (before, before * factor)]
        got = compared(tables, 0.95)
        rows = [*got["loads"], got["together"]]
        hold += all(row["low"] <= t <= row["high"] for row, t in zip(rows, true, strict=True))
    assert hold / 200 >= 0.95 - 4 * 0.015


def files(tmp_path, *texts):
    paths = [tmp_path / f"{i}.csv" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


BEFORE = (
    "threads,tps,avg_ms\n1,10,100\n1,10,102\n8,50,160\n8,50,158\n8,51,161\n32,58,540\n32,59,550\n"
)


def test_response_times_are_compared_whatever_their_unit(tmp_path):
    """Half as long at 32 threads, and the same at 1 and 8; milliseconds beside seconds."""
    rows = [line.split(",") for line in BEFORE.splitlines()[1:]]
    after = "threads,tps,Response time (s)\n" + "".join(
        f"{n},{x},{int(r) / 1000 / (2 if n == '32' else 1)}\n" for n, x, r in rows
    )
    paths = files(tmp_path, BEFORE, after)
    done = nummodel("compare", *paths)
    said = " ".join(done.stdout.split())
    assert "mean response time is shorter at threads = 32." in said and done.stderr == ""
    assert "No difference of response times is shown at threads = 1, 8." in said
    assert "went from 545 ms to 272.5 ms, by -50 % (95 % interval: -5" in said
    got = json.loads(nummodel("compare", *paths, "--json").stdout)["response"]
    assert [row["ratio"] for row in got["loads"]] == pytest.approx([1, 1, 0.5])
    assert got["together"]["ratio"] == pytest.approx(0.5 ** (1 / 3)) and got["unit"] == "s"


def test_response_times_that_cannot_be_compared(tmp_path):
    """In one file only, without a unit in one of them, or without any sign of their errors."""
    without = "threads,tps\n" + "".join(
        f"{line.rpartition(',')[0]}\n" for line in BEFORE.splitlines()[1:]
    )
    bare = BEFORE.replace("avg_ms", "R")
    paths = files(tmp_path, BEFORE, without, bare)
    alone = nummodel("compare", paths[0], paths[1])
    assert f"{paths[1]} has no mean response time that is known" in alone.stderr
    assert "response" not in nummodel("compare", paths[1], paths[1]).stdout
    assert "their unit is known in one file only" in nummodel("compare", *paths[::2]).stderr
    few = files(tmp_path, *2 * ["threads,tps,avg_ms\n1,10,100\n8,50,160\n"])
    assert "cannot be said, as errors are not known" in " ".join(
        nummodel("compare", *few).stdout.split()
    )


def test_columns_that_compare_does_not_use_are_not_told(tmp_path):
    (path,) = files(
        tmp_path, "threads,tps,cpu load,p95_ms\n1,10,1,2\n2,19,2,3\n4,34,4,5\n8,53,8,9\n"
    )
    assert nummodel("compare", path, path).stderr == ""


def test_throughputs_of_different_names_are_an_error(tmp_path):
    """Transactions are no queries: nothing is compared, and both columns and files are named."""
    paths = files(tmp_path, BEFORE, BEFORE.replace("tps", "qps"), BEFORE.replace("tps", "TPS"))
    done = nummodel("compare", *paths[:2])
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert f"{paths[1]}: the throughput is qps, and tps in {paths[0]}, expected" in done.stderr
    assert nummodel("compare", *paths[::2]).returncode == 0


def test_whole_milliseconds_that_never_scatter_make_no_interval(tmp_path):
    """From 2 ms to 1 ms at every load: rounding hides all errors."""
    texts = ["N,tps,avg_ms\n" + "".join(f"{n},{n},{ms}\n" for n in (1, 2, 4, 8)) for ms in (2, 1)]
    said = nummodel("compare", *files(tmp_path, *texts)).stdout
    assert "cannot be said, as errors are not known" in " ".join(said.split())
