"""One whole run: a PostgreSQL of its own under pgbench, measured, read, fitted and forecast.

The loads up to eight clients are fitted; those beyond are predicted, and then compared with what
was measured there. Run by `make whole`, which installs PostgreSQL; the page goes to docs/whole.md.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import click
import numpy as np
import pandas as pd

from nummodel.records import folder

HERE = Path(__file__).parent.parent
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
USED = 8
ENDS = (("low", -1), ("high", 1))


def shell(*command, **options) -> str:
    """What a command prints; PostgreSQL refuses to run as root, so it runs as postgres then."""
    if os.geteuid() == 0 and options.pop("server", False):
        command = ("runuser", "-u", "postgres", "--", *command)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def nummodel(*arguments) -> str:
    """What the command line prints; its messages go on to stderr."""
    command = [sys.executable, "-m", "nummodel", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def measured(place: Path, scale: int, seconds: int, repeat: int) -> pd.DataFrame:
    """The table of a load test of a new database in the folder `place`."""
    if not PROGRAMS:
        raise SystemExit("no PostgreSQL below /usr/lib/postgresql: make whole installs it")
    programs, cluster, out = PROGRAMS[-1], place / "cluster", place / "measured"
    if os.geteuid() == 0:
        shutil.chown(place, "postgres")
    shell(programs / "initdb", "-A", "trust", "-U", "postgres", "-D", cluster, server=True)
    options = f"-k {place} -c listen_addresses="
    start = [programs / "pg_ctl", "-D", cluster, "-o", options, "-l", place / "log", "-w"]
    shell(*start, "start", server=True)
    try:
        shell("createdb", "-h", place, "-U", "postgres", "bench")
        shell("pgbench", "-h", place, "-U", "postgres", "-q", "-i", "-s", scale, "bench")
        command = ["pgbench", "-h", place, "-U", "postgres", "-c", "{N}", "-j", "2"]
        command += ["-T", seconds, "-P", "1", "bench"]
        loads = ["--at", "1,2,4,8,16,32", "--repeat", repeat, "--output", out]
        nummodel("measure", *loads, "--", *command)
    finally:
        shell(programs / "pg_ctl", "-D", cluster, "-m", "fast", "stop", server=True)
    return folder.read(out)


def told(row: dict, value: float, measured: float) -> str:
    """What was predicted, its interval, and whether it holds what was measured."""
    low, high = (np.inf * sign if row[end] is None else row[end] for end, sign in ENDS)
    verdict = "inside" if low <= measured <= high else "outside"
    return f"{value:.1f} | {low:.1f} to {high:.1f} | {verdict}"


@click.command()
@click.option("--scale", default=50, help="size of the database, some 15 MB each")
@click.option("--seconds", default=15, help="length of a run")
@click.option("--repeat", default=3)
@click.option("--output", default=str(HERE / "docs" / "whole.md"))
def main(scale: int, seconds: int, repeat: int, output: str) -> None:
    """Measure, read, fit and compare."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        reading = measured(place, scale, seconds, repeat)
        later = reading.table[reading.table["N"] > USED]
        at = ",".join(f"{N:g}" for N in sorted(set(later["N"])))
        fitted = ["fit", place / "measured", "--holdout", f"N>{USED}", "--weights", "log"]
        fitted += ["--at", at]
        result = json.loads(nummodel(*fitted, "--json"))
        answer = nummodel(*fitted).partition("\n\n")[0]
    chosen = result["chosen"]
    law = result["laws"].get(chosen) if chosen else None
    version = shell("pgbench", "--version").split()[2]
    sysinfo = f"{os.cpu_count()} processors, PostgreSQL {version}"
    means = reading.table[["N", "X", "R", "U_cpu"]].groupby("N").mean()
    lines = [
        "# One whole run",
        "",
        f"`make whole`, {date.today()}, {sysinfo}, server and pgbench on the same virtual machine: "
        f"a new database (`pgbench -i -s {scale}`), and {repeat} runs of {seconds} s at each load, "
        "in random order. Each transaction is three updates, a query and an insert.",
        "",
        "## What was measured",
        "",
        "Means of the runs at each load. X is in transactions a second, R in seconds, and U_cpu "
        "the share of all processors in use.",
        "",
        "| N | X | R | U_cpu |",
        "|---|---|---|---|",
        *(f"| {N:g} | {r.X:.1f} | {r.R:.4f} | {r.U_cpu:.2f} |" for N, r in means.iterrows()),
        "",
        "What the folder's reader said:",
        "",
        *(f"- {what.replace('|', ' ')}" for what in reading.left_out),
        "",
        f"## What the loads up to {USED} say",
        "",
        *(f"> {line}" for line in answer.split("\n")),
        "",
        "## What was predicted, and what came",
        "",
    ]
    lines += [
        f"The forecast continues the points up to {USED}, whatever the law; its interval was "
        "calibrated on other systems. "
        + (
            f"The chosen law, {chosen}, was fitted to the same points only; its interval is for a "
            "new measurement, and assumes that the law holds."
            if law
            else f"No law was chosen: {result['why']}."
        ),
        "",
        "| N | measured | forecast | interval | | by the law | interval | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ahead = {row["N"]: row for row in result["forecast"]}
    for i, (N, X) in enumerate(zip(later["N"], later["X"], strict=True)):
        row = f"| {N:g} | {X:.1f} | {told(ahead[N], ahead[N]['X'], X)}"
        by_law = law["predictions"][i] if law else None
        lines.append(f"{row} | {told(by_law, by_law['value'], X) if by_law else ' | | '} |")
    Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
