"""The command line as a user meets it: results, one-line errors, exit codes."""

import csv
import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from inprocess import nummodel
from quick import one_in, slow
from scipy import stats
from scipy.optimize import curve_fit

from nummodel.answers import _document
from nummodel.answers.ahead import CHECKED
from nummodel.answers.remarks import EXTRAPOLATION
from nummodel.fits import chance, forecast, largest_load, smallest_load
from nummodel.models.scaling import LAWS
from nummodel.nomenclature import quantity, show
from nummodel.records import data

TABLE = data.HOME / "data" / "zvm-scaling.csv"
ZVM = ("fit", TABLE, "--x", "N", "--y", "itr_per_s")


def result(*arguments):
    done = nummodel(*arguments, "--json")
    assert done.returncode == 0, done.stderr

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(done.stdout, parse_constant=refuse)


def refused(*arguments):
    done = nummodel(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("nummodel: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def by_square(tmp_path):
    """The table with a column `w` of 1/itr_per_s^2, the weights of MODELS.md section 1."""
    table = pd.read_csv(TABLE, comment="#")
    path = tmp_path / "zvm.csv"
    table.assign(w=table["itr_per_s"] ** -2.0).to_csv(path, index=False)
    return "fit", path, "--x", "N", "--y", "itr_per_s", "--weights", "w"


def test_the_contract_of_fit(by_square):
    """The figures are those of MODELS.md section 1, computed outside this project."""
    got = result(*by_square, "--law", "all", "--holdout", "N>24")
    assert list(got) == [
        *("n", "x", "y", "weights", "laws", "chosen", "why"),
        *("lack_of_fit", "forecast", "target", "held_out", "limit", "warnings"),
    ]
    assert (got["n"], got["x"], got["y"], got["weights"]) == (4, "N", "itr_per_s", "w")
    assert list(got["laws"]) == ["linear", "amdahl", "gustafson", "usl"]
    amdahl, usl = got["laws"]["amdahl"], got["laws"]["usl"]
    assert list(amdahl) == [
        *("estimates", "aicc", "loo_rmse", "lack_of_fit", "residuals", "peak", "predictions")
    ]
    assert round(amdahl["estimates"]["sigma"]["value"], 4) == 0.0257
    keys = ["value", "stderr", "low", "high", "at_bound", "identified"]
    assert list(usl["estimates"]["kappa"]) == keys
    kappa = usl["estimates"]["kappa"]
    assert kappa["value"] == kappa["low"] == 0 and kappa["stderr"] is None
    assert kappa["at_bound"] and not kappa["identified"] and 0 < kappa["high"] < 0.01
    assert any("kappa" in w and "these data show no sign of it" in w for w in got["warnings"])
    assert amdahl["aicc"] is None and amdahl["loo_rmse"] is None and amdahl["peak"] is None
    assert [p["N"] for p in amdahl["predictions"]] == [30, 32]
    errors = [p["value"] / p["observed"] - 1 for p in amdahl["predictions"]]
    assert np.round(errors, 3).tolist() == [-0.046, -0.053]
    assert all(p["low"] <= p["observed"] <= p["high"] for p in amdahl["predictions"])
    assert got["chosen"] is None and "too few points" in got["why"]


def test_fit_of_all_points(by_square):
    for arguments, sigma in ((by_square, 0.0219), (ZVM, 0.0197)):
        got = result(*arguments)
        assert round(got["laws"]["amdahl"]["estimates"]["sigma"]["value"], 4) == sigma
        assert got["chosen"] == "amdahl" and got["laws"]["amdahl"]["predictions"] == []


def test_relative_weights_predict_with_intervals():
    got = result(*ZVM, "--weights", "relative", "--holdout", "N>24")
    assert got["weights"] == "relative"
    predictions = got["laws"]["amdahl"]["predictions"]
    assert [(p["N"], p["inside"]) for p in predictions] == [(30, True), (32, True)]
    assert all(p["low"] <= p["observed"] <= p["high"] for p in predictions)


def test_the_default_weights_are_absolute():
    assert result(*ZVM) == result(*ZVM, "--weights", "absolute")


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


GOOD = "N,X\n1,10\n2,19\n4,35\n8,60\n16,90\n32,110\n"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace(",", ", "),
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\n\n"),
        "# made by hand\n" + GOOD,
        GOOD.replace("N,X", "threads,tps"),
        "name," + GOOD.replace("\n", "\nrun,").removesuffix("run,"),
    ],
    ids=[
        "comma",
        "semicolon",
        "tab",
        "spaces",
        "bom",
        "crlf",
        "blank",
        "comment",
        "names",
        "text column",
    ],
)
def test_the_dialects_of_csv(tmp_path, text):
    names = ("--x", "N", "--y", "X") if text.startswith("name") else ()
    got = result("fit", write(tmp_path, text), *names, "--law", "usl")
    assert got["n"] == 6 and got["laws"]["usl"]["peak"]["N"] > 16


def test_comments_may_hold_anything(tmp_path):
    text = '# run "7; of, many\n' + GOOD.replace(",", ";") + '# the "end, of it\n'
    assert result("fit", write(tmp_path, text))["n"] == 6


@pytest.mark.parametrize(
    "text, what",
    [
        ("threads\n1\n2\n", "no column is known as the throughput"),
        ("N;X\n1;1.012,3\n2;1.9\n", "without thousands separators"),
        ("threads,tps\n1,10\n2,\n4,33\n", "tps is '', expected a number\n"),
    ],
)
def test_the_cause_of_a_refusal_is_told(tmp_path, text, what):
    assert what in refused("fit", write(tmp_path, text))


@pytest.mark.slow
def test_what_excel_adds_to_a_table_is_no_part_of_it(tmp_path):
    text = GOOD.replace(",", ";")
    odd = "sep=;\n" + "".join(f"{line};;\n" for line in text.splitlines())
    assert result("fit", write(tmp_path, odd)) == result("fit", write(tmp_path, text))


@pytest.mark.parametrize(
    "options, x, y",
    [
        (("--x", "threads"), "threads", "tps"),
        (("--y", "when"), "threads", "when"),
        (("--x", "when", "--weights", "threads"), "when", "tps"),
    ],
)
def test_columns_that_are_named(tmp_path, options, x, y):
    rows = "when,threads,tps\n3,1,10\n4,2,19\n5,4,33\n6,8,52\n"
    got = result("fit", write(tmp_path, rows), *options, "--law", "linear")
    assert (got["x"], got["y"]) == (x, y)


@pytest.mark.parametrize("option", ["--x", "--y", "--weights", "--law", "--holdout"])
def test_an_empty_name_is_no_name(tmp_path, option):
    assert "''" in refused("fit", write(tmp_path, GOOD), option, "")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(tmp_path, separator):
    """Where cells are not parted by commas; one that may part thousands is not guessed at."""
    cells = "N;X\n1;10,5\n2;1.9e1\n4;35\n8;60,25\n16;9e1\n32;0,110e3\n"
    decimal = cells.replace("1.9e1", "19,0").replace(";", separator)
    points = GOOD.replace("1,10\n", "1,10.5\n").replace("60", "60.25")
    ours, theirs = (
        result("fit", write(tmp_path, text), "--weights", "relative") for text in (decimal, points)
    )
    assert ours == theirs
    mixed = refused("fit", write(tmp_path, cells.replace(";", separator)))
    assert ":3: X is '1.9e1', expected a decimal comma, as others have" in mixed
    thousands = "N;X\n1;1,105\n2;2,190\n".replace(";", separator)
    assert "without thousands separators" in refused("fit", write(tmp_path, thousands))


@pytest.mark.parametrize("points", ["1,1.000\n2,1.953", "1,1\n2,1.953", "1,540\n2,1010.125"])
def test_points_that_do_not_part_thousands(tmp_path, points):
    assert result("fit", write(tmp_path, f"N,X\n{points}\n"))["n"] == 2


