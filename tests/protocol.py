"""Locks simulated as protocols: who holds, who waits, which line goes where, what that costs.

Nothing here knows a formula of `nummodel.locks`: a hand-over takes as long as the transfers of
cache lines that its protocol makes, one after another.
"""

import heapq
import random
from statistics import mean, stdev


def half_width(samples):
    """Half the 99 % interval of the mean of ten independent runs (Student, 9 degrees)."""
    return 3.250 * stdev(samples) / len(samples) ** 0.5


def throughput(protocol, N, Z, S, runs=10, uses=6000, **costs):
    """Mean throughput of ten runs with different seeds, and its half-width."""
    samples = [run(protocol, N, Z, S, random.Random(seed), uses, **costs) for seed in range(runs)]
    return mean(samples), half_width(samples)


def run(protocol, N, Z, S, rng, uses, nodes=1, **costs):
    """Uses per second of N threads on `nodes`; `protocol` orders hand-overs and times them."""
    lock = protocol(rng, nodes, **costs)
    think = (lambda: rng.expovariate(1 / Z)) if Z else (lambda: 0.0)
    events = [(think(), i) for i in range(N)]  # thread i comes to the lock at that time
    heapq.heapify(events)
    free_at, done, now, start, warm = None, 0, 0.0, 0.0, uses // 10
    holding = None
    while done < uses + warm:
        if holding is None or (events and events[0][0] < free_at):
            now, thread = heapq.heappop(events)
            lock.arrive(thread, thread % nodes)
            released = None
        else:
            now, released = free_at, holding
            holding, done = None, done + 1
            if done == warm:
                start = now
        while events and holding is None and events[0][0] <= now:  # those who came at once
            _, thread = heapq.heappop(events)
            lock.arrive(thread, thread % nodes)
        if holding is None and lock.waiting():
            holding, cost = lock.hand_over(None if released is None else released % nodes)
            free_at = now + cost + rng.expovariate(1 / S)
        if released is not None:  # who had it does not ask again before the next one has it
            heapq.heappush(events, (now + think(), released))
    return uses / (now - start)


class Fifo:
    """First come, first served; one line goes from the last owner to the next."""

    def __init__(self, rng, nodes, local=0.0, remote=0.0):
        self.rng, self.nodes, self.local, self.remote = rng, nodes, local, remote
        self.queue, self.at = [], 0

    def arrive(self, thread, node):
        self.queue.append((thread, node))

    def waiting(self):
        return len(self.queue)

    def transfer(self, node):
        """The line goes to `node`."""
        cost = self.local if node == self.at else self.remote
        self.at = node
        return cost

    def hand_over(self, released):
        """Who is next, and the seconds until then; `released` on that node, or found free."""
        thread, node = self.queue.pop(0)
        return thread, self.transfer(node)


class Ticket(Fifo):
    """All waiters read the line after a release, in any order, one after another."""

    def __init__(self, rng, nodes, read=0.0, **costs):
        super().__init__(rng, nodes, **costs)
        self.read = read

    def hand_over(self, released):
        readers, seconds = [thread for thread, _ in self.queue], 0.0
        self.rng.shuffle(readers)
        for thread in readers:
            if thread == self.queue[0][0]:
                break
            seconds += self.read
        thread, cost = super().hand_over(released)
        return thread, seconds + cost


class TestAndSet(Fifo):
    """Each waiter keeps asking for the line to write it; the release asks last, then any has it.

    Requests are answered one after another, node by node from where the line is, the releasing one
    `last` or in turn. Each takes `write`, and `remote - local` more if the line crosses.
    """

    __test__ = False

    def __init__(self, rng, nodes, write=0.0, last=True, **costs):
        super().__init__(rng, nodes, **costs)
        self.write, self.last = write, last

    def crossing(self, node):
        return self.transfer(node) - self.local

    def hand_over(self, released):
        seconds = 0.0
        if released is not None:
            asking = [node for _, node in self.queue]
            self.at = self.rng.choice(asking)  # they pull the line from each other all the time
            for node in self.in_order(asking, released):
                seconds += self.crossing(node) + self.write
            seconds += self.crossing(released)
        thread, node = self.queue.pop(self.rng.randrange(len(self.queue)))
        return thread, seconds + self.transfer(node)

    def in_order(self, asking, released):
        at = self.at
        last = released if self.last and released != at else None
        return sorted(asking, key=lambda node: (node == last, (node - at) % self.nodes))


class ArrivalOrder(TestAndSet):
    """Test-and-set whose requests are answered in the order in which they came, node or not.

    Every waiter asks again as soon as it is answered, so that no order among them is special.
    """

    __test__ = False

    def in_order(self, asking, released):
        self.rng.shuffle(asking)
        return asking


