"""Locks: when one collapses, what splitting it brings, what a preempted holder costs.

N threads think for Z seconds between two uses of a lock and hold it for S. Locks differ in the
*grant*: the seconds from one acquisition to the next with n threads at the lock, the holder
included. `<lock>_grant(n, ...)` gives these seconds, and `solve` finds throughput and waiting
threads of a closed system with such a lock. Every argument may be an array, so that `solve` takes a
whole grid at once:

>>> import numpy as np
>>> system = solve(lambda n: ticket_grant(n, S=1.0, h_waiter=[[0.0], [0.1]]), N=[1, 10, 80], Z=9.0)
>>> system.X.round(3)
array([[0.1  , 0.832, 1.   ],
       [0.1  , 0.701, 0.114]])

All models assume that think and hold times are exponential (constant times bring more throughput
unless the lock is idle or full), that all uses are alike, and that a hand-over delays only the
threads that wait for it. Times are in seconds. Simulations of the protocols (`tests/protocol.py`,
half-widths about 1 %) show these errors of X:

| lock | error of X | where |
|---|---|---|
| queue | -1 % to +1 % | a hand-over takes a constant time |
| shards; readers and writers who do not think | none beyond the half-width | |
| ticket | -5 % to 0 | largest near N_sat: in the model a thread that comes prolongs the hold |
| test-and-set | -1 % to +5 % | largest near N_sat; to +10 % where nodes are answered in turn |
| cohort | -1 % to +2 % | eight nodes |
| readers and writers who think | -1 % to +6 % | |
| mutex: waiters spin, then sleep | -5 % to +8 % | waking takes up to 20 S; 100 S: -14 % to +18 % |
| readers who count | -5 % to +3 % | to +8 % where all of the time is counting |
| sleeping, a woken thread takes a processor | -3 % to +3 % | exact without a switch |
| sleeping, a woken thread waits for one | -3 % to +16 % | largest where N is above c |

On several nodes these errors are those of four threads a node or more, whose hand-overs across take
up to 0.4 S. With one thread a node all hand-overs cross, not a share of 1 - 1/nodes: X is up to
12 % too high with a queue lock, 15 % with a cohort lock, 30 % with test-and-set, 48 % with readers
who count. If hand-overs across take as long as holds, a cohort lock of six threads a node is up to
10 % too fast.
"""

from math import isqrt

import numpy as np

from nummodel.arguments import LARGEST, checked, feasible, ordered, station, valid, within
from nummodel.formula import formula
from nummodel.models import _chain
from nummodel.models._chain import NEVER, SHORTEST, Contended, solve
from nummodel.models._chain import fewest_shards as fewest_shards
from nummodel.models._chain import held_shards as held_shards
from nummodel.models._chain import sharded_grant as sharded_grant
from nummodel.models.queueing import while_stable

#: Most states of all systems with a mutex, which take some tenths of a second.
STATES = 10**6


@formula("N_sat", valid)
def lock_saturation(S, Z):
    """Threads that one lock can feed: with more threads, some must wait, whatever the order.

    >>> lock_saturation(S=1.0, Z=15.0)
    16.0
    """
    return (Z + S) / S


@station
def queue_grant(n, S, h=0.0, h_remote=0.0, nodes=1):
    """MCS and CLH: each waiter spins on a line of its own, and one line goes to the next in order.

    A hand-over takes `h` inside a node and `h_remote` across nodes, for the lock's line and the
    data that follow it. Threads are spread evenly over `nodes` and are served in order of arrival,
    so that a share 1 - 1/nodes of the hand-overs crosses. The grant does not depend on n.

    >>> queue_grant(n=[1, 100], S=1.0, h=0.1, h_remote=0.4, nodes=4)
    array([1.325, 1.325])

    Mellor-Crummey and Scott (1991), Algorithms for scalable synchronization on shared-memory
    multiprocessors. All grants raise ValueError where `nodes` are several and `h_remote`, which may
    not have been given, is less than `h`.
    """
    return np.ones_like(n) * (S + h + _further(h, h_remote, nodes) * (1 - 1 / nodes))


@station
def ticket_grant(n, S, h=0.0, h_remote=0.0, nodes=1, h_waiter=0.0):
    """Ticket lock: all waiters spin on one line, and every release makes all of them read it again.

    The order is that of the queue lock, but each of the n - 1 waiters adds `h_waiter`: waiters read
    the line one after another, and half of their reads precede that of the next owner. With many
    waiters throughput falls as 1/n.

    >>> ticket_grant(n=[1, 11], S=1.0, h_waiter=0.1)
    array([1., 2.])
    """
    return queue_grant(n, S, h, h_remote, nodes) + h_waiter * (n - 1)


