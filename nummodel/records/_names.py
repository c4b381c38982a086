"""What a column of a user's table holds, by what the words in its name say."""

import re
from functools import cache
from itertools import pairwise

#: Words that tell how much runs of one load differ.
DEVIATION = "error errors err sd std stddev stdev se sem stderr sigma spread ci"
#: The roles of the words in a column's name. If they have several, the first of this list decides,
#: but for what `kind` says of "per", percentiles, brackets and single letters.
WORDS = {
    "other": f"{DEVIATION} util utilization "
    "utilisation pct percent idle share ratio hit miss misses efficiency fail failed failure "
    "failures passed abort aborts aborted success drop drops dropped loss lost retries retr "
    "retransmits timeouts clock hz mhz ghz watt watts power energy joules temp temperature u q l "
    "rho",  # neither load nor throughput
    "time": "latency latencies lat response resp rt rtt delay pause jitter ttft wait waiting "
    "sojourn r w",  # of a request
    "moment": "when ts date datetime day timestamp stamp epoch start second minute hour min",
    "duration": "t time times duration elapsed wall wallclock real took runtime walltime cputime "
    "makespan end s sec secs seconds mins minutes hr hours",  # of a run, whose work is a count
    "unit": "ms msec us µs μs usec ns nsec h",  # alone a duration, beside unknown words a time
    "throughput": "x throughput thruput xput tps qps rps eps fps pps mpps ktps kqps krps iops "
    "kiops tpm tpmc nopm tph qphh itr mips flops mflops gflops tflops bops kbps mbps gbps "
    "bandwidth speed speedup goodput rate",
    "run": "id ids run runs rep reps repeat repetition replicate iteration iter trial seed index "
    "idx row line sample samples round attempt uid pid",
    "configuration": "config configuration setting settings variant version release build host "
    "machine name mode branch commit compiler kernel engine",
    "rate or count": "ops",
    "load": "n thread threads client clients user users vu vus vusers connection connections "
    "processor processors cpus vcpus core cores worker workers process processes procs nodes "
    "servers hosts machines instances concurrency concurrent load population customers sessions "
    "terminals streams jobs numjobs parallelism iodepth qd",
    "resource": "cpu sys mem memory rss",  # as the first column perhaps the load; no throughput
    "count": "operations req reqs requests tx txn transactions queries msg msgs messages commits "
    "events records rows tuples items frames cycles instructions iterations hits reads writes "
    "inserts updates bytes kbytes mbytes gbytes kb mb gb tb kib mib gib tib",
    "item": "operation request transaction query message event record byte",  # one of a count
    "measured": "gc heap spin iowait steal nice free change growth cost overhead "
    "slowdown",  # where no word says more
    "number": "num number nr total count completed test experiment",  # "total ops" are no rate
}
ROLES = {word: role for role, words in WORDS.items() for word in words.split()}
TIMES = {"time", "moment", "duration", "unit"}
#: A column with one of these words says less than one without.
PARTIAL = {"min", "max", "minimum", "maximum", "best", "worst", "peak", "hits"}
#: What has one of these words was measured, and is no load.
MEANS = {"avg", "average", "mean", "median"}
SPREAD = {*DEVIATION.split()}
#: A word for a percentile.
PERCENTILE = "[pq][0-9]+|[0-9]+th"
#: Words for a utilisation. A "load" is one in percent; without a unit it may be a queue.
USED = {"util", "utilization", "utilisation", "usage", "use", "used", "busy"}
#: The words of a unit of time.
SECONDS = {*"ms msec us µs μs usec ns nsec s sec secs seconds mins minutes h hr hours".split()}
#: Beside "cpu" or "rss" these words say whose time or memory it is.
WHOSE = {"user", "client", "server", "process", "system"}


