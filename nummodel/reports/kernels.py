"""Kernels that are forked from a server, which is warm if it has imported what notebooks import.

A short notebook spends most of its time on imports. A warm server imports once for many kernels. If
there are only a few kernels, it is quicker that each of them imports what it uses.

Only on Linux do all libraries work after a fork. Elsewhere, and if a notebook asks for another
interpreter, a kernel is started in the usual way, without a server.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from select import select
from threading import Lock
from time import perf_counter
from typing import Any

import psutil
from jupyter_client.provisioning import LocalProvisioner

LAUNCH = [sys.executable, "-m", "ipykernel_launcher"]
SERVE = [sys.executable, "-P", "-m", "nummodel.reports.kernelserver"]  # -P: nothing of the folder
FORKS = sys.platform == "linux"
STDERR = 2  # where kernels may write: stdout has nothing but the command's results
DAY = 86_400.0
Server = tuple[subprocess.Popen, socket.socket]
servers: dict[bool, Server] = {}  # by whether they are warm
lock = Lock()


class Kernel(psutil.Process):
    """A process with those methods of a subprocess.Popen that jupyter_client calls."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """None as long as the process runs. Its exit code is not known, so it is 1."""
        with suppress(psutil.NoSuchProcess):  # it may end between the two questions
            if self.is_running() and self.status() != psutil.STATUS_ZOMBIE:
                return None
        return 1

    def wait(self, timeout: float | None = None) -> int | None:
        """Does not wait: the server does, since the kernel is its child."""
        return self.poll()


class Forked(LocalProvisioner):
    """Launches kernels by having them forked, for jupyter_client, until the time `end_at`."""

    end_at = float("inf")
    warm = True

    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        if not FORKS or cmd[:3] != LAUNCH:
            return await super().launch_kernel(cmd, **options | {"stdout": STDERR})
        self.cwd = options.get("cwd") or os.getcwd()
        self.process = fork(cmd[2:], str(self.cwd), options["env"], self.end_at, self.warm)
        self.pid = self.pgid = self.process.pid
        return self.connection_info

    async def send_signal(self, signum: int) -> None:
        """All but the interruption that jupyter_client sends before it kills: some kernels report
        that as an error on stderr, where it looks as if the report had failed.
        """
        if signum != signal.SIGINT:
            await super().send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """Not the group of processes alone, which a process can leave."""
        with suppress(psutil.NoSuchProcess):
            if self.process:
                end(psutil.Process(self.process.pid))


def prepare(warm: bool = True) -> None:
    """Start the server, where there is to be one, which takes as long as its imports."""
    if FORKS:
        server(warm)


def await_server(warm: bool = True) -> None:
    """Wait until the server can fork, at no run's cost. Raises TimeoutError after a minute."""
    if FORKS:
        _await(server(warm), perf_counter() + 60, warm)


def _await(answer: socket.socket, end_at: float, warm: bool) -> None:
    while not select([answer], [], [], 1.0)[0]:
        servers[warm][0].send_signal(signal.SIGCONT)  # it may have been stopped
        if perf_counter() > end_at:
            raise TimeoutError


def end(process: psutil.Process) -> None:
    """Kill a process with all that it has started."""
    with suppress(psutil.NoSuchProcess):
        for one in [process, *process.children(recursive=True)][::-1]:
            with suppress(psutil.NoSuchProcess):
                one.kill()


def end_all() -> None:
    """Kill kernels, and the servers of kernels, with what they started; no other process."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if {LAUNCH[-1], SERVE[-1]} & set(child.cmdline()):
                end(child)


def fork(
    arguments: list[str], folder: str, environment: dict[str, str], end_at: float, warm: bool
) -> Kernel:
    """A new kernel. Raises RuntimeError if it, or the server, died meanwhile, and TimeoutError."""
    ours, theirs = socket.socketpair()
    ours.settimeout(max(0.1, min(end_at - perf_counter(), DAY)))
    try:
        with ours, ours.makefile("rw") as order:
            with theirs:
                socket.send_fds(server(warm), [b"."], [theirs.fileno()])
            order.write(json.dumps([arguments, folder, environment]) + "\n")
            order.flush()
            _await(ours, end_at, warm)
            return Kernel(int(order.readline()))
    except (ConnectionError, ValueError, psutil.NoSuchProcess):
        raise RuntimeError("Kernel died before it was started") from None


def server(warm: bool = True) -> socket.socket:
    """Where to send orders: to a server that lives as long as this process."""
    with lock:
        if warm not in servers or servers[warm][0].poll() is not None:
            servers[warm] = _start(warm)
        return servers[warm][1]


def _start(warm: bool) -> Server:
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        process = subprocess.Popen(
            [*SERVE, str(number), *["warm"] * warm],
            stdin=subprocess.DEVNULL,
            stdout=STDERR,
            pass_fds=[number],
            start_new_session=True,  # where Ctrl-C does not reach it
        )
    atexit.register(_end, process, ours)
    return process, ours


def _end(process: subprocess.Popen, orders: socket.socket) -> None:
    orders.close()
    with suppress(psutil.NoSuchProcess):
        end(psutil.Process(process.pid))
    process.wait()
