#!/usr/bin/env python3
"""Takes the figures in the documents again, and says which have moved.

  tools/figures.py FOLDER            runs the command of every table and writes what each prints to FOLDER
  tools/figures.py FOLDER TEXT..     only tables of which the file, the heading or the command has one of these texts
  tools/figures.py --list            names the tables, their commands, and the tables that nothing takes again

  --write     also writes the new figures, the date and the CPU into the documents
  --slow      also runs commands that take more than ten minutes

In a document, a line before the table says how:

  <!-- figures; FIELD; ..; $ COMMAND -->

The command is run by bash, in the root of the repository, once for all tables that have it. Fields: `reader NAME` for programs that do not
print the table (see `READERS`), `minutes N` if it takes more than a minute, `root` if only root can run it,
and `taken DATE on CPU`, which `--write` keeps up to date.

A figure has moved if it differs by more than 10 % from the document's, and by more than its last digit. Ranges in brackets are not compared.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"^<!-- figures; (?P<fields>.*?;? ?)\$ (?P<command>.*) -->$")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?")
# Commands that take more minutes are run only by `--slow`.
PATIENCE = 10
# Share by which a figure may differ.
TOLERANCE = 0.10


@dataclass
class Figure:
    """A table of a document that a command takes again."""

    path: str
    # Of the comment and of the first row below the header, from 0.
    mark: int
    first: int
    heading: str
    header: list
    rows: list
    command: str
    reader: str = "table"
    minutes: int = 1
    # How many tables with this header and command come before it.
    turn: int = 0
    fields: list = field(default_factory=list)

    def place(self):
        return f"{self.path}:{self.first + 1}"

    def reason_not_to_run(self, slow):
        if "root" in self.fields and os.geteuid() != 0:
            return "only root can run it"
        if self.minutes > PATIENCE and not slow:
            return f"it takes {self.minutes} minutes: give --slow"
        return None


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def is_rule(line):
    return "--" in line and re.fullmatch(r"\|[-:|\s]+\|?", line.strip()) is not None


def tables(lines):
    """The header, the index of the first row, and the rows of every table."""
    for index, line in enumerate(lines[:-1]):
        if line.startswith("|") and not is_rule(line) and is_rule(lines[index + 1]):
            rows = []
            for row in lines[index + 2 :]:
                if not row.startswith("|"):
                    break
                rows.append(cells(row))
            yield cells(line), index + 2, rows


def figures(path, text):
    """The tables of a document that have a command, and the places of those that have none."""
    lines = text.split("\n")
    found, other, heading, mark = [], [], "", None
    starts = {first: (header, rows) for header, first, rows in tables(lines)}
    for index, line in enumerate(lines):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if match := MARK.match(line):
            if mark:
                raise SystemExit(f"{path}:{mark[0] + 1}: no table follows")
            mark = index, match
        elif line.startswith("<!-- figures"):
            raise SystemExit(f"{path}:{index + 1}: a mark without `; $ COMMAND -->`")
        if index not in starts:
            continue
        header, rows = starts[index]
        if not mark:
            if any(NUMBER.search(cell) for row in rows for cell in row[1:]):
                other.append(f"{path}:{index + 1}  {heading}")
            continue
        at, match = mark
        mark = None
        fields = [part.strip() for part in match["fields"].split(";") if part.strip()]
        figure = Figure(path, at, index, heading, header, rows, match["command"], fields=fields)
        for part in fields:
            word, _, rest = part.partition(" ")
            if word == "reader":
                if rest not in READERS:
                    raise SystemExit(f"{path}:{at + 1}: there is no reader {rest}")
                figure.reader = rest
            elif word == "minutes":
                figure.minutes = int(rest)
            elif word not in ("root", "taken"):
                raise SystemExit(f"{path}:{at + 1}: unknown field `{part}`")
        figure.turn = sum((other.command, other.header) == (figure.command, header) for other in found)
        found.append(figure)
    if mark:
        raise SystemExit(f"{path}:{mark[0] + 1}: no table follows")
    return found, other


def numbers(cell):
    """The figures of a cell with their last digits, without ranges in brackets."""
    found = NUMBER.findall(re.sub(r"\[[^\]]*\]", "", cell))
    return [(float(n.replace(",", "")), 10.0 ** -len(n.partition(".")[2])) for n in found]


def moved(old, new):
    """What has moved in a cell, as texts `old -> new (+14 %)`."""
    before, after = numbers(old), numbers(new)
    if len(before) != len(after):
        return [f"{old or 'nothing'} -> {new or 'nothing'}"] if old != new else []
    found = []
    for (was, digit), (now, _) in zip(before, after):
        # Half a digit of either may be rounding.
        if abs(now - was) > TOLERANCE * abs(was) and abs(now - was) > 1.01 * digit:
            change = f"{100 * (now - was) / was:+.0f} %" if was else "from nothing"
            found.append(f"{was:g} -> {now:g} ({change})")
    return found


def keys(rows, width):
    """The first cells of each row. An empty first cell means the one above."""
    above, found = "", []
    for row in rows:
        above = row[0] or above
        found.append(tuple(label(cell) for cell in [above, *row[1:width]]))
    return found


def align(old, new):
    """How many cells name a row, and for each row of the document the one of the program with the same name, or none."""
    widths = [n for n in range(1, len(old[0]) + 1) if len(set(keys(old, n))) == len(old)] or [1]
    # A document may have only some of the rows.
    width = next((n for n in widths if len(set(keys(new, n))) == len(new)), widths[0])
    by_key = dict(zip(keys(new, width), new))
    return width, [by_key.get(key) for key in keys(old, width)]


def label(cell):
    return re.sub(r"[*`]|\s+", " ", cell).strip().lower()


def fitting(figure, output):
    """The rows in what the program printed: of the table with the document's header, or else of the one with most of its rows."""
    found = [(header, rows) for header, _, rows in tables(output.split("\n"))]
    same = [rows for header, rows in found if [label(cell) for cell in header] == [label(cell) for cell in figure.header]]
    candidates = same or [rows for header, rows in found if len(header) == len(figure.header)]
    # Programs that print rows alone, such as tests.
    candidates = candidates or [[cells(line) for line in output.split("\n") if line.startswith("|") and not is_rule(line)]]
    if len(same) > figure.turn:
        return same[figure.turn]
    return max(candidates, key=lambda rows: sum(row is not None for row in align(figure.rows, rows)[1]))