def test_what_parts_cells_is_not_counted_inside_quotes(tmp_path):
    text = GOOD.replace(",", ";").replace("N;X", '"threads (all, of two)";"X, per s"')
    got = result("fit", write(tmp_path, text))
    assert (got["x"], got["y"], got["n"]) == ("threads (all, of two)", "X, per s", 6)


def test_a_row_held_out_that_lies_outside_its_interval_is_a_warning(tmp_path):
    path = write(tmp_path, GOOD.replace("32,110", "32,300"))
    got = result("fit", path, "--holdout", "N>16", "--law", "amdahl")
    (prediction,) = got["laws"]["amdahl"]["predictions"]
    assert prediction["observed"] > prediction["high"] and prediction["inside"] is False
    told = "amdahl: 1 of 1 rows held out lie outside their 95 % intervals: N = 32 (above)"
    assert told in got["warnings"]
    assert told in nummodel("fit", path, "--holdout", "N>16", "--law", "amdahl").stderr
    inside = result("fit", write(tmp_path, GOOD), "--holdout", "N==8", "--law", "usl")
    assert not any("outside" in warning for warning in inside["warnings"])


@pytest.mark.slow
def test_rows_that_chance_puts_outside_their_intervals_are_no_warning(tmp_path):
    """Of 1,900 rows held out that follow Amdahl's law, about 5 % lie outside 95 % intervals."""
    N = np.tile(np.arange(1.0, 41.0), 100)
    X = 10 * N / (1 + 0.05 * (N - 1)) + np.random.default_rng(1).standard_normal(4000)
    rows = "".join(f"{n},{x}\n" for n, x in zip(N, X, strict=True))
    path = write(tmp_path, f"N,X\n{rows}")
    got = result("fit", path, "--holdout", "N<20")
    outside = {
        name: [p for p in law["predictions"] if not p["low"] <= p["observed"] <= p["high"]]
        for name, law in got["laws"].items()
    }
    said = [p for p in got["laws"]["amdahl"]["predictions"] if not p["inside"]]
    assert said == outside["amdahl"], "each row says it by itself"
    assert 0.03 < len(outside["amdahl"]) / len(got["laws"]["amdahl"]["predictions"]) < 0.07
    assert got["chosen"] in ("amdahl", "usl")
    assert not any("outside" in w for w in got["warnings"])
    for law in ("linear", "gustafson"):  # which the rows do not follow
        alone = result("fit", path, "--holdout", "N<20", "--law", law)
        assert any(w.startswith(law) and "outside" in w for w in alone["warnings"])
    assert "  outside" in nummodel("fit", path, "--holdout", "N<20", "--law", "amdahl").stdout


@pytest.mark.parametrize(
    "rows, outside, warned",
    [
        (1, 1, True),
        (19, 1, True),
        (20, 1, False),
        (20, 5, True),
        (1000, 62, False),
        (1000, 80, True),
    ],
)
def test_more_rows_outside_than_chance_explains_are_a_warning(rows, outside, warned):
    """At 95 % chance puts 66 or more of 1,000 outside in 1.5 % of cases, and 68 in 0.7 %."""
    predictions = [
        {"N": 1.0, "value": 5.0, "observed": 7.0, "inside": i >= outside} for i in range(rows)
    ]
    assert bool(_document.outside(predictions, "N", 0.95)) == warned


def test_a_load_measured_once_beside_others_repeated(tmp_path):
    """The USL has then no leave-one-out error, but an AICc."""
    path = write(tmp_path, "N,X\n1,10\n2,19\n2,18\n4,33\n4,34\n4,35\n")
    usl = result("fit", path)["laws"]["usl"]
    assert usl["aicc"] is not None and usl["loo_rmse"] is None
    assert nummodel("fit", path).returncode == 0


def test_one_load_chooses_no_law(tmp_path):
    got = result("fit", write(tmp_path, "N,X\n4,10\n4,11\n4,10.5\n"))
    assert got["chosen"] is None and "one load" in got["why"]


def test_every_peak_has_the_interval_of_its_load(tmp_path):
    """In JSON and in words; the ends are those of `Fit.interval`."""
    path = write(tmp_path, GOOD.replace("32,110", "32,70"))
    got = result("fit", path)
    peak = got["laws"]["usl"]["peak"]
    assert list(peak) == ["N", "X", "low", "high"] and peak["low"] < peak["N"] < peak["high"]
    words = f"at {peak['N']:.4g}  [{peak['low']:.5g}, {peak['high']:.5g}]"
    assert words in nummodel("fit", path).stdout
    few = result("fit", path, "--holdout", "N<4", "--level", "0.999")["laws"]["usl"]["peak"]
    assert few["high"] is None
    none = result("fit", path, "--holdout", "N<8")["laws"]["usl"]["peak"]
    assert none["low"] is None and none["high"] is None


def test_warnings_are_about_the_chosen_law_or_about_all_if_none_is_chosen(tmp_path):
    path = write(tmp_path, FALL)
    got, done = result("fit", path), nummodel("fit", path)
    assert {warning.partition(": ")[0] for warning in got["warnings"]} == {got["chosen"]}
    answer = " ".join(done.stdout.split())
    for warning in got["warnings"]:  # told once
        assert (warning in done.stderr) != (warning.partition(": ")[2] in answer)
    few = result(*ZVM, "--holdout", "N>24")
    assert few["chosen"] is None
    beside = (
        EXTRAPOLATION,
        next(w for w in few["warnings"] if w.startswith("not used: ")),
    )
    named = {w.partition(": ")[0] for w in few["warnings"] if w not in beside}
    assert {"gustafson", "usl"} <= named <= set(few["laws"])


@pytest.mark.parametrize("U, told", [(1.0, True), (0.96, True), (0.6, False)])
def test_a_full_station_is_told_without_a_closed_system(tmp_path, U, told):
    """By the utilisation law, which needs no system."""
    rows = ["users,tps,U_cpu,U_disk"]
    for N in (10, 30, 60, 90, 120, 180, 260):
        X = 100 * (1 - np.exp(-N / 90))
        rows.append(f"{N},{X:.2f},{0.004 * X:.3f},{U * X / 94.43:.4f}")
    path = write(tmp_path, "\n".join(rows))
    text = nummodel("fit", path, "--law", "usl").stdout
    first = " ".join(text.partition("\n\n")[0].split())
    said = f"disk was {100 * U:g} % in use at the last load, users = 260: as long as each "
    assert (said in first) == told == ("several requests at once" in first)
    if told:
        (most,) = map(float, re.findall(r"tps cannot exceed about ([\d.]+)\. ", first))
        assert most == pytest.approx(94.43 / U, rel=5e-3)


@pytest.mark.parametrize(
    "rates, said",
    [
        (
            "412.5 1355 2207 2466 2549 2680",
            "X divided by N rose from 412.5 at N = 1 to 735.7 at 3.",
        ),
        (
            "5.67 22.13 58.58 108 189.6 286.8",
            "X divided by N rose from 5.67 at N = 1 to 47.8 at 6.",
        ),
        ("100 230 300 390 480 560", ""),
        ("100 200 300 20 500 600", ""),
    ],
)
def test_growth_beyond_proportion_is_told_first(rates, said, tmp_path):
    rows = "".join(f"{N},{X}\n" for N, X in enumerate(rates.split(), 1))
    answer = " ".join(nummodel("fit", write(tmp_path, f"N,X\n{rows}")).stdout.split())
    start = "X grew more than in proportion (superlinear): "
    assert answer.startswith(start + said) if said else start not in answer


