# SPDX-License-Identifier: Apache-2.0
"""Lightning, transformers and Accelerate themselves, where they are installed (Debian has none of them): two nodes
train by sgpctl launch, and end with one model. tests/python/test_trainers.py has stand-ins."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import fleet
import tap

SGPCTL = os.path.abspath(sys.argv.pop(1))
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trainers.py")
# From these the libraries conclude that they must distribute training themselves.
UNSET = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
LINE = re.compile(r"(cpu|cuda) (\d+) steps, loss (\S+) (\S+), model ([0-9a-f]{16}), from round (\d+)$", re.MULTILINE)
STEPS = {"lightning": 48, "transformers": 48, "gpt2": 48, "accelerate": 24}  # accelerate adds up the gradients of two batches


def there(module):
    """Whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


class Trainers(unittest.TestCase):
    def launch(self, library, *more, keep=()):
        """Two nodes: the exit status, and all that was printed."""
        command = [SGPCTL, "launch", "-n", "2", *keep, "--", "env", *(word for name in UNSET for word in ("-u", name)),
                   sys.executable, SCRIPT, library, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * fleet.PATIENCE, check=False)
        return done.returncode, done.stdout + done.stderr

    def expect(self, library, status, said):
        """Both end with one model, which has learned: the rounds that they began with."""
        self.assertEqual(status, 0, said)
        found = LINE.findall(said)
        self.assertEqual(len(found), 2, said)
        self.assertEqual({int(steps) for _, steps, *_ in found}, {STEPS[library]}, said)
        self.assertEqual(len({model for *_, model, _ in found}), 1, said)
        for _, _, before, after, *_ in found:
            self.assertLess(float(after), 0.5 * float(before), said)
        return [int(begin) for *_, begin in found]

    def train(self, library):
        self.assertEqual(self.expect(library, *self.launch(library)), [0, 0])

    def fail_and_go_on(self, library):
        """The programs fail in batch 20; started again, they go on with what the nodes have."""
        with tempfile.TemporaryDirectory() as folder:
            keep = ("--keep", os.path.join(folder, "fleet"))
            status, said = self.launch(library, "20", keep=keep)
            self.assertNotEqual(status, 0, said)
            self.assertIn("ZeroDivisionError", said)
            for begin in self.expect(library, *self.launch(library, keep=keep)):
                self.assertGreater(begin, 0)

    @unittest.skipUnless(there("lightning") or there("pytorch_lightning"), "not installed: lightning")
    def test_lightning(self):
        self.train("lightning")
        self.fail_and_go_on("lightning")

    @unittest.skipUnless(there("transformers"), "not installed: transformers")
    def test_transformers(self):
        self.train("transformers")
        self.fail_and_go_on("transformers")
        self.train("gpt2")

    @unittest.skipUnless(there("accelerate"), "not installed: accelerate")
    def test_accelerate(self):
        self.train("accelerate")
        self.fail_and_go_on("accelerate")


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