class TestAndTestAndSet(TestAndSet):
    """Each waiter reads the line after a release. Who reads first asks to write it at once, but is
    answered after all the others have read.
    """

    __test__ = False

    def __init__(self, rng, nodes, read=0.0, **costs):
        super().__init__(rng, nodes, **costs)
        self.read = read

    def hand_over(self, released):
        seconds = self.read * len(self.queue) if released is not None else 0.0
        thread, node = self.queue.pop(self.rng.randrange(len(self.queue)))
        return thread, seconds + self.transfer(node)


class BackOff(Fifo):
    """Each waiter asks after a pause, `pause` on average, and has the lock if it is then free."""

    def __init__(self, rng, nodes, pause=0.0, **costs):
        super().__init__(rng, nodes, **costs)
        self.pause = pause

    def hand_over(self, released):
        waiting, seconds = len(self.queue), 0.0
        if released is not None:
            seconds = self.rng.expovariate(waiting / self.pause)
        thread, node = self.queue.pop(self.rng.randrange(waiting))
        return thread, seconds + self.transfer(node)


class Distant(Fifo):
    """As `Fifo`, with a matrix of the seconds from each node to each."""

    def __init__(self, rng, nodes, matrix):
        super().__init__(rng, nodes)
        self.matrix = matrix

    def transfer(self, node):
        cost, self.at = self.matrix[self.at][node], node
        return cost


class Cohort(Fifo):
    """A queue a node; the lock stays in the node while somebody waits there, `batch` in a row."""

    def __init__(self, rng, nodes, batch, **costs):
        super().__init__(rng, nodes, **costs)
        self.batch, self.row = batch, 0

    def hand_over(self, released):
        here = [i for i, (_, node) in enumerate(self.queue) if node == self.at]
        away = [i for i, (_, node) in enumerate(self.queue) if node != self.at]
        if here and (self.row < self.batch or not away):
            next_up, self.row = here[0], self.row + 1
        else:
            next_up, self.row = away[0], 1
        thread, node = self.queue.pop(next_up)
        return thread, self.transfer(node)


def sharded(N, Z, S, m, runs=10, uses=6000):
    """N threads that go to one of m locks at random, each with a queue of its own."""
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        events = [(rng.expovariate(1 / Z), i, -1) for i in range(N)]
        heapq.heapify(events)
        queues, done, start = [[] for _ in range(m)], 0, 0.0
        while done < uses + uses // 10:
            now, thread, lock = heapq.heappop(events)
            if lock < 0:
                lock = rng.randrange(m)
                queues[lock].append(thread)
                first = len(queues[lock]) == 1
            else:
                queues[lock].pop(0)
                heapq.heappush(events, (now + rng.expovariate(1 / Z), thread, -1))
                done, first = done + 1, bool(queues[lock])
                start = now if done == uses // 10 else start
            if first:
                heapq.heappush(events, (now + rng.expovariate(1 / S), queues[lock][0], lock))
        samples.append(uses / (now - start))
    return mean(samples), half_width(samples)


def readers_writers(N, Z, S, w, runs=10, uses=6000, found=False):
    """First come, first served: readers enter together, a writer when all are out, and alone.

    Uses per second, or the share that has to wait: if the lock is `found` held by another one.
    """
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        think = (lambda r=rng: r.expovariate(1 / Z)) if Z else (lambda: 0.0)
        events = [(think(), i, "come") for i in range(N)]
        heapq.heapify(events)
        queue, inside, writing, done, start, asked, waited = [], 0, False, 0, 0.0, 0, 0
        while done < uses + uses // 10:
            now, thread, what = heapq.heappop(events)
            if what == "come":
                queue.append((thread, rng.random() < w))
                asked += 1
                waited += len(queue) > 1 or writing or (queue[0][1] and inside > 0)
            else:
                inside, writing, done = inside - 1, False, done + 1
                heapq.heappush(events, (now + think(), thread, "come"))
                start = now if done == uses // 10 else start
            while queue and not writing and (not queue[0][1] or not inside):
                thread, writing = queue.pop(0)
                inside += 1
                heapq.heappush(events, (now + rng.expovariate(1 / S), thread, "leave"))
        samples.append(waited / asked if found else uses / (now - start))
    return mean(samples), half_width(samples)


