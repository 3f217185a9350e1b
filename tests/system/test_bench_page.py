# SPDX-License-Identifier: Apache-2.0
"""docs/BENCHMARKS.md as bench/page.py writes it: its sections, tables and pictures, from given measurements."""
import os
import re
import sys
import tempfile
import unittest
import unittest.mock

import tap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import figures  # noqa: E402
import page  # noqa: E402
import pictures  # noqa: E402


def line(case, unit, value, baseline=None, baseline_value=None):
    ratio = baseline_value / value if baseline else None
    return {"case": case, "unit": unit, "value": value, "low": 0.9 * value, "high": 1.2 * value, "runs": 5,
            "baseline": baseline, "baseline_value": baseline_value, "baseline_low": baseline_value,
            "baseline_high": baseline_value, "ratio": ratio, "ratio_low": ratio, "ratio_high": ratio}


SIZES = {"4 KiB": 0.1, "1 MiB": 1.0, "16 MiB": 16.0}
NODES = (2, 4, 64)
MEASURED = {
    "limit": [line(f"plain sockets, 2 nodes, {size}", "ms", value) for size, value in SIZES.items()],
    "round": [line(f"{n} nodes, {size}, whole daemons", "ms", 2 * value, "plain sockets", value)
              for n in NODES for size, value in SIZES.items()],
    "cipher": [line(f"2 nodes, {size}, ciphered links", "ms", value, "plain links", 0.6 * value)
               for size, value in SIZES.items()],
    "peer": [line(f"2 nodes, {size}, links alone", "ms", value, "gloo isend/irecv", 3 * value)
             for size, value in SIZES.items()],
    "reduce": [line(f"4 nodes, {size}, all-reduce-direct", "ms", value, "gloo all-reduce", 2 * value)
               for size, value in SIZES.items()],
    "train": [line("softmax 784-10, batch 32, 1 thread", "rows/s", 1e6, other, value)
              for other, value in (("PyTorch", 3e5), ("products alone", 2e6))],
    "scale": [line(f"{n} {kind}, d = 8: {name}", unit, n + 1.0) for n in NODES for kind in ("simulated", "daemons")
              for name, unit in (("processor time of a node and round", "us"),
                                 ("bytes of a node and round", "bytes"), ("peak memory of a node", "MiB"))],
    "idle": [line(f"{n} daemons, all paused: processor time of a node", "% of a core", 0.004) for n in NODES],
    "rows": [line(f"{n} nodes, {size}, with rows", "ms", value, "without rows", value) for n in NODES for size, value in SIZES.items()],
    "guard": [line(f"8 nodes, {size}, without training", "rounds/s", value, "without a guard", 1.1 * value)
              for size, value in SIZES.items()],
    "accuracy": [line(f"{n} nodes: to 88%", "s", 10.0, "DistributedDataParallel", 12.0) for n in NODES],
    "bytes": [line(f"links of 100 Mbit/s, {name}: to 88%", "s", 10.0, "DistributedDataParallel", 12.0) for name in ("plain", "int8")],
    "attach": [line("4 nodes, loopback", "s", 5.0, "DistributedDataParallel", 6.0)],
}
AXES = {  # what the axes of each picture say
    "limit": ("size of a share", "time of a round (ms)"),
    "round": ("size of a share", "time of a round (ms)"),
    "cipher": ("size of a share", "time of a round (ms)"),
    "peer": ("size of a share", "time of a round (ms)"),
    "reduce": ("size of a share", "time of a round (ms)"),
    "train": ("rows a second",),
    "scale": ("nodes", "processor time of a node and round (µs)", "sent by a node in a round (KiB)",
              "memory of a node (MiB)"),
    "idle": ("processor time of a node (% of a core)",),
    "rows": ("size of a share", "time of a round (ms)"),
    "guard": ("rounds a second",),
    "accuracy": ("seconds to the accuracy",),
    "bytes": ("seconds to the accuracy",),
    "attach": ("seconds",),
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Page(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="sgpd-page-")
        self.addCleanup(self.temporary.cleanup)
        self.page = os.path.join(self.temporary.name, "BENCHMARKS.md")

    def drawn(self, name):
        return os.path.join(self.temporary.name, "pictures", page.folder_of(page.processor()), name + ".svg")

    def write(self, **results):
        """Write; {name: what the page says of this machine}."""
        page.write(results, self.page)
        return {name: machines.get(page.processor(), "")
                for name, machines in page.sections_of(read(self.page)).items()}

    def on(self, model):
        return unittest.mock.patch.object(page, "processor", lambda: model)

    def need_library(self):
        try:
            pictures.library()
        except figures.Skip as reason:
            self.skipTest(str(reason))

    def without_library(self):
        """Pictures take most of the time of a page."""
        return unittest.mock.patch.dict(sys.modules, {"matplotlib": None})

    def test_a_section_is_replaced_and_the_others_stay_as_they_are(self):
        with self.without_library():
            before = self.write(**MEASURED)
            after = self.write(peer=[line("2 nodes, 4 KiB, links alone", "ms", 7.0, "gloo isend/irecv", 21.0)])
        self.assertEqual(list(before), page.BENCHES)
        self.assertEqual(list(after), page.BENCHES)
        for name in page.BENCHES:
            same = before[name].strip() == after[name].strip()
            self.assertEqual(same, name != "peer", name)
        self.assertIn("| 2 nodes, 4 KiB, links alone | ms | 7 (6.3 to 8.4) | gloo isend/irecv | 21 | 3 |",
                      after["peer"])

    def test_each_section_names_its_command(self):
        with self.without_library():
            self.write(**MEASURED)
        for name in page.BENCHES:
            self.assertRegex(read(self.page), rf"(?s)## {name}\n\n.*`scripts/bench --only {name}`\n\n### ")

    def test_a_machine_replaces_nothing_of_anothers(self):
        with self.on("Model (R) A @ 2 GHz"), self.without_library():
            before = self.write(**MEASURED)
        with self.on("Model B"), self.without_library():
            self.write(limit=[line("memcpy", "GB/s", 12.0)])
            other = self.write(limit=[line("memcpy", "GB/s", 24.0)])["limit"]
        self.assertIn("| memcpy | GB/s | 24 ", other)
        machines = page.sections_of(read(self.page))
        self.assertEqual(list(machines["limit"]), ["Model (R) A @ 2 GHz", "Model B"])
        self.assertEqual({name: machines[name]["Model (R) A @ 2 GHz"] for name in machines}, before)
        self.assertEqual(page.folder_of("Model (R) A @ 2 GHz"), "model-a-2-ghz")

    def test_one_that_was_skipped_says_why_and_has_no_picture(self):
        text = self.write(peer=[{"bench": "peer", "skipped": "no PyTorch"}])["peer"]
        self.assertIn("Skipped: no PyTorch.", text)
        self.assertNotIn("pictures/", text)
        self.assertFalse(os.path.exists(self.drawn("peer")))

    def test_what_was_measured_before_is_not_replaced_by_a_reason_to_skip(self):
        before = self.write(peer=MEASURED["peer"])
        self.assertEqual(before, self.write(peer=[{"bench": "peer", "skipped": "no PyTorch"}]))

    def test_each_section_has_a_picture_with_units_on_its_axes(self):
        self.need_library()
        for name, text in self.write(**MEASURED).items():
            self.assertIn(f"![{name}](pictures/{page.folder_of(page.processor())}/{name}.svg)", text)
            picture = read(self.drawn(name))
            for label in AXES[name]:
                self.assertIn(f">{label}<", picture, name)

    def test_a_picture_has_every_contender_and_panel(self):
        self.need_library()
        self.write(round=MEASURED["round"])
        words = set(re.findall(r">([^<>]+)</text>", read(self.drawn("round"))))
        self.assertLessEqual({"whole daemons", "plain sockets", "2 nodes", "4 nodes", "64 nodes", "16 MiB"}, words)

    def test_no_legend_is_cut(self):
        self.need_library()
        rivals = ["DistributedDataParallel", "DistributedDataParallel, fp16"]
        case = "cores 0.4 0.4 0.4 0.1, settings for uneven machines: to "
        self.write(accuracy=[line(case + goal, "s", 2.9, rival, 26.6) for goal in ("85%", "88%") for rival in rivals])
        picture = read(self.drawn("accuracy"))
        width = float(re.search(r'width="([\d.]+)pt"', picture).group(1))
        legend = re.findall(r'font: 8px [^>]*text-anchor: start" x="([\d.]+)"[^>]*>([^<]+)<', picture)
        self.assertEqual([text for _, text in legend], ["sgpd", *rivals])
        for x, text in legend: # half an em for a letter is less than it takes
            self.assertLess(float(x) + 4 * len(text), width, text)

    def test_equal_measurements_give_equal_bytes_and_no_date(self):
        self.need_library()
        for name, measurements in MEASURED.items():
            self.write(**{name: measurements})
            first = read(self.drawn(name))
            self.write(**{name: measurements})
            self.assertEqual(first, read(self.drawn(name)), name)
            self.assertNotIn("dc:date", first)
            self.assertLess(len(first), 100000)

    def test_cases_that_fit_no_picture_are_in_the_table_alone(self):
        self.need_library()
        odd = [line("memcpy", "GB/s", 12.0), line("2 nodes, 1 MiB: publish", "ms", 3.0)]
        text = self.write(limit=odd)["limit"]
        self.assertIn("| memcpy | GB/s | 12 ", text)
        self.assertNotIn("pictures/", text)

    def test_without_the_library_the_page_says_so_and_keeps_its_tables(self):
        with self.without_library():
            sections = self.write(**MEASURED)
        for name, text in sections.items():
            self.assertIn("No picture: Debian's python3-matplotlib is not installed.", text)
            self.assertIn("| case | unit | value |", text)
            self.assertFalse(os.path.exists(self.drawn(name)))


tap.run_cases(sys.argv[1:])
