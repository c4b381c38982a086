"""Do readers keep their word on damaged outputs? Mutations of the recordings, with a seed.

Every input has to be a table or one documented error, in less than two seconds. One of twenty is a
damaged workbook of Excel, its parts changed before they are packed, or its bytes after that. Run by
`make mutations`; the figures go to benchmarks/MUTATIONS.md.
"""

import io
import re
import resource
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import cache, partial
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import click
import numpy as np
import pandas as pd
from tqdm import tqdm

from nummodel.errors import InputError
from nummodel.records import readers
from nummodel.records.readers._reading import plain

HERE = Path(__file__).parent
SEEDS = HERE.parent / "tests" / "records" / "readers" / "recordings"
#: What a mutation may put in, beside bytes of other recordings.
ODD = [
    b"\n", b"\r\n", b"\0", b"\xff", b"\x1b[31m", b"-1", b"nan", b"inf", b"1e999", b"99999999999",
    b",", b";", b"\t", b"%", b"{", b"}", b"[", b'"', b"<script>", b"=1+1", b"0", b"Average:", b"##",
    "µs".encode(), "٣".encode(), b" " * 500, b"a" * 5000, b"1 " * 2000,
]  # fmt: skip
#: Seconds that an input may take.
LONGEST = 2.0
#: Inputs of a job of one process, and the share of workbooks among all inputs.
PART, WORKBOOKS = 500, 0.05


def mutated(raw: bytes, other: bytes, random: np.random.Generator) -> bytes:
    """A recording with one to three changes: cut, repeated, exchanged, or with odd bytes."""
    data = bytearray(raw)
    for _ in range(random.integers(1, 4)):
        n = len(data)
        i, j = sorted(random.integers(0, n + 1, 2))
        j = min(j, i + int(random.integers(1, 200)))
        kind = random.integers(7)
        if kind == 0:
            data = data[: max(i, 1)]
        elif kind == 1:
            data[i:j] = b""
        elif kind == 2:
            data[i:i] = data[i:j] * int(random.integers(1, 5))
        elif kind == 3:
            data[i:i] = ODD[random.integers(len(ODD))]
        elif kind == 4:
            start = random.integers(len(other))
            data[i:j] = other[start : start + (j - i)]
        elif kind == 5 and i < n:
            data[i] = random.integers(256)
        else:
            lines = data.split(b"\n")
            a, b = random.integers(0, len(lines), 2)
            lines[a], lines[b] = lines[b], lines[a]
            data = bytearray(b"\n".join(lines))
        data = data or bytearray(b"x")
    return bytes(data[:200_000])


def workbook(random: np.random.Generator) -> bytes:
    """A workbook in which a part was changed, or some bytes of the whole."""
    parts = parts_of_workbook()
    whole = random.random() < 0.3
    changed = random.choice([*parts])
    with ZipFile(packed := io.BytesIO(), "w", ZIP_DEFLATED) as new:
        for name, part in parts.items():
            change = name == changed and not whole
            new.writestr(ZipInfo(name), mutated(part, part, random) if change else part)
    raw = packed.getvalue()
    return raw[:4] + mutated(raw[4:], b"PK", random) if whole else raw


@cache
def parts_of_workbook() -> dict[str, bytes]:
    """A workbook with three columns, unpacked, without the time at which it was made."""
    table = pd.DataFrame({"N": [1, 2, 4, 8], "X": [9.5, 18.2, 30.1, 41.7], "note": "=1+1"})
    table.to_excel(whole := io.BytesIO(), index=False)
    with ZipFile(whole) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    return {name: re.sub(rb"20[0-9-]+T[0-9:]+Z", b"", part) for name, part in parts.items()}


def tried(seed: int, part: int) -> tuple[Counter, float, list[str]]:
    """What became of `PART` inputs: tables and errors by reader, the longest time, and failures."""
    recordings = sorted(p for p in SEEDS.rglob("*") if p.is_file())
    random, outcomes = np.random.default_rng([seed, part]), Counter()
    longest, failures = 0.0, []
    folder = tempfile.TemporaryDirectory()
    file = Path(folder.name) / "file"
    for k in range(PART):
        one, other = (recordings[i] for i in random.integers(0, len(recordings), 2))
        raw = mutated(one.read_bytes(), other.read_bytes(), random)
        name = None if random.random() < 0.5 else one.name.split("-")[0]
        name, seed_file = name if name in readers.names() else None, one.name
        if book := random.random() < WORKBOOKS:
            raw, name, seed_file = workbook(random), "excel", "workbook"
        began = time.perf_counter()
        try:
            if book:
                file.write_bytes(raw)
                found, reading = readers.read(file)
            else:
                found, reading = readers.parsed(plain(raw, str(file)), file, name)
            reading.document(), reading.csv()
            assert set(reading.table) <= set(reading.columns)
            outcomes[found, "table"] += 1
        except Exception as error:
            one_line = "\n" not in str(error) and str(error).startswith(str(file))
            if isinstance(error, InputError) and one_line:
                outcomes[name or "by content", "error"] += 1
            else:
                failures.append(f"seed {seed}, part {part}, {k} ({seed_file}): {error!r}")
        took = time.perf_counter() - began
        if took > LONGEST:
            failures.append(f"seed {seed}, part {part}, {k} ({seed_file}): {took:.1f} s")
        longest = max(longest, took)
    folder.cleanup()
    return outcomes, longest, failures


@click.command()
@click.option("--inputs", default=100_000)
@click.option("--seed", default=2026)
@click.option("--jobs", default=2)
@click.option("--output", default=str(HERE / "MUTATIONS.md"))
def main(inputs: int, seed: int, jobs: int, output: str) -> None:
    """Try mutated recordings."""
    outcomes, longest, failures = Counter(), 0.0, []
    with ProcessPoolExecutor(jobs) as pool:
        parts = range(inputs // PART)
        for some, late, wrong in tqdm(pool.map(partial(tried, seed), parts), total=len(parts)):
            outcomes += some
            longest, failures = max(longest, late), failures + wrong
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    tables = sum(n for (_, what), n in outcomes.items() if what == "table")
    lines = [
        "# Damaged outputs",
        "",
        f"{inputs:,} mutations of {len([*SEEDS.rglob('*.*')])} recordings and a workbook (seed "
        f"{seed}), {date.today()}, by `make mutations`: {tables:,} tables, "
        f"{sum(outcomes.values()) - tables:,} errors in one line, {len(failures)} failures. The "
        f"longest took {longest:.2f} s, and no process used more than {memory:.0f} MB.",
        "",
        "| reader | tables |",
        "|---|---|",
        *(f"| {name} | {n:,} |" for (name, w), n in sorted(outcomes.items()) if w == "table"),
    ]
    lines += ["", *failures[:50]] if failures else []
    Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    if failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
