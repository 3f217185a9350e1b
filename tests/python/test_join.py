#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program that knows its node before it has a model, and how it finds the node; the model is arrays of numpy."""
import faulthandler
import os
import tempfile
import unittest
import warnings

import numpy

import common
import sgp
from fake_daemon import FINISH, HELLO, IDENTIFY, FakeDaemon
from sgp import attachment, protocol


def arrays():
    return {"weight": numpy.ones((2, 3), numpy.float32)}


class JoinTest(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(common.PATIENCE, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.addCleanup(os.environ.pop, "SGP_SOCKET", None)
        self.addCleanup(setattr, protocol, "RUN", protocol.RUN)
        folder = tempfile.TemporaryDirectory(prefix="sgp-")
        self.addCleanup(folder.cleanup)
        protocol.RUN = folder.name
        os.environ.pop("SGP_SOCKET", None)

    def daemon(self, **options):
        daemon = FakeDaemon(**options)
        self.addCleanup(daemon.close)
        return daemon

    def daemon_of(self, name, **options):
        """A daemon whose socket lies where that of a node of this machine does."""
        os.mkdir(os.path.join(protocol.RUN, name))
        return self.daemon(path=os.path.join(protocol.RUN, name, "attach.sock"), **options)

    # ---- before the model

    def test_it_knows_the_node(self):
        daemon = self.daemon(index=2, size=4)
        with sgp.join(name=daemon.path) as node:
            attached = sgp.attach(arrays(), name=daemon.path)
            self.assertEqual((node.name, node.index, node.size, node.is_first), ("n2", 2, 4, False))
            self.assertEqual((attached.name, attached.seed), (node.name, node.seed))
            attached.detach()
        self.assertEqual([frame["type"] for frame in daemon.frames[:2]], [IDENTIFY, HELLO])

    def test_rows_before_the_model_and_after(self):
        """A sampler that was made before goes on, and counts for the epoch."""
        daemon = self.daemon(index=1, size=3)
        node = sgp.join(name=daemon.path)
        sampler = node.sampler(range(9), shuffle=False)
        self.assertEqual((list(sampler), len(sampler)), ([1, 4, 7], 3))
        self.assertIs(node.attach(arrays()), node)
        self.assertEqual(list(sampler), [1, 4, 7])
        node.mix(rows=3)
        self.assertEqual(node.epoch, 1.0)
        node.detach()

    def test_steps_after_attaching(self):
        daemon = self.daemon(begin=0.0, drift=0.5)
        model = arrays()
        with sgp.join(name=daemon.path) as node:
            with node.attach(model, rounds=2):
                self.assertEqual(node.rounds, 2)
                model["weight"] += 1
                node.mix()
                numpy.testing.assert_array_equal(model["weight"], numpy.full((2, 3), 1.5))
        self.assertEqual(len(daemon.of(FINISH)), 1)

    def test_without_a_model_nothing_can_be_done(self):
        daemon = self.daemon()
        with sgp.join(name=daemon.path) as node:
            for act in (node.mix, node.finish, lambda: node.mean(1.0), lambda: node.report(test_loss=1.0),
                        lambda: node.stop("enough"), lambda: node.save("/nonexistent/file")):
                with self.assertRaisesRegex(sgp.Error, r"^n0: no model is attached yet; node.attach\(model, optimizer\)"):
                    act()
        self.assertEqual([frame["type"] for frame in daemon.frames], [IDENTIFY])

    def test_a_node_gets_one_model(self):
        daemon = self.daemon()
        with sgp.join(name=daemon.path) as node:
            node.attach(arrays())
            with self.assertRaisesRegex(sgp.Error, "^n0: a node gets one model"):
                node.attach(arrays())
        node = sgp.join(name=daemon.path)
        node.detach()
        with self.assertRaisesRegex(sgp.Error, "^n0: a node gets one model"):
            node.attach(arrays())

    def test_a_model_that_is_refused_can_be_followed_by_another(self):
        daemon = self.daemon(refuse=(-16, "n0: program 'other' is attached"))
        node = sgp.join(name=daemon.path)
        with self.assertRaises(sgp.Busy):
            node.attach(arrays())
        daemon.refuse = None
        node.attach(arrays()).detach()

    def test_alone(self):
        with self.assertWarnsRegex(sgp.TrainingWarning, "trains alone, on all rows"):
            node = sgp.join(name="/none-such.sock", required=False)
        self.assertEqual((node.name, node.index, node.size, node.is_first), ("alone", 0, 1, True))
        self.assertEqual(list(node.sampler(range(3), shuffle=False)), [0, 1, 2])
        with node.attach(arrays(), rounds=1):
            self.assertTrue(node.mix().stop)

    def test_a_daemon_that_is_not_there(self):
        with self.assertRaisesRegex(sgp.NoDaemon, "no daemon listens at /none-such.sock"):
            sgp.join(name="/none-such.sock")

    # ---- which node

    def test_the_only_node_of_the_machine(self):
        self.daemon_of("n5", index=5, size=6)
        self.assertEqual(sgp.join().name, "n5")
        with sgp.attach(arrays()) as node:
            self.assertEqual(node.name, "n5")

    def test_the_environment_comes_first(self):
        self.daemon_of("n5", index=5, size=6)
        os.environ["SGP_SOCKET"] = self.daemon(index=1, size=6).path
        self.assertEqual(sgp.join().name, "n1")

    def test_the_environment_may_say_that_there_is_none(self):
        self.daemon_of("n5", index=5, size=6)
        os.environ["SGP_SOCKET"] = "none"
        with self.assertRaisesRegex(sgp.NoDaemon, r"^\$SGP_SOCKET is none; "):
            sgp.join()
        with self.assertWarnsRegex(sgp.TrainingWarning, r"^\$SGP_SOCKET is none: this program trains alone"):
            self.assertEqual(sgp.attach(arrays(), required=False, timeout=60).name, "alone")

    def test_a_name_in_a_script_that_was_launched(self):
        """The error says what would be right."""
        os.environ["SGP_SOCKET"] = "/run/user/1000/sgpctl-x/n1.attach"
        self.addCleanup(setattr, attachment, "RUN", attachment.RUN)
        attachment.RUN = protocol.RUN
        with self.assertRaisesRegex(sgp.NoDaemon, r"without a name, the script attaches to \$SGP_SOCKET \(/run/user/1000/sgpctl-x/"):
            sgp.join(name="n0")

    def test_of_several_one_must_be_named(self):
        self.daemon_of("n5", index=5, size=8)
        self.daemon_of("n7", index=7, size=8)
        for required in (True, False):  # that one of them was meant is clear
            for call in (sgp.join, lambda **options: sgp.attach(arrays(), **options)):
                with self.assertRaisesRegex(sgp.Error, r"^several nodes are here \(n5, n7\); name one of them"):
                    call(required=required)
        self.assertEqual(sgp.join(name=os.path.join(protocol.RUN, "n7", "attach.sock")).name, "n7")

    def test_none_is_here(self):
        with self.assertRaisesRegex(sgp.NoDaemon, "no node is named, and there is no .*sgpctl launch"):
            sgp.attach(arrays())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(sgp.attach(arrays(), required=False).name, "alone")
        self.assertEqual(len(caught), 1)
        self.assertIn("no node is named", str(caught[0].message))


if __name__ == "__main__":
    common.main()
