"""The command line. Results go to stdout, progress and messages to stderr.

Exit code 0: done; 1: a claim or a notebook failed; 2: wrong usage or input that cannot be read,
with one line that says where, what is wrong and what was expected.
"""

import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from io import TextIOWrapper
from math import isnan
from pathlib import Path
from textwrap import fill, wrap
from typing import Any

import click

from nummodel import __version__
from nummodel.errors import InputError, line, tell

Pairs = Iterator[tuple[str, str]]
TIME = click.FloatRange(0, 1e9, min_open=True)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
option = partial(click.option, show_default=True)
USED_AS = "What a column holds, as in U_disk='disk %util' or X=1/seconds (nummodel list columns)."
USE = click.option("--use", multiple=True, metavar="QUANTITY=COLUMN", help=USED_AS)
PICKED = "The rows with this value, no others."
ONLY = click.option("--only", multiple=True, metavar="COLUMN=VALUE", help=PICKED)


def wrapped(text: str) -> str:
    """Paragraphs in lines of a width that is easy to read."""
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return "\n\n".join(fill(paragraph, 88, **options) for paragraph in text.split("\n"))


def say(text: object) -> None:
    """Print lines that may quote anything."""
    for one in str(text).split("\n"):
        click.echo(line(one))


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__)
@click.pass_context
def cli(context) -> None:
    """Why computers stop getting faster when you add processors, with numbers."""
    if context.invoked_subcommand is None:
        say(context.get_help())