def test_the_answer_comes_first(tmp_path):
    """Where throughput stops growing, what the next doubling brings, and how far to trust that."""
    path = write(tmp_path, "N,X\n1,10.4\n2,19.1\n4,34.2\n8,52.9\n16,65.0\n32,58.7\n")
    got, done = result("fit", path, "--at", "64"), nummodel("fit", path)
    assert got["chosen"] == "usl"
    answer, table, _ = done.stdout.partition("\n\nX against N: 6 points")
    assert table and len(answer.split("\n\n")) == 4
    answer, peak = " ".join(answer.split()), got["laws"]["usl"]["peak"]
    assert answer.startswith("X was highest at N = 16, with 65, and 9.69 % lower at the last load")
    assert f"The fitted law has its peak at N = {peak['N']:.0f} (95 % interval: " in answer
    (row,) = got["forecast"]
    low, X, high = (show(row[name]) for name in ("low", "X", "high"))
    assert (
        f"twice the last load, N = 64, X may be as low as {low} or as high as {high} (95 % "
        f"interval), with {X} in the middle: plan for the low end" in answer
    )
    low, X, high = (f"{100 * abs(row[name] / 58.7 - 1):.2g} %" for name in ("low", "X", "high"))
    assert f"the 58.7 at the last load, the low end is {low} less, the middle {X} less" in answer
    assert f"and the high end {high} more; with a probability of 80 %" in answer
    assert "From N = 16 to 32, X fell by 9.7 %. The forecast assumes that this goes on " in answer
    assert "but weakens: each doubling takes away less" in answer and CHECKED in answer
    law = got["laws"]["usl"]["estimates"]
    values = {name: law[name]["value"] for name in ("X1", "sigma", "kappa")}
    assert row["law"] == pytest.approx(float(LAWS["usl"](N=64.0, **values)))


def test_without_a_chosen_law_the_answer_says_so_before_any_number(tmp_path):
    path = write(tmp_path, "N,X\n1,10\n2,19\n4,33\n")
    said, got = nummodel("fit", path, "--at", "8").stdout, result("fit", path, "--at", "8")
    assert said.startswith("No law is chosen: too few points")
    assert "The highest X measured is 33, at N = 4." in " ".join(said.split())
    assert got["chosen"] is None and "\nat other loads\n" in said
    roof = {n: 10 * min(n, 16 - n) for n in range(1, 16)}
    path = write(
        tmp_path, "N,X\n" + "".join(f"{n},{X}\n{n},{X * 1.001}\n" for n, X in roof.items())
    )
    assert result("fit", path)["chosen"] is None
    assert nummodel("fit", path).stdout.startswith("No law fits these points: all laws are rej")
    assert got["forecast"][0]["X"] > 33 and got["forecast"][0]["law"] is None
    two = write(tmp_path, "N,X\n1,10\n2,19\n")
    said, got = nummodel("fit", two, "--at", "8").stdout, result("fit", two, "--at", "8")
    assert "No forecast: a forecast needs three different loads" in " ".join(said.split())
    assert set(got["forecast"][0].values()) == {8.0, None, "forecast"}
    assert "\nat other loads" not in said


def test_a_law_with_too_few_points_to_be_chosen_is_told_right_after_the_first(tmp_path):
    path = write(tmp_path, "N,X\n1,10\n2,19\n4,32\n8,40\n16,34\n")
    first = nummodel("fit", path).stdout.split("\n\n")[0].replace("\n", " ")
    told = "This law, amdahl, probably misses some points: usl fits better"
    assert told in first and first.index("levels off at") < first.index(told)


def test_up_to_the_last_load_forecasts_are_those_of_the_law_and_of_littles_law(tmp_path):
    """Of a line, the interval of a new measurement has a formula; R = N/X - Z."""
    N, X = np.array([1.0, 2, 4, 8, 16, 128]), np.array([10.4, 19.6, 40.9, 79.5, 161.0, 1279.0])
    rows = "".join(f"{n},{x}\n" for n, x in zip(N, X, strict=True))
    path = write(tmp_path, "N,X\n" + rows)
    options = ("--law", "linear", "--at", "64, 128", "--known", "Z=0.05")
    got = result("fit", path, *options)["forecast"]
    slope = N @ X / (N @ N)
    s2 = np.sum((X - slope * N) ** 2) / 5
    for at, row in zip((64, 128), got, strict=True):
        half = stats.t.ppf(0.975, 5) * np.sqrt(s2 * (1 + at**2 / (N @ N)))
        assert [row["N"], row["X"], row["law"]] == pytest.approx([at, slope * at, slope * at])
        ends = [slope * at - half, slope * at + half]
        assert [row["low"], row["high"]] == pytest.approx(ends, rel=1e-6)
        times = [at / x - 0.05 for x in (row["X"], row["high"], row["low"])]
        assert [row["R"], row["R_low"], row["R_high"]] == pytest.approx(times)
    unknown = result("fit", path, "--law", "linear", "--at", "64")["forecast"]
    assert unknown == [got[0] | dict.fromkeys(["R", "R_low", "R_high"])]
    impossible = result("fit", path, *options[:4], "--known", "Z=5")["forecast"]
    assert [row["R"] for row in impossible] == [None, None]


def test_beyond_the_last_load_forecasts_are_those_of_the_points(tmp_path):
    """Whatever the law: as `fits.forecast` says them, with a think time that R tells."""
    path = write(tmp_path, "N,X,R\n1,10,0.1\n2,19,0.105\n4,33,0.121\n8,52,0.154\n")
    options = ("--at", "4,16,32", "--level", "0.8")
    first, *beyond = result("fit", path, *options, "--law", "usl")["forecast"]
    assert first["X"] == pytest.approx(first["law"])
    columns = {"N": [1, 2, 4, 8], "X": [10, 19, 33, 52], "R": [0.1, 0.105, 0.121, 0.154]}
    expected = forecast(columns, [16, 32], 0.8).to_dict("records")
    for row, those in zip(beyond, expected, strict=True):
        assert {name: row[name] for name in those} == pytest.approx(those)
    amdahl = result("fit", path, *options, "--law", "amdahl")
    for row, same in zip(amdahl["forecast"][1:], beyond, strict=True):
        assert row | {"law": 0} == pytest.approx(same | {"law": 0})
    assert EXTRAPOLATION not in amdahl["warnings"]


def test_a_target_says_up_to_which_load_and_how_likely(tmp_path):
    path = write(tmp_path, "N,X,R\n1,10,0.1\n2,19,0.105\n4,33,0.121\n8,52,0.154\n")
    columns = {"N": [1, 2, 4, 8], "X": [10, 19, 33, 52], "R": [0.1, 0.105, 0.121, 0.154]}
    law = ("--law", "amdahl")
    got = result("fit", path, *law, "--target", "R=0.3", "--at", "4,16")["target"]
    load, low, high = largest_load(columns, 0.3)
    assert [got["load"], got["low"], got["high"]] == pytest.approx([load, low, high])
    assert got["chances"] == [{"N": 16.0, "chance": pytest.approx(chance(columns, [16], R=0.3)[0])}]
    said = " ".join(nummodel("fit", path, *law, "--target", "R=0.3").stdout.split())
    ends = f"N = {show(low)} only, or up to N = {show(high)} (95 % interval of the load)"
    assert f"0.3 or less may be kept up to {ends}, with N = {show(load)} in the middle" in said
    got = result("fit", path, *law, "--target", "X=60")["target"]
    found = smallest_load(columns, 60)
    ends = [np.inf if got[end] is None else got[end] for end in ("load", "low", "high")]
    assert ends == pytest.approx(found)
    likely = pytest.approx(chance(columns, [16], X=60)[0])
    assert got["chances"] == [{"N": 16.0, "chance": likely}]


@pytest.mark.parametrize(
    ("wanted", "load", "said"),
    [
        ("X=30", 4, "X of 30 or more was measured from N = 4 on."),
        ("X=9", 1, "X of 9 or more was measured from N = 1 on."),
        ("X=9000", None, "X of 9000 or more is not expected up to 16 times the last load."),
        ("R=0.11", 2, "or less was kept at N = 2, and exceeded at N = 4 and from there on."),
        (
            "R=0.01",
            None,
            "time of 0.01 or less was exceeded at all measured loads.",
        ),
        ("R=9000", None, "of 9000 or less is expected up to 16 times the last load and more"),
    ],
)
def test_a_target_is_answered_by_measurements_where_they_can(tmp_path, wanted, load, said):
    path = write(tmp_path, "N,X,R\n1,10,0.1\n2,19,0.105\n4,33,0.121\n8,52,0.154\n")
    options = ("fit", path, "--target", wanted, "--law", "amdahl")
    assert result(*options)["target"]["load"] == load
    assert said in " ".join(nummodel(*options).stdout.split())


