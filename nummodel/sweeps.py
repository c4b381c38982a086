"""A model at many points: combinations or samples of parameters, in chunks, to Parquet files.

    from nummodel.sweeps import sweep

    found = sweep(model, {"N": range(1, 201), "D": np.linspace(0.01, 0.1, 50)}, Path("swept"))
    found.to_table().to_pandas()

Needs the extra `cluster`, also where processes of one machine do the work.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import prod
from multiprocessing import parent_process
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from nummodel.cluster import Cluster, completed, need_extra, package
from nummodel.content import content
from nummodel.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyarrow.dataset import Dataset

#: Points that a model is given at once: arrays that stay in the processor's cache, and are so long
#: that NumPy's calls cost little beside its arithmetic.
TOGETHER = 8192
#: Seconds of work in a chunk, and the most points of a chunk.
CHUNK, MOST = 1.0, 1_000_000
#: Each process or worker at the beginning has so many chunks at least, if they take a tenth of this
#: time or more: else some would have nothing to do while others carry out the last chunks.
FEWEST = 8
#: Describes a sweep in its folder. Readers of Parquet skip names that begin with an underscore.
CARD = "_sweep.json"


def sweep(
    model: Callable[..., Any],
    grid: "Mapping[str, Any] | pd.DataFrame",
    folder: Path | str,
    jobs: int = 2,
    client: Any = None,
    chunk: int = 0,
) -> "Dataset":
    """The model at every point of a grid, as Parquet files in `folder` that are one data set.

    `grid` is a mapping of names to values, which stands for all their combinations, or a DataFrame,
    which has a point in each row. `model` is called by keyword with arrays of equal length: a value
    of each parameter for at most `TOGETHER` points. It gives an array of this length, or several by
    name. The files have a column for each parameter and each result, in the order of the grid. If a
    model gives a DataFrame, its rows are stored as they are, however many they are.

    The work is done in chunks of `chunk` points, by `jobs` processes, or by the workers of
    `client`, a `distributed.Client`. By default a chunk takes about a second, or less, so that each
    process or worker that is there at the beginning has eight. Each chunk becomes a file. Files
    that are there already are kept, so the same call continues a sweep that was stopped. The memory
    that is needed does not grow with the number of points.

    Raises InputError if the folder holds another sweep, if the model cannot be sent to processes,
    or if the workers may not be used; Gone if their scheduler does not answer any more; ValueError
    if `chunk` is negative, or the model does not give what it should; and what the model raises.
    """
    need_extra("a sweep")
    import cloudpickle
    import pyarrow as pa
    from pyarrow.dataset import dataset
    from pyarrow.parquet import read_schema
    from tqdm import tqdm

    if chunk < 0:
        raise ValueError(f"chunk is {chunk}, expected a number of points, or 0")
    points, folder = Points.of(grid), Path(folder)
    try:
        sent = cloudpickle.dumps(model)
    except Exception as error:
        raise InputError(f"model: {error}, expected a function of a module or script") from None
    key = _key(model, points)
    folder.mkdir(parents=True, exist_ok=True)
    with _pool(jobs, client) as (submit, places, cluster):
        chunk = _agreed(folder, key, chunk, lambda: _size(model, points, max(places(), 2)))
        ends = [(i, min(len(points), i + chunk)) for i in range(0, len(points), chunk)]
        files = {end: folder / f"part-{i:09}.parquet" for i, end in enumerate(ends)}
        missing = [end for end in ends if not _is_whole(files[end])]

        def submitted(end: tuple[int, int], attempts: int) -> Future:
            return submit(f"sweep-{key}-{end}-{attempts}", _carry_out, sent, *points.sent(*end))

        with tqdm(total=len(points), unit="point", unit_scale=True, disable=None) as bar:
            bar.update(len(points) - sum(stop - start for start, stop in missing))
            for done in completed(submitted, missing, places, cluster):
                if done:
                    (start, stop), future = done
                    _write(files[start, stop], future.result())
                    bar.update(stop - start)
    names = [str(file) for file in files.values()]
    schema = pa.unify_schemas(map(read_schema, names), promote_options="permissive")
    return dataset(names, schema, format="parquet")


@dataclass(frozen=True)
class Points:
    """The points of a grid: all combinations of values, or values side by side."""

    values: dict[str, np.ndarray]
    combined: bool

    @classmethod
    def of(cls, grid: "Mapping[str, Any] | pd.DataFrame") -> "Points":
        """Raises ValueError for what is no grid."""
        import pandas as pd

        values = {str(name): np.asarray(grid[name]) for name in grid}
        for name, some in values.items():
            if some.ndim != 1 or not some.size:
                raise ValueError(f"grid: {name} has shape {some.shape}, expected a list of values")
        if not values:
            raise ValueError("grid: no parameter, expected values by their names")
        return cls(values, not isinstance(grid, pd.DataFrame))

    def __len__(self) -> int:
        sizes = [len(some) for some in self.values.values()]
        return prod(sizes) if self.combined else sizes[0]

    def part(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """The points from `start` to `stop`, as an array for each parameter."""
        if not self.combined:
            return {name: some[start:stop] for name, some in self.values.items()}
        shape = [len(some) for some in self.values.values()]
        places = np.unravel_index(np.arange(start, stop), shape)
        return {n: some[at] for (n, some), at in zip(self.values.items(), places, strict=True)}

    def sent(self, start: int, stop: int) -> "tuple[Points, int, int]":
        """What a worker needs for this part: combinations are made where they are used."""
        if self.combined:
            return self, start, stop
        return Points(self.part(start, stop), False), 0, stop - start


def _carry_out(sent: bytes, points: Points, start: int, stop: int) -> bytes:
    """A chunk, as the content of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    model = _model(sent)
    ends = [(i, min(stop, i + TOGETHER)) for i in range(start, stop, TOGETHER)]
    tables = [_table(model, points.part(*end)) for end in ends]
    table = pa.concat_tables(tables, promote_options="permissive")
    file = pa.BufferOutputStream()
    repeated = [name for name in points.values if name in table.column_names]
    parquet.write_table(table, file, use_dictionary=repeated)
    return file.getvalue().to_pybytes()


