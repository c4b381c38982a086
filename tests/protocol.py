"""Locks simulated as protocols: who holds, who waits, which line goes where, what that costs.

Nothing here knows a formula of `nummodel.locks`: a hand-over takes as long as the transfers of
cache lines that its protocol makes, one after another.
"""

import heapq
import random
from itertools import pairwise
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
        else:
            now = free_at
            heapq.heappush(events, (now + think(), holding))
            holding, done = None, done + 1
            if done == warm:
                start = now
        while events and holding is None and events[0][0] <= now:  # those who came at once
            _, thread = heapq.heappop(events)
            lock.arrive(thread, thread % nodes)
        if holding is None and lock.waiting():
            holding, cost = lock.hand_over()
            free_at = now + cost + rng.expovariate(1 / S)
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

    def hand_over(self):
        thread, node = self.queue.pop(0)
        return thread, self.transfer(node)


class Ticket(Fifo):
    """All waiters read the line after a release, in any order, each read taking `read`."""

    def __init__(self, rng, nodes, read=0.0, **costs):
        super().__init__(rng, nodes, **costs)
        self.read = read

    def hand_over(self):
        readers = list(self.queue)
        self.rng.shuffle(readers)
        before = readers.index(self.queue[0])
        thread, cost = super().hand_over()
        return thread, cost + before * self.read


class TestAndSet(Fifo):
    """Each waiter has asked for the line; the release asks last, and then the next one has it.

    Requests are answered node by node, those of the line's own node first; every answer takes
    `write`, and `remote - local` more where the line crosses.
    """

    __test__ = False

    def __init__(self, rng, nodes, write=0.0, **costs):
        super().__init__(rng, nodes, **costs)
        self.write = write

    def hand_over(self):
        asking = {node for _, node in self.queue}
        order = [n % self.nodes for n in range(self.at, self.at + self.nodes)]
        visits = [node for node in order if node in asking]
        cost, at = self.local, self.at
        for node in visits:
            cost += (self.remote - self.local) * (node != at)
            at = node
        if len(visits) > 1 and visits[0] == self.at:  # back to where the release is waiting
            cost += self.remote - self.local
        cost += self.write * (len(self.queue) - 1)
        winner = self.rng.randrange(len(self.queue))
        thread, self.at = self.queue.pop(winner)
        return thread, cost


class ArrivalOrder(TestAndSet):
    """Test-and-set whose requests are answered in the order in which they came, node or not.

    Every waiter asks again as soon as it is answered, so that no order among them is special.
    """

    __test__ = False

    def hand_over(self):
        asking = [node for _, node in self.queue]
        winner = self.rng.randrange(len(asking))
        thread, owner = self.queue.pop(winner)
        asking.pop(winner)
        self.rng.shuffle(asking)
        way = [self.at, *asking, *([self.at] if asking else []), owner]
        crossings = sum(a != b for a, b in pairwise(way))
        self.at = owner
        cost = self.local + self.write * len(asking) + (self.remote - self.local) * crossings
        return thread, cost


class Cohort(Fifo):
    """A queue a node; the lock stays in the node while somebody waits there, `batch` in a row."""

    def __init__(self, rng, nodes, batch, **costs):
        super().__init__(rng, nodes, **costs)
        self.batch, self.row = batch, 0

    def hand_over(self):
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


def readers_writers(N, Z, S, w, runs=10, uses=6000):
    """First come, first served: readers enter together, a writer when all are out, and alone."""
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        think = (lambda r=rng: r.expovariate(1 / Z)) if Z else (lambda: 0.0)
        events = [(think(), i, "come") for i in range(N)]
        heapq.heapify(events)
        queue, inside, writing, done, start = [], 0, False, 0, 0.0
        while done < uses + uses // 10:
            now, thread, what = heapq.heappop(events)
            if what == "come":
                queue.append((thread, rng.random() < w))
            else:
                inside, writing, done = inside - 1, False, done + 1
                heapq.heappush(events, (now + think(), thread, "come"))
                start = now if done == uses // 10 else start
            while queue and not writing and (not queue[0][1] or not inside):
                thread, writing = queue.pop(0)
                inside += 1
                heapq.heappush(events, (now + rng.expovariate(1 / S), thread, "leave"))
        samples.append(uses / (now - start))
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


def sleepers(N, c, Z, S, switch, runs=10, uses=6000):
    """Waiters sleep: those who are ready think on c processors, less the holder's."""
    samples = []
    for seed in range(runs):
        rng = random.Random(seed)
        queue, now, done, start, leaves = 0, 0.0, 0, 0.0, float("inf")
        while done < uses + uses // 10:
            thinking = min(N - queue, c - (queue > 0))
            comes = now + rng.expovariate(thinking / Z) if thinking else float("inf")
            now = min(comes, leaves)
            if comes < leaves:
                queue += 1
                if queue == 1:
                    leaves = now + rng.expovariate(1 / S)
            else:
                queue, done = queue - 1, done + 1
                start = now if done == uses // 10 else start
                leaves = now + switch + rng.expovariate(1 / S) if queue else float("inf")
        samples.append(uses / (now - start))
    return mean(samples), half_width(samples)