def test_a_target_that_is_met_and_missed_again_says_so(tmp_path):
    path = write(tmp_path, "N,X,R\n1,3,0.3\n2,19,0.105\n4,33,0.121\n8,52,0.154\n16,40,0.4\n")
    told = nummodel("fit", path, "--law", "amdahl", "--target", "X=45").stdout
    said = " ".join(told.split())
    assert "X of 45 or more was measured at N = 8, but not at N = 16." in said
    got = result("fit", path, "--law", "amdahl", "--target", "R=0.2")["target"]
    assert got["load"] == 8 and "kept at N = 8, and exceeded at N = 16 and from" in got["said"]


@pytest.mark.parametrize(
    ("rows", "wanted", "said"),
    [
        (GOOD, "R=1", "cannot be forecast: response times are not known, expected a column R"),
        ("N,X\n1,10\n2,19\n", "X=30", "cannot be forecast: a forecast needs three different"),
        ("N,X\n1,10\n2,19\n", "X=15", "X of 15 or more was measured from N = 2 on."),
    ],
)
def test_a_target_without_a_forecast_says_why(tmp_path, rows, wanted, said):
    done = nummodel("fit", write(tmp_path, rows), "--target", wanted)
    assert done.returncode == 0 and said in " ".join(done.stdout.split())


def test_a_think_time_in_another_unit_is_told_and_not_used(tmp_path):
    path = write(tmp_path, GOOD)
    got = result("fit", path, "--known", "Z=500", "--at", "64")
    assert any("a think time of 500 allows a throughput of" in w for w in got["warnings"])
    assert got["forecast"][0]["X"] > 0 and got["forecast"][0]["R"] is None


def test_the_smaller_of_two_slopes_is_told(tmp_path):
    """X fell, and then rose; the forecast goes on with the fall."""
    X = [100, 180, 300, 310, 260, 200, 260]
    rows = "".join(f"{2**i},{x}\n" for i, x in enumerate(X))
    said = " ".join(nummodel("fit", write(tmp_path, "N,X\n" + rows)).stdout.split())
    assert "From N = 32 to 64, X rose by 30 %. Before that, X fell by" in said
    assert "The forecast assumes that the smaller of these changes goes on but weakens" in said


def test_a_rise_in_proportion_is_told_in_words(tmp_path):
    rows = "".join(f"{n},{50 * n}\n" for n in (1, 2, 4, 8, 16))
    said = " ".join(nummodel("fit", write(tmp_path, "N,X\n" + rows)).stdout.split())
    assert "X rose by 100 %." in said and "e+" not in said
    assert "The forecast assumes that this goes on nearly as it is." in said


def test_rows_held_out_are_compared_with_the_forecast_too(tmp_path):
    path = write(tmp_path, "N,X\n1,10\n2,19\n4,33\n8,52\n16,60\n32,5\n3,25\n")
    got = result("fit", path, "--holdout", "N>8")
    expected = forecast({"N": [1, 2, 3, 4, 8], "X": [10, 19, 25, 33, 52]}, [16, 32])
    for row, those, X in zip(got["held_out"], expected.itertuples(), (60, 5), strict=True):
        assert [row["value"], row["low"], row["high"]] == pytest.approx(
            [those.X, those.low, those.high]
        )
        assert row["observed"] == X and row["inside"] == (X == 60)
    assert result("fit", path, "--holdout", "N==2")["held_out"] == []


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (("--at", "513"), "forecasts beyond 16 times the last load were not checked"),
        (("--level", "0.99"), "checked up to a level of 0.95"),
    ],
)
def test_forecasts_that_nobody_checked_are_told(tmp_path, options, warning):
    path = write(tmp_path, GOOD)
    assert any(warning in told for told in result("fit", path, *options)["warnings"])
    few = result("fit", path, "--at", "64")["warnings"]
    assert not any("checked" in told for told in few)


@pytest.mark.parametrize(
    "wanted", ["R=0.15", "R=0.15s", "R=150ms", "R_ms=150", "R_us=150000", "resp time (ms)=150"]
)
def test_a_target_may_have_a_unit(tmp_path, wanted):
    path = write(tmp_path, "N,tps,resp time (ms)\n1,10,100\n2,19,105\n4,33,121\n8,52,154\n")
    options = ("fit", path, "--law", "amdahl", "--target")
    assert result(*options, wanted)["target"]["value"] == pytest.approx(0.15)
    said = " ".join(nummodel(*options, wanted).stdout.split())
    assert "A mean response time of 0.15 s or less was kept at N = 4" in said
    assert "may have another unit" not in said
    far = "Measured were 0.1 to 0.154 s: the target may have another unit"
    for other, told in (("15.3", False), ("15.5", True), ("0.0011", False), ("0.0009", True)):
        assert (far in " ".join(nummodel(*options, f"R={other}").stdout.split())) == told
        assert far not in " ".join(nummodel(*options, f"R={other}s").stdout.split())
    assert result(*options, "tps=50")["target"]["name"] == "X"


@pytest.mark.slow
def test_a_target_in_seconds_says_what_it_takes_the_throughput_for(tmp_path):
    """A think time alone does not tell whether the throughput is one of a second."""
    options = ("fit", write(tmp_path, GOOD), "--known", "Z=0.001", "--target")
    told = "The target is in seconds, and X is taken as that of a second."
    assert told in " ".join(nummodel(*options, "R=500ms").stdout.split())
    plain = " ".join(nummodel(*options, "R=0.5").stdout.split())
    assert "A mean response time of 0.5 or less" in plain and told not in plain


@pytest.mark.parametrize(
    "wanted", ["p95=1", "R", "R=", "R=-1", "X=0", "X=nan", "U=0.5", "R=1h", "R=s"]
)
def test_a_target_that_is_none_is_refused(tmp_path, wanted):
    done = nummodel("fit", write(tmp_path, GOOD), "--target", wanted)
    assert (
        done.returncode == 2
        and "mean response time in seconds, as in X=1000, R=0.5s or R=500ms (" in done.stderr
    )


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("R,slow,1,1,1,1,1", "R is not used: {path}:2: R is 'slow', expected a number"),
        (
            "R,n/a,1,1,1,1,",
            "R is not used: it is empty in rows 2, 7; --law closed uses it, and "
            "leaves out the rows",
        ),
        ("R,1,-1,1,1,1,1", "R is not used: {path}: R is -1, expected no negative number"),
        ("Z,-1,-1,-1,-1,-1,-1", "Z is not used: {path}: Z is -1, expected no negative number"),
        ("Z,0,1,0,1,0,1", "Z is not the same in all rows, and is not used"),
        ("c_cpu,1,1,1,1,2,2", "c_cpu is not the same in all rows, and is not used"),
    ],
)
def test_columns_of_a_system_that_are_not_used_are_named(tmp_path, column, message):
    rows = zip(GOOD.splitlines(), column.split(","), strict=True)
    path = write(tmp_path, "".join(f"{row},{cell}\n" for row, cell in rows))
    got = result("fit", path, "--law", "usl", "--at", "64")
    assert message.format(path=path) in got["warnings"]
    assert [row["R"] for row in got["forecast"]] == [None]


