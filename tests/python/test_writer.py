# SPDX-License-Identifier: Apache-2.0
"""Figures for TensorBoard, read back by event_files.py; skipped without python3-protobuf."""
import math
import os
import signal
import tempfile
import unittest

import common

try:
    import event_files
    import numpy
    MISSING = None
except ImportError as error:
    MISSING = f"not installed: {error.name}"
import sgp
from sgp import writer as module


class Checksums(unittest.TestCase):
    def test_known_numbers(self):
        for text, value in ((b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43),
                            (bytes(range(32)), 0x46DD794E)):  # the last three: RFC 3720, B.4
            masked = ((value >> 15 | value << 17) + 0xA282EAD8) % (1 << 32)
            self.assertEqual(module._masked(text), masked.to_bytes(4, "little"))


@unittest.skipIf(MISSING, MISSING)
class WriterTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = os.path.join(temporary.name, "runs", "n0")

    def test_scalars(self):
        with sgp.Writer(self.directory) as writer:
            writer.add_scalar("loss", 0.5, 1, walltime=2.25)
            writer.add_scalar("accuracy/test", numpy.float32(0.1), 1 << 40)
            writer.add_scalar("none", math.nan)
            writer.add_scalar("great", 1e300, 2)
            path = writer.path
        found = event_files.scalars(path)
        self.assertEqual([s[:2] for s in found], [(1, "loss"), (1 << 40, "accuracy/test"), (0, "none"), (2, "great")])
        self.assertEqual((found[0].value, found[0].wall_time), (0.5, 2.25))
        self.assertEqual(found[1].value, numpy.float32(0.1))
        self.assertTrue(math.isnan(found[2].value) and math.isinf(found[3].value))

    def test_histograms(self):
        values = numpy.array([[-1.0, 0.0], [2.0, 3.0]])
        with sgp.Writer(self.directory) as writer:
            writer.add_histogram("weights", values, 7, bins=4)
            writer.add_histogram("equal", [5, 5, 5], 8)
            events = event_files.read(writer.path)[0][1:]
        (value,) = events[0].summary.value
        self.assertEqual((events[0].step, value.tag), (7, "weights"))
        histogram = value.histo
        self.assertEqual((histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares), (-1, 3, 4, 4, 14))
        self.assertEqual((list(histogram.bucket_limit), list(histogram.bucket)), ([0, 1, 2, 3], [1, 1, 0, 2]))
        equal = events[1].summary.value[0].histo
        self.assertEqual((sum(equal.bucket), len(equal.bucket)), (3, 64))

    def test_a_tensor(self):
        try:
            import torch
        except ImportError:
            self.skipTest("not installed: torch")
        with sgp.Writer(self.directory) as writer:
            writer.add_scalar("loss", torch.tensor(0.25, requires_grad=True), 1)
            writer.add_histogram("weights", torch.tensor([1.0, 2.0], dtype=torch.bfloat16, requires_grad=True), 1)
            events = event_files.read(writer.path)[0][1:]
        self.assertEqual(events[0].summary.value[0].simple_value, 0.25)
        self.assertEqual(events[1].summary.value[0].histo.sum, 3)

    def test_each_writer_has_a_file_of_its_own(self):
        with sgp.Writer(self.directory) as first, sgp.Writer(self.directory) as second:
            self.assertNotEqual(first.path, second.path)
            self.assertEqual(len(os.listdir(self.directory)), 2)

    def test_a_killed_program_has_written_all_records(self):
        code = "import sgp, sys\nw = sgp.Writer(sys.argv[1])\nprint(w.path, flush=True)\ni = 0\nwhile True:\n  i += 1; w.add_scalar('i', i, i)\n"
        process = common.start(code, self.directory)
        path = process.stdout.readline().strip()
        while os.path.getsize(path) < 100_000 and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=common.PATIENCE)
        found = event_files.scalars(path)
        self.assertEqual([s.step for s in found], list(range(1, len(found) + 1)))
        self.assertLess(event_files.read(path)[1], 100)  # the record that was being written

    def test_what_is_wrong_is_told(self):
        writer = sgp.Writer(self.directory)
        for step in (-1, 1 << 63):
            with self.assertRaisesRegex(ValueError, "from 0 to below 2"):
                writer.add_scalar("a", 1, step)
        for values in ([], [math.nan], [math.inf, 1]):
            with self.assertRaisesRegex(ValueError, "at least one value, and all of them finite"):
                writer.add_histogram("a", values)
        writer.close()
        writer.close()
        with self.assertRaisesRegex(ValueError, "the writer is closed"):
            writer.add_scalar("a", 1)
        with self.assertRaises(OSError):
            sgp.Writer("/dev/null/none")

    def test_a_full_disk_leaves_whole_records(self):
        code = ("import resource, signal, sgp, sys\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nw = sgp.Writer(sys.argv[1])\n"
                "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
                "for i in range(1000):\n"
                "  try: w.add_scalar('i', i, i)\n"
                "  except OSError as error: break\n"
                "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
                "w.add_scalar('i', i, i)\nprint(w.path)\n")
        process = common.start(code, self.directory)
        out, said = process.communicate(timeout=common.PATIENCE)
        self.assertEqual(process.returncode, 0, said)
        events, rest = event_files.read(out.strip())
        self.assertEqual(rest, 0)
        self.assertGreater(len(events), 10)
        self.assertEqual([event.step for event in events[1:]], list(range(len(events) - 1)))


if __name__ == "__main__":
    common.main()
