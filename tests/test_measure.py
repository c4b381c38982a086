"""`measure` under signals, and with load generators that do not do as they should."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")

#: A load generator that leaves children, is deaf to signals, or lets orphans leave its session.
GENERATOR = """#!/bin/sh
case $KIND in
    forks) sleep 60 & sleep 60 & ;;
    deaf) trap '' INT TERM HUP ;;
    orphans) (setsid sh -c 'sleep 60 & exec sleep 60' &) ;;
    slow) trap 'sleep 2; exit 1' INT TERM; sleep 3 & wait ;;
esac
sleep $LASTS
echo N,X
echo $1,$((10 * $1))
"""
KINDS = ("forks", "deaf", "orphans", "slow")


class Ended(NamedTuple):
    code: int
    said: str
    left: list[str]
    files: list[str]


class Folder:
    """A folder in which one command measures, with processes that can be told from all others."""

    def __init__(self, path: Path, loads="1,2", generator=GENERATOR):
        self.path, self.out, self.mark = path, path / "out", f"{path}-{random.random()}"
        self.tool = path / "generator.sh"
        self.tool.write_text(generator)
        self.tool.chmod(0o755)
        self.command = [sys.executable, "-m", "nummodel", "measure", "--at", loads]
        self.command += ["--repeat", "1", "--output", str(self.out), "--", str(self.tool), "{N}"]

    def start(self, kind="", lasts=0.0) -> subprocess.Popen:
        # A job in the background ignores interrupts, and its children inherit that.
        usual = partial(signal.signal, INT, signal.default_int_handler)
        variables = {"KIND": kind, "LASTS": str(lasts), "MARK": self.mark}
        pipe = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(self.command, **pipe, env=os.environ | variables, preexec_fn=usual)

    def ended(self, process: subprocess.Popen) -> Ended:
        said = process.communicate(timeout=60)[1]
        return Ended(process.returncode, said, self.left(), sorted(os.listdir(self.out)))

    def left(self) -> list[str]:
        """Programs that still run, or wait to be buried."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (path / "environ").read_bytes():
                    found.append((path / "cmdline").read_text(errors="replace"))
            except OSError:
                pass
        return found

    def until_a_run_begins(self) -> None:
        end = time.monotonic() + 60
        while not any(self.path.glob("out/*.command.part")) and time.monotonic() < end:
            time.sleep(0.01)


def drill(folder: Folder, kind: str, signals, delays) -> Ended:
    """Send signals to a command, each after a delay [s]; what is there when it has ended."""
    process = folder.start(kind, 0.5)
    folder.until_a_run_begins()
    for number, delay in zip(signals, delays, strict=True):
        time.sleep(delay)
        process.send_signal(number)
    return folder.ended(process)


def test_signals_end_what_was_started(tmp_path):
    """Four drills in one folder, and then the rest of it."""
    folder = Folder(tmp_path)
    for kind, signals in (
        ("forks", [TERM]),
        ("orphans", [HUP]),
        ("deaf", [INT, INT]),
        ("slow", [INT] * 3),
    ):
        ended = drill(folder, kind, signals, [random.uniform(0, 0.2) for _ in signals])
        assert ended.code == 128 + signals[0], ended.said
        assert "interrupted: the same command goes on from there" in ended.said
        assert not ended.left and ended.files == [".command"]
    ended = folder.ended(folder.start("orphans"))
    assert ended.code == 0 and not ended.left, ended.said
    assert {"1-r1.command.txt", "2-r1.command.txt"} <= {*ended.files}
