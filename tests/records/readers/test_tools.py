"""Load generators against a server of our own, where they are installed (`make tools` does so).

What a reader finds is held against the same figure found in the output by a pattern of this file,
and where a tool keeps its clients busy, against Little's law.
"""

import http.server
import re
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from nummodel.records import readers

pytestmark = pytest.mark.slow
K6 = """import http from "k6/http";
export default function () { http.get(__ENV.URL); }
"""
LOCUST = """from locust import HttpUser, constant, task
class User(HttpUser):
    wait_time = constant(0)
    @task
    def page(self):
        self.client.get("/")
"""
FIO = "fio --name=a --rw=randread --size=8M --bs=4k --runtime=1 --time_based --ioengine=psync"
REDIS = "redis-benchmark -p {port} -c 4 -n 20000 -t set,get"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet a response: two would wait for each other, 40 ms each time

    def do_GET(self):
        time.sleep(0.02)  # as some tools round times to milliseconds
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        """Print nothing."""

    def handle(self):
        with suppress(ConnectionError):  # of tools that end with requests under way
            super().handle()

    def finish(self):
        with suppress(ConnectionError):
            super().finish()


@pytest.fixture(scope="module")
def url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def printed(command, folder, **words):
    """What a command prints, or the file that it names OUT."""
    (folder / "k6.js").write_text(K6)
    (folder / "users.py").write_text(LOCUST)
    command = command.format(**words)
    tools = dict.fromkeys(re.findall(r"(?:^|\| )(\S+)", command))
    if missing := [tool for tool in tools if tool != "echo" and not shutil.which(tool)]:
        pytest.skip(f"needs {', '.join(missing)}")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return (folder / "OUT").read_text() if (folder / "OUT").exists() else done.stdout or done.stderr


#: The reader, the command, the load (None if the output has none), a pattern of the throughput.
HTTP = [
    ("ab", "ab -q -n 500 -c 4 {url}", 4, r"Requests per second: +(\S+)"),
    ("wrk", "wrk -t2 -c4 -d1s --latency {url}", 4, r"Requests/sec: +(\S+)"),
    ("hey", "hey -z 1s -c 4 {url}", None, r"Requests/sec:\s+(\S+)"),
    ("hey", "oha --no-tui -z 1s -c 4 {url}", None, r"Requests/sec:\s+(\S+)"),
    ("hey", "oha --no-tui -z 1s -c 4 --output-format json {url}", None, r'PerSec": (\S+?),'),
    ("bombardier", "bombardier -c 4 -d 1s -l {url}", 4, r"Reqs/sec +(\S+)"),
    ("bombardier", "bombardier -c 4 -d 1s -p r -o json {url}", 4, r'"rps":{"mean":([^,]+)'),
    ("autocannon", "autocannon -c 4 -d 2 {url} 2>&1", 4, r"Req/Sec(?: *│[^│]+){4} *│ +(\S+)"),
    (
        "autocannon",
        "autocannon -j -c 4 -d 2 {url} 2>/dev/null",
        4,
        r'"requests":{"average":([^,]+)',
    ),
    (
        "k6",
        "k6 run --quiet --vus 4 --duration 1s -e URL={url} k6.js",
        4,
        r"reqs\S* +\S+ +(\S+)/s",
    ),
    (
        "k6",
        "k6 run --quiet --vus 4 --duration 1s -e URL={url} --summary-export OUT k6.js",
        4,
        r'"http_reqs": {\s*"count": \S+\s*"rate": (\S+)\s',
    ),
    (
        "vegeta",
        "echo GET {url} | vegeta attack -rate 200 -duration 1s | vegeta report",
        None,
        r"throughput\] +\S+ \S+ (\S+)",
    ),
    (
        "vegeta",
        "echo GET {url} | vegeta attack -rate 200 -duration 1s | vegeta report -type json",
        None,
        r'"throughput":([^,]+)',
    ),
]


def read(command, folder, **words):
    """The text of a tool, its reader and its only row."""
    text = printed(command, folder, **words)
    name, reading = readers.parsed(text, "file")
    (row,) = reading.table.to_dict("records")
    return text, name, row, reading


@pytest.mark.parametrize("name, command, N, rate", HTTP)
def test_a_server_of_pages(name, command, N, rate, url, tmp_path):
    text, reader, row, reading = read(command, tmp_path, url=url)
    assert reader == name and row.get("N") == N
    assert row["X"] == pytest.approx(float(re.search(rate, text)[1].replace(",", "")), rel=1e-9)
    if N:
        assert row["X"] * row["R"] == pytest.approx(N, rel=0.25)
    else:
        assert any("--n" in told or "no load" in told for told in reading.left_out)


def test_locust(url, tmp_path):
    command = "locust --headless -u 4 -r 4 -t 4s -f users.py -H {url} --csv run"
    printed(command, tmp_path, url=url)
    totals = (tmp_path / "run_stats.csv").read_text().splitlines()
    names = totals[0].split(",")
    last = dict(zip(names, totals[-1].split(","), strict=True))
    _, reading = readers.read(tmp_path / "run_stats.csv")
    (row,) = reading.table.to_dict("records")
    assert row["X"] == float(last["Requests/s"]) and row["events"] == int(last["Request Count"])


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    if not shutil.which("redis-server"):
        pytest.skip("needs redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with socket.socket() as client:
                if not client.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize(
    "options, N, pattern",
    [
        ("", 4, r"throughput summary: (\S+)"),
        ("-q", None, r"ET: (\d\S+) requests"),
        ("--csv", None, r'"[SG]ET","([^"]+)"'),
    ],
)
def test_redis(options, N, pattern, redis, tmp_path):
    text = printed(f"{REDIS} {options}", tmp_path, port=redis)
    name, reading = readers.parsed(text, "file")
    assert name == "redis_benchmark" and len(reading.table) == 2
    assert reading.table["X"].tolist() == [float(X) for X in re.findall(pattern, text)]
    assert ("N" in reading.table) == (N is not None)


@pytest.mark.parametrize("options", ["", "--output-format=json"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_fio(options, jobs, tmp_path):
    text, name, row, _ = read(f"{FIO} --numjobs={jobs} --group_reporting {options}", tmp_path)
    counted = re.search(r'"iops" : ([0-9.]+)|IOPS=([0-9.]+k?)', text)
    X = float(counted[1] or counted[2].replace("k", "e3"))
    assert name == "fio" and row["N"] == jobs and row["X"] == pytest.approx(X, rel=1e-6)


def test_what_memtier_prints(redis, tmp_path):
    command = "memtier_benchmark -p {port} -t 2 -c 2 --test-time=1 --hide-histogram"
    text, name, row, _ = read(command, tmp_path, port=redis)
    assert name == "memtier" and row["N"] == 4
    assert row["X"] == float(re.search(r"Totals +(\S+)", text)[1])
