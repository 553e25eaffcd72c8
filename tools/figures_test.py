#!/usr/bin/env python3
"""What tools/figures.py takes from documents and programs: `python3 tools/figures_test.py`."""

import unittest

import figures
from figures import ROOT, READERS, compare, documents, fitting, moved, rewritten

DOCUMENT = """\
# Costs

Some words.

<!-- figures; reader pipe; minutes 4; $ run it -->
| message | window | loss | whitewater | ikcp.c | kcp 0.6 |
|---:|---:|---:|---:|---:|---:|
| 64 B | 128 | 0 % | 36 ns | 2.7 x | 5.7 x |

Of others:

| loss | | datagrams |
|---|---|---:|
| 0 % | ikcp.c | 50.5 |
| | **sessions** | 30.0 |
"""


def one(text, path="docs/COSTS.md"):
    (figure,), other = figures.figures(path, text)
    return figure, other


class Marks(unittest.TestCase):
    def test_a_mark_names_the_command_of_the_table_below_it(self):
        figure, other = one(DOCUMENT)
        self.assertEqual((figure.command, figure.reader, figure.minutes), ("run it", "pipe", 4))
        self.assertEqual(figure.rows, [["64 B", "128", "0 %", "36 ns", "2.7 x", "5.7 x"]])
        self.assertEqual(figure.place(), "docs/COSTS.md:8")
        self.assertEqual(other, ["docs/COSTS.md:14  Costs"])

    def test_a_mark_without_a_table_or_with_an_unknown_reader_is_refused(self):
        for text in ("<!-- figures; $ run it -->\n", "<!-- figures; reader no; $ run -->\n| a |\n|---|\n| 1 |", "<!-- figures; run -->"):
            with self.assertRaises(SystemExit):
                figures.figures("x.md", text)

    def test_every_mark_in_the_documents_is_understood(self):
        found = [figure for path in documents() for figure in figures.figures(path, (ROOT / path).read_text())[0]]
        self.assertGreater(len(found), 15)


class Comparing(unittest.TestCase):
    def test_a_figure_has_moved_by_more_than_a_tenth_and_its_last_digit(self):
        self.assertEqual(moved("12,300 ns", "12,900 ns"), [])
        self.assertEqual(moved("100 ns", "114 ns"), ["100 -> 114 (+14 %)"])
        self.assertEqual(moved("0.4 + 5", "0.5 + 6"), [])
        self.assertEqual(moved("3 [1..5]", "3 [1..9]"), [])
        self.assertEqual(moved("-", "12 ns"), ["- -> 12 ns"])

    def test_a_row_is_found_by_its_name_and_a_blank_name_is_the_one_above(self):
        text = DOCUMENT.replace("| loss | |", "<!-- figures; $ other -->\n| loss | |")
        figure = figures.figures("x.md", text)[0][1]
        new = [["5 %", "ikcp.c", "1"], ["0 %", "sessions", "45.0"], ["0 %", "ikcp.c", "50.6"]]
        rows, report = compare(figure, new)
        self.assertEqual(rows, [["0 %", "ikcp.c", "50.6"], ["", "**sessions**", "45.0"]])
        self.assertEqual(report, ["moved: x.md:16 30 -> 45 (+50 %)"])

    def test_a_row_that_the_program_does_not_print_is_reported_and_stays(self):
        figure, _ = one(DOCUMENT)
        new = [["64 B", "1024", "0 %", "1 ns", "1 x", "1 x"], ["64 B", "8192", "0 %", "1 ns", "1 x", "1 x"]]
        rows, report = compare(figure, new)
        self.assertEqual(rows, figure.rows)
        self.assertTrue(report[0].startswith("missing: docs/COSTS.md:8"))

    def test_a_printed_table_is_found_by_its_header_or_else_by_its_rows(self):
        figure, _ = one("<!-- figures; $ run -->\n| | a | b |\n|---|---|---|\n| x | 1 | 2 |\n")
        printed = "other\n| c | d | e |\n|---|---|---|\n| x | 8 | 9 |\n\n| | a | b |\n|---|---|---|\n| x | 3 | 4 |\n"
        self.assertEqual(fitting(figure, printed), [["x", "3", "4"]])
        self.assertEqual(fitting(figure, "| x | 5 | 6 |\n"), [["x", "5", "6"]])

    def test_what_is_written_has_the_new_rows_the_date_and_nothing_else(self):
        figure, _ = one(DOCUMENT)
        row = ["64 B", "128", "0 %", "30 ns", "3.0 x", "6.0 x"]
        text = rewritten(DOCUMENT, figure, [row], "taken today on it")
        again, _ = one(text)
        self.assertEqual(again.rows, [row])
        self.assertEqual(again.fields, ["reader pipe", "minutes 4", "taken today on it"])
        changed = [line for line in text.split("\n") if line not in DOCUMENT.split("\n")]
        self.assertEqual(len(changed), 2)
        self.assertEqual(rewritten(text, again, [row], "taken today on it"), text)


