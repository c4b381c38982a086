"""What stands around the output of a tool in a file that people keep: a shell, a page, an editor.

Each line is judged alone, and one that is no output becomes empty, so that the numbers of lines
stay those of the file.
"""

import re
from typing import NamedTuple

TOOL = (
    "vmstat|iostat|mpstat|sar|sadf|pidstat|top|mlc|perf|numactl|wrk2?|ab|hey|oha|k6|vegeta|ghz|fio|"
    "sysbench|pgbench|memtier_benchmark|redis-benchmark|locust|jmeter|ycsb|autocannon|bombardier|"
    "cat|tail|grep|cd|ls|echo|sleep|for|done|nohup|time|taskset"
)
DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
#: Lines that are no output: a prompt with or without a command, what `date` and `time` print, the
#: marks of code in a page, and what somebody cut out.
AROUND = re.compile(
    r"^[ \t]*(?:"
    r"\[[^\]\n]{1,80}[@ ][^\]\n]{0,80}\][#$%>](?: .*)?"  # [root@host ~]#
    r"|(?:\([^)\n]{1,40}\) ?)?[\w.-]{1,40}@[^ \n]{1,80}(?: ?[^ \n]{1,80})?[#$%>](?: .*)?"
    rf"|[^\n]{{0,80}}?[#$%>\u276f\u2717] +(?:sudo +|time +|\w+=\S+ +)*(?:\S*/)?(?:{TOOL})\b.*"
    r"|[\u279c\u276f] .*"
    r"|[$%>#]"
    r"|[$] .*"
    r"|(?:real|user|sys)[ \t]+[0-9]+m[0-9.,]+s"
    r"|nohup: .*"
    rf"|{DAY}[,.]? .{{0,20}}{MONTH}.{{0,40}}[0-9]{{4}}.{{0,12}}"
    r"|[`~]{3,}[\w-]*"
    r"|::"
    r"|[.…\[<(]{1,4} ?(?:snip\w*|cut|omitted|truncated|[.…]{1,4}) ?[.…\])>]{0,4}"
    r")[ \t]*$",
    re.MULTILINE,
)
#: A number before each line, as `cat -n`, `nl` or a page with listings prints it.
NUMBERED = re.compile(r"^[ \t]{0,8}([0-9]{1,6})(?:[:.|)]| |\t|(?=-)|$)(.*)$")
#: A file has numbers of lines if it has at least so many of them, one after another.
FEWEST = 4


class Output(NamedTuple):
    """The text without what stands around it, and how many lines were left out."""

    text: str
    lines: int


def output(text: str) -> Output:
    """The output in a text."""
    count, text = 0, _unnumbered(text)

    def empty(found: re.Match) -> str:
        nonlocal count
        count += 1
        return ""

    return Output(AROUND.sub(empty, text), count)


def _unnumbered(text: str) -> str:
    """A text without the numbers of its lines, if all of them have one."""
    lines = text.split("\n")
    found = [NUMBERED.match(line) for line in lines]
    numbers = [int(n[1]) for n in found if n]
    some = sum(bool(line.strip()) for line in lines)
    whole = len(numbers) == some >= FEWEST
    if not whole or numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        return text
    return "\n".join(n[2] if n else "" for n in found)
