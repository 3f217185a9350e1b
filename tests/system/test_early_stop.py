# SPDX-License-Identifier: Apache-2.0
"""A daemon that is told to stop while it starts, before its loop listens to that: it ends in order, with status 0, and
nothing of its run is lost."""
import os
import sys

import fleet
from attached import ATTACHED
from fleet import FleetTest
from owned import MANY, Owned

STAND_IN = sys.argv.pop() if sys.argv[-1].endswith(".so") else None
READS, LOCKS, LISTENS = "fopen", "flock", "listen"  # its configuration; its state directory; for its neighbours


class EarlyStop(FleetTest):
    def stopped_at(self, node, place):
        """Start it, and have it stopped there; what it has logged meanwhile."""
        before = len(node.log()) if os.path.exists(node.log_path) else 0
        node.start(env={**os.environ, "LD_PRELOAD": STAND_IN, "STAND_IN_STOP": place})
        self.assertEqual(node.process.wait(fleet.PATIENCE), 0, node.log()[-2000:])
        return node.log()[before:]

    def rest(self, f):
        """Both paused and everything acknowledged: how they stand."""
        for node in f.nodes:
            self.assertEqual(node.json("/v1/pause", "POST"), {"state": "paused"})
        f.wait_state("paused")
        return f.wait("all to be acknowledged", lambda: (status := [node.status() for node in f.nodes]) and all(
            s["weight_in_flight"] == 0 for s in status) and status)

    def test_a_node_of_a_fleet_loses_nothing(self):
        f = self.fleet(2, options=MANY)
        f.start()
        f.wait_round(0, 50)
        before = self.rest(f)
        for node in f.nodes:
            self.assertEqual(node.end(), 0)
        self.assertEqual(self.stopped_at(f.nodes[0], READS), "")
        for place in (LOCKS, LISTENS):
            log = self.stopped_at(f.nodes[0], place)
            self.assertIn("event=signal number=15", log)
            self.assertIn("event=end status=0", log)
        f.start()
        for i in range(2):
            f.wait_round(i, before[i]["round"] + 10)
        after = self.rest(f)
        self.assertLessEqual(abs(sum(s["weight"] for s in after) - 2), 1e-12)
        self.assertEqual([(s["weight_minted"], s["lost_rounds"]) for s in after], [(0, 0), (0, 0)])

    def test_a_node_without_a_model_and_an_owner_beside_end_too(self):
        f = self.fleet(1, phases=[[]], options=ATTACHED, own={0: {"control.attach": "n0.attach"}})
        log = self.stopped_at(f.nodes[0], LISTENS)
        self.assertIn("event=waiting for=program", log)
        self.assertIn("event=end status=0", log)
        f = Owned(2, members=True, **MANY)
        self.addCleanup(f.close)
        for place in (LOCKS, LISTENS):
            log = self.stopped_at(f.nodes[0], place)
            self.assertEqual(log.count("event=end status=0"), 2, log)


if __name__ == "__main__":
    fleet.main()
