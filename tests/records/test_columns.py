"""Columns of a user's table: which are known by their names, in which unit, and what is said of the
others. The tables have up to eight users, 10 to 52 transactions per second, and one more column.
"""

import pytest

from nummodel.errors import InputError
from nummodel.records import columns


def read(tmp_path, name, *values):
    """What is read from a table of four loads whose third column has this name and these values."""
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
    assert "if it is in percent: --use 'U_cpu[%]=cpu_usage'" in points.warnings[0]


@pytest.mark.parametrize(
    "name, size, how",
    [
        *((name, 1 / 60, "divided by 60") for name in ("tpm", "TPM", "tpmC", "requests/min")),
        *((name, 1 / 3600, "divided by 3600") for name in ("tph", "jobs per hour")),
        *((name, 1000, "multiplied by 1000") for name in ("ktps", "krps", "kIOPS", "IOPS (K)")),
        *((f"tps [{unit}]", 1000, "multiplied by 1000") for unit in ("1000/s", "thousands", "k/s")),
        *((name, 1e6, "multiplied by 1e+06") for name in ("Throughput (Mops/s)", "Mops/s")),
    ],
)
def test_throughputs_of_minutes_and_thousands_are_those_of_a_second(tmp_path, name, size, how):
    """If response times are in seconds; else they stay what the user calls them. N = X R with
    R = 0.1 s: ten requests a second for each user.
    """
    rows = [(n, 10 * n / size) for n in (1, 2, 4, 8)]
    for header, rest in ((f"users,{name},R_ms", ",100"), (f"users,{name}", "")):
        table = "".join(f"{n},{x}{rest}\n" for n, x in rows)
        (tmp_path / "table.csv").write_text(f"{header}\n{table}")
        points = columns.read(tmp_path / "table.csv")
        if rest:
            assert points.X == pytest.approx(points.N / points.others["R"])
            (warning,) = points.warnings
            assert points.y == "X_per_s" and warning.startswith(f"{name} is {how} to be X_per_s")
        else:
            assert points.y == name and points.X == pytest.approx([x for _, x in rows])


@pytest.mark.parametrize("name, station", [("%idle", "cpu"), ("disk idle (%)", "disk")])
def test_what_is_not_idle_is_in_use(tmp_path, name, station):
    points = read(tmp_path, name, 89, 80, 63, 40)
    assert points.others[f"U_{station}"] == pytest.approx([0.11, 0.20, 0.37, 0.60])
    assert points.warnings[0].startswith(f"U_{station} is 100 % - {name}: ")
    (warning,) = read(tmp_path, name, 89, 80, 63, 400).warnings
    assert "it is up to 400, expected 100 % at most" in warning
    assert read(tmp_path, "idle", 89, 80, 63, 40).warnings[0].startswith("not used: idle; ")


@pytest.mark.parametrize("name", ["cores", "CPUs", "vcpus", "processors"])
def test_processors_beside_a_load_are_servers(tmp_path, name):
    points = read(tmp_path, name, 4, 4, 4, 4)
    assert points.others["c_cpu"].tolist() == [4] * 4
    assert points.warnings == (f"{name} is taken as the number of processors, c_cpu",)
    (tmp_path / "both.csv").write_text(f"N,tps,{name}\n1,10,1\n2,19,2\n4,33,4\n")
    both = columns.read(tmp_path / "both.csv", "N", "tps")
    assert not both.others and not any("c_cpu" in warning for warning in both.warnings)
    (tmp_path / "load.csv").write_text("cores,tps\n1,10\n2,19\n4,33\n")
    alone = columns.read(tmp_path / "load.csv")
    assert alone.x == "cores" and not alone.others
    assert "c_cpu" not in read(tmp_path, f"{name}_used", 4, 4, 4, 4).others


def test_a_header_may_be_a_comment_where_no_other_header_follows(tmp_path):
    rows = "1,10,a\n2,19,a\n4,33,a\n"
    for head in (
        "# threads,tps,config\n",
        "#threads, tps, config\n",
        "# of x\n# threads,tps,config\n\n",
    ):
        (tmp_path / "table.csv").write_text(head + rows)
        points = columns.read(tmp_path / "table.csv")
        assert (points.x, points.y, points.X.tolist()) == ("threads", "tps", [10, 19, 33])
    (tmp_path / "table.csv").write_text("# my, own, remark\nusers,rps,config\n" + rows)
    assert columns.read(tmp_path / "table.csv").x == "users"
    (tmp_path / "table.csv").write_text("# threads;tps\n1;10,5\n2;19\n4;33\n")
    assert columns.read(tmp_path / "table.csv").X.tolist() == [10.5, 19, 33]
    for head in ("# a remark\n", "# threads,tps\n", "# 1,2,3\n"):
        (tmp_path / "table.csv").write_text(head + "1,10,3\n2,19,3\n4,33,3\n")
        with pytest.raises(InputError, match="expected a header with names"):
            columns.read(tmp_path / "table.csv")


def test_units_in_cells_are_those_of_their_column(tmp_path):
    """If all cells have the same, and the name has no other."""
    rows = ("1,10,95ms,8%,7us,7ms", "2,19,105 ms,16%,8ms,8ms", "4,34,117ms,31%,9us,9ms")
    table = "\n".join(["N,tps,R,disk %util,odd,latency (s)", *rows])
    (tmp_path / "table.csv").write_text(table)
    points = columns.read(tmp_path / "table.csv")
    assert points.others["R"] == pytest.approx([0.095, 0.105, 0.117])
    assert points.others["U_disk"] == pytest.approx([0.08, 0.16, 0.31])
    for name in ("odd", "latency (s)"):
        with pytest.raises(InputError, match="expected a number"):
            columns.read(tmp_path / "table.csv", use=f"X={name}")


@pytest.mark.parametrize("name", ["Throughput (MB/s)", "throughput [GiB/s]", "tps (bytes/s)"])
def test_response_times_are_not_those_of_bytes(name, tmp_path):
    (tmp_path / "table.csv").write_text(f"N,{name},latency_ms\n1,10,10\n2,19,11\n4,34,12\n")
    points = columns.read(tmp_path / "table.csv")
    assert points.X.tolist() == [10, 19, 34] and "R" not in points.others
    assert f"latency_ms is not used: {name} counts bytes, and no requests" in points.warnings
