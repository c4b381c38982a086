"""bombardier 1: the statistics of each run, and its result in JSON."""

from nummodel.records.readers._declared import Field, Tool

BOMBARDIER = Tool(
    begins=(r"Bombarding ",),
    keys=('"numberOfConnections"', '"timeTakenSeconds"'),
    fields=(
        Field("N", r"Bombarding .{1,400}? using ([0-9]+) connection"),
        Field("time:time", r"Bombarding .{1,400}? for (\S+) using "),
        Field("series:text", r"Bombarding (\S+)"),
        Field("X", r"Reqs/sec +([0-9.]+)"),
        Field("R:time", r"Latency +(\S+) +\S+ +\S+$"),
        Field("R_p{}:time", r"([0-9.]+)% +(\S+)$"),
        Field("N", r"spec\.numberOfConnections: (\S+)"),
        Field("rate", r"spec\.rate: (\S+)"),
        Field("time", r"result\.timeTakenSeconds: (\S+)"),
        Field("X", r"result\.rps\.mean: (\S+)"),
        Field("R:us", r"result\.latency\.mean: (\S+)"),
        Field("R_p{}:us", r"result\.latency\.percentiles\.([0-9.]+): (\S+)"),
    ),
    codes=r"([1-5])xx - ([0-9]+)|^(others) - ([0-9]+)|^result\.req([1-5])xx: ([0-9]+)"
    r"|^result\.(others): ([0-9]+)",
    rated=r"spec\.rate: [1-9]",
    needs={"N": "number of connections", "X": "Reqs/sec"},
    clients="connections",
)
recognises, parse = BOMBARDIER.recognises, BOMBARDIER.parse
