# SPDX-License-Identifier: Apache-2.0
"""[train] guard in real daemons: how it is refused, what it shows, and a broken node among nodes that have it."""
import os
import re
import signal

import fleet
from fleet import FleetTest

COMPLETE = [[(a, b) for a in range(4) for b in range(4) if a != b]]
SUMMARY = re.compile(r"guard      of 1: with it at every node, this file bears 1 broken or lying member\n"
                        r"           not if the nodes' labels differ much; not against one that keeps what it is given\n")
GUARD = {"train.guard": "1"}


class Refused(FleetTest):
    def assert_refused(self, f, text):
        """By the line of the key in the configuration."""
        with open(f.nodes[0].configuration, encoding="utf-8") as file:
            line = next(i for i, line in enumerate(file, 1) if line.startswith("guard ="))
        code, said = f.check()
        self.assertEqual((code, said.count("\n")), (6, 1), said)
        self.assertIn("%s:%d: [train] guard: " % (f.nodes[0].configuration, line), said)
        self.assertIn("n0.dot: " + text, said)

    def test_where_two_give_to_a_node_or_mixing_is_exact(self):
        self.assert_refused(self.fleet(4, options=GUARD), "a guard needs 3 to 1024 nodes that give to n0 in a cycle, so that "
                            "one that lies is outvoted; the file has 2; add edges, or take guard = off")
        exact = [[(0, 1, 1), (1, 0, 1)], [(0, 1), (1, 0)]]
        self.assertEqual(self.fleet(2, phases=exact, options=GUARD).check()[0], 6)

    def test_a_check_says_what_a_guard_does_not_do(self):
        code, said = self.fleet(4, phases=COMPLETE, options=GUARD).check()
        self.assertEqual(code, 0, said)
        self.assertRegex(said, SUMMARY)
        self.assertNotIn("guard", self.fleet(4, phases=COMPLETE).check()[1])

    def test_a_reload_by_which_it_cannot_be(self):
        f = self.fleet(4, phases=COMPLETE, options={**GUARD, "train.epochs": "100000"})
        f.start()
        f.wait_round(0, 5)
        f.rewire([0, 1, 2, 3], [[(i, (i + 1) % 4) for i in range(4)]])
        code, body = f.nodes[0].get("/v1/reload", "POST")
        self.assertEqual(code, 422, body)
        self.assertIn(b"a guard needs 3 to 1024 nodes that give to n0", body)
        self.assert_alive(f)


class Guarded(FleetTest):
    def test_honest_nodes_end_with_one_model_and_all_weight(self):
        f = self.fleet(4, phases=COMPLETE, options=GUARD)
        f.start()
        f.wait_state("finished")
        statuses = f.quiet()
        self.assertAlmostEqual(sum(status["weight"] for status in statuses), 4, delta=4e-12)
        self.assertEqual([status["guard"] for status in statuses], [1.0] * 4)
        self.assertEqual([status["disagrees"] for status in statuses], [[]] * 4)
        peer = f.nodes[0].peer("n1", "in")
        self.assertTrue(0 <= peer["clipped_share"] <= 1, peer)
        self.assertIsNone(f.nodes[0].peer("n1", "out")["clipped_share"])
        metrics = f.nodes[0].get("/metrics")[1].decode()
        self.assertIn('sgpd_link_shares_clipped_total{peer="n1",direction="in"} %d' % peer["shares_clipped"], metrics)

    def fleet_of_one_that_is_wrong(self, epochs, rounds):
        """n3 learns wrong labels in great steps."""
        f = self.fleet(4, phases=COMPLETE, options={**GUARD, "train.epochs": epochs}, own={
            3: {"data.train": "wrong.csv", "data.shards": "none", "optimizer.learning_rate": "20", "train.rounds": rounds,
                "train.epochs": None}})
        path = os.path.join(f.directory, "wrong.csv")
        fleet.write_rows(path, seed=2)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("pos", "?").replace("neg", "pos").replace("?", "neg"))
        f.start()
        return f

    def test_a_node_that_comes_back_compares_the_models_of_three(self):
        f = self.fleet_of_one_that_is_wrong("100000", "1000000")
        f.wait_log(0, "event=clipped peer=n3 direction=in")
        f.nodes[0].end(signal.SIGKILL)
        f.nodes[0].start()
        f.wait_log(0, "event=compared peer=")
        line = next(line for line in f.nodes[0].log().splitlines() if "event=compared" in line)
        self.assertRegex(line, r"event=compared peer=n[12] other=n3 models=3 apart=\d")
        self.assertIn("it is nearer to the third; n3 may be broken, or lie", line)
        f.wait_state("training", [0])

    def test_a_node_that_learns_wrong_labels_in_great_steps_is_clipped_and_named(self):
        f = self.fleet_of_one_that_is_wrong("60", "400")
        f.wait_log(0, "event=clipped peer=n3 direction=in")
        f.wait_state("finished", [0, 1, 2])
        for i in range(3):
            self.assertGreater(f.nodes[i].peer("n3", "in")["shares_clipped"], 100)
            self.assertGreater(f.nodes[i].status()["test_accuracy"], 0.8)


if __name__ == "__main__":
    fleet.main()
