"""Programs that end, with all that they started, when the work that needs them ends or is stopped.

Linux makes this process the parent of each process below it whose own parent has ended, so that
none is lost, whatever its group or session. Elsewhere the groups of the programs are ended.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen
from typing import Any

from nummodel.errors import tell

#: Seconds in which programs may end by themselves, and then by force.
PATIENCE = 3.0


class Stopped(KeyboardInterrupt):
    """A signal, its argument, has stopped the work."""


class Programs:
    """The programs of one work, a context. Signals raise Stopped in `start` and `wait` only: what
    is done between is done as a whole. Processes that were there before are not ended.
    """

    def __enter__(self) -> "Programs":
        linux = sys.platform == "linux"
        self.send = os.kill if linux else os.killpg
        if linux:
            ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
        self.codes: dict[int, int | None] = {}  # of programs: None while they run
        self.others: set[int] = set()
        self.others = self._running()
        self.waits = False
        self.signals: list[int] = []
        usual = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        self.before = {n: how for n, how in usual.items() if how != signal.SIG_IGN}  # as of nohup
        for number in self.before:
            signal.signal(number, self._receive)
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self.before.items():
            signal.signal(number, signal.SIG_IGN if self.signals else handler)

    def _receive(self, number: int, _) -> None:
        waits, self.waits = self.waits, False
        self.signals.append(number)
        if waits:
            raise Stopped(number)

    def _heed(self) -> None:
        if self.signals:
            raise Stopped(self.signals[0])

    def start(self, arguments: Sequence[str], output: Path, env=None) -> int:
        """Start a program in a session of its own; its number. Raises OSError."""
        self._heed()
        with output.open("wb") as file:
            streams: dict[str, Any] = {"stdin": DEVNULL, "stdout": file, "stderr": STDOUT}
            program = Popen(arguments, env=env, start_new_session=True, **streams)
        program.returncode = 0  # else subprocess would ask for it as well
        self.codes[program.pid] = None
        return program.pid

    def wait(self, program: int) -> int:
        """The exit code of a program that has ended. Raises Stopped at a signal."""
        self.waits = True
        self._heed()
        while (code := self.codes[program]) is None:
            self._bury(0)
        self.waits = False
        return code

    def _bury(self, options: int) -> int:
        """Take note of a child that has ended, a program or an orphan; 0 if there is none."""
        pid, status = os.waitpid(-1, options)
        if pid in self.codes:
            self.codes[pid] = os.waitstatus_to_exitcode(status)
        return pid

    def end(self) -> None:
        """End all that runs: by force after three seconds, or at a second signal."""
        asked: set[int] = set()
        force_at = time.monotonic() + PATIENCE
        while running := self._running():
            force = len(self.signals) > 1 or time.monotonic() > force_at
            for pid in running if force else running - asked:
                with suppress(ProcessLookupError, PermissionError):
                    self.send(pid, signal.SIGKILL if force else signal.SIGTERM)
            if time.monotonic() > force_at + PATIENCE:
                tell(f"could not be ended: processes {', '.join(map(str, sorted(running)))}")
                self.others |= running
            asked |= running
            time.sleep(0.01)
        self.codes = {}

    def _running(self) -> set[int]:
        """All processes below this one, without those that were there before."""
        with suppress(ChildProcessError):
            while self._bury(os.WNOHANG):
                pass
        found = {pid for pid, code in self.codes.items() if code is None}
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                parent = stat.read_bytes().rpartition(b")")[2].split()[1]
                parents[int(stat.parent.name)] = int(parent)
        new = {os.getpid()}
        while new := {pid for pid in parents if parents[pid] in new} - self.others:
            found |= new
        return found - self.others