@station
def tas_grant(n, S, h=0.0, h_remote=0.0, nodes=1, h_waiter=0.0):
    """Test-and-set: every waiter keeps asking for the line to write, and the release must ask, too.

    The release comes after the requests of the n - 1 waiters, `h_waiter` each. They are answered
    node by node, the releasing node last. The line crosses once for every node with one of the n
    threads: nodes (1 - (1 - 1/nodes)^n) times on average, and never if all n are on its node.

    >>> tas_grant(n=[1, 2, 100], S=1.0, h_remote=0.4, nodes=2)
    array([1.2, 1.5, 1.8])
    """
    crossings = -nodes * np.expm1(n * np.log1p(-1 / nodes)) - nodes**-n
    return S + h + _further(h, h_remote, nodes) * crossings + h_waiter * (n - 1)


@station
def cohort_grant(n, S, h=0.0, h_remote=0.0, nodes=1, batch=100):
    """Cohort lock: to a waiter of the same node if there is one, at most `batch` times in a row.

    A hand-over crosses if all waiters are on other nodes, and once per batch if some are. The more
    threads wait, the fewer hand-overs cross: throughput grows with contention.

    >>> cohort_grant(n=[2, 5, 50], S=1.0, h_remote=0.4, nodes=2, batch=100).round(4)
    array([1.2   , 1.0285, 1.004 ])

    Dice, Marathe and Shavit (2012), Lock Cohorting, PPoPP. LiTL's C-BO-MCS hands over 100 times in
    a row, which its `include/cbomcs.h` calls the paper's default.
    """
    waiters = np.maximum(n - 1, 1)  # with no waiter, the next thread may come from any node
    elsewhere, here = (1 - 1 / nodes) ** waiters, nodes**-waiters
    return S + h + _further(h, h_remote, nodes) * (elsewhere + (1 - elsewhere - here) / batch)


def _further(h, h_remote, nodes):
    """How much longer a hand-over takes across nodes than inside, where there are several nodes."""
    inside = np.where(nodes > 1, h, 0.0)
    why = ": with several nodes a hand-over across them has to be given"
    ordered({"h": inside, "h_remote": h_remote}, "h", "h_remote", why)
    return np.where(nodes > 1, h_remote - h, 0.0)


@station
def shared_grant(n, S, w):
    """Reader-writer lock, first come first served, with a share `w` of exclusive use.

    Readers that follow each other hold the lock together; a writer waits for them, and all others
    wait for the writer. On average, the time from one completion to the next is S (w (1 + A) +
    q^n/n), where q = 1 - w and A is the sum of q^j/j for j = 1 to n - 1. This is exact for n
    threads that come back at once; with thinking X is up to 6 % too high.

    A full lock passes 1/(w (1 + log 1/w)) uses per S: with 1 % writers not 100 but 18.

    >>> (1 / shared_grant(n=10_000, S=1.0, w=[1.0, 0.1, 0.01])).round(2)
    array([ 1.  ,  3.03, 17.84])
    """
    from scipy.special import exp1

    q, few = 1 - w, np.arange(1, 64)
    series = ((few < n[..., None]) * q[..., None] ** few / few).sum(-1)
    fall = -np.log1p(-w)

    def from_on(n):
        """Sum of q^j/j from j = n on, by Euler and Maclaurin to 14 digits."""
        last, a = q**n / n, fall + 1 / n
        third = fall * (fall * (fall + 3 / n) + 6 / n**2) + 6 / n**3
        return exp1(fall * n) + last / 2 + last * a / 12 - last * third / 720

    series = series + np.where((n > 64) & (w > 0) & (w < 1), from_on(64.0) - from_on(n), 0.0)
    return S * (w * (1 + series) + q**n / n)


@checked
def counting_readers(N, Z, S, update, h, h_remote=0.0, nodes=1) -> Contended:
    """Readers who hold a lock together, and who add to its counter when they come and when they go.

    The counter is one cache line, which one thread at a time can write. An addition takes `update`,
    and `h` or `h_remote` more if another thread had the line: so with several readers each read
    takes two hand-overs, and short reads get fewer with more readers. `Q` counts the threads that
    are at the counter. Between two additions pass Z or S, as if each of them were the mean of both.

    >>> counting_readers(N=[1, 4, 64], Z=1.0, S=0.1, update=0.1, h=0.3).X.round(2)
    array([0.77, 1.22, 1.25])

    On four nodes the line comes from farther away, and one reader does more than four:

    >>> counting_readers([1, 4, 64], 1.0, 0.1, 0.1, 0.3, h_remote=1.0, nodes=4).X.round(2)
    array([0.77, 0.54, 0.54])
    """
    within("update", update, SHORTEST)
    moved = update + queue_grant(1, 0.0, h, h_remote, nodes)
    # A thread that finds nobody at the counter may be the one that had the line.
    alone = update + (moved - update) * (1 - 1 / np.maximum(N, 1))
    additions = solve(lambda n: moved if n > 1 else alone, N, (Z + S) / 2)
    return additions._replace(X=additions.X / 2)


