"""Calls that end after some seconds of processor time, whatever else the machine has to do."""

import signal
import time


class Hang(BaseException):
    """A call took too long; no `except Exception` inside the call can catch it."""


def limited(call, limit):
    """What `call` gives, and its processor time [s]; None if it was ended after `limit` s."""

    def end(*_):
        raise Hang

    before, start = signal.signal(signal.SIGPROF, end), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return call(), time.process_time() - start
    except Hang:
        return None, time.process_time() - start
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
