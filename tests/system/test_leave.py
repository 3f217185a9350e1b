# SPDX-License-Identifier: Apache-2.0
"""A node that leaves for good: real daemons, sgpd's own socket. The mass stays, the members get fewer."""
import json
import os
import random
import signal
import threading
import time

import fleet
from fleet import FleetTest

RING = [[(i, (i + d) % 4) for i in range(4) for d in (1, 3)]]
OPTIONS = {"train.epochs": "1000000"}


class Leave(FleetTest):
    def order(self, node):
        """Begin to leave; returns where the answer will be, (status, body), once it has come."""
        answer = []

        def ask():
            try:
                code, body = node.get("/v1/leave", "POST")
                answer.append((code, json.loads(body)))
            except OSError as error:
                answer.append((0, str(error)))
        thread = threading.Thread(target=ask)
        thread.start()
        self.addCleanup(thread.join)
        return answer

    def leave(self, f, index):
        node = f.nodes[index]
        answer = self.order(node)
        [(code, body)] = f.wait("the answer", lambda: answer)
        self.assertEqual(code, 200, body)
        self.assertEqual(node.process.wait(fleet.PATIENCE), 0, node.log())
        return body

    def all_train(self, f, indices):
        f.wait_state("training", indices)
        rounds = [f.nodes[i].status()["round"] for i in indices]
        for i, number in zip(indices, rounds):
            f.wait_round(i, number + 20)

    def weight_when_quiet(self, f, indices):
        """The sum of the weights once nothing is inherited or owed any more."""
        nodes = [f.nodes[i] for i in indices]
        f.wait("the surplus to be dissolved", lambda: all(
            s and s["surplus"] == 0 for s in [node.status() for node in nodes]))
        for node in nodes:
            self.assertIn(node.get("/v1/pause", "POST")[0], (200, 202))
        f.wait_state("paused", indices)
        return sum(s["weight"] for s in f.quiet(nodes))

    def members_alone_are_counted(self, algorithm):
        f = self.fleet(4, phases=RING, options=dict(OPTIONS, **{"train.algorithm": algorithm}))
        f.start()
        self.all_train(f, range(4))
        body = self.leave(f, 2)
        self.assertEqual((body["left"], body["heir"]), (True, "n1"))
        self.assertGreater(body["weight"], 0)
        f.wait_log(1, "event=inherited peer=n2")
        self.all_train(f, [0, 1, 3])
        self.assertLessEqual(abs(self.weight_when_quiet(f, [0, 1, 3]) - 3), 1e-9)

    def test_the_state_directory_of_one_that_left_makes_a_new_member(self):
        f = self.fleet(4, phases=RING, options=OPTIONS)
        f.start()
        self.all_train(f, range(4))
        self.leave(f, 2)
        node = f.nodes[2]
        names = sorted(os.listdir(node.directory))
        self.assertIn("ledger.left", names)
        self.assertIn("model.safetensors", names)
        self.assertFalse([n for n in names if n in ("ledger", "checkpoint", "checkpoint.1")], names)
        node.start()
        self.all_train(f, range(4))
        self.assertEqual(node.status()["weight_minted"], 0)
        self.assertLessEqual(abs(self.weight_when_quiet(f, range(4)) - 4), 1e-9)

    def test_heirs_that_are_killed_keep_what_they_owe_to_the_count(self):
        draw = random.Random(int(os.environ.get("SGP_SEED", "1")))
        f = self.fleet(4, phases=RING, options=OPTIONS)
        f.start()
        self.all_train(f, range(4))
        self.leave(f, 2)
        for _ in range(4):
            f.nodes[1].end(signal.SIGKILL)
            f.nodes[1].start()
            time.sleep(draw.uniform(0, 0.2))  # the moment is what is tested
        self.all_train(f, [0, 1, 3])
        self.assertLessEqual(abs(self.weight_when_quiet(f, [0, 1, 3]) - 3), 1e-9)

    def test_a_leaver_that_is_killed_leaves_all_the_same(self):
        f = self.fleet(4, phases=RING, options=OPTIONS)
        f.start()
        self.all_train(f, range(4))
        node = f.nodes[2]
        for i in (1, 3):
            f.nodes[i].kill(signal.SIGSTOP)  # without them it cannot get far
        self.order(node)
        f.wait_log(2, "event=leave")
        node.end(signal.SIGKILL)
        node.start()
        for i in (1, 3):
            f.nodes[i].kill(signal.SIGCONT)
        self.assertEqual(node.process.wait(fleet.PATIENCE), 0, node.log())
        f.wait_log(2, "event=left heir=")
        self.all_train(f, [0, 1, 3])
        self.assertLessEqual(abs(self.weight_when_quiet(f, [0, 1, 3]) - 3), 1e-9)

    def test_without_an_heir_it_waits_says_for_whom_and_can_be_stopped(self):
        f = self.fleet(2, phases=[[(0, 1), (1, 0)]], options=OPTIONS)
        f.start()
        self.all_train(f, range(2))
        f.nodes[1].end(signal.SIGKILL)
        answer = self.order(f.nodes[0])
        waiting = f.wait("an heir to be missed", lambda: (
            lambda s: s if s and s["state"] == "draining" and s["waiting"] else None)(
                f.nodes[0].status()))["waiting"]
        self.assertEqual(waiting["peer"], "n1")
        self.assertIn(waiting["for"], ("heir", "acknowledgement"))
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
        [(code, _)] = f.wait("the answer", lambda: answer)
        self.assertEqual(code, 503)
        self.assertIn("ledger", os.listdir(f.nodes[0].directory))

    def test_a_dead_neighbour_does_not_hold_it(self):
        """n3 is owed something or not; either way its heir settles that when n3 is back."""
        f = self.fleet(4, phases=RING, options=OPTIONS)
        f.start()
        self.all_train(f, range(4))
        f.nodes[3].end(signal.SIGKILL)
        body = self.leave(f, 2)
        self.assertEqual(body["heir"], "n1")
        self.assertGreaterEqual(body["owed"], 0)
        f.nodes[3].start()
        self.all_train(f, [0, 1, 3])
        self.assertLessEqual(abs(self.weight_when_quiet(f, [0, 1, 3]) - 3), 1e-9)

    def test_a_source_that_was_away_counts_nothing_twice(self):
        """n3 is killed with a share for n2 on its way; n2 leaves, and comes back as a new member."""
        f = self.fleet(4, phases=RING, options=OPTIONS)
        f.start()
        self.all_train(f, range(4))
        f.nodes[3].end(signal.SIGKILL)
        self.leave(f, 2)
        f.nodes[2].start()
        f.nodes[3].start()
        self.all_train(f, range(4))
        self.assertLessEqual(abs(self.weight_when_quiet(f, range(4)) - 4), 1e-9)

    def test_what_makes_no_sense_is_refused_with_the_reason(self):
        f = self.fleet(2, options=OPTIONS)
        f.start([0])
        f.wait("a status", f.nodes[0].status)
        code, body = f.nodes[0].get("/v1/leave", "POST")
        self.assertEqual(code, 409)
        self.assertIn("it is joining", json.loads(body)["error"]["message"])
        self.assert_alive(f, [0])


for method in ("sgp", "osgp", "agp", "adpsgd"):
    setattr(Leave, "test_with_%s_members_alone_are_counted" % method,
            lambda self, method=method: self.members_alone_are_counted(method))

if __name__ == "__main__":
    fleet.main()
