# SPDX-License-Identifier: Apache-2.0
"""A node whose round takes minutes: what only reads the model, and whoever would have it end, waits for a step at most."""
import math
import os
import signal
import unittest

import fleet
from fleet import FleetTest

MINUTES = "1000000"  # steps in a round, each of some 10 microseconds and more
SOON = 5  # seconds


class LongRound(FleetTest):
    """n0 takes so long; n1 and n2 take one step a round, and go on without it after a second."""

    def setUp(self):
        super().setUp()
        self.f = self.fleet(3, phases=[[(i, (i + 1) % 3) for i in range(3)]], rows=3000,
                            own={0: {"train.local_steps": MINUTES}},
                            options={"train.epochs": None, "train.rounds": "1000000", "train.batch": "500", "model.layers": "dense 64 tanh, dense 2",
                                     "train.patience": "1"})
        self.f.start()
        self.f.wait("a first status", self.f.nodes[0].status)  # a loaded machine starts it late
        self.f.wait("n0 to compute", lambda: (self.status()["waiting"] or {}).get("for") == "compute")

    def status(self):
        return self.f.wait("a status", self.f.nodes[0].status, timeout=SOON)

    def still_in_its_round(self):
        status = self.status()
        self.assertEqual((status["round"], status["waiting"]["for"]), (0, "compute"))

    def test_what_only_reads_is_answered_between_two_steps(self):
        node = self.f.nodes[0]
        for _ in range(3):
            self.assertTrue(math.isfinite(node.json("/v1/evaluate", "POST")["loss"]))
        code, body = node.get("/v1/model")
        self.assertEqual((code, len(fleet.read_model(body))), (200, 6 * 64 + 64 + 2 * 64 + 2))
        code, body = node.get("/v1/predict", "POST", "f0,f1,f2,f3,f4,f5\n1,0,1,0,1,0\n")
        self.assertEqual(code, 200, body)
        self.assertEqual(node.get("/v1/checkpoint", "POST")[0], 200)
        self.f.wait_log(0, "event=checkpoint round=0", timeout=SOON)
        self.f.wait_round(1, 20)  # the others are not held up for longer than their patience
        self.assertEqual(node.get("/v1/reload", "POST")[0], 200)
        self.still_in_its_round()

    def test_a_checkpoint_amid_a_round_s_steps_is_an_estimate(self):
        """A restart takes these steps again: it must not pass for the parameters with which the round began."""
        node = self.f.nodes[0]
        self.assertEqual(node.get("/v1/checkpoint", "POST")[0], 200)
        self.f.wait_log(0, "event=checkpoint round=0", timeout=SOON)
        node.kill(signal.SIGKILL)
        node.process.wait()
        node.start()
        self.f.wait_log(0, "event=restored", timeout=20)
        self.assertNotIn("parameters=exact", node.log())

    def test_a_pause_ends_the_round_s_steps(self):
        self.assertEqual(self.f.nodes[0].get("/v1/pause", "POST")[0], 200)
        self.f.wait("n0 to end its steps", lambda: self.status()["samples"] > 0, timeout=SOON)
        self.assertEqual(self.status()["state"], "paused")
        self.assertEqual(self.f.nodes[0].get("/v1/resume", "POST")[0], 200)
        self.f.wait("n0 to go on", lambda: self.status()["round"] > 0)

    def test_one_that_leaves_does_so_between_two_steps(self):
        self.assertEqual(self.f.nodes[0].get("/v1/leave", "POST")[0], 200)
        self.f.wait_log(0, "event=left", timeout=SOON)

    def test_one_that_is_to_end_does_so_between_two_steps(self):
        self.f.nodes[0].kill(signal.SIGTERM)
        self.assertEqual(self.f.nodes[0].process.wait(SOON), 0)
        self.assertTrue(os.path.exists(os.path.join(self.f.nodes[0].directory, "checkpoint")))
        self.f.nodes[0].start()
        self.f.wait("n0 to go on with its own parameters", lambda: self.status()["state"] == "training")
        self.assertEqual(self.status()["weight_minted"], 0)


if __name__ == "__main__":
    fleet.main()
