# SPDX-License-Identifier: Apache-2.0
"""Kinds of training scripts (kinds.py) are trained by two nodes, and by one process with the batches of both. Their losses are
compared."""
import json
import os
import subprocess
import sys
import unittest

import fleet
from attached import AttachTest, torch
from kinds import KINDS

PAIR = [[(0, 1), (1, 0)]]


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Kinds(AttachTest):
    def program(self, *arguments):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds.py")
        program = subprocess.Popen([sys.executable, path, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def losses(self, program):
        """Of each kind, before and after."""
        said, complained = program.communicate(timeout=2 * fleet.PATIENCE)
        self.assertEqual(program.returncode, 0, complained)
        return json.loads(said)

    def test_each_ends_as_in_one_process(self):
        f = self.daemons(2, PAIR)
        alone = self.program()
        nodes = [self.program(self.path(f, i)) for i in range(2)]
        before, after = self.losses(alone)
        ends = [self.losses(program)[1] for program in nodes]
        for kind in KINDS:
            name = kind.__name__
            apart = [end[name] / after[name] - 1 for end in ends]
            print("# %-16s %.5f before, %.5f alone, %s" % (name, before[name], after[name], " ".join("%+.3f%%" % (100 * a) for a in apart)))
            with self.subTest(name):
                self.assertLess(after[name], 0.9 * before[name], "else this shows nothing")
                self.assertLess(max(map(abs, apart)), kind.apart)


fleet.main()
