"""Columns of a user's table: which are known by their names, in which unit, and what is said of the
others. The tables have up to eight users, 10 to 52 transactions per second, and one more column.
"""

import pytest

from nummodel.records import columns


def read(tmp_path, name, *values):
    """Points of a table with one more column, of four values."""
    rows = zip((1, 2, 4, 8), (10, 19, 33, 52), values, strict=True)
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "table.csv").write_text(f"users,tps,{name}\n{text}\n")
    points = columns.read(tmp_path / "table.csv")
    assert (points.x, points.y) == ("users", "tps")
    return points


@pytest.mark.parametrize(
    "name",
    [
        *("CPU use", "cpu_util", "cpuUsage", "CPU-utilisation", "Processor busy", "cpu.used"),
        *("CPU use (%)", "% CPU load", "processor_load_pct", "avg cpu utilization percent"),
    ],
)
def test_the_use_of_processors_is_known_by_its_words(tmp_path, name):
    """Percents are known as such by the unit, or as no share goes beyond 1."""
    points = read(tmp_path, name, 11, 20, 37, 60)
    assert points.others["U_cpu"] == pytest.approx([0.11, 0.20, 0.37, 0.60])
    unit = any(sign in name for sign in ("%", "pct", "percent"))
    guessed = f"{name} is taken as percent, as it is up to 60"
    assert list(points.warnings) == ([] if unit else [guessed])
    shares = read(tmp_path, name, 0.11, 0.2, 0.37, 0.6).others["U_cpu"]
    assert shares[3] == pytest.approx(0.006 if unit else 0.6)


@pytest.mark.parametrize("values", [(0.5, 1.1, 1.8, 3.4), (40, 90, 180, 340)])
def test_what_may_count_processors_is_no_share(tmp_path, values):
    """3.4 may be busy processors or percents, and 340 % are those of four processors or more."""
    points = read(tmp_path, "cpu_usage", *values)
    assert not points.others
    assert points.warnings[0].startswith("cpu_usage is not used: it is up to ")
    assert "call it U_cpu_pct if it is in percent" in points.warnings[0]


@pytest.mark.parametrize("name", ["resp_ms", "avg_ms", "mean_ms", "Avg response time (ms)"])
def test_mean_times_are_response_times(tmp_path, name):
    points = read(tmp_path, name, 100, 105, 121, 154)
    assert points.others["R"] == pytest.approx([0.1, 0.105, 0.121, 0.154]) and points.seconds
    assert not points.warnings


@pytest.mark.parametrize(
    "name, hint",
    [
        *((name, "U_cpu_pct (percent) or U_cpu (a share") for name in ("CPU", "cpu", "cpu_load")),
        ("user_cpu_pct", "the use of all processors U_cpu_pct"),
        ("util_pct", "in percent U_cpu_pct, or U_disk_pct"),
        *((name, "is no mean") for name in ("p95_ms", "max_ms", "p99", "median_ms", "perc95_ms")),
        ("resp_time", "a mean response time R_ms or R_s"),
        ("wait_ms", "a mean response time R_ms or R_s"),
    ],
)
def test_a_column_that_is_not_used_has_a_hint_that_fits(tmp_path, name, hint):
    points = read(tmp_path, name, 11, 20, 37, 60)
    (warning,) = points.warnings
    assert not points.others and warning.startswith(f"not used: {name}; ") and hint in warning
    assert ("R_ms" in warning) == (name in ("resp_time", "wait_ms"))
    assert ("disk" in warning) == (name == "util_pct")