def compare(figure, new):
    """Each row as it is now, and what has moved. A cell that the reader leaves out, as None, stays as it is."""
    rows, report = [], []
    # A table of one row needs no name for it.
    width, found = (0, new) if len(figure.rows) == len(new) == 1 else align(figure.rows, new)
    for index, (old, row) in enumerate(zip(figure.rows, found)):
        at = f"{figure.path}:{figure.first + index + 1}"
        if row is None:
            report.append(f"missing: {at} the program prints no row `{' | '.join(old[:2])}`")
            rows.append(old)
            continue
        # The name of a row stays as it is written in the document.
        now = old[:width] + [was if cell is None else cell for was, cell in zip(old[width:], row[width:])]
        now += old[len(now) :]
        for was, cell in zip(old, now):
            report += [f"moved: {at} {change}" for change in moved(was, cell)]
        rows.append(now)
    return rows, report


# Readers of programs that print no table. Each returns rows as the document has them.


def peers(text):
    """`NAME 123 UNIT (1.2x) [120..130]  ..` by name: value, ratio, range."""
    pattern = r"(\S[^\[\]()]*?) ([\d.]+) ?(\S*?)(?: \(([\d.]+)x\))?(?: \[([^\]]*)\])?(?:  |$)"
    return {m[1].strip(): (m[2], m[4], m[5]) for m in re.finditer(pattern, text.strip())}


def rows_of(output, pattern):
    """The groups of each line that begins so, and the implementations in the rest of it."""
    for line in output.split("\n"):
        if match := re.match(pattern, line):
            yield match.groups(), peers(line[match.end() :])


def grouped(number):
    return f"{int(number):,}" if int(number) >= 10_000 else str(number)


