"""Kernels that are forked from a server that has imported already what notebooks import.

Imports are most of what a short notebook takes. Other systems than Linux have libraries that do not
survive a fork; there, and for kernels of other interpreters, kernels start as ever.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
from functools import cache
from threading import Lock
from typing import Any

import psutil
from jupyter_client.provisioning import LocalProvisioner

LAUNCH = [sys.executable, "-m", "ipykernel_launcher"]
FORKS = sys.platform == "linux"
lock = Lock()


class Kernel(psutil.Process):
    """A process that is asked what a subprocess.Popen is."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """Its exit code, of which no more is known than whether there is one."""
        return None if self.is_running() and self.status() != psutil.STATUS_ZOMBIE else 1

    def wait(self, timeout: float | None = None) -> int | None:
        """Not until nothing is left of it, which is up to its server."""
        return self.poll()


class Forked(LocalProvisioner):
    """Launches kernels by having them forked, for jupyter_client."""

    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        if not FORKS or cmd[:3] != LAUNCH:
            return await super().launch_kernel(cmd, **options)
        self.cwd = options.get("cwd") or os.getcwd()
        self.process = fork(cmd[2:], str(self.cwd), options["env"])
        self.pid = self.pgid = self.process.pid
        return self.connection_info


def prepare() -> None:
    """Start the server, where there is to be one, which takes as long as its imports."""
    if FORKS:
        server()


def fork(arguments: list[str], folder: str, environment: dict[str, str]) -> Kernel:
    """A new kernel. Raises RuntimeError if it, or the server, died meanwhile."""
    ours, theirs = socket.socketpair()
    try:
        with ours, ours.makefile("rw") as told:
            with theirs:
                socket.send_fds(server(), [b"."], [theirs.fileno()])
            told.write(json.dumps([arguments, folder, environment]) + "\n")
            told.flush()
            return Kernel(int(told.readline()))
    except (ConnectionError, ValueError, psutil.NoSuchProcess):
        raise RuntimeError("Kernel died before it was started") from None


def server() -> socket.socket:
    """Where to send orders: to a server that lives as long as this process."""
    with lock:
        process, orders = _started()
        if process.poll() is not None:
            _started.cache_clear()
            process, orders = _started()
    return orders


@cache
def _started() -> tuple[subprocess.Popen, socket.socket]:
    ours, theirs = socket.socketpair()
    # -P: not to import what lies in the folder where the command runs.
    command = [sys.executable, "-P", "-m", "nummodel.kernelserver", str(theirs.fileno())]
    with theirs:
        # In a session of its own, where Ctrl-C does not reach it.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
        )
    atexit.register(_end, process, ours)
    return process, ours


def _end(process: subprocess.Popen, orders: socket.socket) -> None:
    orders.close()
    process.kill()
    process.wait()
