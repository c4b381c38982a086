"""How far are predictions for more nodes off? Every program, lock and number of nodes in a table.

From the throughputs on one node, and from those on one and two, `nodes.outlook` predicts those on
more nodes. Run by `make locks`; the figures go to benchmarks/LOCKS.md.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click
import numpy as np
import pandas as pd

from nummodel.models import nodes
from nummodel.records import data

OUTPUT = Path(__file__).parent / "LOCKS.md"
#: LiTL's names of the locks whose waiters spin, and their kinds. The first of a kind stands for it
#: where another lock is predicted.
KINDS = {
    "mcs_spin": "queue",
    "clh_spin": "queue",
    "alock-ls": "queue",
    "clh-ls": "queue",
    "mcs-ls": "queue",
    "mcs-timepub": "queue",
    "malth_spin": "queue",
    "partitioned": "queue",
    "ticket": "ticket",
    "ticket-ls": "ticket",
    "spinlock": "tas",
    "spinlock-ls": "tas",
    "ttas": "ttas",
    "ttas-ls": "ttas",
    "backoff": "backoff",
    "c-bo-mcs_spin": "cohort",
    "c-tkt-tkt": "cohort",
    "c-ptl-tkt": "cohort",
    "hmcs": "hierarchical",
    "ahmcs": "hierarchical",
    "hticket-ls": "hierarchical",
}
#: An interval that is to hold nine in ten.
LEVEL = 0.9
KEYS = ["program", "lock", "kind", "nodes"]


def measured(table: str) -> pd.DataFrame:
    """The rows of all locks whose waiters spin, with their kinds."""
    frame = data.load(table)
    frame["kind"] = frame["lock"].map(KINDS)
    return frame[frame["kind"].notna()]


def cases(frame: pd.DataFrame, known: int) -> Iterator[tuple[pd.DataFrame, list[str], pd.DataFrame]]:
    """What is known on up to `known` nodes, with one lock of a kind; whom to judge; and the rest.

    The first lock of every kind is predicted together with those of the others, every further lock
    in the place of the first of its kind.
    """
    first = {kind: lock for lock, kind in reversed(KINDS.items())}
    for _, own in frame.groupby("program"):
        mains = {k: lock for k, lock in first.items() if lock in set(own["lock"])}
        for lock in own["lock"].unique():
            kind = KINDS[lock]
            if lock == mains.get("queue"):
                judged = list(mains.values())
            elif lock in mains.values():
                continue
            else:
                judged = [lock]
            seen = own[own["lock"].isin([*(mains | {kind: lock}).values()])]
            yield seen[seen["nodes"] <= known], judged, seen[seen["nodes"] > known]


def present(seen: pd.DataFrame, at: int) -> dict[str, nodes.Ratio]:
    one = seen[(seen["nodes"] == 1) & seen["kind"].isin(nodes.GRANTS)].set_index("kind")
    X = one["X"].to_dict()
    return nodes.outlook(X, int(one["N"].iloc[0]), at, 41e-9, 118e-9)


def ours(frame: pd.DataFrame, known: int, outlook: Callable) -> pd.DataFrame:
    rows = []
    for seen, judged, later in cases(frame, known):
        one = seen[seen["nodes"] == 1].set_index("kind")["X"]
        for at, there in later.groupby("nodes"):
            with suppress(ValueError):
                said = outlook(seen, int(at))
                for row in there[there["lock"].isin(judged)].itertuples():
                    if row.kind in said:
                        figures = np.log(np.multiply(one[row.kind], said[row.kind]))
                        rows.append((row.program, row.lock, row.kind, at, *figures))
    return pd.DataFrame(rows, columns=[*KEYS, "middle", "low", "high"])


def straight(frame: pd.DataFrame, known: int, line: bool) -> pd.DataFrame:
    """The baselines: the last value stays, or a straight line in nodes goes on.

    From one node the line goes through zero. It stops falling at a tenth of the last value.
    """
    X = frame.pivot_table("X", ["program", "lock", "kind"], "nodes")
    rows = []
    for key, own in X.iterrows():
        slope = own[2] - own[1] if known == 2 else own[1]
        for at in own.index[own.index > known]:
            value = max(own[known] + line * slope * (at - known), own[known] / 10)
            rows.append((*key, at, np.log(value)))
    return pd.DataFrame(rows, columns=[*KEYS, "middle"])


def with_intervals(said: pd.DataFrame, truth: pd.Series, alike: list[str]) -> pd.DataFrame:
    """Ends that are quantiles of the same method's errors in other programs, for rows `alike`."""
    said = said.assign(error=truth.reindex(pd.MultiIndex.from_frame(said[KEYS])).to_numpy() - said["middle"])
    low, high = [], []
    for row in said.itertuples():
        others = said[said["program"] != row.program]
        for column in alike:
            others = others[others[column] == getattr(row, column)]
        ends = np.nanquantile(others["error"], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        low.append(row.middle + ends[0])
        high.append(row.middle + ends[1])
    return said.assign(low=low, high=high).drop(columns="error")


def judged(said: pd.DataFrame, truth: pd.Series) -> pd.DataFrame:
    """Beside the predictions: the truth, whether a range holds it, and the interval score."""
    y = truth.reindex(pd.MultiIndex.from_frame(said[KEYS])).to_numpy()
    outside = np.maximum(said["low"] - y, 0) + np.maximum(y - said["high"], 0)
    score = said["high"] - said["low"] + 2 / (1 - LEVEL) * outside
    return said.assign(truth=y, holds=outside <= 0, score=score, off=abs(said["middle"] - y))


@click.command()
def main() -> None:
    frame = measured("litl-locks-a48")
    truth = np.log(frame.set_index(KEYS)["X"])
    for known in (1, 2):
        said = {
            "the last value stays": with_intervals(straight(frame, known, False), truth, ["nodes"]),
            "a straight line": with_intervals(straight(frame, known, True), truth, ["nodes"]),
            "stays, by kind": with_intervals(straight(frame, known, False), truth, ["nodes", "kind"]),
            "line, by kind": with_intervals(straight(frame, known, True), truth, ["nodes", "kind"]),
        }
        if known == 1:
            said["present outlook"] = ours(frame, 1, present)
        for name, rows in said.items():
            rows = judged(rows, truth)
            by = rows.groupby("program")[["holds", "score", "off"]].mean().round(3)
            print(known, name, len(rows), rows[["holds", "score", "off"]].mean().round(3).to_dict())
            print(by.T.to_string())


if __name__ == "__main__":
    main()