@cache
def _model(sent: bytes) -> Callable[..., Any]:
    import cloudpickle

    return cloudpickle.loads(sent)


def _table(model: Callable[..., Any], part: dict[str, np.ndarray]) -> "pa.Table":
    """What the model gives at some points. Raises ValueError if it is not one value for each."""
    import pandas as pd
    import pyarrow as pa

    found = model(**part)
    if isinstance(found, pd.DataFrame):
        return pa.Table.from_pandas(found, preserve_index=False)
    results = found if isinstance(found, Mapping) else {getattr(model, "result", "value"): found}
    if both := sorted({*part} & {*map(str, results)}):
        raise ValueError(f"the model gives {both[0]}, which is one of its parameters: rename it")
    columns = part | {str(name): np.asarray(values) for name, values in results.items()}
    expected = next(iter(part.values())).shape
    for name, values in columns.items():
        if values.shape != expected:
            raise ValueError(f"the model gives {name} of shape {values.shape}, expected {expected}")
    return pa.table(columns)


def _size(model: Callable[..., Any], points: Points, places: int) -> int:
    """How many points take about a second, or less, so that all `places` have enough chunks. The
    first call does not count: it may import.
    """
    count, took = 0, 0.0
    while took < CHUNK / 20 and count < min(TOGETHER, len(points)):
        count = min(2 * count or 1, TOGETHER, len(points))
        for _ in range(1 + (count == 1)):
            start = perf_counter()
            _table(model, points.part(0, count))
            took = perf_counter() - start
            if took > CHUNK:
                return 1
    second, part = CHUNK * count / took, len(points) / (FEWEST * places)
    return int(min(max(1.0, min(second, max(second / 10, part))), MOST))


def _agreed(folder: Path, key: str, chunk: int, size: Callable[[], int]) -> int:
    """The size of chunks that the folder has, or else shall have."""
    card = folder / CARD
    try:
        known = json.loads(card.read_text())
    except FileNotFoundError:
        if any(folder.glob("*.parquet")):
            raise InputError(f"{folder}: holds other files, expected an empty folder") from None
        known = {"key": key, "chunk": chunk or size()}
        new = folder / f".{uuid4().hex}"
        new.write_text(json.dumps(known))
        try:
            os.link(new, card)
        except FileExistsError:  # another has begun the same sweep meanwhile
            return _agreed(folder, key, chunk, size)
        finally:
            new.unlink()
    except ValueError:
        known = {}
    if known.get("key") != key or chunk not in (0, known["chunk"]):
        raise InputError(
            f"{folder}: holds a sweep of another model, grid or nummodel, expected another folder"
        )
    return known["chunk"]


def _key(model: Callable[..., Any], points: Points) -> str:
    """A hash of all that the results follow from: this package, the model and the grid.

    A function of a module is sent by its name, so the file of the module counts. Other modules
    that it imports are not seen.
    """
    what = [model, points.combined, list(points.values.items())]
    return sha256(package() + content(what).encode()).hexdigest()[:16]


def _sum(file: Path) -> Path:
    """Where the check sum of a chunk's file is; readers of Parquet skip this name."""
    return file.with_name(f"_{file.name}.sha256")


def _is_whole(file: Path) -> bool:
    """Whether a chunk is there as it was written."""
    try:
        return _sum(file).read_bytes() == _hash(file.read_bytes())
    except FileNotFoundError:
        return False


def _hash(content: bytes) -> bytes:
    return sha256(content).hexdigest().encode()


def _write(file: Path, content: bytes) -> None:
    """Write a check sum, and then a file, each whole or not at all."""
    for path, some in ((_sum(file), _hash(content)), (file, content)):
        part = path.with_name(f".{path.name}.{uuid4().hex}")  # another may write the same now
        part.write_bytes(some)
        part.replace(path)


@contextmanager
def _pool(jobs: int, client: Any) -> "Iterator[tuple[Callable, Callable, Cluster | None]]":
    """How to submit a task, how many run at the same time, and the cluster, if there is one."""
    if client:
        cluster = Cluster(client)
        yield cluster.submit, cluster.places, cluster
        return
    if jobs < 1:
        raise ValueError(f"jobs is {jobs}, expected a number of at least 1")
    pool: Executor = ThreadPoolExecutor(1)
    if jobs > 1:
        pool = ProcessPoolExecutor(jobs, initializer=_end_with_parent)
    try:
        yield lambda name, *task: pool.submit(*task), lambda: jobs, None
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """End this process when the one that has started it is killed; it would wait for ever."""

    def wait() -> None:
        parent = parent_process()
        if parent:
            parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()
