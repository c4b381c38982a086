"""What stands around the output of a tool in a file that people keep: a shell, a page, an editor.

A line that is no output becomes empty, so that the numbers of lines stay those of the file. What
stands before every line is cut off: a number, a date, the mark of a quotation, an indent.
"""

import re
import textwrap
from itertools import pairwise
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
    r"^[ \t]{0,40}(?:"
    r"\[[^\]\n]{1,80}[@ ][^\]\n]{0,80}\] ?[#$%>](?: .*)?"  # [root@host ~]#
    r"|(?:[([][^])\n]{1,40}[])] ?)?[\w.-]{1,40}@[^ \n]{1,80}(?: [^ \n]{1,80})? ?[#$%>](?: .*)?"
    r"|(?:\w*sh-[0-9.]+|[\w.-]{1,40}:[ ]?[~/][^ \n]{0,80}) ?[#$>](?: .*)?"  # bash-4.2$, host:~ #
    r"|(?:PS )?[A-Z]:\\[^>\n]{0,80}>.*"
    rf"|[^\n]{{0,80}}?[#$%>\u276f\u2717] +(?:sudo +|time +|\w+=\S+ +)*(?:\S*/)?(?:{TOOL})\b.*"
    r"|[\u279c\u276f\u256d\u2570\u250c\u2514] ?.*"
    r"|(?:[A-Za-z][\w.-]{0,40})?[$>#]|%"
    r"|[$] .*"
    r"|(?:real|user|sys)[ \t]+[0-9]+m[0-9.,]+s"
    r"|nohup: .*"
    rf"|{DAY}[,.]? .{{0,20}}{MONTH}.{{0,40}}[0-9]{{4}}.{{0,20}}"
    r"|[`~]{3,}[\w-]*"
    r"|::|\.\. code.*"
    r"|[.…\[<(]{1,4} ?(?:snip\w*|cut|omitted|truncated|[.…]{1,4}) ?[.…\])>]{0,4}"
    r")[ \t]*$",
    re.MULTILINE,
)
#: What a terminal shows of Ctrl-C, before a line or behind it.
INTERRUPT = re.compile(r"^[ \t]{0,9}\^[CZ\\]|\^[CZ\\]$", re.MULTILINE)
#: A number before each line, as `cat -n`, `nl` or a page with listings prints it.
NUMBERED = re.compile(r"^[ \t]{0,8}\[?([0-9]{1,6})(?:[:|)\]]|\.(?=[ \t]|$)| |\t|(?=-)|$)(.*)$")
#: What stands before each line of a mail, and of a log that has dates.
QUOTED = re.compile(r"^[ \t]*>(?: |(?=>|$))()(.*)$")
DATED = re.compile(
    r"^\[?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}[.,0-9]*(?:Z|[-+][0-9:]{4,5})?"
    rf"|(?:{DAY} )?{MONTH} [ 0-9][0-9] [0-9:]{{8}})\]?(?: [\w.-]+ [\w./-]+\[[0-9]+\]:)?"
    r"(?: |\t|$)()(.*)$"
)
#: A line before and behind a block of code in a page.
FENCE = re.compile(r"[ \t]{0,9}(?:`{3}|~{3})")
#: A file has numbers of lines, or dates, if at least so many lines have one.
FEWEST = 3


class Output(NamedTuple):
    """The text without what stands around it, and how many lines were left out."""

    text: str
    lines: int


def output(text: str) -> Output:
    """The output in a text."""
    text, outside = _in_fences(text)
    text, before = _without_prompts(INTERRUPT.sub("", text))
    before += outside
    for prefix in (QUOTED, NUMBERED, DATED):
        lines = text.split("\n")
        if found := _behind(prefix, lines):
            text, more = _without_prompts(textwrap.dedent("\n".join(found)))
            before += more
    return Output(textwrap.dedent(text), before)


def _in_fences(text: str) -> tuple[str, int]:
    """What blocks of code have, if there are any, and the number of the lines around them."""
    lines = text.split("\n")
    fences = [i for i, line in enumerate(lines) if FENCE.match(line)]
    if len(fences) < 2:
        return text, 0
    inside: set[int] = set()
    for begin, end in zip(fences[::2], [*fences[1::2], len(lines)], strict=False):
        inside.update(range(begin + 1, end))
    outside = sum(bool(line.strip()) for i, line in enumerate(lines) if i not in inside)
    return "\n".join(line if i in inside else "" for i, line in enumerate(lines)), outside


def _without_prompts(text: str) -> tuple[str, int]:
    """A text whose lines that are no output are empty, and the number of these lines."""
    text, count = AROUND.subn("", text)
    return text, count


def _behind(prefix: re.Pattern, lines: list[str]) -> list[str]:
    """What the lines have behind a prefix, if all of them have it; numbers count the lines."""
    found = [prefix.match(line) for line in lines]
    some = sum(bool(line.strip()) for line in lines)
    if not FEWEST <= sum(match is not None for match in found) == some:
        return []
    # Lines that are empty may have no number, or had one.
    numbers = [(i, int(match[1])) for i, match in enumerate(found) if match and match[1]]
    for (line, now), (after, then) in pairwise(numbers):
        if not 0 < then - now <= after - line:
            return []
    return [match[2] if match else "" for match in found]
