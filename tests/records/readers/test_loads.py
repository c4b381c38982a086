"""Load generators: recordings of real runs, and the tools themselves where they are installed."""

import http.server
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from nummodel.errors import InputError
from nummodel.records import readers

RECORDINGS = Path(__file__).parent / "recordings"
TOOLS = "sysbench pgbench wrk k6".split()
FILES = sorted(p for p in RECORDINGS.iterdir() if p.name.split("-")[0] in TOOLS)


def one(text):
    """The only row of what a text is read as."""
    table = readers.parsed(text, "file")[1].table
    assert len(table) == 1
    return table.iloc[0].to_dict()


def after(text, label, power=0):
    """The first number after a label, times ten to a power."""
    figure = re.search(r"[0-9]+(\.[0-9]+)?", text.split(label, 1)[1])[0]
    return float(f"{figure}e{power}")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_one_reader_knows_each_recording(path):
    text = path.read_text()
    known = [name for name in readers.names() if readers.reader(name).recognises(text)]
    assert [n for n in known if n != "table"] == [path.name.split("-")[0]]
    name, reading = readers.read(path)
    assert name == path.name.split("-")[0]
    assert set(reading.table) <= set(reading.columns)
    assert np.isfinite(reading.table.to_numpy(float)).all()


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("sysbench-1.0.20.txt", "transactions:                        3435   ("),
        ("sysbench-1.0.20-histogram.txt", "transactions:                        4665   ("),
        ("sysbench-1.0.20-cpu.txt", "events per second:"),
        ("sysbench-1.0.20-memory.txt", "Total operations: 4579773 ("),
    ],
)
def test_the_summary_of_sysbench_to_the_last_figure(name, label):
    text = (RECORDINGS / name).read_text()
    row = one(text)
    assert row["X"] == after(text, label)
    assert row["N"] == after(text, "Number of threads:")
    assert row["R"] == after(text, "avg:  ", -3)
    assert row["R_max"] == after(text, "max:  ", -3)
    assert row["time"] == after(text, "total time:")
    assert row["events"] == after(text, "total number of events:")
    late, percent = ("R_p99", "99th") if "histogram" in name else ("R_p95", "95th")
    assert row[late] == after(text, f"{percent} percentile:", -3)


def test_reports_of_sysbench_are_samples():
    text = (RECORDINGS / "sysbench-1.0.20.txt").read_text()
    samples = readers.parsed(text, "file")[1].samples
    lines = [line.split() for line in text.split("\n") if line.startswith("[ ")]
    assert samples["t"].tolist() == [float(line[1].rstrip("s")) for line in lines]
    assert samples["X"].tolist() == [float(line[line.index("tps:") + 1]) for line in lines]


def test_files_count_reads_and_writes():
    text = (RECORDINGS / "sysbench-1.0.20-fileio.txt").read_text()
    assert one(text)["X"] == after(text, "reads/s:") + after(text, "writes/s:")


def test_a_test_without_a_rate_has_its_events_over_its_time():
    text = (RECORDINGS / "sysbench-1.0.20-mutex.txt").read_text()
    assert one(text)["X"] == after(text, "number of events:") / after(text, "total time:")


@pytest.mark.parametrize("name", ["P", "R", "S-r", "t"])
def test_the_summary_of_pgbench_to_the_last_figure(name):
    text = (RECORDINGS / f"pgbench-15-{name}.txt").read_text()
    row = one(text)
    assert row["X"] == after(text, "\ntps =")
    load = "clients" if name == "R" else "N"
    assert row[load] == after(text, "number of clients:")
    assert row["R"] == after(text, "latency average =", -3)
    assert row["events"] == after(text, "actually processed:")
    if "stddev" in text.split("latency average")[1]:
        assert row["R_sd"] == after(text, "latency stddev =", -3)


def test_progress_of_pgbench_is_samples():
    text = (RECORDINGS / "pgbench-15-P.txt").read_text()
    samples = readers.parsed(text, "file")[1].samples
    lines = [line.split() for line in text.split("\n") if line.startswith("progress")]
    assert samples["X"].tolist() == [float(line[3]) for line in lines]
    assert samples["R"].tolist() == [float(f"{line[6]}e-3") for line in lines]


def test_an_older_pgbench_has_throughputs_with_and_without_connecting():
    text = """transaction type: TPC-B (sort of)
scaling factor: 100
query mode: simple
number of clients: 8
number of threads: 4
duration: 60 s
number of transactions actually processed: 57231
latency average: 8.387 ms
tps = 953.812345 (including connections establishing)
tps = 954.001234 (excluding connections establishing)
"""
    row = one(text)
    assert (row["N"], row["X"], row["R"]) == (8, 954.001234, 0.008387)


@pytest.mark.parametrize("name", ["wrk-4.1.0.txt", "wrk-4.1.0-errors.txt"])
def test_the_summary_of_wrk_to_the_last_figure(name):
    text = (RECORDINGS / name).read_text()
    row = one(text)
    assert row["X"] == after(text, "Requests/sec:")
    assert row["N"] == after(text, "threads and ")
    latency = text.split("Latency", 1)[1].split()
    powers = {"ms": -3, "us": -6}
    mean, most = (float(f"{cell[:-2]}e{powers[cell[-2:]]}") for cell in (latency[0], latency[2]))
    assert (row["R"], row["R_max"]) == (mean, most)
    if "99%" in text.split("Distribution")[-1]:
        assert row["R_p99"] == after(text, "     99%", -3)


