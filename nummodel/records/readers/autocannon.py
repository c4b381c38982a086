"""autocannon 2 to 8: the tables of each run, and its result in JSON."""

from nummodel.records.readers._declared import Field, Run, Tool


def finish(run: Run) -> None:
    """Requests under way at once: each connection has as many as are sent without waiting."""
    run.row["N"] = run.row.get("N", 0.0) * run.row.pop("pipelining", 1.0)
    if not run.row["N"]:
        del run.row["N"]


#: A cell of a table with strokes, and all cells of a row.
CELL = r"([^│|]*)[│|]"
LATENCIES = "R_p2.5:time R_p50:time R_p97.5:time R_p99:time R:time R_sd:time R_max:time"
AUTOCANNON = Tool(
    begins=(r"Running .{1,40} test @ ",),
    known=r"Running .{1,40} test @ [^\n]*\n\s{0,80}[0-9]+ connections?(?: with [^\n]*)?\n|"
    r"[│|] Stat +[│|] +[0-9.]+%",
    keys=('"connections"', '"pipelining"', '"latency"', '"requests"'),
    fields=(
        Field("series:text", r"Running .{1,40} test @ (\S+)"),
        Field("N pipelining", r"([0-9]+) connections?(?: with ([0-9]+) pipelining factor)?"),
        Field("events time:time", r"([0-9.]+[kM]?) requests in (\S+), "),
        Field(LATENCIES, r"[│|] Latency *[│|]" + CELL * 7),
        Field("X", rf"[│|] Req/Sec *[│|](?:[^│|]*[│|]){{4}}{CELL}"),
        Field("R:ms", r"Latency \(ms\) +([0-9.]+) +[0-9.]+ +[0-9.]+$"),
        Field("X", r"Req/Sec +([0-9.]+) +[0-9.]+ +[0-9.]+$"),
        Field("lost", r"([0-9.]+[kM]?) errors"),
        Field("failed", r"[0-9]+ 2xx responses, ([0-9]+) non 2xx responses"),
        Field("N", r"connections: (\S+)"),
        Field("pipelining", r"pipelining: (\S+)"),
        Field("X", r"requests\.average: (\S+)"),
        Field("events", r"requests\.total: (\S+)"),
        Field("time", r"duration: (\S+)"),
        Field("R:ms", r"latency\.(?:average|mean): (\S+)"),
        Field("R_p{}:ms", r"latency\.p([0-9]+(?:_[0-9]+)?): (\S+)"),
        Field("lost", r"errors: (\S+)"),
        Field("failed", r"non2xx: (\S+)"),
    ),
    finish=finish,
    needs={"N": "number of connections", "X": "mean of Req/Sec"},
    clients="connections",
)
recognises, parse = AUTOCANNON.recognises, AUTOCANNON.parse