@cli.command()
@click.argument("notebooks", nargs=-1, metavar="[NOTEBOOK ...]")
@click.option("-p", "given", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--sweep", multiple=True, metavar="NAME=V1,V2,...", help="Run with each value.")
@click.option(
    "--params", metavar="FILE.yaml", type=click.Path(path_type=Path), help="Run what a file lists."
)
@option("--jobs", default=2, type=click.IntRange(1), help="Runs at the same time.")
@option("--output", default="report", metavar="FOLDER", help="Where the pages go.")
@option("--timeout", default=600.0, type=TIME, metavar="SECONDS", help="Stop a longer run.")
@click.option("--force", is_flag=True, help="Run again even where an up-to-date result exists.")
@click.option("--no-execute", is_flag=True, help="Run nothing, only make the pages again.")
@click.option("--scheduler", metavar="ADDRESS", help="Have the workers of Dask do the runs.")
@click.option("--tls-ca-file", type=FILE, metavar="FILE", help="As `dask scheduler` has it.")
@click.option("--tls-cert", type=FILE, metavar="FILE", help="As `dask scheduler` has it.")
@click.option("--tls-key", type=FILE, metavar="FILE", help="As `dask scheduler` has it.")
@click.option("--pdf", is_flag=True, help="Print pages to PDF, too, by Chromium, Chrome or Edge.")
def report(
    notebooks,
    given,
    sweep,
    params,
    jobs,
    output,
    timeout,
    force,
    no_execute,
    scheduler,
    tls_ca_file,
    tls_cert,
    tls_key,
    pdf,
) -> None:
    """Execute notebooks, all or some, and make a page of each.

    An index, claims.json and results.csv are written beside the pages.

    A notebook is named by its number, its name or its path. Several --sweep run every combination
    of their values. --params lists runs, as in: - {notebook: 11, parameters: {train: [6, 12]}}

    A run whose up-to-date result is in the folder is skipped, so the same command continues a
    report that was stopped.

    --scheduler has the address of a scheduler of dask.distributed, such as tls://host:8786, whose
    workers do one run each instead of --jobs.
    """
    _need_notebooks()
    from nummodel.cluster import Gone, connect
    from nummodel.reports import pdf as printing
    from nummodel.reports import report as room
    from nummodel.reports import runs

    browser = printing.browser() if pdf else ""
    if isnan(timeout):
        raise InputError("--timeout is nan, expected a number of seconds")
    if not output:
        raise InputError("--output is empty, expected the name of a folder")
    if params and (notebooks or given or sweep):
        raise InputError("--params lists whole runs, expected no notebook, -p or --sweep beside it")
    if scheduler and no_execute:
        raise InputError("--no-execute runs nothing, expected no --scheduler beside it")
    index = Path(output) / "index.html"
    planned = runs.listed(params) if params else runs.plan(list(notebooks), given, sweep)
    if scheduler is None and (tls_ca_file or tls_cert or tls_key):
        raise InputError("--tls-ca-file, --tls-cert, --tls-key: expected --scheduler beside them")
    tls = {"tls_ca_file": tls_ca_file, "tls_client_cert": tls_cert, "tls_client_key": tls_key}
    workers = connect(scheduler, **tls) if scheduler is not None else None
    try:
        outcomes = room.make(planned, index.parent, jobs, not no_execute, force, timeout, workers)
    except Gone as error:
        tell(f"{scheduler}: {error}; the same command goes on from there")
        sys.exit(1)
    except OSError as error:
        tell(f"{index}: {error.strerror}, not renewed")
        sys.exit(1)
    except KeyboardInterrupt:
        tell("interrupted: the same command goes on from there")
        raise
    kept, failed = sum(o.kept for o in outcomes), sum(not o.held for o in outcomes)
    if kept:
        executed = len(outcomes) - kept
        there = f"{kept} of {len(outcomes)} runs were there already (--force runs them again)"
        tell(f"{f'{executed} executed, ' if executed else 'nothing to do: '}{there}")
    click.echo(os.fsencode(index))  # as it is called, whatever its encoding
    pages = [index.parent / f"{o.run.name}.html" for o in outcomes if o.paged]
    if len(outcomes) == 1 and pages:
        tell(f"its page: {pages[0]}")
    for page in pages if pdf else ():
        click.echo(os.fsencode(printing.write(page, browser)))
    if failed:
        tell(f"{failed} of {len(outcomes)} runs failed")
    sys.exit(failed > 0)


def _need_notebooks() -> None:
    """Raise InputError if the extra `notebooks` is not installed."""
    # Where these five are installed, the whole extra is.
    for library in ("ipykernel", "ipywidgets", "latex2mathml", "nbconvert", "papermill"):
        if not find_spec(library):
            how = "pip install 'nummodel[notebooks]'"
            raise InputError(f"report needs {library}, which is not installed: {how}")


def _notebooks() -> Pairs:
    from nummodel.reports import notebook, runs

    for path in runs.notebooks():
        yield path.stem, notebook.summary(notebook.read(path))[0]
        for parameter in notebook.parameters(path).values():
            yield f"  -p {parameter.name}={parameter.default}", parameter.help


def _laws() -> Pairs:
    from nummodel.models.scaling import LAWS

    yield from ((name, str(law.__doc__)) for name, law in LAWS.items())
    yield "closed", "A closed system, fitted to all columns that were measured of it."


def _tables() -> Pairs:
    from nummodel.records import data

    return ((name, data.card(name)["title"]) for name in data.tables())


def _readers() -> Pairs:
    from nummodel.records import readers

    return ((name, str(readers.reader(name).__doc__)) for name in readers.names())


def _columns() -> Pairs:
    from nummodel.records.columns import listed

    for quantity, unit, means, names in listed():
        whole = names.replace(" ", "\xa0").replace(",\xa0", ", ")  # lines break between names
        for i, text in enumerate(wrap(f"{means}: {whole}", 63)):
            yield f"{quantity} {unit}".strip() * (i == 0), text.replace("\xa0", " ")


KINDS = {"notebooks": _notebooks, "laws": _laws, "tables": _tables}
KINDS |= {"readers": _readers, "columns": _columns}


@cli.command("list")
@click.argument("what", required=False, type=click.Choice(list(KINDS)))
def list_(what) -> None:
    """List notebooks with their parameters, laws, tables, readers of files and names of columns."""
    for kind in [what] if what else KINDS:
        if not what:
            click.secho(kind, bold=True)
        for name, meaning in KINDS[kind]():
            say(f"{'' if what else '  '}{name:<34} {meaning.splitlines()[0]}")


@cli.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE|FOLDER")
@click.option("--format", "name", metavar="NAME", help="The tool.  [default: by the content]")
@click.option(
    "--pattern",
    default="",
    metavar="'{engine}_{N}th.{tool}.txt'",
    help="What the names of a folder's files tell; files of one run differ in {tool} only.",
)
@click.option("--n", type=click.FloatRange(min=1), metavar="N", help="The load, if not printed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, not CSV.")
def read(file, name, pattern, n, as_json) -> None:
    """Read what measuring tools print, and print it as one table.

    FILE is the output of a tool that `nummodel list readers` names, "-" for standard input. FOLDER
    has such files side by side, as 8.sysbench.txt, 8.vmstat.txt and 8.iostat.txt for 8 threads;
    each run becomes a row. What is left out or does not agree is said.
    """
    from nummodel.records import folder, readers

    if file.is_dir():
        if name or n:
            option = f"--format {name}" if name else f"--n {n:g}"
            raise InputError(f"{option}: expected none for a folder")
        reading = folder.read(file, pattern)
    elif pattern:
        raise InputError(f"--pattern: {file} is no folder")
    else:
        reading = readers.read(file, name, n)[1]
    for what in reading.left_out:
        tell(what)
    if as_json:
        click.echo(json.dumps(reading.document(), indent=1, allow_nan=False))
    else:
        click.echo(reading.csv(), nl=False)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--x", metavar="COLUMN", help="Column of the load.  [default: by its name]")
@click.option("--y", metavar="COLUMN", help="Column of the throughput.  [default: by its name]")
@USE
@ONLY
@option("--law", default="all", metavar="NAME|all", help="Law to fit.")
@option(
    "--weights",
    default="absolute",
    metavar="absolute|relative|log|auto|COLUMN",
    help="Errors are of one size (absolute) or in proportion to the curve (relative, log: the mean "
    "or the median of measurements); auto: absolute or log, whichever makes the measurements more "
    "likely; or a column of weights of squared residuals.",
)
@click.option("--holdout", metavar="'N>24'", help="Predict these points instead of fitting them.")
@option("--level", default=0.95, type=SHARE, help="Level of all intervals.")
@click.option("--at", metavar="N1,N2,...", help="Forecast at these loads.")
@click.option(
    "--known",
    multiple=True,
    metavar="Z=TIME,c_NAME=SERVERS",
    help="Think time, in the unit of time of the throughput, and numbers of servers of stations.",
)
@click.option(
    "--target",
    metavar="R=TIME|X=NUMBER",
    help="A mean response time or a throughput: up to which load it holds, and how likely.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw points, law and forecasts: .png or .svg."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, not tables.")
def fit(
    file, x, y, use, only, law, weights, holdout, level, at, known, target, plot, as_json
) -> None:
    """Fit scaling laws to loads and throughputs, and say where throughput stops growing.

    FILE is a CSV file with a header, "-" for standard input, the output of a load generator, a
    folder with the outputs of a load test, or a table that `nummodel list tables` names. Commas,
    semicolons, tabs or blanks separate the cells.
    """
    from nummodel.answers import study, tables

    kind = plot and plot.suffix.lower()[1:]
    if plot and kind not in ("png", "svg"):
        raise InputError(f"--plot {plot}: expected a name that ends in .png or .svg")
    loads = () if at is None else at
    asked = law, weights, holdout, level, loads, ",".join(known), target
    found = study.fit_table(file, x, y, *asked, use=use, only=only)
    own = [n for n in getattr(found.fit, "free", ()) if n.startswith("c_")]
    if unknown := [n for n in own if n != "c_lock"]:
        give = f"if you know it, as in --known {unknown[0]}=4"
        tell(f"intervals take long without a number of servers: give it, {give}")
    result = found.document()
    if plot:
        image = found.picture().image(kind)
        try:
            plot.write_bytes(image)
        except OSError as error:
            raise InputError(f"--plot {plot}: {error.strerror}, expected a new file") from None
    if as_json:
        click.echo(json.dumps(result, indent=1, allow_nan=False))
        return
    say(wrapped(found.answer()))
    say(f"\n{tables.text(result, level, found.fits)}")
    for warning in found.remarks:
        tell(f"warning: {warning}")


@cli.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--x", metavar="COLUMN", help="Column of the load.  [default: by its name]")
@click.option("--y", metavar="COLUMN", help="Column of the throughput.  [default: by its name]")
@USE
@ONLY
@option(
    "--weights",
    default="auto",
    metavar="auto|absolute|relative|log|COLUMN",
    help="As in fit; auto: log, unless repeated loads speak for absolute.",
)
@option("--level", default=0.95, type=SHARE, help="Level at which all intervals hold together.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, not a table.")
def compare(before, after, x, y, use, only, weights, level, as_json) -> None:
    """Say whether a change helped, at which loads, and by how much.

    BEFORE and AFTER are files as `nummodel fit` reads them, measured at the same loads. If loads
    are measured several times, the scatter of these runs tells how large errors are. An error that
    all runs of a file share, such as that of another machine, looks like a change. Mean response
    times are compared if both files have them.
    """
    from nummodel.answers import change, responses

    result = responses.document(before, after, x, y, weights, level, use, only)
    if as_json:
        click.echo(json.dumps(result, indent=1, allow_nan=False))
        return
    say(wrapped(result["answer"]))
    say(f"\n{change.text(result, level)}")
    for warning in result["warnings"]:
        tell(f"warning: {warning}")


@cli.command(context_settings={"ignore_unknown_options": True})
@click.option("--at", required=True, metavar="N1,N2,...", help="The loads.")
@option("--repeat", default=3, type=click.IntRange(1), help="Runs at each load.")
@option(
    "--output",
    default="measured",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where the outputs go.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def measure(at, repeat, output, command) -> None:
    """Run a load generator at several loads, in random order, beside vmstat and iostat.

    COMMAND follows "--", has {N} where the load stands, and is run without a shell:

    nummodel measure --at 1,2,4,8 -- pgbench -c {N} -j {N} -T 10 bench

    COMMAND prints what sysbench, pgbench, wrk or k6 print, or a table with a header and columns N
    and X. The folder can be read and fitted: nummodel read FOLDER, nummodel fit FOLDER. The same
    command goes on where it was stopped.
    """
    from nummodel import measure as room

    try:
        loads = [int(part) for part in at.split(",")]
    except ValueError:
        loads = []
    if not loads or min(loads) < 1 or len(set(loads)) < len(loads):
        raise InputError(f"--at {at}: expected different whole numbers from 1 on, such as 1,2,4")
    try:
        failed = room.measure(command, loads, repeat, output)
    except KeyboardInterrupt as stop:  # with the number of its signal, or Python's own
        tell("interrupted: the same command goes on from there")
        sys.exit(128 + (*stop.args, 2)[0])
    click.echo(os.fsencode(output))
    if failed < len(loads) * repeat:
        tell(f"to read it: nummodel read {output}")
    sys.exit(failed > 0)


def main() -> None:
    """Run the command line; mistakes of its user become one line and exit code 2."""
    if sys.stdout is None:  # closed by the shell: results would be lost without a word
        tell("standard output is closed")
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # escapes characters that the encoding lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        cli.main(standalone_mode=False, prog_name="nummodel")
        print(end="", flush=True)
    except (InputError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        tell(" ".join(message.split()))
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except OSError as error:
        tell(f"{error.filename or 'output'}: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest of the output goes nowhere
        sys.exit(1)
