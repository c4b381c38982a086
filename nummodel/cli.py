"""The command line. Results go to stdout, progress and messages to stderr.

Exit code 0: done; 1: a claim or a notebook failed; 2: wrong usage or input that cannot be read,
with one line that says where, what is wrong and what was expected.
"""

import os
import sys
from importlib.util import find_spec
from io import TextIOWrapper
from math import isnan
from pathlib import Path

import click

from nummodel import __version__
from nummodel.errors import InputError, line, tell


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
@click.option("--sweep", multiple=True, metavar="NAME=V1,V2,...", help="A run for each value.")
@click.option("--params", metavar="FILE.yaml", type=click.Path(path_type=Path), help="Runs listed.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="At a time.")
@click.option("--output", default="report", show_default=True, type=click.Path(path_type=Path))
@click.option(
    "--timeout",
    default=600.0,
    show_default=True,
    type=click.FloatRange(0, 1e9, min_open=True),
    metavar="SECONDS",
    help="A run that takes longer has failed.",
)
@click.option("--force", is_flag=True, help="Also what is there already, and would be the same.")
@click.option("--no-execute", is_flag=True, help="Only make pages of what was executed before.")
def report(notebooks, given, sweep, params, jobs, output, timeout, force, no_execute) -> None:
    """Execute notebooks, all or some, into pages.

    An index, claims.json and results.csv are written beside the pages.

    A notebook is named by its number, its name or its path. Several --sweep give every
    combination. --params lists runs, as in: - {notebook: 11, parameters: {train: [6, 12]}}

    A run that OUTPUT holds already is skipped, so the same command goes on where one was stopped.
    """
    _need_notebooks()
    from nummodel.reports import report as room
    from nummodel.reports import runs

    if isnan(timeout):
        raise InputError("--timeout is nan, expected a number of seconds")
    if params and (notebooks or given or sweep):
        raise InputError("--params lists whole runs, expected no notebook, -p or --sweep beside it")
    asked = runs.listed(params) if params else runs.plan(list(notebooks), given, sweep)
    try:
        outcomes = room.report(asked, output, jobs, not no_execute, force, timeout)
    except OSError as error:
        tell(f"{output / 'index.html'}: {error.strerror}, not renewed")
        sys.exit(1)
    except KeyboardInterrupt:
        tell("interrupted: the same command goes on from there")
        raise
    kept = sum(outcome.kept for outcome in outcomes)
    if kept:
        left = "nothing to do" if kept == len(outcomes) else f"{len(outcomes) - kept} executed"
        told = f"{kept} of {len(outcomes)} runs were there already (--force runs them again)"
        tell(f"{left}: {told}")
    click.echo(os.fsencode(output / "index.html"))  # as it is called, whatever its encoding
    if len(outcomes) == 1 and outcomes[0].paged:
        tell(f"its page: {output / outcomes[0].run.name}.html")
    failed = sum(not outcome.held for outcome in outcomes)
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


@cli.command("list")
@click.argument(
    "what",
    required=False,
    type=click.Choice(["notebooks", "laws", "tables", "readers"]),
)
def list_(what) -> None:
    """List notebooks, laws, tables and readers."""
    kinds = {
        "notebooks": _notebooks,
        "laws": _laws,
        "tables": _tables,
        "readers": _readers,
    }
    for kind in [what] if what else kinds:
        if not what:
            click.secho(kind, bold=True)
        for name, meaning in kinds[kind]():
            say(f"{'' if what else '  '}{name:<34} {meaning}")


def _notebooks():
    from nummodel.reports import notebook, runs

    for path in runs.notebooks():
        yield path.stem, notebook.summary(notebook.read(path))[0]
        for parameter in notebook.parameters(path).values():
            yield f"  -p {parameter.name}={parameter.default}", parameter.help


def _laws():
    from nummodel.models.scaling import LAWS

    return [(name, law.__doc__.partition("\n")[0]) for name, law in LAWS.items()]


def _tables():
    from nummodel.records import data

    return [(name, data.card(name)["title"]) for name in data.tables()]


def _readers():
    from importlib import import_module
    from pkgutil import iter_modules

    from nummodel.records import readers

    found = [
        (m.name, import_module(f"nummodel.records.readers.{m.name}"))
        for m in iter_modules(readers.__path__)
    ]
    return [(name, module.__doc__.partition("\n")[0]) for name, module in found]


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--x", metavar="COLUMN", help="Column of the load N.  [default: by its name]")
@click.option("--y", metavar="COLUMN", help="Column of the throughput.  [default: by its name]")
@click.option("--law", default="all", show_default=True, metavar="NAME|all")
@click.option(
    "--weights",
    default="absolute",
    show_default=True,
    metavar="absolute|relative|log|COLUMN",
    help="What multiplies the squared residuals: 1, 1/X^2, a column; or residuals of ln X.",
)
@click.option("--holdout", metavar="'N>24'", help="Points kept out of the fit, to be predicted.")
@click.option("--level", default=0.95, show_default=True, type=click.FloatRange(0, 1, True, True))
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
def fit(file, x, y, law, weights, holdout, level, as_json) -> None:
    """Fit scaling laws to loads and throughputs.

    FILE is a CSV file with a header, "-" for one on standard input, or the name of one of
    `nummodel list tables`. Cells are parted by commas, semicolons or tabs.
    """
    import json

    from nummodel import study

    result = study.document(file, x, y, law, weights, holdout, level)
    if as_json:
        click.echo(json.dumps(result, indent=1, allow_nan=False))
        return
    say(study.text(result, level))
    for warning in study.concerning(result):
        tell(f"warning: {warning}")


def main() -> None:
    """Run the command line; mistakes of its user become one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what an encoding lacks is escaped as well
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left to be written goes nowhere
        sys.exit(1)