def preempted(lamda, S, on, away, runs=10, uses=30_000):
    """Mean wait for a lock whose holder is taken off its processor while it holds it."""
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        arrival = free = total = 0.0
        for _ in range(uses):
            arrival += rng.expovariate(lamda)
            free = max(free, arrival)
            total += free - arrival
            left = rng.expovariate(1 / S)
            while (slice_ := rng.expovariate(1 / on)) < left:
                left -= slice_
                free += slice_ + rng.expovariate(1 / away)
            free += left
        samples.append(total / uses)
    return mean(samples), half_width(samples)


def sleepers(N, c, Z, S, switch, at_once, runs=10, uses=6000):
    """Threads on c processors that block: a lock goes to who slept longest, and that one is woken.

    A processor that takes up another thread needs `switch` for it. Who blocks leaves its processor
    to the next of the run queue; who is woken takes that of a thinking thread, which goes to the
    head of that queue, `at_once`, or else waits at its end.
    """
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        left = [rng.expovariate(1 / Z) for _ in range(N)]  # seconds until it asks, or lets go
        events, until = [], {}  # until when each thread on a processor has something to do
        ready, asleep, holder, done, start, now = list(range(N)), [], None, 0, 0.0, 0.0

        def run_on(thread, cost, now, until=until, events=events, left=left):
            until[thread] = now + cost + left[thread]
            heapq.heappush(events, (until[thread], thread))

        while done < uses + uses // 10:
            while ready and len(until) < c:
                run_on(ready.pop(0), switch, now)
            at, thread = heapq.heappop(events)
            if until.get(thread) != at:
                continue  # its processor was taken away meanwhile
            now = at
            if thread == holder:
                done, holder = done + 1, asleep.pop(0) if asleep else None
                start = now if done == uses // 10 else start
                left[thread] = rng.expovariate(1 / Z)
                run_on(thread, 0.0, now)
                if holder is not None:
                    ready.insert(0 if at_once else len(ready), holder)
                    if at_once and len(until) == c:
                        off = rng.choice(sorted(until))
                        left[off] = min(until.pop(off) - now, left[off])  # less if it had begun
                        ready.insert(1, off)
                continue
            left[thread] = rng.expovariate(1 / S)
            if holder is None:
                holder = thread
                run_on(thread, 0.0, now)
            else:
                asleep.append(thread)
                del until[thread]
        samples.append(uses / (now - start))
    return mean(samples), half_width(samples)


def overcommitted(N, c, S, rate, in_turn, runs=10, uses=10_000):
    """N logical processors, each running for 1 on average and away for x = N/c - 1 times as long.

    Either each comes back by itself, or c real ones take them `in_turn`. Who runs, and neither
    holds the lock nor spins, asks for it at `rate`; who asks spins, on and off a processor, until
    it runs and the lock is free; who holds it needs S of running. Gives requests per time, the mean
    number that spin, and the half-width of that.
    """
    asked, spinning = [], []
    for seed in range(runs):
        rng = random.Random(seed)
        running, away, spinners, holder = list(range(c)), list(range(c, N)), set(), None
        now, requests, spun = 0.0, 0, 0.0
        while requests < uses:
            done = (holder in running) / S
            ask, leave = len(running) * rate, len(running)
            back = 0.0 if in_turn else len(away) / (N / c - 1)
            step = rng.expovariate(done + ask + leave + back)
            now, spun = now + step, spun + step * len(spinners)
            what = rng.random() * (done + ask + leave + back)
            if what < done:
                holder = None
            elif what < done + ask:
                thread = rng.choice(running)
                if thread != holder and thread not in spinners:
                    requests += 1
                    spinners.add(thread)
            else:
                leaves = what < done + ask + leave
                if leaves:
                    away.append(running.pop(rng.randrange(len(running))))
                if in_turn:
                    running.append(away.pop(0))
                elif not leaves:
                    running.append(away.pop(rng.randrange(len(away))))
            if holder is None and spinners:
                holder = next((thread for thread in running if thread in spinners), None)
                spinners.discard(holder)
        asked.append(requests / now)
        spinning.append(spun / now)
    return mean(asked), mean(spinning), half_width(spinning)