def test_a_fall_that_may_be_chance_is_told(tmp_path):
    """Throughput that levels off, and falls by 1 % a load: a fall alone speaks for the peak."""
    rows = zip(
        [1, 2, 4, 8, 16, 32, 64, 128], [100, 195, 385, 700, 1000, 990, 980, 970], strict=True
    )
    path = write(tmp_path, "N,X\n" + "".join(f"{n},{x}\n" for n, x in rows))
    said = " ".join(nummodel("fit", path).stdout.split())
    assert "Also, X falls from load to load over the last 4, so a closed system" in said
    alone = " ".join(nummodel("fit", path, "--law", "closed").stdout.split())
    assert "levels off at" in alone and "--law closed" not in alone
    assert "--law closed" not in nummodel("fit", path, "--law", "usl").stdout


def test_half_a_server_in_a_column_is_refused(tmp_path):
    path = write(tmp_path, GOOD.replace("\n", ",2.5\n").replace("X,2.5", "X,c_cpu"))
    expected = "c_cpu is 2.5, expected a whole number of at least 1"
    assert expected in result("fit", path)["laws"]["closed"]["refused"]


def test_a_closed_system_says_its_own_weights(tmp_path):
    path = write(tmp_path, GOOD)
    assert result("fit", path, "--law", "closed", "--known", "Z=0")["weights"] == "log"


def test_measured_response_times_tell_the_think_time(tmp_path):
    """Z = N/X - R, here 2; a column whose R is no such time is not used."""
    points = [(n, n / (2 + 0.1 * n)) for n in (1, 2, 4, 8, 16, 32)]
    for factor, R in ((0.1, 2.4), (5.0, None)):
        rows = "".join(f"{n},{x},{factor * n}\n" for n, x in points)
        path = write(tmp_path, f"N,X,R\n{rows}")
        got = result("fit", path, "--law", "amdahl", "--at", "24")
        assert got["forecast"][0]["R"] == (R and pytest.approx(R, rel=1e-6))
        assert any("requests are under way" in w for w in got["warnings"]) == (R is None)


def test_lack_of_fit_is_that_of_the_chosen_law_or_of_the_best(tmp_path):
    """The F test against repeated loads, by hand."""
    N, X = np.repeat([1.0, 2, 4, 8], 2), np.array([10.0, 10.2, 19, 19.4, 29, 29.2, 33, 33.4])
    rows = "".join(f"{n},{x}\n" for n, x in zip(N, X, strict=True))
    got = result("fit", write(tmp_path, "N,X\n" + rows), "--law", "linear")
    means = X.reshape(4, 2).mean(axis=1)
    within = np.sum((X.reshape(4, 2) - means[:, None]) ** 2) / 4
    between = np.sum(2 * (means - (N @ X / (N @ N)) * N[::2]) ** 2) / 3
    p = stats.f.sf(between / within, 3, 4)
    assert got["laws"]["linear"]["lack_of_fit"]["p"] == pytest.approx(p)
    assert "repeated loads" in got["lack_of_fit"]["how"]
    few = result("fit", write(tmp_path, "N,X\n1,10\n2,19\n"))
    assert few["lack_of_fit"] is None
    assert all(law.get("lack_of_fit") is None for law in few["laws"].values())


def test_runs_that_share_an_error_are_noticed_by_a_column_that_names_them(tmp_path):
    """Also where the rows are not in the order of the runs."""
    random = np.random.default_rng(4)
    points = [(n, run) for n in (1, 2, 4, 8, 16, 32) for run in range(4)]
    for spread, noticed in ((0.1, True), (0.0, False)):
        shared = np.exp(spread * np.array([-1, 1, 0.5, -0.5]))
        X = [9 * n * shared[run] * np.exp(0.01 * random.standard_normal()) for n, run in points]
        rows = [f"{n},{run},{x}" for (n, run), x in zip(points, X, strict=True)]
        path = write(tmp_path, "\n".join(["N,run,X", *random.permutation(rows)]))
        warned = result("fit", path, "--weights", "log", "--law", "linear")["warnings"]
        assert any("points of the same run" in w for w in warned) == noticed


def test_weights_that_the_points_tell_are_named(tmp_path):
    random = np.random.default_rng(5)
    N = np.repeat([1, 2, 4, 8, 16, 32], 3)
    X = 9 * N * np.exp(0.05 * random.standard_normal(18))
    rows = "".join(f"{n},{x}\n" for n, x in zip(N, X, strict=True))
    path = write(tmp_path, "N,X\n" + rows)
    assert result("fit", path, "--weights", "auto") == result("fit", path, "--weights", "log")