@pytest.mark.parametrize("name", ["export", "handle"])
def test_the_summary_of_k6_to_the_last_figure(name):
    path = RECORDINGS / f"k6-0.57-{name}.json"
    metrics = json.loads(path.read_text())["metrics"]

    def figure(metric, what):
        return metrics[metric].get("values", metrics[metric])[what]

    row = one(path.read_text())
    assert row["X"] == figure("http_reqs", "rate")
    assert row["N"] == figure("vus_max", "max")
    assert row["R"] == pytest.approx(figure("http_req_duration", "avg") / 1000, rel=1e-15)
    assert row["R_p95"] == pytest.approx(figure("http_req_duration", "p(95)") / 1000, rel=1e-15)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_several_runs_in_a_file_are_a_row_each(path):
    text = path.read_text()
    if path.suffix in (".json", ".log"):
        return
    table = readers.parsed(text + text, "file")[1].table
    assert len(table) == 2
    assert table.iloc[0].equals(table.iloc[1])


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_file_that_was_cut_is_a_table_or_one_error(path):
    text = path.read_text()
    for end in range(0, len(text), 97):
        try:
            _, reading = readers.parsed(text[:end], "cut.txt")
        except InputError as error:
            assert str(error).startswith("cut.txt")
            continue
        assert len(reading.table)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_line_ends_colours_and_byte_order_make_no_difference(path, tmp_path):
    raw = path.read_bytes()
    expected = readers.read(path)[1].table
    coloured = b"\x1b[32m" + raw.replace(b"\n", b"\x1b[0m\r\n")
    for i, other in enumerate((coloured, raw.decode().encode("utf-16"), b"\xef\xbb\xbf" + raw)):
        file = tmp_path / f"{i}.txt"
        file.write_bytes(other)
        assert readers.read(file)[1].table.equals(expected)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"\x00\x01\x02", "no text"),
        (b"caf\xe9\n", "no text in UTF-8"),
        (b"hello world\n", "the output of no known tool"),
        (b"sysbench 1.0.20\nFATAL: no such test\n", "FATAL: no such test"),
        (b"0 1 2345 0 1795419664 778\n", "a log of one thread of pgbench"),
        (b"1795419664 778 1416242 4322460544 569 13157 0\n", "a log of one thread of pgbench"),
        (b'{"type":"Metric","data":{}}\n', "expected a file of --summary-export"),
        (b"pgbench (15.1)\npgbench: error: no database\n", "no database"),
    ],
)
def test_what_is_no_output_is_refused_in_one_line(raw, message, tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        readers.read(path)
    assert "\n" not in str(error.value)


def test_checkpoints_and_other_parts_are_not_the_run():
    """The end of a run counts, and what prepares the test and cleans up is no run."""
    text = (RECORDINGS / "sysbench-1.0.20-cpu.txt").read_text()
    early = re.sub("4621.15|9249|0.43", "1", text.split("CPU speed:")[1])
    other = "sysbench 1.0.20 (using LuaJIT)\n\nDropping table 'sbtest1'...\n"
    whole = other + text.replace("CPU speed:", f"CPU speed:{early}\nCPU speed:") + other
    assert one(whole) == one(text)


def test_seconds_without_a_transaction_have_no_response_time():
    text = (RECORDINGS / "pgbench-15-P.txt").read_text()
    still = re.sub("110.0 tps, lat 39.598 ms stddev 40.547", "0.0 tps, lat {} ms stddev {}", text)
    for nothing in ("0.000", "-nan"):
        samples = readers.parsed(still.replace("{}", nothing), "file")[1].samples
        assert samples["X"].tolist()[2] == 0
        assert np.isnan(samples["R"][2]) and np.isfinite(samples["R"].drop(2)).all()


def test_lines_of_a_shell_are_left_out():
    text = (RECORDINGS / "pgbench-15-P.txt").read_text()
    around = f"nohup: ignoring input\n$ pgbench -c 4 bench\n{text}\nreal\t0m5.02s\n"
    reading = readers.parsed(around, "file")[1]
    assert reading.table.equals(readers.parsed(text, "file")[1].table)
    assert "3 lines of a shell or a page are left out" in reading.left_out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("events per second:  4621.15", "events/s (eps):   4621.1500"),
        ("total time:                          2.0006s", "time elapsed:   2.0006s"),
    ],
)
def test_sysbench_1_1_calls_its_figures_otherwise(old, new):
    """By hand: no recording of that version was at hand."""
    text = (RECORDINGS / "sysbench-1.0.20-cpu.txt").read_text()
    assert one(text.replace(old, new)) == one(text)


@pytest.mark.skipif(not shutil.which("sysbench"), reason="needs sysbench")
def test_sysbench_that_is_installed():
    command = "sysbench cpu --threads=2 --time=1 --report-interval=1 run".split()
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    row = one(text)
    assert row["N"] == 2
    assert row["X"] == after(text, "events per second:")


@pytest.mark.skipif(not shutil.which("wrk"), reason="needs wrk")
def test_wrk_that_is_installed(tmp_path):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        command = ["wrk", "-t1", "-c2", "-d1s", "--latency", url]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    finally:
        server.shutdown()
    assert one(text)["X"] == after(text, "Requests/sec:")
