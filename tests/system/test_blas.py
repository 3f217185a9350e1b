# SPDX-License-Identifier: Apache-2.0
"""A processor that OpenBLAS does not know: the daemon tries kernels that fit, excludes what is wrong or crashes, and
loads OpenBLAS with the fastest; a choice of the user's is never overridden. Who needs no product loads nothing."""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

import fleet
from fleet import FleetTest

LIBRARY = "libopenblas.so.0"
STAND_IN = next(word for word in sys.argv if word.endswith(LIBRARY))
sys.argv.remove(STAND_IN)
ANOTHER = os.path.join(os.path.dirname(STAND_IN), "libno_links.so")
UNKNOWN = {"LD_LIBRARY_PATH": os.path.dirname(os.path.abspath(STAND_IN)), "STAND_IN_CHOICE": "Prescott"}
os.environ.pop("OPENBLAS_CORETYPE", None)  # whoever runs the tests may have chosen; here the daemon is to choose
with open("/proc/cpuinfo") as file:
    FLAGS = set(re.search(r"^(?:flags|Features)\s*: (.*)$", file.read() + "\nflags : \n", re.M).group(1).split())
CHOSEN = r"^(SkylakeX|Cooperlake|Haswell|Zen) \(chosen: OpenBLAS took this processor for Prescott\)$"