#: Rates that are not those of a second, by their names and by the word after "per".
RATES = {"tpm": 1 / 60, "tpmc": 1 / 60, "nopm": 1 / 60, "tph": 1 / 3600, "mpps": 1e6}
RATES |= dict.fromkeys(("ktps", "kqps", "krps", "kiops"), 1e3)
RATES |= {f"per {t}": 1 / 60 for t in ("min", "minute")}
RATES |= {f"per {t}": 1 / 3600 for t in ("h", "hr", "hour")}

CLEAR = ("throughput", "load")


@cache
def kind(name: str) -> str:
    """What a column holds, by its name: a role of `WORDS`, or "" where the name says nothing.

    >>> kind("X, per s"), kind("latency_avg_ms"), kind("numClients"), kind("tps_per_client")
    ('throughput', 'time', 'load', 'other')
    """
    outside, inside = re.sub(r"[(\[].*?[)\]]", " ", name), re.findall(r"[(\[](.*?)[)\]]", name)
    units = [words(unit) for unit in inside]
    other_unit = any({*unit} <= SECONDS or unit[0] in ("pct", "percent") for unit in units if unit)
    if inside and not other_unit and (sure := kind(outside)) in CLEAR:
        return sure
    said = words(name)
    if not said:
        return "run"  # as the column without a name, which pandas writes for row numbers
    # "N" is the load, but "n_requests" is how many requests there were, and "r_iops" are reads.
    some = [word for word in said if word not in ("n", "x")] or said
    roles = {ROLES[word] for word in some if word in ROLES and word not in (*"rwtuql", *PARTIAL)}
    if roles <= TIMES:
        roles |= {ROLES[word] for word in some if word in ROLES}
    if "throughput" not in roles:
        roles |= {"time" for word in said if re.fullmatch(PERCENTILE, word)}
    after = {ROLES.get(next_word) for word, next_word in pairwise(said) if word == "per"}
    if after and "other" not in roles:
        before = {ROLES.get(word) for word in said[: said.index("per")]}
        return "throughput" if after <= TIMES - {"time"} else "time" if before & TIMES else "other"
    if {"cpu", "processor"} & {*said} and {*USED, "load"} & {*said}:
        return "other"
    if {"cpu", "rss"} & {*said} and WHOSE & {*said} and "throughput" not in roles:
        return "resource"
    first = next((role for role in WORDS if role in roles), "")
    if first in ("rate or count", "count", "item") and ("number" in roles or "n" in said):
        return "other"
    alone = all(ROLES.get(word) in ("unit", "run", "number") for word in some)
    number = "run" if {"nr", "test", "experiment"} & set(said) else "count"
    means = {
        "item": "count",
        "measured": "other",
        "unit": "duration" if alone else "time",
        "number": alone * number,
    }
    return means.get(first, first)


def per_second(name: str) -> float:
    """What a throughput of this name is multiplied by to be that of a second.

    >>> per_second("kIOPS"), per_second("ktps"), 3600 * per_second("jobs/h")
    (1000.0, 1000.0, 1.0)
    """
    said = words(name)
    known = [*said, *(f"{a}{gap}{b}" for a, b in pairwise(said) for gap in (" ", ""))]
    return next((RATES[word] for word in known if word in RATES), 1.0)


def words(name: str) -> list[str]:
    """The words of a name in lower case: num, clients of "numClients"; mb, per, s of "MB_s"."""
    parted = re.sub("(?<=[a-z])(?=[A-Z][A-Za-z])", " ", name).lower()
    parted = parted.replace("/", " per ").replace("%", " pct ")
    found = re.findall(r"[^\W_]+", parted)
    if len(found) > 1 and re.search("_s(ec|econd)?$", parted):
        roles = [ROLES.get(word) for word in found[:-1]]
        if roles[-1] in ("rate or count", "count") and not TIMES & set(roles):
            return [*found[:-1], "per", "s"]
    return found


def bare(name: str) -> bool:
    """Whether a name is only "mean" or "max" and the like: it may be the mean of times."""
    return not kind(name) and MEANS | PARTIAL >= set(words(name))