def counted(think, hold, n, h=0.0, m=1, slowed=1.0, uses=40_000, seed=0):
    """What lock_stat would count of n threads, first come first served; each use goes to one of m.

    `think(thread, rng)` is the work before the next use, `hold(rng)` that under the lock. A release
    with waiters is followed by `h` in which nobody has the lock. From the arrival of the first
    waiter on, the rest of a hold takes `slowed` times as long. Gives acquisitions, contentions,
    waiting and holding times in total, and the elapsed time; of all m locks together.
    """
    rng = random.Random(seed)
    events = [(think(i, rng), i, -1) for i in range(n)]
    heapq.heapify(events)
    queues, ends, begun = [[] for _ in range(m)], [0.0] * m, [0.0] * m
    acquisitions = contentions = 0
    wait = held = 0.0

    def take(lock, at):
        begun[lock], ends[lock] = at, at + hold(rng)
        if len(queues[lock]) > 1:
            ends[lock] = at + (ends[lock] - at) * slowed
        heapq.heappush(events, (ends[lock], queues[lock][0][0], lock))

    while acquisitions < uses:
        now, thread, lock = heapq.heappop(events)
        if lock < 0:
            lock = rng.randrange(m)
            queues[lock].append((thread, now))
            acquisitions += 1
            contentions += len(queues[lock]) > 1
            if len(queues[lock]) == 1:
                take(lock, now)
            elif len(queues[lock]) == 2 and slowed > 1 and now >= begun[lock]:
                events.remove((ends[lock], queues[lock][0][0], lock))
                ends[lock] = now + (ends[lock] - now) * slowed
                heapq.heapify(events)
                heapq.heappush(events, (ends[lock], queues[lock][0][0], lock))
            continue
        queues[lock].pop(0)
        held += now - begun[lock]
        heapq.heappush(events, (now + think(thread, rng), thread, -1))
        if queues[lock]:
            wait += now + h - queues[lock][0][1]
            take(lock, now + h)
    return acquisitions, contentions, wait, held, now


def mutex(N, Z, S, wake, patience, runs=10, uses=6000):
    """Who finds the lock held spins for `patience` and then sleeps. A release leaves the lock to a
    thread that spins, if there is one; else it is free, and the thread that has slept longest is
    woken. That thread runs `wake` later; if somebody took the lock meanwhile, it spins again.
    """
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        events = [(rng.expovariate(1 / Z), i, "come") for i in range(N)]
        heapq.heapify(events)
        spinning, asleep, held, done, start, waking = {}, [], False, 0, 0.0, False
        while done < uses + uses // 10:
            now, thread, what = heapq.heappop(events)
            if what == "sleep":
                if spinning.get(thread) == now:
                    del spinning[thread]
                    asleep.append(thread)
                continue
            if what == "leave":
                held, done = False, done + 1
                start = now if done == uses // 10 else start
                heapq.heappush(events, (now + rng.expovariate(1 / Z), thread, "come"))
                if spinning:
                    thread = min(spinning, key=spinning.get)
                    del spinning[thread]
                else:
                    if asleep and not waking:
                        heapq.heappush(events, (now + wake, asleep.pop(0), "woken"))
                        waking = True
                    continue
            elif held:
                waking = waking and what != "woken"
                spinning[thread] = now + patience
                heapq.heappush(events, (now + patience, thread, "sleep"))
                continue
            waking = waking and what != "woken"
            held = True
            heapq.heappush(events, (now + rng.expovariate(1 / S), thread, "leave"))
        samples.append(uses / (now - start))
    return mean(samples), half_width(samples)


def counting(N, Z, S, update, local, remote=0.0, nodes=1, runs=10, uses=4000):
    """Readers that hold a lock together, and that add to one counter when they come and go.

    The counter's line goes to who asks first, one after another; an addition takes `update` and, if
    another thread had the line, `local` or `remote` more. Reads per second.
    """
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        events = [(rng.expovariate(1 / Z), i, True) for i in range(N)]
        heapq.heapify(events)
        free, last, done, start = 0.0, 0, 0, 0.0
        while done < uses + uses // 10:
            now, thread, comes = heapq.heappop(events)
            far = local if thread % nodes == last % nodes else remote
            free = max(now, free) + update + (far if thread != last else 0.0)
            last = thread
            heapq.heappush(
                events, (free + rng.expovariate(1 / (S if comes else Z)), thread, not comes)
            )
            done += not comes
            start = free if done == uses // 10 and not comes else start
        samples.append(uses / (free - start))
    return mean(samples), half_width(samples)


def waits(N, Z, S, c=1, uses=40_000, seed=0):
    """How long each use waits for one of c servers, first come, first served."""
    rng = random.Random(seed)
    events = [(rng.expovariate(1 / Z), i) for i in range(N)]
    heapq.heapify(events)
    free, found = [0.0] * c, []
    while len(found) < uses:
        now, thread = heapq.heappop(events)
        start = max(now, heapq.heappop(free))
        found.append(start - now)
        leave = start + rng.expovariate(1 / S)
        heapq.heappush(free, leave)
        heapq.heappush(events, (leave + rng.expovariate(1 / Z), thread))
    return found[uses // 10 :]