@pytest.mark.parametrize("name, start", [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml")])
@pytest.mark.parametrize("law", ["usl", "none"])
def test_a_figure_is_written(tmp_path, name, start, law):
    path = write(tmp_path, FALL if law == "usl" else "N,X\n1,10\n2,19\n4,33\n")
    options = ("--at", "128", "--holdout", "N==2") if law == "usl" else ()
    done = nummodel("fit", path, *options, "--plot", tmp_path / name)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_bytes().startswith(start)


def test_what_the_quantities_mean_is_printed():
    said = nummodel(*ZVM).stdout
    for name in ("X1", "sigma", "kappa"):
        assert re.search(rf"^{name} +{re.escape(quantity(name).meaning)}$", said, re.M)


def test_alone_it_prints_its_help():
    done = nummodel()
    assert done.returncode == 0 and done.stdout == nummodel("--help").stdout
    assert done.stdout.count("\n") > 8 and done.stderr == ""


def test_what_is_quoted_cannot_steer_a_terminal_or_fill_it(tmp_path):
    odd = "X\x07\u202e"
    text = GOOD.replace("N,X", f"N,{odd}")
    done = nummodel("fit", write(tmp_path, text), "--y", odd)
    assert done.returncode == 0 and r"X\x07\u202e against N" in done.stdout
    for path, what in (
        (write(tmp_path, GOOD.replace("19", "\x1b[2J"), "1"), "expected a number"),
        (write(tmp_path, GOOD.replace("19", "x" * 100_000), "2"), "expected a number"),
        (write(tmp_path, GOOD.replace("X", "x" * 100_000), "3"), ""),
        ("x" * 5000, "File name too long"),
    ):
        said = nummodel("fit", path).stderr
        assert what in said and said.replace("\n", "").isprintable()
        assert len(said) < 1100


def test_a_letter_that_only_looks_like_one_is_no_number(tmp_path):
    assert "'\u0131nf', expected a number" in refused(
        "fit", write(tmp_path, GOOD.replace("19", "\u0131nf"))
    )


def installed(*arguments, **options):
    command = [sys.executable, "-m", "nummodel", *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **options)


def test_standard_input_is_a_file_as_well(tmp_path):
    done = installed("fit", "-", "--json", input=GOOD, stdout=subprocess.PIPE)
    assert json.loads(done.stdout) == result("fit", write(tmp_path, GOOD))
    bad = installed("fit", "-", input="N,X\n1,a\n2,3\n", stdout=subprocess.PIPE)
    assert bad.returncode == 2 and bad.stderr.startswith("nummodel: -:2: X is 'a'")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no file without end")
def test_a_file_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("nummodel.records.readers.table.LARGEST", 1000)
    assert "/dev/zero: more than 64 MiB" in refused("fit", "/dev/zero")
    path = write(tmp_path, GOOD + 1000 * "64,100\n")
    assert f"{path}: more than 1,000 characters, expected rows" in refused("fit", path)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_is_full_is_one_line():
    with open("/dev/full", "w") as full:
        for arguments in (ZVM, (*ZVM, "--json"), ("list",)):
            done = installed(*arguments, stdout=full)
            assert done.returncode == 1
            assert done.stderr == "nummodel: output: No space left on device\n"


@pytest.mark.skipif(os.name != "posix", reason="as a shell closes it by >&-")
def test_an_output_that_is_closed_is_one_line():
    done = installed(*ZVM, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (1, "nummodel: standard output is closed\n")


@pytest.mark.slow
def test_names_that_the_terminal_does_not_know_are_escaped(tmp_path):
    path = write(tmp_path, GOOD.replace("N,X", "N,X \u03a9"))
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = installed("fit", path, "--y", "X \u03a9", stdout=subprocess.PIPE, env=environment)
    assert done.returncode == 0 and r"X \u03a9 against N" in done.stdout, done.stderr


def test_a_weights_column_multiplies_the_squares(tmp_path):
    rows = list(csv.DictReader(GOOD.splitlines()))
    text = "N,X,w\n" + "".join(f"{r['N']},{r['X']},{float(r['X']) ** -2}\n" for r in rows)
    ours = result("fit", write(tmp_path, text), "--weights", "w")["laws"]["usl"]["estimates"]
    N, X = (np.array([float(row[name]) for row in rows]) for name in "NX")
    theirs, covariance = curve_fit(usl, N, X, p0=[10, 0.05, 1e-3], sigma=X)
    assert [e["value"] for e in ours.values()] == pytest.approx(theirs, rel=1e-5)
    assert [e["stderr"] for e in ours.values()] == pytest.approx(
        np.sqrt(np.diag(covariance)), rel=1e-3
    )


def usl(N, X1, sigma, kappa):
    return X1 * N / (1 + sigma * (N - 1) + kappa * N * (N - 1))


def test_residuals_that_speak_for_log_weights_are_told(tmp_path):
    noise = np.array([1.05, 0.95, 1.04, 0.97, 1.05, 0.96, 1.03, 0.95])
    X = 10 * 2.0 ** np.arange(8) * noise
    text = "N,X\n" + "".join(f"{2**i},{x}\n" for i, x in enumerate(X))
    warned = result("fit", write(tmp_path, text), "--law", "linear")["warnings"]
    assert any("--weights log" in warning for warning in warned)
    quiet = result("fit", write(tmp_path, text), "--law", "linear", "--weights", "log")
    assert quiet["warnings"] == []


def test_points_that_a_law_meets_exactly_speak_for_no_weights(tmp_path):
    exact = "N,X\n" + "".join(f"{n},{10 * n}\n" for n in (1, 2, 4, 8, 16, 32))
    assert not any("weights" in w for w in result("fit", write(tmp_path, exact))["warnings"])


def test_laws_that_need_more_points_are_refused_one_by_one(tmp_path):
    got = result("fit", write(tmp_path, "N,X\n1,10\n2,19\n"))
    assert got["laws"]["usl"] == {
        "refused": "2 different N, expected at least 3 to estimate X1, sigma, kappa"
    }
    assert got["laws"]["amdahl"]["estimates"]["sigma"]["stderr"] is None
    spare = [warning for warning in got["warnings"] if "no points to spare" in warning]
    assert all("3 points" in warning for warning in spare) and len(spare) == 2


def test_a_level_is_printed_with_its_digits(tmp_path):
    done = nummodel("fit", write(tmp_path, GOOD), "--level", "0.9999999")
    assert "in brackets: 99.99999 % intervals" in done.stdout


def test_fit_for_people():
    done = nummodel(*ZVM, "--weights", "relative", "--holdout", "N > 24")
    assert done.returncode == 0
    assert "sigma" in done.stdout and "observed 15806  inside" in done.stdout
    assert "chosen: none" in done.stdout and "warning: usl: the peak is" in done.stderr


@pytest.mark.parametrize(
    "text, where, what",
    [
        ("", "", "empty"),
        ("\n \n", "", "empty"),
        ("N,X\n", "", "header only"),
        ("N,X\n1,2\n", "", "one row"),
        (GOOD.replace("19", "fast"), ":3:", "'fast', expected a number"),
        (GOOD.replace("19", ""), ":3:", "'', expected a number"),
        (GOOD.replace("19", "nan"), ":3:", "finite"),
        (GOOD.replace("19", "inf"), ":3:", "finite"),
        (GOOD.replace("19", "1e999"), ":3:", "finite"),
        (GOOD.replace("4,", "-4,"), ":4:", "positive"),
        (GOOD.replace("4,", "0,"), ":4:", "positive"),
        (GOOD.replace("35", "0"), ":4:", "positive"),
        (GOOD.replace("N,X", "N,N"), ":1:", "'N' appears twice"),
        (GOOD.replace("4,35", "4,35,1"), ":4:", "3 cells, expected 2"),
        (GOOD.replace("4,35", "4"), ":4:", "1 cells, expected 2"),
        (b"\x89PNG\r\n\x1a\n\0\0", "", "no text in UTF-8"),
        (GOOD.encode() + b"\0", "", "bytes that are no text"),
        ("N\n1\n2\n", "", "no column is known as the throughput"),
        ('N,X\n1,"10\n2,20\n', ":3:", "unexpected end of data"),
        ("1,10\n2,20\n4,30\n", ":1:", "expected a header"),
        (GOOD.replace("19", "1e-300"), ":3:", "1e-100"),
        (GOOD.replace("19", "1_9"), ":3:", "expected a number"),
        (GOOD.replace("19", '"1,9"'), ":3:", "expected a number with a decimal point"),
        (GOOD.replace("19", '"1,940"'), ":3:", "without thousands separators, such as 1940 or"),
        (GOOD.replace("19", '"-1,940,000.5"'), ":3:", "without thousands separators"),
        ("N;X\n1;540\n2;1.010\n4;1.940\n", ":3:", "expected 1010 if points part thousands, or"),
        ("N;X\n512;9\n1.024;15\n2.048;17\n", ":3:", "expected 1024 if points part thousands, or"),
    ],
)  # fmt: skip
def test_bad_tables(tmp_path, text, where, what):
    path = write(tmp_path, text)
    message = refused("fit", path)
    assert f"{path}{where}" in message and what in message


@pytest.mark.parametrize(
    "arguments, what",
    [
        (("missing.csv",), "No such file"),
        (("/",), "more than 10,000 files"),
        ((TABLE, "--x", "cores"), "no column 'cores'"),
        ((TABLE, "--y", "speed"), "no column 'speed'"),
        ((TABLE, "--weights", "trust"), "weights 'trust', expected absolute, relative, log, auto"),
        ((TABLE, "--y", "run_id"), "'AVPK5187', expected a number"),
        ((TABLE, "--y", "itr_per_s", "--law", "moore"), "unknown law 'moore', expected all or"),
        ((TABLE, "--y", "itr_per_s", "--law", "amdhal"), "(did you mean amdahl?)"),
        ((TABLE, "--y", "itr_per_s", "--at", "48,x"), "--at 48,x: expected positive loads, as in"),
        ((TABLE, "--y", "itr_per_s", "--at", "-48"), "expected positive loads"),
        ((TABLE, "--y", "itr_per_s", "--at", ""), "expected positive loads"),
        (
            (TABLE, "--y", "itr_per_s", "--known", "c=4"),
            "servers, as in Z=1,c_cpu=4; the stations here are cpu and lock",
        ),
        (
            (TABLE, "--y", "itr_per_s", "--known", "c_cpu=4", "--known", "Z=1,c_cpu=8"),
            "--known c_cpu=4,Z=1,c_cpu=8: c_cpu stands there twice, expected it once",
        ),
        (
            (TABLE, "--y", "itr_per_s", "--known", "Z=-1"),
            "expected a think time or servers, as in Z=1,c_cpu=4",
        ),
        ((TABLE, "--y", "itr_per_s", "--plot", "a.pdf"), "--plot a.pdf: expected a name that ends"),
        ((TABLE, "--y", "itr_per_s", "--plot", "/proc/no/a.png"), "--plot /proc/no/a.png: No such"),
        ((TABLE, "--y", "itr_per_s", "--holdout", "N>6"), "leaves 1 row"),
        ((TABLE, "--y", "itr_per_s", "--holdout", "N>0"), "leaves 0 rows"),
        ((TABLE, "--y", "itr_per_s", "--holdout", "N>12", "--law", "usl"), "at least 3"),
        ((TABLE, "--y", "itr_per_s", "--holdout", "N=6"), "no comparison"),
        ((TABLE, "--y", "itr_per_s", "--holdout", "thread>6"), "'thread' is not the load, N"),
        ((TABLE, "--y", "itr_per_s", "--holdout", "N>6 and N<30"), "not the load"),
        ((TABLE, "--y", "itr_per_s", "--holdout", "__import__('os')"), "no comparison"),
        ((TABLE, "--y", "itr_per_s", "--level", "1.5"), "level"),
        ((TABLE, "--level", "much"), "much"),
        ((TABLE, "--y", "itr_per_s", "--level", "nan"), "between 0 and 1"),
        ((TABLE, "--color", "red"), "--color"),
        ((), "FILE"),
    ],
)
def test_bad_use_of_fit(arguments, what):
    assert what in refused("fit", *arguments)


@pytest.mark.parametrize(
    "arguments, what",
    [
        (("99",), "no such notebook, expected a path"),
        (("21", "file=x"), "file=x: no such notebook (a parameter is set by -p file=x)"),
        (("21-your-scaling",), "(did you mean 21-your-scaling-data? Its number is enough)"),
        (("21", "-p", "level=95"), "float above 0 and below 1, as in level=0.95"),
        (("21", "-p", "level=1"), "float above 0 and below 1, as in level=0.95"),
        (("11", "-p", "trian=[6,12]"), "unknown parameter 'trian'"),
        (("11", "-p", "level=high"), "expected float"),
        (("11", "-p", "train={}"), "expected list"),
        (("01", "-p", "sigma=2"), "at most 1"),
        (("11", "-p", "level"), "expected name=value"),
        (("01", "-p", "N_max=1.5"), "expected int"),
        (("01", "-p", "N_max=true"), "expected int"),
        (("--jobs", "0"), "jobs"),
        (("01", "-p", "sigma=0.1", "--sweep", "sigma=0.2,0.3"), "given twice"),
        (("11", "--params", "runs.yaml"), "expected no notebook"),
        (("--params", "nowhere.yaml"), "No such file"),
        (("--timeout", "0"), "timeout"),
        (("--output", "/proc/nowhere"), "writable folder"),
        (("--output", "/dev/null"), "folder"),
        (("--output", ""), "--output is empty, expected the name of a folder"),
        (("21", "-p", "file=nope.csv"), "parameter file is 'nope.csv', expected an existing file"),
        (("21", "--sweep", "file=cisco,nope"), "file is 'nope'"),
    ],
)
def test_bad_use_of_report(arguments, what, tmp_path):
    assert what in refused("report", "--output", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_report_of_one_run_tells_its_page_and_ends_with_what_failed(tmp_path):
    """Neither on stdout, which has the index alone."""
    good = write(tmp_path, GOOD)
    bad = write(tmp_path, GOOD.replace("19", "fast"), "bad.csv")
    for path, code in ((good, 0), (bad, 1)):
        out = tmp_path / f"out{code}"
        done = nummodel("report", "21", "-p", f"file={path}", "--output", out)
        assert (done.returncode, done.stdout) == (code, f"{out / 'index.html'}\n"), done.stderr
        (page,) = out.glob("21-*.html")
        assert f"nummodel: its page: {page}\n" in done.stderr
        assert done.stderr.endswith("nummodel: 1 of 1 runs failed\n") == bool(code)


@pytest.mark.parametrize("kind", ["notebooks", "laws", "tables", "readers", "columns"])
def test_lists(kind):
    lines = nummodel("list", kind).stdout.splitlines()
    assert lines and all(len(line.split(maxsplit=1)) == 2 for line in lines)
    everything = nummodel("list").stdout
    assert kind in everything and all(line in everything for line in lines)


@pytest.mark.parametrize("command", [(), ("report",), ("list",), ("fit",), ("compare",)])
def test_every_command_has_help(command):
    done = nummodel(*command, "--help")
    assert done.returncode == 0 and "Usage: nummodel" in done.stdout


def test_unknown_commands_are_refused():
    assert "No such command 'guess'" in refused("guess")


@pytest.mark.parametrize("command", ["script", "module"])
def test_the_installed_command(command):
    """Both ways of calling it, in a process of their own: exit code, streams, no traceback."""
    script = Path(sys.executable).parent / "nummodel"
    start = [script] if command == "script" else [sys.executable, "-m", "nummodel"]
    good = subprocess.run([*start, "list", "laws"], capture_output=True, text=True)
    assert good.returncode == 0 and "amdahl" in good.stdout and good.stderr == ""
    bad = subprocess.run([*start, "fit", "missing.csv"], capture_output=True, text=True)
    assert bad.returncode == 2 and bad.stdout == ""
    assert (
        bad.stderr == "nummodel: missing.csv: No such file or directory, expected a readable file\n"
    )


FALL = "N,X\n2,19.1\n8,54.4\n16,72.2\n32,70.1\n64,52.6\n"


def test_a_law_that_has_too_few_points_to_be_chosen_is_told_if_it_fits_better(tmp_path):
    """The p value is that of an F test with one and two degrees of freedom, halved."""
    got = result("fit", write(tmp_path, FALL))
    assert got["chosen"] == "amdahl"
    rss = {law: np.sum(np.square(got["laws"][law]["residuals"])) for law in ("amdahl", "usl")}
    p = stats.f.sf((rss["amdahl"] - rss["usl"]) / (rss["usl"] / 2), 1, 2) / 2
    (told,) = [w for w in got["warnings"] if "fits significantly better" in w]
    assert f"usl fits significantly better than amdahl (p = {p:.2g})" in told
    assert "takes 6 points, and there are 5" in told


def test_a_peak_that_no_point_shows_is_told(tmp_path):
    rows = "".join(
        f"{n},{100 * n / (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1)):.4f}\n"
        for n in (1, 2, 4, 6, 8, 11, 16)
    )
    got = result("fit", write(tmp_path, "N,X\n" + rows), "--law", "usl")
    assert got["laws"]["usl"]["peak"]["N"] == pytest.approx((0.95 / 0.001) ** 0.5, rel=0.01)
    assert any("the peak is beyond the last load, 16" in w for w in got["warnings"])
    for text in (FALL, "N,X\n" + rows.rsplit("16,")[0] + "30.5,903.7706\n"):
        shown = result("fit", write(tmp_path, text), "--law", "usl")
        assert not any("beyond the last load" in w for w in shown["warnings"])
    assert 30.5 < shown["laws"]["usl"]["peak"]["N"] < 31


def test_a_table_whose_name_is_misspelt_is_meant():
    done = nummodel("fit", "zvm-scalin")
    assert done.returncode == 2 and "did you mean zvm-scaling?" in done.stderr


def test_a_published_table_is_called_by_its_name_where_it_is_refused():
    done = nummodel("fit", "zvm-scaling")
    assert done.returncode == 2 and "nummodel fit zvm-scaling --use N=N" in done.stderr
    assert done.stderr.startswith("nummodel: zvm-scaling: ")


def test_a_published_table_is_fitted_by_its_name():
    named = result("fit", "zvm-scaling", "--y", "itr_per_s")
    assert named == result(*ZVM)


@pytest.mark.slow
def test_the_load_has_two_names_in_a_holdout(tmp_path):
    path = write(tmp_path, GOOD.replace("N,", "threads,"))
    one, other = (result("fit", path, "--holdout", f"{name}>8") for name in ("N", "threads"))
    assert one == other and one["n"] == 4
    idle = result("fit", path, "--holdout", "N>99")
    assert any("holds no row out" in warning for warning in idle["warnings"])


@pytest.mark.parametrize(
    "holdout, beyond",
    [("N>24", 1), ("N==32", 1), ("N==12", 0), ("N<12", 0), ("N>99", 0), (None, 0)],
)
def test_a_prediction_beyond_the_last_load_used_says_how_far_such_were_off(holdout, beyond):
    """In JSON and beside the tables; not where the loads predicted lie inside those used."""
    options = ("--holdout", holdout) if holdout else ()
    assert result(*ZVM, *options)["warnings"].count(EXTRAPOLATION) == beyond
    done = nummodel(*ZVM, *options)
    assert done.stderr.count(f"nummodel: warning: {EXTRAPOLATION}\n") == beyond


@pytest.mark.slow
def test_thousands_of_rows(tmp_path):
    N = np.tile(np.arange(1, 51), 100)
    X = (
        10
        * N
        / (1 + 0.05 * (N - 1))
        * np.exp(0.02 * np.random.default_rng(1).standard_normal(5000))
    )
    path = write(tmp_path, "N,X\n" + "".join(f"{n},{x}\n" for n, x in zip(N, X, strict=True)))
    got = result("fit", path)
    assert got["n"] == 5000 and got["laws"]["usl"]["loo_rmse"] > 0
    low, high = (got["laws"]["amdahl"]["estimates"]["sigma"][end] for end in ("low", "high"))
    assert low < 0.05 < high


def test_data_that_only_fall_are_called_neither_linear_nor_superlinear(tmp_path):
    text = "N,X\n1,10\n2,8\n4,6\n8,3\n16,2\n32,1\n"
    got = result("fit", write(tmp_path, text))
    assert got["chosen"] == "usl" and "amdahl is rejected" in got["why"]
    assert "superlinear" not in " ".join(got["warnings"])


@pytest.mark.parametrize(
    "rule, weights",
    one_in(4, product(["constant", "line", "collapse"], ["absolute", "relative", "log"])),
)
def test_degenerate_data_have_an_answer(tmp_path, rule, weights):
    N = [1, 50, 100, 150, 200, 250] if rule == "collapse" else [1, 2, 3, 4, 5, 6, 7]
    X = {"constant": [50] * 7, "line": [100 * n for n in N], "collapse": [100, 30, 14, 11, 7, 6.1]}
    text = "N,X\n" + "".join(f"{n},{x}\n" for n, x in zip(N, X[rule], strict=True))
    path = write(tmp_path, text)
    held = ("--holdout", "N<2") if rule == "collapse" else ()
    assert "chosen" in nummodel("fit", path, "--weights", weights, *held).stdout


@pytest.mark.parametrize("swapped", one_in(2, [False, True]))
@pytest.mark.slow
def test_a_load_of_1e30_has_an_answer(tmp_path, swapped):
    """There rounding hides where the slope of a curve is zero: the peak may lack its interval."""
    N = [1, 2, 4, 8, 2, 16, 1e30, 64, 128, 256] if swapped else [1, 4, 8, 12, 16, 1e30, 64]
    X = [24456, 45314, 78024, 126892, 45314, 129029, 127780, 125526, 124158, 116337]
    X = X if swapped else [20, 78, 130, 170, 190, 280, 310]
    text = "N,X\n" + "".join(f"{n},{x}\n" for n, x in zip(N, X, strict=True))
    peak = result("fit", write(tmp_path, text))["laws"]["usl"]["peak"]
    assert peak["N"] > 1e9 and peak["X"] > 0
    assert peak["low"] is None or peak["low"] < peak["N"]


@pytest.mark.parametrize(
    "options, told",
    [
        (("--y", "p99_ms"), "'p99_ms' is a time by its name"),
        (("--y", "run"), "'run' numbers the runs by its name"),
        (("--y", "tps", "--weights", "stddev"), "for a standard error s they are 1/s^2"),
        slow(("--y", "tps", "--weights", "run"), None),  # how many runs each row is the mean of
        slow(("--y", "tps", "--weights", "w"), None),
        slow(("--y", "tps"), None),
    ],
)
def test_columns_that_the_user_names_may_look_odd(tmp_path, options, told):
    rows = [f"{n},{i},{9 * n},{3 + n},{i + 1},{i + 2}" for i, n in enumerate((1, 2, 4, 8, 16), 1)]
    path = write(tmp_path, "\n".join(["threads,run,tps,p99_ms,stddev,w", *rows]))
    warned = [w for w in result("fit", path, *options)["warnings"] if "name" in w or "1/s^2" in w]
    assert [told in w for w in warned] == [True] * bool(told), warned


def test_a_curve_that_asks_more_of_the_processors_than_they_have_is_told(tmp_path):
    """By the utilisation law: at 90 % in use, X can grow by a ninth."""
    rows = [(N, 100 * N / (1 + 0.05 * (N - 1))) for N in (1, 2, 3, 4, 6, 8)]
    busy = 0.9 / rows[-1][1]
    path = tmp_path / "points.csv"
    lines = [f"{N},{X},{busy * X}" for N, X in rows]
    path.write_text("\n".join(["N,X,U_cpu", *lines]) + "\n")
    told = " ".join(nummodel("fit", path, "--law", "amdahl").stdout.split())
    most = 100 * 8 / 1.35 / 0.9
    assert "U_cpu is 90 % at N = 8: as long as each transaction needs as much of cpu, X " in told
    assert f"cannot exceed about {most:.3g}, but" in told
    lines = [f"{N},{X},{0.5 * busy * X}" for N, X in rows]
    path.write_text("\n".join(["N,X,U_cpu", *lines]) + "\n")
    assert "cannot exceed" not in nummodel("fit", path, "--law", "amdahl").stdout
    lines = [f"{N},{X},{busy * X}" for N, X in [*rows[:-2], (6, 1.3 * rows[-1][1]), rows[-1]]]
    path.write_text("\n".join(["N,X,U_cpu", *lines]) + "\n")
    assert "cannot exceed" not in nummodel("fit", path, "--law", "amdahl").stdout


def test_processors_that_are_busy_with_the_work_of_others_are_told(tmp_path):
    path = tmp_path / "points.csv"
    rows = [f"{N},{X},{U},2" for N, X, U in [(1, 50, 0.97), (2, 90, 0.98), (4, 95, 1), (8, 96, 1)]]
    path.write_text("\n".join(["N,X,U_cpu,c_cpu", *rows]) + "\n")
    (told,) = [w for w in result("fit", path)["warnings"] if "servers are busy" in w]
    assert told.startswith("at N = 1, U_cpu says that 1.94 servers are busy, which is more than")


def test_a_device_that_was_idle_is_told_and_not_used(tmp_path):
    loads = (1, 2, 4, 8, 16)
    each = [(n, n / (0.1 + 0.01 * n), 0.1 * n / (1 + 0.1 * n)) for n in loads]
    rows = "".join(f"{n},{X:.4f},{U:.4f},0\n" for n, X, U in each)
    done = nummodel("fit", write(tmp_path, "N,X,U_cpu,U_disk\n" + rows))
    assert done.returncode == 0 and "U_disk is 0 at all loads, and is not used" in done.stderr


def test_rates_of_arrivals_are_no_numbers_of_users(tmp_path):
    """At 240 a second four processors of 30 ms are overloaded: no response time is told."""
    rows = "".join(
        f"{n},{n},{0.03 / (1 - n / 133.4):.4f},{n * 0.0075}\n" for n in (20, 60, 90, 120)
    )
    got = result("fit", write(tmp_path, "lamda,X,R,U_cpu\n" + rows), "--at", "240")
    assert "closed" not in got["laws"] and got["forecast"][0]["R"] is None
    assert any("lamda is a rate of arrivals" in warning for warning in got["warnings"])


@pytest.mark.slow
def test_a_target_is_in_the_unit_of_its_name(tmp_path):
    """Transactions a minute are made those of a second where response times have a unit."""
    path = write(tmp_path, "users,tpm,latency_ms\n1,600,100\n2,1190,100\n4,2300,103\n8,4200,112\n")
    said = [nummodel("fit", path, "--target", t).stdout for t in ("tpm=4000", "X_per_s=66.7")]
    assert all("was measured from users = 8 on" in " ".join(text.split()) for text in said)
    refused = nummodel("fit", path, "--target", "X=4000")
    assert refused.returncode == 2
    assert "tpm was made X_per_s, expected tpm=... or X_per_s=..." in refused.stderr