def read_pipe(output):
    for (size, window, loss), of in rows_of(output, r" *(\d+) B  window +(\d+)  loss +(\d+) % +"):
        yield [f"{size} B", window, f"{loss} %", f"{of['ww'][0]} ns", f"{of['ikcp.c'][1]} x", f"{of['kcp'][1]} x"]


def read_forged(output):
    parts = {}
    for (window, kind), of in rows_of(output, r"window +(\d+)  (input|following update) +"):
        parts[window, kind] = of
    for window in dict.fromkeys(window for window, _ in parts):
        both = [parts[window, kind] for kind in ("input", "following update")]
        yield [window] + [" + ".join(of[name][0] for of in both) for name in ("ww", "ikcp.c", "kcp")]


def read_memory(output):
    names = ("ww", "ikcp.c", "kcp")
    idle = {m[1]: m for m in re.finditer(r"(?m)^(\S+)  \d+ \+ \d+ = (\d+); then heap of the sender (\d+), of the receiver (\d+)", output)}
    yield ["a new session, bytes"] + [idle[name][2] for name in names]
    busy = [f"{grouped(idle[name][3])} + {grouped(idle[name][4])}" for name in names]
    yield ["a session that was busy, sender + receiver, bytes of heap"] + busy
    after = re.search(r"ww after 5 idle seconds: heap of the sender (\d+), of the receiver (\d+)", output)
    yield ["the same after 5 idle seconds", str(int(after[1]) + int(after[2])), "-", "-"]
    for (size, kind), of in rows_of(output, r" *(\d+) B  window 8192  (in flight|out of order) +"):
        yield [f"a segment of {size} B {kind}, window 8192, bytes beyond its data"] + [of[name][0] for name in names]
    for (size,), of in rows_of(output, r" *(\d+) B  window  128  loss 10 % +"):
        yield [f"allocations for 1000 messages of {size} B, window 128, 10 % loss"] + [of[name][0] for name in names]


def read_lossy(output):
    """By time at a loss of 10 %, a row for each window."""
    pattern = r"(?m)^\| (\d+) \| (\d+) ms \| 10 % \| [^|]*\|[^|]*\|[^|]*\| ([\d.]+) "
    found = re.findall(pattern, output)
    for window in dict.fromkeys(window for window, _, _ in found):
        yield [window] + [ratio for of, _, ratio in found if of == window]


def read_wire(output):
    """When as many are sent as the window allows."""
    of = dict(re.findall(r"(?m)^\| (\S.*?) \| ([\d.]+) ", output))
    names = ["ikcp.c, messages", "ww, messages", "ww, stream"]
    names += [f"session, encrypted, {way}" for way in ("by KCP", "stream", "in packets")]
    yield [of[name] for name in names]


def read_presets(output):
    for line in output.split("\n"):
        if match := re.match(r"(\S.*?) +(\d+/\d+) +(.*)", line):
            yield [match[1], match[2], *match[3].split()]


def scaled(of, by):
    """`value [least..most]` of each, times `by`."""

    def times(number):
        product = float(number) * by
        return f"{product:.0f}" if product >= 100 else f"{product:.3g}"

    return [f"{times(value)} [{'..'.join(times(end) for end in ends.split('..'))}]" for value, _, ends in of.values()]


def read_tokio(output):
    (_, bulk), (_, bulk_cpu), (_, small), (_, small_cpu) = rows_of(output, r"(?:bulk|64-byte messages|  CPU, both ends) +")
    yield ["bulk, MB/s", *scaled(bulk, 1)]
    yield ["CPU of both ends, ms/MB", *scaled(bulk_cpu, 1e-3)]
    yield ["messages, million/s", *scaled(small, 1e-3)]
    yield ["CPU of both ends, ns each", *scaled(small_cpu, 1)]


def read_tokio_turns(output):
    turns, unspawned, beside = [udp_first(of) for _, of in rows_of(output, r"(?:ping-pong p50|not spawned, p50|beside threads) +")]
    yield ["both in tasks, one thread", *scaled(turns, 1)]
    yield ["one in `block_on`, one thread", *scaled(unspawned, 1)]
    yield ["one in `block_on`, beside two threads", *scaled(beside, 1)]


