"""The server that kernels are forked from: a warm one imports what notebooks import, once for all.

It runs no notebook's code, so that runs have nothing in common but modules as they were imported.
It ends with the command that started it, and ends its kernels, and what they started, before.
"""

import ctypes
import gc
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import psutil

import nummodel

#: What every kernel imports when it starts; the debugger takes longest.
KERNEL = "ipykernel.kernelapp ipykernel.debugger sqlite3 tornado.platform.asyncio"
KERNEL += " IPython.core.completerlib IPython.extensions.storemagic"
# Neither pyplot nor its inline backend: they look for a kernel when they are imported.
LIBRARIES = """
    ipywidgets matplotlib.backends.backend_agg matplotlib.backends.backend_svg matplotlib.figure
    numpy pandas scipy.optimize scipy.signal scipy.special sympy sympy.physics.units
"""

# Of Linux' prctl: the signal to have when the parent dies, and to be the parent of orphans.
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def serve(orders: socket.socket, warm: bool) -> None:
    """Fork a kernel for every socket that comes, until the command has closed its end."""
    # Matplotlib decides how figures are shown when it is imported: here as in any kernel.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # else the debugger warns on stderr
    ours = [module.name for module in walk_packages(nummodel.__path__, "nummodel.")]
    ours = [name for name in ours if not name.startswith("nummodel.reports.")]  # for no notebook
    for name in [*KERNEL.split(), *([*LIBRARIES.split(), *ours] if warm else [])]:
        with suppress(Exception):  # a notebook that needs it will say so
            import_module(name)
    # Processes that kernels start stay below this process, also without their session or parent.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    gc.freeze()  # else collecting garbage would copy into each kernel what all of them share
    own = os.getpid()
    with suppress(ConnectionError):
        orders.send(b".")  # ready, and never taken from there
    while (order := next_order(orders)) is not None:
        with order:
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            if os.fork() == 0:
                orders.close()
                return become_kernel(order, own)
    with suppress(ChildProcessError):  # until there is no child to wait for
        while True:
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            os.waitpid(-1, 0)


def next_order(orders: socket.socket) -> socket.socket | None:
    """The socket that brings the next order, or None if the command has closed its end."""
    with suppress(ConnectionError):
        sockets = socket.recv_fds(orders, 1, 1)[1]
        return socket.socket(fileno=sockets[0]) if sockets else None
    return None


def become_kernel(order: socket.socket, server: int) -> None:
    """Be what `python -m ipykernel_launcher` is, with what the order says."""
    import numpy as np
    from ipykernel import kernelapp

    class IPKernelApp(kernelapp.IPKernelApp):  # of that name, which options have before them
        def init_iopub(self, context) -> None:
            context.sndhwm = 0  # else what a slow reader has not read yet would be dropped
            super().init_iopub(context)

    os.setsid()
    # A kernel looks for its server by itself, but not while a notebook's code keeps it busy.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it died before that
        return
    try:
        with order, order.makefile("rw") as lines:
            arguments, folder, environment = json.loads(lines.readline())
            lines.write(f"{os.getpid()}\n")
    except (ConnectionError, ValueError):  # no command waits for this kernel any more
        return
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # IPython puts the folder there as well, but not in an interpreter that was started with -P.
    others = [i for i, path in enumerate(sys.path) if path.endswith("-packages")]
    sys.path.insert(min(others, default=len(sys.path)), "")
    np.random.seed()  # else each kernel would go on where the server's global generator stands
    sys.argv = [*arguments, f"--IPKernelApp.parent_handle={server}"]
    IPKernelApp.launch_instance()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), "warm" in sys.argv)
