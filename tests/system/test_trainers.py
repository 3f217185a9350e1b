# SPDX-License-Identifier: Apache-2.0
"""Lightning, transformers and Accelerate themselves, where they are installed (Debian has none of them): two nodes
train by sgpctl launch, and end with one model. tests/python/test_trainers.py has stand-ins."""
import importlib.util
import os
import re
import subprocess
import sys
import unittest

import fleet
import tap

SGPCTL = os.path.abspath(sys.argv.pop(1))
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trainers.py")
# From these the libraries conclude that they must distribute training themselves.
UNSET = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
LINE = re.compile(r"(cpu|cuda) (\d+) steps, loss (\S+) (\S+), model ([0-9a-f]{16})$", re.MULTILINE)
STEPS = {"lightning": 48, "transformers": 48, "accelerate": 24}  # accelerate adds up the gradients of two batches


def there(module):
    """Whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


class Trainers(unittest.TestCase):
    def train(self, library):
        command = [SGPCTL, "launch", "-n", "2", "--", "env", *(word for name in UNSET for word in ("-u", name)),
                   sys.executable, SCRIPT, library]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * fleet.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = LINE.findall(done.stdout)
        self.assertEqual(len(found), 2, done.stdout + done.stderr)
        self.assertEqual({int(steps) for _, steps, *_ in found}, {STEPS[library]}, done.stdout)
        self.assertEqual(len({model for *_, model in found}), 1, done.stdout)
        for _, _, before, after, _ in found:
            self.assertLess(float(after), 0.5 * float(before), done.stdout)

    @unittest.skipUnless(there("lightning") or there("pytorch_lightning"), "not installed: lightning")
    def test_lightning(self):
        self.train("lightning")

    @unittest.skipUnless(there("transformers"), "not installed: transformers")
    def test_transformers(self):
        self.train("transformers")

    @unittest.skipUnless(there("accelerate"), "not installed: accelerate")
    def test_accelerate(self):
        self.train("accelerate")


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
