#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program's side in C, by the example that uses it, against a daemon that is none. LINEAR is the first argument."""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

import common
import fake_daemon
from fake_daemon import DETACH, DONE, FINISH, HELLO, FakeDaemon

LINEAR = os.path.abspath(sys.argv.pop(1))


class LinearTest(unittest.TestCase):
    def daemon(self, **options):
        daemon = FakeDaemon(**options)
        self.addCleanup(daemon.close)
        return daemon

    def until(self, condition, what):
        end = time.monotonic() + common.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}")
            time.sleep(0.01)

    @staticmethod
    def has_memory(program):
        """Whether it has made what it shares; then it connects."""
        with open(f"/proc/{program.pid}/maps", encoding="utf-8") as file:
            return "memfd:sgp" in file.read()

    def run_linear(self, path):
        return subprocess.run([LINEAR, path], text=True, capture_output=True, timeout=common.PATIENCE, check=False)

    def assert_ends(self, daemon, text, status=1):
        result = self.run_linear(daemon.path)
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertRegex(result.stderr, text)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_it_trains(self):
        daemon = self.daemon(index=3, size=4)
        result = self.run_linear(daemon.path)
        self.assertEqual((result.returncode, result.stdout), (0, "n3, round 200: 1.000 -2.000 3.000 -4.000 0.500\n"),
                         result.stderr)
        self.assertEqual(daemon.program.layout, {
            "weight": {"dtype": "F32", "shape": [1, 4], "data_offsets": [0, 16]},
            "bias": {"dtype": "F32", "shape": [1], "data_offsets": [16, 20]}})
        self.assertEqual(daemon.program.tags, {"xxh3": "0" * 16, "values_from": "5", "framework": "C"})
        done = daemon.of(DONE)
        self.assertEqual([f["turn"] for f in done], list(range(1, 201)))
        self.assertEqual((done[0]["rows"], done[0]["learning_rate"]), (32, 0.05))
        self.assertTrue(numpy.isnan(done[0]["epoch"]) and done[0]["loss"] > done[-1]["loss"])
        self.until(lambda: daemon.of(DETACH), "DETACH")
        self.assertEqual([f["type"] for f in daemon.frames[-2:]], [FINISH, DETACH])
        self.assertEqual((daemon.of(HELLO)[0]["rounds"], daemon.of(HELLO)[0]["text"]), (200, "linear"))

    def test_its_rounds_end_where_the_daemon_leaves_it_open(self):
        daemon = self.daemon(open_end=True)
        self.assertRegex(self.run_linear(daemon.path).stdout, "round 200: 1.000")
        self.assertEqual(len(daemon.of(DONE)), 200)

    def test_it_answers(self):
        daemon = self.daemon(begin=1, questions=[None, [[1, 2, 3, 4], [0, 0, 0, 0]], [[1]]])
        self.assertIn("round 200", self.run_linear(daemon.path).stdout)
        self.assertEqual(daemon.of(HELLO)[0]["flags"], fake_daemon.EVALUATES | fake_daemon.PREDICTS)
        (figures, _), (_, outputs), (refused, _) = daemon.answers
        self.assertEqual(figures["test_loss"], 0 + 9 + 4 + 25 + 0.25)  # all ones, from 1, -2, 3, -4, 0.5
        self.assertTrue(numpy.isnan(figures["test_accuracy"]))
        self.assertEqual(outputs.tolist(), [[11], [1]])
        self.assertEqual((refused["code"], refused["text"]), (-1003, "the data is not valid"))

    def test_it_comes_before_the_daemon(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "attach.sock")
            program = subprocess.Popen([LINEAR, path], text=True, stdout=subprocess.PIPE)
            self.addCleanup(program.kill)
            self.until(lambda: self.has_memory(program), "it to look for its daemon")
            self.daemon(path=path)
            self.assertIn("round 200", program.communicate(timeout=common.PATIENCE)[0])

    def test_it_is_refused(self):
        self.assert_ends(self.daemon(refuse=(-16, "program 'a' (pid 3) is attached")),
                         "refused: program 'a' \\(pid 3\\) is attached")

    def test_its_daemon_goes(self):
        self.assert_ends(self.daemon(acts={5: fake_daemon.hang_up}), "the daemon is gone")

    def test_its_step_is_not_finite(self):
        def spoil(daemon, frame):
            daemon.program.z[4] = numpy.nan
            daemon.acts.clear()
            return daemon.fold(frame)
        self.assert_ends(self.daemon(acts={5: spoil}), "tensor bias is not finite")

    def test_nonsense(self):
        for act in (fake_daemon.garbage, fake_daemon.short, fake_daemon.long, fake_daemon.nonsense):
            self.assert_ends(self.daemon(acts={5: act}), "of one release")

    def test_a_signal_ends_the_wait(self):
        daemon = self.daemon()
        daemon.ready.clear()
        program = subprocess.Popen([LINEAR, daemon.path], text=True, stderr=subprocess.PIPE)
        self.addCleanup(program.kill)
        self.until(lambda: daemon.of(HELLO), "its HELLO")
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=common.PATIENCE)
        self.assertEqual(program.returncode, -signal.SIGTERM)


if __name__ == "__main__":
    common.main()
