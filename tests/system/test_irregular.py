# SPDX-License-Identifier: Apache-2.0
"""Topologies that are not as one would draw them, by every algorithm: each trains to its end and keeps
all mass, or is refused beforehand with the reason. Nothing hangs."""
import fleet
from fleet import FleetTest

# As from a drawing: out-degrees from 1 to 3, in-degrees from 1 to 3, strongly connected.
IRREGULAR = [[(0, 1), (0, 2), (0, 3), (1, 4), (2, 3), (2, 5), (3, 0), (3, 4), (4, 1), (4, 5), (4, 6),
              (5, 6), (6, 0)]]
LINE = [[(0, 1), (1, 2), (2, 3)]]
ODD_RING = [[(i, (i + d) % 7) for i in range(7) for d in (1, 6)]]
SYMMETRIC = ("dpsgd", "adpsgd")  # refuse an edge without its reverse


class Irregular(FleetTest):
    def make(self, algorithm, phases, n):
        return self.fleet(n, phases=phases, rows=1400, options={
            "train.algorithm": algorithm, "train.overlap": "2", "train.epochs": "60",
            "train.final_cycles": "60"})

    def train(self, f):
        """To the end; the statuses there."""
        f.start()
        f.wait_state("finished", timeout=2 * fleet.PATIENCE)
        f.wait("everything to be acknowledged",
               lambda: all(n.status()["weight_in_flight"] == 0 for n in f.nodes))
        for node in f.nodes:
            f.wait_log(node.index, "event=saved")
        statuses = [node.status() for node in f.nodes]
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - f.n), 1e-9)
        self.assert_alive(f)
        return statuses

    def assert_one_good_model(self, statuses):
        self.assertLessEqual(max(s["disagreement"] for s in statuses), 1e-3)
        self.assertGreater(sum(s["test_accuracy"] for s in statuses) / len(statuses), 0.85)

    def assert_refused(self, f, words):
        """By --check, and by the daemon, which a unit does not start again then."""
        code, said = f.check()
        self.assertEqual(code, 6, said)
        self.assertIn(words, said)
        f.start([0])
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 78)
        self.assertIn(words, f.nodes[0].log())

    def seven_nodes_as_drawn(self, algorithm):
        f = self.make(algorithm, IRREGULAR, 7)
        if algorithm in SYMMETRIC:
            self.assert_refused(f, "has no reverse")
            return
        self.assertEqual(f.check()[0], 0)
        self.assert_one_good_model(self.train(f))

    def a_line_that_cannot_mix(self, algorithm):
        """Who gives and hears nobody, and who hears and gives nobody, still come to their end."""
        f = self.make(algorithm, LINE, 4)
        if algorithm in SYMMETRIC:
            self.assert_refused(f, "has no reverse")
            return
        code, said = f.check()
        self.assertEqual(code, 0)
        self.assertIn("cannot converge: n0 cannot be reached from n1, n2, n3", said)
        statuses = self.train(f)
        self.assertTrue(all(s["weight"] > 0 for s in statuses), statuses)
        self.assertIn("cannot converge", f.nodes[0].log())

    def an_odd_ring(self, algorithm):
        f = self.make(algorithm, ODD_RING, 7)
        self.assertEqual(f.check()[0], 0)
        statuses = self.train(f)
        self.assert_one_good_model(statuses)
        if algorithm == "dpsgd":  # the ring is doubly stochastic: no weight ever moves
            self.assertEqual([round(s["weight"], 9) for s in statuses], [1] * 7)


def add_case(algorithm, case):
    setattr(Irregular, f"test_{algorithm}_{case}", lambda self: getattr(self, case)(algorithm))


if __name__ == "__main__":
    fleet.take_sgpd()
    for name in fleet.algorithms():
        for case in ("seven_nodes_as_drawn", "a_line_that_cannot_mix", "an_odd_ring"):
            add_case(name, case)
    fleet.main()