def children(parent):
    with open("/proc/%d/task/%d/children" % (parent, parent), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def is_stopped(process):
    try:
        with open("/proc/%d/stat" % process, encoding="ascii") as file:
            return file.read().rpartition(") ")[2].startswith("T")
    except (FileNotFoundError, ProcessLookupError):
        return False


@unittest.skipUnless({"avx2", "fma"} <= FLAGS, "OpenBLAS has nothing better for this processor")
class Blas(FleetTest):
    def small(self, **options):
        return self.fleet(1, phases=[[]], options={"model.layers": "dense 200 relu, dense 100 relu, dense 2",
                                                   "train.epochs": "10000", "train.batch": "40", **options})

    def of_fleet(self):
        """A node with a scaling of the fleet opens its state directory and its socket before it chooses kernels."""
        return self.small(**{"data.scale": "fleet", "data.shards": "none"})

    def start(self, f, **environment):
        """Start under a stand-in for an unknown processor."""
        environment = {**UNKNOWN, **environment}
        before = dict(os.environ)
        os.environ.update(environment)
        try:
            f.nodes[0].start()
        finally:
            os.environ.clear()
            os.environ.update(before)

    def trains(self, f):
        f.wait("a round", lambda: (f.nodes[0].status() or {"round": 0})["round"] > 0)
        return f.nodes[0].status()["blas"]

    def test_kernels_that_fit_are_found_and_remembered(self):
        f = self.small()
        os.mkdir(f.nodes[0].directory)
        self.start(f)
        self.assertRegex(self.trains(f), CHOSEN)
        self.assertRegex(f.nodes[0].log(), r'event=start .* blas="(SkylakeX|Cooperlake|Haswell|Zen) \(chosen: ')
        self.assertNotIn("excluded", f.nodes[0].log())
        path = os.path.join(f.nodes[0].directory, "blas")
        with open(path) as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
        # What is remembered is not tried again: everything crashes now, and nobody notices.
        self.start(f, STAND_IN_CRASH="Prescott")
        self.assertRegex(self.trains(f), f"^{lines[1]} ")
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
        # What turns out to be wrong for this model is forgotten, and others are tried.
        self.start(f, STAND_IN_WRONG=lines[1])
        self.assertRegex(self.trains(f), f"^(?!{lines[1]}){CHOSEN[1:]}")
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
        # For another processor, or another library, it says nothing.
        with open(path, "w") as file:
            file.write("another processor\nHaswell\n")
        self.start(f, STAND_IN_CRASH="Haswell")
        self.assertRegex(self.trains(f), CHOSEN)
        self.assertIn("kernels=Haswell excluded=", f.nodes[0].log())

    def test_wrong_ones_and_those_that_crash_are_excluded_and_named(self):
        f = self.small()
        self.start(f, STAND_IN_WRONG="Haswell", STAND_IN_CRASH="Zen")
        self.assertNotRegex(self.trains(f), "^(Haswell|Zen) ")
        self.assertRegex(f.nodes[0].log(), r'event=blas kernels=Haswell excluded="a product of [0-9]+ x [0-9]+')
        self.assertIn('event=blas kernels=Zen excluded="ended by signal 6"', f.nodes[0].log())

    def test_where_nothing_better_is_right_it_stays_as_it_is(self):
        f = self.small()
        self.start(f, STAND_IN_WRONG="not Prescott")
        self.assertEqual(self.trains(f), "Prescott (others are no better here)")

    def test_a_choice_of_the_users_stays_and_is_checked(self):
        f = self.small()
        self.start(f, OPENBLAS_CORETYPE="Nehalem")
        self.assertEqual(self.trains(f), "Nehalem (by OPENBLAS_CORETYPE)")
        self.assertEqual(f.nodes[0].end(), 0)
        self.start(f, OPENBLAS_CORETYPE="Nehalem", STAND_IN_WRONG="Nehalem")
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 78, f.nodes[0].log())
        self.assertRegex(f.nodes[0].log(), "sgpd: OpenBLAS's kernels Nehalem are wrong on this processor: a product of "
                                           ".*; set OPENBLAS_CORETYPE to others")

    def test_check_says_it_and_writes_nothing(self):
        f = self.small()
        os.mkdir(f.nodes[0].directory)
        done = subprocess.run([fleet.SGPD, "--check", "-c", f.nodes[0].configuration], text=True,
                              stdout=subprocess.PIPE, env={**os.environ, **UNKNOWN}, timeout=fleet.PATIENCE)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "(?m)" + CHOSEN.replace("^", "^blas       "))
        self.assertEqual(os.listdir(f.nodes[0].directory), [])

    def test_trials_keep_the_socket(self):
        """Who connects while the daemon tries kernels waits, and is answered."""
        f = self.of_fleet()
        self.start(f)
        codes = f.connect_until(0, "event=start")
        self.assertRegex(self.trains(f), CHOSEN)
        self.assertEqual(set(codes[codes.index(0):]), {0})

    def test_a_daemon_that_is_killed_in_a_trial_leaves_its_directory_unlocked(self):
        f = self.of_fleet()
        self.start(f, STAND_IN_STOP="not Prescott")
        parent = f.nodes[0].process.pid
        trial = f.wait("a trial that stops", lambda: next(filter(is_stopped, children(parent)), None))
        self.addCleanup(os.kill, trial, signal.SIGKILL)
        f.nodes[0].end(signal.SIGKILL)
        self.start(f)
        self.assertRegex(self.trains(f), CHOSEN)
        self.assertTrue(is_stopped(trial))

    def test_where_they_fit_nothing_is_tried(self):
        f = self.small()
        self.start(f)
        fitting = self.trains(f).split()[0]
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
        self.start(f, STAND_IN_CHOICE=fitting)
        self.assertEqual(self.trains(f), fitting)
        self.assertNotIn("excluded", f.nodes[0].log())

    def maps(self, f):
        with open("/proc/%d/maps" % f.nodes[0].process.pid, encoding="ascii") as file:
            return file.read()

    def test_a_model_without_products_loads_nothing(self):
        f = self.small(**{"model.layers": "dense 2"})
        f.start()
        self.assertEqual(self.trains(f), "unused")
        self.assertNotIn("openblas", self.maps(f))
        self.assertIn('blas="unused"', f.nodes[0].log())
        self.assertEqual([row["device"] for row in f.nodes[0].json("/v1/fleet")["nodes"]], [None])

    def test_a_library_that_is_missing_or_another_is_named(self):
        f = self.small()
        directory = os.path.join(f.directory, "libraries")
        os.mkdir(directory)
        path = os.path.join(directory, LIBRARY)
        for write, said in (
                (lambda: open(path, "w").close(),
                 r"sgpd: libopenblas\.so\.0 cannot be loaded: .*; install the package libopenblas0"),
                (lambda: shutil.copy(ANOTHER, path),
                 r"sgpd: libopenblas\.so\.0 is not OpenBLAS; install the package libopenblas0")):
            write()
            done = subprocess.run([fleet.SGPD, "-c", f.nodes[0].configuration], text=True, stderr=subprocess.PIPE,
                                  env={**os.environ, "LD_LIBRARY_PATH": directory}, timeout=fleet.PATIENCE)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertRegex(done.stderr, said)


if __name__ == "__main__":
    fleet.main()