def udp_first(of):
    """The documents have bare UDP first."""
    return {"udp": of["udp"], **of}


def read_echo(output):
    p50, cpu = [udp_first(of) for _, of in rows_of(output, r"(?:60 Hz echo, p50|  CPU, both ends) +")]
    yield ["CPU, µs", *scaled(cpu, 1e-3)]
    yield ["of bare UDP's"] + [f"{float(value) / float(cpu['udp'][0]):.2f}" for value, _, _ in cpu.values()]
    yield ["p50, µs", *scaled(p50, 1)]
    # strace counts them.
    yield ["system calls: sent, received, waited"] + [None] * len(cpu)


def read_callgrind(output):
    for line in output.split("\n"):
        if match := re.match(r"(\d+) (\d+) (\d+) ", line):
            of = {m[1]: f"{grouped(m[2])} ({grouped(m[3])})" for m in re.finditer(r"(\S+) (\d+) \((\d+)\)", line[match.end() :])}
            counts = [of[name] for name in ("ww", "by-time", "ikcp.c", "kcp")]
            yield [f"{match[1]} B", match[2], f"{match[3]} %", *counts]


def read_callgrind_crowd(output):
    of = dict(re.findall(r"(?m)^  (\S+) +(\d+)$", output))
    names = {
        "nothing": "the harness: no protocol, a message is a datagram",
        "ikcp.c": "ikcp.c 1.7.1, in a table by address and conv, updated every 10 ms",
        "by-time": "bare KCP by time, with its table, its timers, its events and the memory of all peers",
        "sessions": "sessions (checksum)",
    }
    for name, row in names.items():
        yield [row, None, grouped(of[name])]


def read_crowd(output):
    """Rows without a loss in the first cell belong to the one above."""
    shown = {"ikcp.c": "ikcp.c", "by-time": "bare KCP by time", "sessions": "sessions"}
    pattern = r"  (\S+) +([\d.]+) datagrams, +(\d+) B per second; +(\d+), +(\d+), +(\d+) ms"
    loss = ""
    for line in output.split("\n"):
        if match := re.match(r"loss (\d+) %", line):
            loss = match[1]
        elif (match := re.match(pattern, line)) and match[1] in shown:
            yield [f"{loss} %", shown[match[1]], *match.groups()[1:]]


def read_crowd_udp(output):
    rows = re.findall(r"(?m)^  (\S+) +([\d.]+) datagrams per second; .*?(\d+) ns per tick", output)
    yield ["CPU, µs"] + [f"{int(ns) / 1000:.1f}" for _, _, ns in rows]
    yield ["datagrams a second"] + [datagrams for _, datagrams, _ in rows]


def read_turns(output):
    (_, of), *_ = rows_of(output, r"round trip p50 +")
    yield ["p50, µs"] + [f"{value} [{spread}]" for value, _, spread in of.values()]
    line = re.search(r"(?m)^ +datagrams +(.*)$", output)[1]
    yield ["datagrams", None] + re.findall(r"[\d.]+", line)


def read_udp(output):
    ways = ["std, one by one", "bare sendmmsg", "bare GSO and GRO", "ours, batched"]
    loads = {}
    for line in output.split("\n"):
        if re.match(r"\d+ B to ", line):
            of = loads[line.strip().replace("each of ", "")] = {}
        elif match := re.match(r"  (\S.*?) +send +(\d+) \[.*?\]  receive +(\d+) ", line):
            of[match[1]] = f"{match[2]} + {match[3]}"
    for load, of in loads.items():
        yield [load, *(of.get(way, "-") for way in ways)]


READERS = {
    "table": None,
    "pipe": read_pipe,
    "forged": read_forged,
    "memory": read_memory,
    "lossy": read_lossy,
    "wire": read_wire,
    "presets": read_presets,
    "tokio": read_tokio,
    "tokio-turns": read_tokio_turns,
    "echo": read_echo,
    "callgrind": read_callgrind,
    "callgrind-crowd": read_callgrind_crowd,
    "crowd": read_crowd,
    "crowd-udp": read_crowd_udp,
    "turns": read_turns,
    "udp": read_udp,
    # What it prints is to be compared by hand.
    "none": lambda output: None,
}


