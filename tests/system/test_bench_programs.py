# SPDX-License-Identifier: Apache-2.0
"""The programs that benchmarks measure with run: a few rounds of each, of two nodes over loopback. What they say of
speed is not looked at."""
import argparse
import os
import sys
import unittest
import unittest.mock

import tap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import contenders  # noqa: E402

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

    def test_links_alone(self):
        self.assert_measured(contenders.links(self.options, 2, SIZE))

    def test_ciphered_links_alone(self):
        self.assert_measured(contenders.ciphered(self.options, 2, SIZE))

    def test_plain_sockets(self):
        self.assert_measured(contenders.sockets(self.options, 2, SIZE))


BUILD = sys.argv.pop(1)
tap.run_cases(sys.argv[1:])
