"""Real servers under their load generators, where they are installed (`make tools` does so).

Each server is one of its own, in a temporary folder, on a socket or a free port.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from nummodel.records import readers

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
ROOT = os.geteuid() == 0


def run(*command, user=""):
    """What a command prints, as another user if this one is root and the server refuses root."""
    command = ["runuser", "-u", user, "--", *command] if ROOT and user else command
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def need(*programs):
    """Skip the test if a program is missing."""
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


@pytest.fixture
def place():
    """A folder with a short name, as names of sockets are short, that servers may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.skipif(not POSTGRES, reason="needs PostgreSQL")
def test_pgbench_of_a_postgresql(place):
    need("pgbench", *["runuser"] * ROOT)
    cluster, bin = place / "data", POSTGRES[-1]
    if ROOT:
        shutil.chown(place, "postgres")
    run(bin / "initdb", "-A", "trust", "-U", "postgres", "-D", cluster, user="postgres")
    control = [bin / "pg_ctl", "-D", cluster, "-o", f"-k {place} -c listen_addresses=", "-w"]
    run(*control, "-l", place / "log", "start", user="postgres")
    try:
        at = ["-h", place, "-U", "postgres"]
        run("pgbench", *at, "-q", "-i", "postgres")
        whole = ["pgbench", *at, "-c", "2", "-T", "3", "-P", "1", "postgres"]
        done = subprocess.run([*map(str, whole)], capture_output=True, text=True)
    finally:
        run(*control, "-m", "immediate", "stop", user="postgres")
    name, reading = readers.parsed(done.stderr + done.stdout, "file")
    row = reading.table.iloc[0]
    assert name == "pgbench" and row["N"] == 2 and len(reading.samples) >= 2
    assert row["X"] == float(done.stdout.split("\ntps = ")[1].split()[0])
    assert row["X"] * row["R"] == pytest.approx(2, rel=0.1)


def test_sysbench_of_a_mariadb(place):
    need("sysbench", "mariadbd", "mariadb-install-db", "mariadb-admin")
    user = ["--user=mysql"] if ROOT else []
    if ROOT:
        shutil.chown(place, "mysql")
    run("mariadb-install-db", "--no-defaults", *user, f"--datadir={place}/data", "--skip-test-db")
    local = [f"--socket={place}/s", f"--pid-file={place}/pid", "--skip-networking"]
    command = ["mariadbd", "--no-defaults", *user, f"--datadir={place}/data", *local]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        admin = ["mariadb-admin", "--no-defaults", f"--socket={place}/s", "-uroot"]
        end = time.monotonic() + 60
        while subprocess.run([*admin, "ping"], capture_output=True).returncode:
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.2)
        run(*admin, "create", "sbtest")
        query = "create user sb@localhost identified by 'sb'; grant all on sbtest.* to sb@localhost"
        run("mariadb", "--no-defaults", f"--socket={place}/s", "-uroot", "-e", query)
        sysbench = ["sysbench", "--db-driver=mysql", f"--mysql-socket={place}/s"]
        sysbench += [
            "--mysql-user=sb",
            "--mysql-password=sb",
            "--table-size=500",
            "oltp_read_write",
        ]
        run(*sysbench, "prepare")
        text = run(
            *sysbench[:-1], "--threads=2", "--time=3", "--report-interval=1", sysbench[-1], "run"
        )
    finally:
        server.kill()
        server.wait()
    name, reading = readers.parsed(text, "file")
    row = reading.table.iloc[0]
    assert name == "sysbench" and row["N"] == 2 and len(reading.samples) >= 2
    assert row["X"] == float(text.split("transactions:")[1].split("(")[1].split()[0])
    assert row["X"] * row["R"] == pytest.approx(2, rel=0.1)


def test_wrk_of_an_nginx(place):
    need("wrk", "nginx")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (place / "nginx.conf").write_text(
        f"daemon off; pid {place}/pid; error_log {place}/error.log; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p;\n"
        f"fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;\n"
        f'server {{ listen 127.0.0.1:{port}; location / {{ return 200 "hello"; }} }} }}\n'
    )
    server = subprocess.Popen(["nginx", "-c", str(place / "nginx.conf")])
    try:
        end = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.1)
        text = run("wrk", "-t1", "-c4", "-d2s", "--latency", f"http://127.0.0.1:{port}/")
    finally:
        server.terminate()
        server.wait()
    name, reading = readers.parsed(text, "file")
    row = reading.table.iloc[0]
    assert name == "wrk" and row["N"] == 4
    assert row["X"] == float(text.split("Requests/sec:")[1].split()[0])
    assert {"R_p50", "R_p75", "R_p90", "R_p99"} <= set(reading.table)
