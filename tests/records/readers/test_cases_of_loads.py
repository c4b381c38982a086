"""Outputs of load generators as people keep them, from public repositories and threads: each has
the figures that it prints, to the printed digits.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner

from nummodel.cli import cli
from nummodel.records import readers

CASES = Path(__file__).parent / "cases"
SKIP = "50-sysbench-skip-trx/all"
SWEEP = [(16, 142314.859075), (32, 152218.49943), (64, 153319.188482), (128, 150200.603049)]
SKIPPED = {
    "mysql1": [939.33, 1751.04, 2518.02, 2947.74, 2833.18, 2635.23, 2603.93],
    "proxy124": [746.05, 1496.15, 2549.47, 3624.82, 4137.13, 3819.13, 3266.03],
}
INSTANCES = {
    "m5a.large": (3498.13, 3106.26, 2956.88),
    "m5a.xlarge": (5703.13, 6107.75, 5854.27),
    "m5a.2xlarge": (7584.00, 12574.59, 11927.17),
    "m5a.4xlarge": (8285.35, 23406.79, 24481.16),
    "m5a.8xlarge": (8348.54, 29960.02, 39743.37),
}


def read(path):
    """What a case is read as."""
    name, reading = readers.read(CASES / path)
    assert set(reading.table) <= set(reading.columns)
    return name, reading.table, reading.left_out


@pytest.mark.parametrize(
    ("path", "tool", "figures"),
    [
        (
            "03-sysbench-100-threads/sysbench.log",
            "sysbench",
            {"N": 100, "X": 12228.34, "R": 0.00817, "R_p95": 0.01346},
        ),
        ("05-pgbench-15-P/pgbench.txt", "pgbench", {"N": 8, "X": 337.245709, "R": 0.023702}),
        (
            "07-pgbench-custom-script/pgbench.txt",
            "pgbench",
            {"N": 50, "X": 545.965503, "R": 0.091306},
        ),
        ("08-pgbench-C-scripts/pgbench.txt", "pgbench", {"N": 20, "X": 58.740729, "R": 0.340479}),
        ("10-wrk-indented/wrk.txt", "wrk", {"N": 200, "X": 5744.11, "R": 0.03494}),
        ("11-wrk2-calibration/wrk.txt", "wrk", {"clients": 500, "X": 1850.76, "R": 19.02}),
        (
            "22-locust-stats/locust_stats.csv",
            "locust",
            {"X": 153.69082080590806, "R": 17.83331925543083, "failed": 9267},
        ),
        ("23-ab/ab.txt", "ab", {"N": 10, "X": 96.37, "R": 0.103762}),
        ("24-hey/hey.txt", "hey", {"X": 643.0496, "R": 0.031, "failed": 2}),
        ("26-vllm/vllm.txt", "serving", {"X": 300 / 577.53, "clients": 25}),
        (
            "53-sysbench-0.5-1000/s.txt",
            "sysbench",
            {"N": 1000, "X": 13486.29, "R": 0.07379, "R_p95": 0.08487},
        ),
        ("55-autocannon/autocannon.txt", "autocannon", {"N": 100, "X": 2105.94, "R": 0.04699}),
        ("56-jmeter-jtl/results.jtl", "jmeter", {"N": 2, "X": 4 / 2.521, "R": 2.521 / 4}),
        ("57-vegeta/vegeta.txt", "vegeta", {"X": 50.01, "R": 0.001257}),
        ("61-k6-arrival-500/k6.json", "k6", {"X": 148.42674574397978, "clients": 240}),
        ("64-k6-ramp-100/k6.json", "k6", {"X": 6.5904002351602635, "R": 12.563465956191583}),
        ("67-wrk-zsh-prompt/wrk.txt", "wrk", {"N": 20, "X": 47.90, "R": 0.41318}),
        ("69-sysbench-joined-lines/s.txt", "sysbench", {"N": 12, "X": 385.37, "R": 0.03113}),
    ],
)
def test_one_run_has_its_printed_figures(path, tool, figures):
    name, table, _ = read(path)
    assert name == tool
    assert len(table) == 1
    row = table.iloc[0].to_dict()
    assert {n: row[n] for n in figures} == pytest.approx(figures, rel=1e-9)
    assert ("N" in row) == ("N" in figures or (tool == "k6" and "ramp" in path))


@pytest.mark.parametrize("name", ["pgbench.txt", "readme.md"])
def test_a_sweep_in_a_shell_or_a_page_has_a_row_for_each_load(name):
    _, table, _ = read(f"04-pgbench-readme-sweep/{name}")
    assert [*zip(table["N"], table["X"], strict=True)] == SWEEP
    assert table["R"].tolist() == [0.000115, 0.000212, 0.00042, 0.000854]


@pytest.mark.parametrize("series", SKIPPED)
def test_transactions_that_were_skipped_are_events_over_time(series):
    for power, X in enumerate(SKIPPED[series], 3):
        _, table, told = read(f"{SKIP}/{series}_thr{2**power}.log")
        assert table["N"].tolist() == [2**power]
        assert round(table["X"][0], 2) == X
        assert "X is events over total time: the rate that is printed is 0" in told


def test_what_makes_a_run_worthless_is_told_first():
    _, table, told = read("12-wrk-errors/wrk.txt")
    assert table["N"].tolist() == [40, 40]
    assert table["X"].tolist() == [3624.15, 343.22]
    assert told[0].startswith("run 1: 459,249 failures beside 108,974 successes")
    assert any("read 459216" in what for what in told)


def test_machines_in_one_file_are_told_apart():
    _, table, _ = read("51-supabase-pgbench/PGBENCH_GET_SINGLE.txt")
    assert len(table) == 15
    for instance, expected in INSTANCES.items():
        of = table[table["series"] == instance]
        assert of["N"].tolist() == [10, 50, 100]
        assert of["X"].round(2).tolist() == [*expected]


def test_the_screen_of_k6_has_a_row_for_each_whole_run():
    _, table, told = read("52-k6-screen-many/K6_GET_SINGLE.txt")
    assert table["N"].tolist() == [10, 50]
    assert table["X"].tolist() == [2551.265784, 2577.743879]
    assert table["R"].tolist() == [0.00384, 0.01928]
    assert told[0].startswith("run 3: left out: line 121: no rate of http_reqs")


def test_a_ramp_of_locust_is_no_load():
    _, table, told = read("21-locust-history/locust_stats_history.csv")
    assert table["N"].tolist() == [100, 200]
    assert table["X"].tolist() == pytest.approx([47.9, 91.75])
    assert "left out: too few rows at 0, 10 users (a ramp)" in told


@pytest.mark.parametrize(
    "path", ["11-wrk2-calibration/wrk.txt", "57-vegeta/vegeta.txt", "26-vllm/vllm.txt"]
)
def test_a_rate_that_was_set_is_no_load(path):
    _, table, told = read(path)
    assert "N" not in table
    assert "requests came at a rate that was given, so N is no load" in told
    assert "N" not in readers.read(CASES / path, n=8)[1].table


def test_the_load_is_given_where_the_output_has_none():
    path = CASES / "24-hey/hey.txt"
    assert "--n gives it" in " ".join(readers.read(path)[1].left_out)
    reading = readers.read(path, n=50)[1]
    assert reading.table["N"].tolist() == [50]
    assert reading.columns["N"].unit == "-"
    assert "--n" not in " ".join(reading.left_out)


def test_the_option_gives_the_load_at_the_command_line():
    run = CliRunner().invoke(cli, ["read", "--n", "50", str(CASES / "24-hey/hey.txt")])
    assert run.exit_code == 0
    assert run.stdout.startswith("N,X,R,")
    assert run.stdout.split("\n")[1].startswith("50.0,643.0496,0.031,")
    run = CliRunner().invoke(cli, ["read", "--n", "50", str(CASES)])
    assert "expected none for a folder" in str(run.exception)