def read(figure, output):
    if figure.reader == "table":
        return fitting(figure, output)
    new = READERS[figure.reader](output)
    return None if new is None else list(new)


def rewritten(text, figure, rows, stamp):
    """The document with these rows and this date and CPU."""
    lines = text.split("\n")
    for index, row in enumerate(rows):
        lines[figure.first + index] = "|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|"
    fields = [part for part in figure.fields if not part.startswith("taken ")] + [stamp]
    lines[figure.mark] = f"<!-- figures; {'; '.join(fields)}; $ {figure.command} -->"
    return "\n".join(lines)


def cpu():
    names = re.findall(r"(?m)^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text()) if Path("/proc/cpuinfo").exists() else []
    return f"{len(names)} cores of {names[0]}" if names else f"{os.cpu_count()} cores"


def run(command):
    """What the command prints, both streams, whether it succeeded, and how many seconds it took."""
    began = time.monotonic()
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace"), done.returncode == 0, time.monotonic() - began


def documents():
    return ["README.md"] + sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("only", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--slow", action="store_true")
    args = parser.parse_args()
    every, other = [], []
    for path in documents():
        found, without = figures(path, (ROOT / path).read_text())
        every += found
        other += without
    if args.list or not args.folder:
        for figure in every:
            print(f"{figure.place()}  {figure.heading}  ({', '.join(figure.fields)})\n    {figure.command}")
        print("not taken by this program:", *other, sep="\n  ")
        return 0 if args.list else 2
    chosen = [f for f in every if not args.only or any(text in f"{f.path} {f.heading} {f.command}" for text in args.only)]
    return take(chosen, args)


def take(chosen, args):
    args.folder.mkdir(parents=True, exist_ok=True)
    machine, stamp = cpu(), f"taken {datetime.date.today()} on {cpu()}"
    outputs, problems, summary = {}, 0, []

    def say(line):
        print(line, flush=True)
        summary.append(line)

    for figure in chosen:
        if reason := figure.reason_not_to_run(args.slow):
            say(f"not run: {figure.place()} {figure.command}: {reason}")
            continue
        if figure.command not in outputs:
            print(f"running: {figure.command}", flush=True)
            outputs[figure.command] = output, succeeded, seconds = run(figure.command)
            name = f"{len(outputs):02}-{re.sub(r'[^a-z0-9]+', '-', figure.command.lower()).strip('-')[:80]}.txt"
            head = f"{datetime.datetime.now().isoformat(timespec='seconds')}, {machine}, {seconds:.0f} s\n$ {figure.command}\n\n"
            (args.folder / name).write_text(head + output)
            if not succeeded:
                problems += 1
                say(f"failed: {figure.command}: see {name}")
        output, succeeded, _ = outputs[figure.command]
        if not succeeded:
            continue
        try:
            new = read(figure, output)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            problems += 1
            say(f"unread: {figure.place()} the reader {figure.reader} does not understand what is printed: {error!r}")
            continue
        if new is None:
            say(f"by hand: {figure.place()} {figure.command}")
            continue
        rows, report = compare(figure, new)
        problems += sum(line.startswith("missing") for line in report)
        for line in report or [f"the same: {figure.place()}"]:
            say(line)
        table = [figure.header, ["---"] * len(figure.header), *rows]
        summary += ["", f"{figure.heading}: {stamp}, `{figure.command}`", ""] + ["| " + " | ".join(row) + " |" for row in table] + [""]
        if args.write:
            # The number of lines stays the same, so places of other tables do too.
            document = ROOT / figure.path
            document.write_text(rewritten(document.read_text(), figure, rows, stamp))
    (args.folder / "figures.md").write_text(f"{machine}, {datetime.datetime.now().isoformat(timespec='minutes')}\n\n" + "\n".join(summary) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
