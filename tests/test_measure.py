"""`measure` under signals, and with load generators that do not do as they should."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from inprocess import nummodel

from nummodel.errors import InputError
from nummodel.records import folder as folders

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
FOLDERS = Path(__file__).parent / "records" / "odd-folders"
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
    left: dict[int, str]
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
        def usual() -> None:
            """A job in the background ignores interrupts, one under nohup the end of a terminal."""
            signal.signal(INT, signal.default_int_handler)
            signal.signal(HUP, signal.SIG_DFL)

        variables = {"KIND": kind, "LASTS": str(lasts), "MARK": self.mark}
        pipe = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(self.command, **pipe, env=os.environ | variables, preexec_fn=usual)

    def ended(self, process: subprocess.Popen) -> Ended:
        said = process.communicate(timeout=60)[1]
        files = sorted(os.listdir(self.out)) if self.out.exists() else []
        return Ended(process.returncode, said, self.left(), files)

    def left(self) -> dict[int, str]:
        """Programs that still run, by their numbers."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self.mark.encode() in (path / "environ").read_bytes():
                    found[int(path.name)] = (path / "cmdline").read_text(errors="replace")
        return found

    def kill(self) -> None:
        """End the programs that still run."""
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)

    def until_a_run_begins(self) -> None:
        end = time.monotonic() + 60
        while not any(self.path.glob("out/*.command.part")) and time.monotonic() < end:
            time.sleep(0.01)


def drill(folder: Folder, kind: str, signals, delays) -> Ended:
    """Send signals to a command, each after a delay [s]; what is there when it has ended."""
    process = folder.start(kind, 10)
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


@pytest.mark.slow
@pytest.mark.parametrize("drill", range(40))
def test_a_signal_at_any_moment_leaves_nothing(drill, tmp_path):
    """Where nothing runs yet or any more, a signal may end the command as it ends any other."""
    moment, folder = random.Random(drill), Folder(tmp_path, "1,2,3")
    signals = [[TERM], [HUP], [INT], [INT, INT], [TERM, INT], [INT, HUP, TERM]][drill % 6]
    process = folder.start(KINDS[drill % 4], 0.3)
    for i, number in enumerate(signals):
        time.sleep(moment.uniform(0, 0.6) if i else moment.uniform(0.02, 4))
        process.send_signal(number)
    ended = folder.ended(process)
    stopped = 128 + signals[0] if "interrupted:" in ended.said else 0
    assert ended.code == stopped or "run 1" not in ended.said or "nummodel read" in ended.said
    assert "Traceback" not in ended.said or "run 1" not in ended.said, ended
    assert not ended.left and not [name for name in ended.files if name.endswith(".part")], ended
    ended = folder.ended(folder.start("forks"))
    assert ended.code == 0 and not ended.left, ended
    assert {f"{n}-r1.command.txt" for n in (1, 2, 3)} <= {*ended.files}


def test_what_was_killed_is_measured_again_and_parts_of_others_stay(tmp_path):
    folder = Folder(tmp_path, "1")
    process = folder.start("forks", 60)
    folder.until_a_run_begins()
    while "sleep" not in str(folder.left()):  # until the generator has children
        time.sleep(0.05)
    process.kill()
    ended = folder.ended(process)
    parts = [name for name in ended.files if name.endswith(".part")]
    assert "1-r1.command.part" in parts and ended.left
    with pytest.raises(InputError, match="no files"):
        folders.read(folder.out)
    folder.kill()
    (folder.out / "film.part").touch()
    ended = folder.ended(folder.start())
    assert ended.code == 0 and [n for n in ended.files if n.endswith(".part")] == ["film.part"]


@pytest.mark.slow
def test_processes_that_were_there_before_are_let_alone(tmp_path):
    """As a server that a script started, before it became `measure`."""
    folder = Folder(tmp_path, "1")
    script = 'sleep 60 >/dev/null 2>&1 & exec "$@"'
    folder.command = ["sh", "-c", script, "sh", *folder.command]
    ended = folder.ended(folder.start("orphans"))
    assert ended.code == 0 and [*ended.left.values()] == ["sleep\0" + "60\0"]
    folder.kill()


@pytest.mark.slow
def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    folder = Folder(tmp_path, "1")
    folder.command = ["nohup", *folder.command]
    ended = drill(folder, "forks", [HUP], [0])
    assert ended.code == 0 and not ended.left, ended.said


#: What load generators at fault do in a shell, and what is said of their runs.
FAULTS = [
    ("echo N,X; echo $1,n/a", "X is 'n/a', expected an output of"),
    ("echo N,X; echo $1,nan", "X is 'nan', expected an output of"),
    ("echo N,X; echo $1,1e400", "X is '1e400', expected an output of"),
    ("echo N,X; echo $1,0", "X is 0.0, expected an output of"),
    ("echo N,X; echo $1,-5", "X is -5.0, expected an output of"),
    ("echo N,X; echo some,5", "N is 'some', expected an output of"),
    ("echo N,R; echo $1,5", "no columns N and X, expected an output of"),
    (r"printf 'N,X\n\351'", "2: no text in UTF-8, expected an output of"),
    (r"printf 'd\351faut'; exit 3", "exit code 3: d\ufffdfaut; its output is in"),
    ("yes | head -c 70000000", "more than 64 MiB, expected an output of"),
    ("head -c 90000000 /dev/zero | tr '\\0' x; exit 1", "exit code 1: " + 200 * "x"),
    ("kill -9 $$", "exit code -9: no output; its output is in"),
    ("echo N,X; echo $1,5", "X = 5 1/s"),
]


