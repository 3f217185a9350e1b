# SPDX-License-Identifier: Apache-2.0
"""Every algorithm with real daemons: it finishes, agrees, keeps all mass, and outlives a neighbour."""
import signal
import subprocess

import fleet
from fleet import FleetTest

RING = [[(i, (i + d) % 4) for i in range(4) for d in (1, 3)]]
METHODS = ("sgp", "osgp", "agp", "dpsgd", "adpsgd")


class Methods(FleetTest):
    def ring(self, algorithm, **options):
        return self.fleet(4, phases=RING, rows=2000, options={
            "train.algorithm": algorithm, "train.epochs": "12", "train.overlap": "2", "train.final_cycles": "30", **options})

    def finishes_agrees_and_conserves_mass(self, algorithm):
        f = self.ring(algorithm)
        f.start()
        f.wait_state("finished")
        statuses = f.quiet()
        self.assertEqual({s["algorithm"] for s in statuses}, {algorithm})
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - 4), 1e-9)
        for node in f.nodes:
            f.wait_log(node.index, "event=saved")
        statuses = [node.status() for node in f.nodes]
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
        for values in zip(*models):
            self.assertLessEqual(max(values) - min(values), 1e-3 * max(1, max(map(abs, values))))
        # One model, judged on the held-out rows of all: those of one node are too few to tell.
        self.assertGreater(sum(s["test_accuracy"] for s in statuses) / 4, 0.85)

    def goes_on_without_a_neighbour_killed_for_good(self, algorithm):
        f = self.ring(algorithm, **{"train.epochs": "100"})
        f.start()
        f.wait_round(2, 20)
        f.nodes[2].end(signal.SIGKILL)
        f.wait_state("finished", [0, 1, 3])
        self.assert_alive(f, [0, 1, 3])
        weights = [f.nodes[i].status() for i in (0, 1, 3)]
        self.assertLess(sum(s["weight"] + s["weight_in_flight"] for s in weights), 4)

    def test_another_algorithm_is_refused_by_name(self):
        f = self.fleet(2, own={1: {"train.algorithm": "osgp"}})
        f.start()
        f.wait_log(0, "algorithms differ")
        f.wait_log(1, "algorithms differ")
        self.assert_alive(f)

    def test_both_say_that_their_rounds_differ_too_much(self):
        f = self.fleet(2, options={"train.epochs": None, "train.rounds": "10"}, own={1: {"train.rounds": "1M"}})
        f.start()
        for node, peer in zip(f.nodes, reversed(f.nodes)):
            f.wait("the reason", lambda: "rounds of training differ" in
                   ((node.status() or {}).get("last_error") or ""))
            self.assertTrue(node.status()["last_error"].startswith(peer.name + ": the rounds of training differ"))
            for link in node.json("/v1/peers"):
                f.wait("the reason of the link", lambda: "rounds of training differ" in
                       (node.peer(peer.name, link["direction"])["last_error"] or ""))
            self.assertIn("warning node=" + node.name, node.log())
        self.assert_alive(f)

    def test_dpsgd_refuses_a_directed_topology_beforehand(self):
        f = self.fleet(4, phases=[[(i, (i + 1) % 4) for i in range(4)]],
                       options={"train.algorithm": "dpsgd"})
        result = subprocess.run([fleet.SGPD, "--check", "-c", f.nodes[0].configuration],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 6)
        self.assertIn("n0.dot:6: digraph phase0: edge n0 -> n1 has no reverse of the same fraction", result.stderr)

    def test_adpsgd_refuses_an_edge_without_reverse_beforehand(self):
        f = self.fleet(3, phases=[[(0, 1), (1, 2)], [(1, 0)]], options={"train.algorithm": "adpsgd"})
        result = subprocess.run([fleet.SGPD, "--check", "-c", f.nodes[0].configuration],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 6)
        self.assertIn("n0.dot:6: digraph phase0: edge n1 -> n2 has no reverse in any digraph of the file",
                      result.stderr)


def add_case(algorithm, case):
    setattr(Methods, f"test_{algorithm}_{case}", lambda self: getattr(self, case)(algorithm))


for method in METHODS:
    add_case(method, "finishes_agrees_and_conserves_mass")
    add_case(method, "goes_on_without_a_neighbour_killed_for_good")

if __name__ == "__main__":
    fleet.main()