@np.errstate(all="ignore")
@checked
def mutex(N, Z, S, wake, patience=0.0) -> Contended:
    """A lock whose waiters spin for `patience` and then sleep, as most mutexes of today.

    A thread that releases the lock leaves it to one that spins, if there is one. If not, the lock
    is free, and a sleeping thread is woken, which runs `wake` later. If another thread has taken
    the lock by then, the woken thread spins again. So sleeping threads cost little as long as
    others come soon. One woken thread is under way at a time. Each thread has a processor.

    >>> mutex(N=8, Z=10.0, S=1.0, wake=5.0, patience=[0.0, 2.0, 50.0]).X.round(2)
    array([0.37, 0.59, 0.66])

    For each number of sleeping threads the others are a closed system of their own. A waiter loses
    patience at a constant rate, as often as with a constant patience and one hold to wait for.
    """
    within("S", S, SHORTEST)
    N, Z, S, wake, patience = np.broadcast_arrays(N, Z, S, wake, patience)
    most = int(N.max(initial=1))
    feasible("N", most, isqrt(STATES // max(N.size, 1)), "N x N states")
    k = np.arange(1, most + 1).reshape(-1, *(1,) * N.ndim)  # at the lock, and awake
    asleep = np.arange(most).reshape(-1, *(1,) * (N.ndim + 1))
    patience = S * np.expm1(np.maximum(patience / S, 1e-9))
    woken = (asleep > 0) * (k == 1) / np.maximum(wake, NEVER)
    comes = np.maximum(N - asleep - k + 1, 0) / np.maximum(Z, NEVER) + woken
    goes = 1 / S + (k - 1) / patience
    free, p = _chain.shares(comes / goes, axis=1)
    to_sleep = (p * (k - 1)).sum(1) / patience
    awaken = np.maximum(free[1:] / np.maximum(wake, NEVER), NEVER)
    none, several = _chain.shares(to_sleep[:-1] / awaken, axis=0)
    X = (none * (1 - free[0]) + (several * (1 - free[1:])).sum(0)) / S
    return _chain.contended(X, np.maximum(N - X * Z, 0.0), N)  # the others think


@checked
def delegated(N, Z, S, h) -> Contended:
    """One processor only serves the other N - 1, which spin until they are answered.

    The shared data stay in its cache, so that a request takes S and one transfer `h`. The answer
    takes another transfer, which delays only the processor that asked.

    >>> delegated(N=[1, 2, 100], Z=1.0, S=0.4, h=0.1).X.round(4)
    array([0.   , 0.625, 2.   ])
    """
    within("S + h", S + h, 1 / LARGEST)
    return solve(lambda n: S + h, np.maximum(N - 1, 0), Z + h)


@formula("W", valid)
def preempted_waiting(lamda, S, cv2, on, away, cv2_v):
    """Mean wait for a lock whose holder may lose its processor: after `on` of holding, on average.

    The holder is then away for `away` on average, and no thread can use the lock. M/G/1 with
    breakdowns: the wait grows as the square of `away`, long before the lock looks busy.

    >>> preempted_waiting(lamda=0.1, S=1.0, cv2=1, on=100.0, away=[0.0, 100.0], cv2_v=1).round(3)
    array([ 0.111, 13.   ])

    Where 1 + x logical processors share a real one, as in a capped or shared partition, `away` is x
    times `on`, and waiting threads may be away as well: see `partition`. Avi-Itzhak and Naor
    (1963), Some queuing problems with the service station subject to breakdown, model B.
    """
    mean = S * (1 + away / on)
    square = S**2 * (1 + cv2) * (1 + away / on) ** 2 + S / on * away**2 * (1 + cv2_v)
    return while_stable(lamda * mean, lamda * square / (2 * (1 - lamda * mean)))


@checked
def switch_break_even(N, c, Z, S):
    """Context-switch time below which N threads on c processors should sleep rather than spin.

    A thread that sleeps leaves its processor to another, and a grant to it waits for a context
    switch. A thread that spins keeps its processor. With one for each thread, sleeping gains
    nothing.

    >>> switch_break_even(N=[8, 16, 64], c=8, Z=10.0, S=1.0).round(3)
    array([0.   , 0.408, 0.509])
    """
    from scipy.optimize.elementwise import find_root

    feasible("N", N.max(initial=0), 1000, "a system of N is solved many times")
    within("N", N, 1)
    within("S", S, 1 / LARGEST)
    N, c, Z, S = np.broadcast_arrays(N, c, Z, S)
    spinning = solve(lambda n: S, np.minimum(N, c), Z).X

    def gain(switch, N, c, Z, S, spinning):  # the switch is in units of a spinners' cycle
        return solve(lambda n: S + switch / spinning * (n > 1), N, Z, c).X / spinning - 1

    with np.errstate(all="ignore"):
        unit = find_root(gain, (0.0, 1.0), args=(N, c, Z, S, spinning), tolerances={"xatol": 1e-15})
        return np.where(unit.success & (N > c), unit.x / spinning, 0.0)[()]