def test_runs_at_fault_fail_in_a_line_each_and_the_others_go_on(tmp_path):
    cases = "".join(f"{i + 1}) {does} ;;\n" for i, (does, _) in enumerate(FAULTS))
    loads = ",".join(str(i + 1) for i in range(len(FAULTS)))
    folder = Folder(tmp_path, loads, f"#!/bin/sh\ncase $1 in\n{cases}esac\n")
    patient = "from nummodel import cli, measure; measure.FAILURES = 99; cli.main()"
    folder.command[1:3] = ["-c", patient]
    ended = folder.ended(folder.start())
    assert ended.code == 1 and "Traceback" not in ended.said
    for i, (_, said) in enumerate(FAULTS):
        assert ended.said.count(f"\nnummodel: N = {i + 1}: {said}") == 1, ended.said
    assert len(ended.said.splitlines()) < 3 + 2 * len(FAULTS)
    whole = [name for name in ended.files if name.endswith(".command.txt")]
    failed = [name for name in ended.files if name.endswith(".command.failed")]
    assert whole == [f"{len(FAULTS)}-r1.command.txt"] and len(failed) == len(FAULTS) - 1


@pytest.mark.parametrize(
    ("generator", "said"),
    [
        ("no script", "Exec format error"),
        ("#!/no/such\n", "No such file or directory"),
        ('#!/bin/sh\nrm -r "$(dirname "$0")/out"', "No such file or directory"),
    ],
)
def test_what_the_system_refuses_is_told(generator, said, tmp_path):
    folder = Folder(tmp_path, "1,2,3,4", generator)
    process = folder.start()
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 1 and "the rest is not tried" in error
    assert error.count(said) == 3 and "Traceback" not in error and not folder.left()
    assert not folder.out.exists() or os.listdir(folder.out) == [".command"]


@pytest.mark.parametrize(
    "arguments", [["--repeat", 10**9], ["--at", ",".join(map(str, range(1, 3000)))]]
)
def test_more_runs_than_can_be_read_are_refused(arguments, tmp_path):
    done = nummodel("measure", "--at", "1,2", *arguments, "--", "echo", "{N}", cwd=tmp_path)
    assert done.returncode == 2 and "runs, expected at most 2,500" in done.stderr
    assert not any(tmp_path.iterdir())


def test_arguments_and_commands_in_other_encodings(tmp_path):
    folder = Folder(tmp_path, "1", "#!/bin/sh\necho N,X; echo $1,5; test ${#2} = 1")
    folder.command.append(b"\xff")
    assert folder.ended(folder.start()).code == 0
    assert (folder.out / ".command").read_bytes().endswith(b" '{N}' '\xff'")
    assert "1 of 1 runs are there already" in folder.ended(folder.start()).said
    folder.command[-1] = b"\xfe"
    said = folder.ended(folder.start()).said
    assert r"has runs of another command" in said and "udcff" in said


@pytest.mark.slow
def test_a_disk_that_is_full_or_read_only_is_told(tmp_path):
    """On a small disk of its own."""
    folder = Folder(tmp_path, "1")
    folder.out.mkdir()
    script = """cd $0; mount -t tmpfs -o size=64k tmpfs out || exit 99
        head -c 100000 /dev/zero 2>&1 >out/full | :; "$@"; rm out/full
        mount -o remount,ro out; "$@"; mount -o remount,rw out
        "$@"; rm out/1-r1.command.txt; mount -o remount,ro out; "$@" """
    folder.command = ["unshare", "-rm", "sh", "-c", script, str(tmp_path), *folder.command]
    ended = folder.ended(folder.start())
    if ended.code == 99 or "unshare" in ended.said:
        pytest.skip("may not mount a disk")
    told = re.findall("No space left on device|Read-only file system|X = 10 1/s", ended.said)
    assert told == [*("No space left on device", "Read-only file system", "X = 10 1/s"), told[1]]
    assert "Traceback" not in ended.said and not ended.left


ODD = {
    "one": "2.txt: left out: X is 'n/a', expected a positive number",
    "many": "all.csv: left out: X is '-', expected a positive number",
    "text_n": "1.txt: left out: N is '8 threads', expected a positive number",
    "quoted": "2.txt: left out: ",
    "neg": "b.csv: left out: N is -4.0, expected a positive number",
    "nanx": "b.csv: left out: N is 0.0, expected a positive number",
}


@pytest.mark.parametrize(("name", "said"), ODD.items())
def test_a_file_without_numbers_is_left_out_of_a_folder(name, said, tmp_path):
    done = nummodel("read", FOLDERS / name)
    assert said in done.stderr and done.returncode == (2 if name == "many" else 0)
    assert nummodel("fit", FOLDERS / name).returncode == (
        2 if name in ("many", "text_n", "quoted") else 0
    )
