# SPDX-License-Identifier: Apache-2.0
"""Owners of parts as real daemons: one model in the end, and what the death, the stop and the loss of one of them does."""
import os
import signal
import sys

import fleet
from fleet import FleetTest
from owned import MANY, Owned

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 and os.path.exists(sys.argv[2]) else "sgpctl"
BOTH = {"owners": (0, 1)}


class Parts(FleetTest):
    def owned(self, n, **options):
        f = Owned(n, **{**BOTH, **options})
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def status(self, f, index):
        return f.wait("a status", f.nodes[index].status)

    def label(self, f, index):
        return f.wait("a copy", lambda: self.status(f, index)["copy"])["label"]  # while it joins it has none

    def model(self, f, index):
        return fleet.read_model(f.nodes[index].get("/v1/model")[1])

    def goes_on(self, f, index=0, rounds=20):
        f.wait_round(index, self.status(f, index)["round"] + rounds)

    def test_a_fleet_ends_on_one_model(self):
        for algorithm, says in (("backup", ()), ("backup", ("backup=1",)), ("downpour", ()),
                                ("downpour", ("staleness=compensate", 'compensation="0.5"', "staleness_max=2"))):
            with self.subTest(algorithm=algorithm, says=says):
                f = self.owned(5, algorithm=algorithm, says=says, **{"optimizer.learning_rate": "0.02"})
                f.start()
                f.wait_state("finished")
                models = [self.model(f, i) for i in (2, 3, 4)]
                self.assertEqual(models[0], models[1])
                self.assertEqual(models[0], models[2])
                ends = {self.status(f, i)["round"] for i in (0, 1)}
                for i in (2, 3, 4):
                    self.assertGreater(self.status(f, i)["test_accuracy"], 0.9)
                    self.assertIn(self.label(f, i), ends)
                self.assertEqual([self.status(f, i)["weight"] for i in range(5)], [1.0, 1.0, 0.0, 0.0, 0.0])
                f.close()

    def test_two_owners_are_as_one(self):
        options = {"train.rounds": "200", "train.epochs": None, "data.holdout": None, "optimizer.kind": "nesterov",
                   "train.batch": "200"}
        one = self.owned(3, owners=(0,), rows=400, **options)
        one.start()
        one.wait_state("finished")
        two = self.owned(4, rows=400, **options)
        two.start()
        two.wait_state("finished")
        of_one, of_two = self.model(one, 1), self.model(two, 2)
        self.assertLessEqual(max(abs(a - b) for a, b in zip(of_one, of_two)), 1e-6 * max(map(abs, of_one)))

    def test_an_owner_of_a_part_has_no_model(self):
        f = self.owned(4, **MANY)
        f.start()
        f.wait_round(0, 5)
        for method, path in (("GET", "/v1/model"), ("POST", "/v1/evaluate")):
            code, body = f.nodes[1].get(path, method)
            self.assertEqual(code, 409, body)
            self.assertIn(b"n1 owns a part of the vector, and has no model; ask a node that trains", body)
        self.assertEqual(f.nodes[2].get("/v1/model")[0], 200)
        self.assertEqual([self.status(f, i)["owns"] for i in range(4)], [[0, 0], [1, 1], None, None])
        nodes = {n["name"]: n for n in f.nodes[2].json("/v1/topology")["nodes"]}
        self.assertEqual([nodes["n%d" % i]["parts"] for i in range(4)], [[0, 0], [1, 1], None, None])

    def test_each_owner_that_is_killed_takes_the_newest_copy_of_its_part(self):
        for algorithm in ("backup", "downpour"):
            with self.subTest(algorithm=algorithm):
                f = self.owned(5, algorithm=algorithm, **MANY)
                f.start()
                f.wait_round(0, 50)
                for owner in (1, 0, 1):
                    f.nodes[owner].kill(signal.SIGKILL)
                    f.nodes[owner].process.wait()
                    labels = [self.label(f, i) for i in (2, 3, 4)]
                    before = f.nodes[owner].log().count("event=adopted")
                    f.nodes[owner].start()
                    f.wait("it to adopt", lambda: f.nodes[owner].log().count("event=adopted") > before)
                    for i in (0, 1):
                        self.goes_on(f, i)
                    for i in (2, 3, 4):
                        f.wait("a later copy", lambda: self.label(f, i) > max(labels) + 5)
                self.assertEqual([self.status(f, i)["weight"] for i in (0, 1)], [1.0, 1.0])
                f.close()

    def test_an_owner_that_is_stopped_is_waited_for_by_name(self):
        f = self.owned(4, **MANY)
        f.start()
        f.wait_round(0, 20)
        f.nodes[1].kill(signal.SIGSTOP)
        # The other may have its part already, and waits for n0, which waits for the first.
        f.wait("one to wait for n1", lambda: any("event=waiting peer=n1 for=estimate" in f.nodes[i].log() for i in (2, 3)))
        for i in (2, 3):
            f.wait_log(i, "event=waiting peer=n")
        f.nodes[1].kill(signal.SIGCONT)
        self.goes_on(f)

    def test_a_worker_that_is_stopped_killed_or_leaves_makes_nobody_wait(self):
        f = self.owned(6, backup=1, **MANY)
        f.start()
        f.wait_round(0, 20)
        f.nodes[2].kill(signal.SIGSTOP)
        self.goes_on(f, rounds=100)
        f.nodes[2].kill(signal.SIGCONT)
        f.wait("n2 to come on", lambda: self.label(f, 2) >= self.status(f, 0)["round"] - 5)
        f.nodes[3].kill(signal.SIGKILL)
        f.nodes[3].process.wait()
        for owner in (0, 1):
            self.goes_on(f, owner, rounds=100)
        f.nodes[3].start()
        f.wait("n3 to come on", lambda: self.label(f, 3) >= self.status(f, 1)["round"] - 5)
        self.assertEqual(f.nodes[5].get("/v1/leave", "POST")[0], 200)
        self.assertEqual(f.nodes[5].process.wait(fleet.PATIENCE), 0)
        f.switch([0, 1, 2, 3, 4], owners=[0, 1])
        f.reload(range(5))
        self.goes_on(f, rounds=50)

    def test_a_dead_owner_is_replaced_by_another_file(self):
        for algorithm in ("backup", "downpour"):
            with self.subTest(algorithm=algorithm):
                f = self.owned(6, algorithm=algorithm, spare=(5,), **MANY)
                f.switch([0, 1, 2, 3, 4], owners=[0, 1])
                f.start([0, 1, 2, 3, 4])
                f.wait_round(0, 50)
                f.nodes[1].kill(signal.SIGKILL)
                f.nodes[1].process.wait()
                labels = [self.label(f, i) for i in (2, 3, 4)]
                f.switch([0, 5, 2, 3, 4], owners=[0, 5])
                f.nodes[5].start()
                f.reload((0, 2, 3, 4))
                f.wait_log(5, "event=adopted")
                f.wait_round(5, max(labels) + 20)
                for i in (2, 3, 4):
                    f.wait("a later copy", lambda: self.label(f, i) > max(labels) + 10)
                self.assertEqual(self.status(f, 5)["weight"], 1.0)
                f.close()

    def test_owners_that_find_no_training_say_so(self):
        f = self.owned(3, **MANY)
        f.start()
        f.wait_round(2, 50)
        for node in f.nodes:
            node.end(signal.SIGKILL)
            node.lose_checkpoints()
        for i, others in ((0, [0, 2]), (1, [1])):  # n2 has the first parameters of n0 by the time that n1 is back
            f.start(others)
            f.wait_log(i, "event=untrained lost_rounds=")
            self.assertGreaterEqual(f.nodes[i].status()["lost_rounds"], 50)
        f.wait_log(2, "event=untrained lost_rounds=")
        self.assertGreaterEqual(f.nodes[2].status()["lost_rounds"], 50)

    def test_an_owner_takes_other_parts_by_a_restart_alone(self):
        f = self.owned(4, **MANY)
        f.start()
        f.wait_round(0, 50)
        f.switch([0, 1, 2, 3], owners=[1, 0])
        code, body = f.nodes[0].get("/v1/reload", "POST")
        self.assertEqual(code, 409, body)
        self.assertIn(b"by the new file this node owns other values; stop it, and start it again for that", body)
        for i in (0, 1):
            f.nodes[i].end(signal.SIGTERM)
        f.reload((2, 3))
        for i in (0, 1):
            f.nodes[i].start()
        for i in (0, 1):
            f.wait_log(i, "event=adopted")
            self.goes_on(f, i)
        self.assertGreater(self.status(f, 2)["test_accuracy"] or 1, 0.5)

    def test_what_they_did_is_played_again(self):
        f = self.owned(4, algorithm="downpour", journals=(1, 2), **MANY)
        f.start()
        f.wait_round(1, 30)
        for i in (1, 2):
            told, again = f.replay(SGPCTL, i)
            self.assertEqual(told, again)


fleet.main()
