# SPDX-License-Identifier: Apache-2.0
"""The programs that benchmarks measure with run: a few rounds of each, of two nodes over loopback. What they say of
speed is not looked at."""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import tap

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench")
sys.path.insert(0, BENCH)
import contenders  # noqa: E402
import figures  # noqa: E402
import liars  # noqa: E402

ROUNDS, WARMUP = 20, 6
SIZE = 4096


class Programs(unittest.TestCase):
    def setUp(self):
        self.options = argparse.Namespace(build=BUILD, quick=True, runs=1)
        few = unittest.mock.patch.object(contenders, "rounds_of", lambda *_: (ROUNDS, WARMUP))
        few.start()
        self.addCleanup(few.stop)

    def assert_measured(self, result):
        self.assertGreater(result["seconds"], 0)
        self.assertGreaterEqual(result["cpu_seconds"], 0)

    def test_daemons_with_a_stopwatch(self):
        self.assert_measured(contenders.daemons(self.options, 2, SIZE))

    def test_daemons_with_and_without_rows(self):
        """The other node is not heard of, though both exchange shares."""
        for without in ({}, {"BENCH_WITHOUT_ROWS": "1"}):
            with self.subTest(without=without), unittest.mock.patch.dict(os.environ, without):
                f = contenders.IdleFleet(contenders.program(self.options, "sgpd_idle"), 2, SIZE, 10 ** 9, WARMUP, {})
                self.addCleanup(f.close)
                f.start()
                f.wait_round(0, 100)
                if not without:
                    f.wait("the row of n1", lambda: f.nodes[0].json("/v1/fleet")["nodes"][1]["age"] is not None)
                else:
                    f.wait("twelve ticks", lambda: f.nodes[0].status()["uptime_seconds"] > 3)
                    self.assertEqual([row["age"] for row in f.nodes[0].json("/v1/fleet")["nodes"]], [None, None])

    def test_links_alone(self):
        self.assert_measured(contenders.links(self.options, 2, SIZE))

    def test_ciphered_links_alone(self):
        self.assert_measured(contenders.ciphered(self.options, 2, SIZE))

    def test_daemons_with_a_guard(self):
        self.assert_measured(contenders.daemons(self.options, 8, SIZE, **{"train.guard": "1"}))

    def test_a_liar_among_eight_learners(self):
        """The label of a row is its one white pixel."""
        labels = [r % 10 for r in range(320)]
        rows = [[16 * (pixel == label) for pixel in range(64)] for label in labels]
        with tempfile.TemporaryDirectory(prefix="liars-") as folder:
            for part in ("train", "t10k"):
                liars.write(folder, part, rows, labels)
            for guard, lie, bounds in ((1, 0, (0.9, 1)), (1, 1, (0.9, 1)), (0, 1, (0, 0.8))):
                with self.subTest(guard=guard, lie=lie):
                    found = figures.run(contenders.program(self.options, "liars"), folder, "iid", guard, lie, 1)
                    self.assertTrue(bounds[0] <= found["least"] <= found["accuracy"] <= bounds[1] + 1e-4, found)
                    self.assertLess(found["mass_error"], 1e-11)
                    self.assertEqual(found["guarded"] > 0, guard == 1)

    def test_rows_of_a_simulated_fleet(self):
        said = json.loads(subprocess.run([os.path.join(BUILD, "bench", "fleet_rows"), "6"], text=True, check=True, timeout=100,
                                         stdout=subprocess.PIPE).stdout)
        self.assertEqual((said["nodes"], said["authors"]), (6, 6))
        self.assertLess(said["change_most_s"], 5) # of virtual time
        self.assertLess(said["greatest_second_bytes"], 16384)

    def test_plain_sockets(self):
        self.assert_measured(contenders.sockets(self.options, 2, SIZE))

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "not installed: python3-torch")
    def test_copies_to_a_gpu_and_back(self):
        """Or on the processor, where there is none; and with a daemon."""
        said = subprocess.run([sys.executable, os.path.join(BENCH, "device.py"), BUILD, "--quick", "--runs", "1"], text=True,
                              check=True, timeout=100, stdout=subprocess.PIPE).stdout
        lines = [json.loads(line) for line in said.splitlines()]
        cases = [line["case"] for line in lines if "case" in line]
        for ending in ("a round", "bytes of a round", "gather, host", "scatter, host", "mix of one node with its daemon",
                       "mix, with overlap"):
            self.assertTrue(any(case.endswith(ending) for case in cases), said)
        self.assertTrue(all(line["value"] > 0 for line in lines if "case" in line and "overlap" not in line["case"]), said)


BUILD = sys.argv.pop(1)
tap.run_cases(sys.argv[1:])