class Readers(unittest.TestCase):
    def read(self, name, output):
        return list(READERS[name](output))

    def test_pipe(self):
        line = "  64 B  window  128  loss  0 %   ww 36.0 ns [35.1..37.0]  ikcp.c 97.2 ns (2.7x) [95..99]  kcp 205 ns (5.7x) [200..210]"
        self.assertEqual(self.read("pipe", line), [["64 B", "128", "0 %", "36.0 ns", "2.7 x", "5.7 x"]])

    def test_forged(self):
        ways = "ww 0.40 us [0.39..0.50]  ikcp.c 5.70 us [5..6]  kcp 7.10 us [7..8]"
        output = f"window  128  input            {ways}\nwindow  128  following update {ways}"
        self.assertEqual(self.read("forged", output), [["128", "0.40 + 0.40", "5.70 + 5.70", "7.10 + 7.10"]])

    def test_callgrind(self):
        line = "64 8192 10    ww 827 (765) [1.2x of 128]  by-time 918 (857)  ikcp.c 12679 (12609) [8.0x of 128]  kcp 31094 (20987)"
        cells = ["827 (765)", "918 (857)", "12,679 (12,609)", "31,094 (20,987)"]
        self.assertEqual(self.read("callgrind", line), [["64 B", "8192", "10 %", *cells]])

    def test_crowd(self):
        output = (
            "loss 1 %\n  by-time       59.9 datagrams,  3418 B per second;  25,  62,  77 ms p50, p99, p99.9;   990 ns per tick of 1/30 s (1.00x)"
        )
        self.assertEqual(self.read("crowd", output), [["1 %", "bare KCP by time", "59.9", "3418", "25", "62", "77"]])

    def test_lossy(self):
        row = "| 128 | {} ms | 10 % | 0.4 MB/s | 1.0 [..] | 1.0 [..] | {} [1.4..1.5; wire 1..1] | 2.0 [..] |"
        output = "\n".join([row.format(20, 1.45), row.format(60, 1.22)])
        self.assertEqual(self.read("lossy", output), [["128", "1.45", "1.22"]])

    def test_wire(self):
        names = ["ikcp.c, messages", "kcp, messages", "ww, messages", "ww, stream"]
        names += ["session, encrypted, by KCP", "session, encrypted, stream", "session, encrypted, in packets"]
        output = "\n".join(f"| {name} | {index}.5 (1.0) | 9.9 (9.0) |" for index, name in enumerate(names))
        self.assertEqual(self.read("wire", output), [["0.5", "2.5", "3.5", "4.5", "5.5", "6.5"]])

    def test_presets(self):
        output = "          came back      p50\nclassic   274/480       2534    6269    6385    6419        50         1.03"
        self.assertEqual(self.read("presets", output), [["classic", "274/480", "2534", "6269", "6385", "6419", "50", "1.03"]])

    def test_echo_and_tokio(self):
        ways = "udp 127000 {0} [122000..141000]  bare 174000 {0} (1.4x) [172000..198000]"
        echo = f"60 Hz echo, p50   {ways.format('us')}\n  CPU, both ends  {ways.format('ns')}"
        cpu = ["CPU, µs", "127 [122..141]", "174 [172..198]"]
        self.assertEqual(self.read("echo", echo)[:2], [cpu, ["of bare UDP's", "1.00", "1.37"]])
        lines = [f"{name:<18}{ways.format('x')}" for load in ("bulk", "64-byte messages") for name in (load, "  CPU, both ends")]
        rows = self.read("tokio", "\n".join(lines))
        self.assertEqual(rows[1], ["CPU of both ends, ms/MB", *cpu[1:]])
        self.assertEqual(rows[0][1:], ["127000 [122000..141000]", "174000 [172000..198000]"])
        ways = "bare 13.5 us [13..14]  udp 9.5 us (0.7x) [9..10]"
        loads = ("ping-pong p50", "not spawned, p50", "beside threads")
        lines = [f"{name:<18}{row}" for load in loads for name, row in ((load, ways), ("  CPU, both ends", ways))]
        rows = self.read("tokio-turns", "\n".join(lines))
        self.assertEqual(rows[1], ["one in `block_on`, one thread", "9.5 [9..10]", "13.5 [13..14]"])
        self.assertEqual(len(rows), 3)

    def test_turns(self):
        output = "round trip p50     udp 6.10 us [6.1..7.1]  bare 7.50 us (1.2x) [7.4..9.6]\n  datagrams        bare 2.00"
        self.assertEqual(self.read("turns", output), [["p50, µs", "6.10 [6.1..7.1]", "7.50 [7.4..9.6]"], ["datagrams", None, "2.00"]])

    def test_udp(self):
        output = (
            "heading\n1200 B to each of 1000 addresses\n"
            "  std, one by one      send   3033 [1..2]  receive    743 [1..2]   0.26 million a second\n"
            "  ours, batched        send    132 [1..2]  receive     78 [1..2]   4.26 million a second"
        )
        self.assertEqual(self.read("udp", output), [["1200 B to 1000 addresses", "3033 + 743", "-", "-", "132 + 78"]])


if __name__ == "__main__":
    unittest.main()
