"""Load generators that are read by their declarations: the figures that recordings print.

`ab-2.3`, `hey-0.1.5`, `vegeta-12`, `bombardier-2`, `autocannon-9`, `ghz-dev`, `redis_benchmark-7`
and `fio-3.33` were recorded against servers on the loopback.

With figures and format of public files: bombardier-piccolo (a comparison of ORMs), hey-oha.txt (a
gist), redis_benchmark-aryadb, memtier-go-memcached and memtier-alpine (pages of these projects),
hammerdb-4 (of SQL Server), serving-sglang-kvcached (the page of kvcached), gatling-2 (a test),
gatling-stats.json (a report), jmeter-maven (a build).

With figures of public files, and by hand where these were cut: autocannon-haiku (the cells after
the mean of Req/Sec), autocannon-2 (its duration, which did not agree), ycsb-fargate (the command,
and digits), serving-vllm-mi300 (end-to-end latencies), gatling-3.15 (counts and the last lines),
jmeter-rally (the first line), fio-2-lkml (head and latencies).

By hand, in a documented format: hey-oha.json, ycsb-acp, hammerdb-3, both of guidellm, both of ghz.
"""

import random
import re
import time
from pathlib import Path

import pytest

from nummodel.errors import InputError
from nummodel.records import readers

RECORDINGS = Path(__file__).parent / "recordings"
#: What the first row of each recording has, and none for columns that it has not.
EXPECTED = {
    "ab-2.3.txt": {"N": 8, "X": 1468.33, "R": 0.005448, "R_p99": 0.019},
    "ab-2.3-errors.txt": {"N": 8, "X": 1621.11, "events": 400, "failed": 400},
    "hey-0.1.5.txt": {"N": None, "X": 179.3963, "R": 0.0446, "R_p99": 0.06, "events": 400},
    "hey-0.1.5-errors.txt": {"N": None, "X": 77.148, "failed": 100},
    "hey-oha.txt": {"N": None, "X": 20.7913, "R": 2.3804, "R_p99.9": 4.7838, "time": 48.0969},
    "hey-oha.json": {"N": None, "X": 18500, "R": 0.00053, "R_p50": 0.00052, "lost": 500},
    "vegeta-12.txt": {"N": None, "X": 49.37, "R": 0.02851, "R_p99": 0.048871, "rate": 50.49},
    "vegeta-12.json": {"N": None, "X": 49.36727360051697, "R": 0.028510465, "events": 100},
    "bombardier-2.txt": {"N": 8, "X": 180.55, "R": 0.04428, "R_p99": 0.05237, "events": 184},
    "bombardier-2.json": {"N": 8, "X": 266.4373466974787, "R": 0.0436180275, "R_p95": 0.048087},
    "bombardier-piccolo.txt": {"N": 200, "X": 738.72, "R": 0.26642},
    "autocannon-haiku.txt": {"N": 1000, "X": 9898, "R": 0.00992, "R_p97.5": 0.119},
    "autocannon-2.txt": {"N": 100, "X": 41901.1, "R": 0.00019},
    "autocannon-9.txt": {"N": 4, "X": 65.5, "R": 0.06004, "R_p97.5": 0.303, "series": None},
    "autocannon-9.json": {"N": 4, "X": 71, "R": 0.05658, "R_p97.5": 0.304, "events": 142},
    "redis_benchmark-7.txt": {"N": 20, "X": 116279.06, "R": 0.000105, "series": "SET"},
    "redis_benchmark-7-q.txt": {"N": None, "X": 48076.92, "R_p50": 0.000087, "series": "SET"},
    "redis_benchmark-7-csv.txt": {"N": None, "X": 83333.34, "R": 0.000153, "R_p99": 0.000255},
    "redis_benchmark-aryadb.txt": {"N": 50, "X": 30883.26, "R": None, "time": 1.62},
    "memtier-go-memcached.txt": {"N": 16, "X": 35692.38, "R": 0.00044737, "R_p99.9": 0.005759},
    "memtier-alpine.txt": {"N": None, "X": 24058.90, "R": 1.296885},
    "ycsb-fargate.txt": {"N": 100, "X": 11308.635273895146, "R": 0.0086225, "R_p99": 0.060927},
    "ycsb-acp.txt": {"N": None, "X": 1543.2, "R": 0.006845, "failed": 30000, "R_p95": None},
    "hammerdb-4.txt": {"N": 1, "X": 35576 / 60, "transactions": 81705 / 60},
    "hammerdb-3.txt": {"N": 5, "X": 27975 / 60, "transactions": 65123 / 60},
    "serving-vllm-mi300.txt": {"N": 128, "X": 500 / 283.98, "R": 71.51932, "ttft": 7.58582},
    "serving-sglang-kvcached.txt": {"N": None, "X": 1920 / 213.71, "rate": 32, "R": 157.84285},
    "guidellm-0.json": {"N": 4, "X": 2.5, "R": 1.59, "R_p99": 2.3, "busy": 3.98},
    "guidellm-config.json": {"N": 1, "X": 0.7, "R": 1.42, "R_p95": 1.5},
    "gatling-2.txt": {"N": None, "X": 1371.375, "R": 0.017, "R_p99": 0.132, "failed": 0},
    "gatling-3.15.txt": {"N": None, "X": 11.1, "R": 0.065, "events": 1110, "failed": 10},
    "gatling-stats.json": {"N": None, "X": 22.857, "R": 0.354, "R_p99": 0.702, "failed": 80},
    "jmeter-rally.txt": {"N": 3, "X": 55.1, "R": 0.053, "events": 5518, "time": 100},
    "jmeter-maven.txt": {"N": None, "X": 5.5, "R": 0.003},
    "ghz-dev.txt": {"N": None, "X": 130.52, "R": 0.02922, "R_p99": 0.15565, "failed": 4},
    "ghz-dev.json": {"N": 4, "X": 115.71819803635351, "R": 0.032906438, "events": 243},
    "ghz-docs.txt": {"N": None, "X": 5788.35, "R": 0.00683, "R_p99": 0.0132, "failed": 5},
    "ghz-docs.json": {"N": 50, "X": 5788.35, "R": 0.00683, "rate": None},
    "fio-2-lkml.txt": {"N": 16, "X": 151, "R": 0.10596},
    "fio-3.33.txt": {"N": 8, "X": 22600 + 9780, "R_p50": None},
    "fio-3.33.json": {"N": 8, "X": 44884.115884, "R_p50": 0.000092672},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_has_its_printed_figures(name):
    tool, reading = readers.read(RECORDINGS / name)
    assert tool == name.split("-")[0]
    assert set(reading.table) <= set(reading.columns)
    row = reading.table.iloc[0].dropna().to_dict()
    expected = {n: value for n, value in EXPECTED[name].items() if value is not None}
    assert row.get("series") == expected.pop("series", row.get("series"))
    assert {n: row.get(n) for n in expected} == pytest.approx(expected, rel=1e-9)
    assert not {n for n, value in EXPECTED[name].items() if value is None} & set(row)


@pytest.mark.parametrize("name", EXPECTED)
def test_only_its_reader_knows_a_recording(name):
    known = readers.recognised((RECORDINGS / name).read_text())
    assert known == [name.split("-")[0]]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text_that_was_changed_is_a_table_or_one_error_and_soon(name):
    text = (RECORDINGS / name).read_text()
    lines, change = text.split("\n"), random.Random(name)
    texts = [text[: change.randrange(len(text))] for _ in range(6)]
    texts += ["\n".join(change.sample(lines, len(lines))) for _ in range(3)]
    texts += [text.replace("0", "-"), text.replace("1", "9" * 30), text.replace(" ", " " * 300)]
    for changed in texts:
        start = time.perf_counter()
        try:
            assert len(readers.parsed(changed, "file", name.split("-")[0])[1].table)
        except InputError as error:
            assert "\n" not in str(error)
        assert time.perf_counter() - start < 2


@pytest.mark.parametrize("name", [n for n in EXPECTED if n.endswith(".txt")])
def test_a_run_that_was_cut_is_left_out_and_told(name):
    text = (RECORDINGS / name).read_text()
    whole = readers.parsed(text, "file")[1]
    twice = readers.parsed(f"{text}\n{text}", "file")[1]
    assert len(twice.table) in (len(whole.table), 2 * len(whole.table))
    if len(twice.table) == len(whole.table):  # a log that goes on, and no further run
        return
    half = text[: text.index(str(EXPECTED[name]["X"])[:3])] if name.startswith("ab") else ""
    if half:
        cut = readers.parsed(f"{text}\n{half}", "file")[1]
        assert len(cut.table) == len(whole.table)
        assert any("left out: line" in what for what in cut.left_out)


@pytest.mark.parametrize(
    "name, rates",
    [
        ("fio-3.33-groups.txt", [14400, 18100 + 20500]),
        ("fio-3.33-groups.json", [18129.960317, 34458.541459]),
    ],
)
def test_groups_of_jobs_are_runs(name, rates):
    """A job, and after it two that keep four requests under way each."""
    table = readers.read(RECORDINGS / name)[1].table
    assert table["N"].tolist() == [1, 8] and table["X"].tolist() == pytest.approx(rates)
    assert (table["X"] * table["R"]).tolist() == pytest.approx([1, 8], rel=0.03)


def test_what_autocannon_counts_is_no_heading():
    text = (RECORDINGS / "autocannon-9.txt").read_text()
    other = text.replace("# of samples: 2", "# of samples: 3")
    table = readers.parsed(f"{text}\n{other}", "file")[1].table
    assert len(table) == 2 and "series" not in table


def test_a_jtl_has_a_row_for_each_number_of_threads():
    """Samples of 0.5 s: two threads for 5 s, then four, with a transaction that is no sample."""
    lines = ["timeStamp,elapsed,label,responseCode,responseMessage,success,allThreads"]
    for threads, start in ((2, 0), (4, 5000)):
        for step in range(10):
            line = f"{1_700_000_000_000 + start + 500 * step},500,a,200,OK,true,{threads}"
            lines += [line] * threads
    lines.append('1700000000000,9000,all,200,"Number of samples in transaction : 9",true,4')
    table = readers.parsed("\n".join(lines), "file.jtl")[1].table
    assert table["N"].tolist() == [2, 4]
    assert table["X"].tolist() == pytest.approx([4, 8])
    assert table["R"].tolist() == pytest.approx([0.5, 0.5])


def test_what_fails_for_the_most_part_is_told_first():
    for name in ("ab-2.3-errors.txt", "hey-0.1.5-errors.txt"):
        told = readers.read(RECORDINGS / name)[1].left_out
        assert "more failed than succeeded" in told[0]


def test_the_concurrency_above_the_table_is_that_of_the_run_below():
    text = (RECORDINGS / "serving-vllm-mi300.txt").read_text()
    table = readers.parsed(f"{text}\n{text.replace('concurrency: 128', 'concurrency: 256')}", "f")
    assert table[1].table["N"].tolist() == [128, 256]


def test_runs_of_different_scripts_are_told_apart():
    text = (RECORDINGS / "pgbench-15-P.txt").read_text()
    other = re.sub("transaction type: .*", "transaction type: <builtin: select only>", text)
    table = readers.parsed(f"{text}\n{other}", "file")[1].table
    assert table["series"].tolist()[1] == "<builtin: select only>"


def test_a_tool_is_recognised_below_a_long_log():
    text = (RECORDINGS / "memtier-go-memcached.txt").read_text()
    log = "[RUN #1 3%,   0 secs]  8 threads:       53172 ops,   57453 (avg:   57453) ops/sec\n"
    assert readers.parsed(log * 1000 + text, "file")[0] == "memtier"


def test_what_is_no_percentile_is_left_out():
    text = (RECORDINGS / "hey-oha.txt").read_text()
    table = readers.parsed(text.replace("99.90%", "....%"), "file")[1].table
    assert not {"R_p", "R_p99.9"} & {*table} and "R_p99" in table
