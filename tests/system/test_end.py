# SPDX-License-Identifier: Apache-2.0
"""Finished means agreed: what the ends of a fleet hold in common, whatever happened before, and how a
node that has finished begins again."""
import signal

import fleet
from fleet import FleetTest

HALVES = [[(0, 1), (1, 0), (2, 3), (3, 2)]]
RING = [[(i, (i + 1) % 5) for i in range(5)]]
BOTH_WAYS = [[(i, (i + step) % 4) for i in range(4) for step in (1, 3)]]
IN_TURN = [[(0, 1), (1, 0), (2, 3), (3, 2)], [(1, 2), (2, 1), (3, 0), (0, 3)], [(0, 2), (2, 0), (1, 3), (3, 1)]]


class Ends(FleetTest):
    def models(self, f):
        return [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]

    def distance(self, f):
        """The largest difference of any parameter between any two nodes."""
        models = self.models(f)
        return max(max(values) - min(values) for values in zip(*models))

    def total(self, f):
        return sum(s["weight"] for s in f.quiet())

    def reload(self, f):
        for node in f.nodes:
            self.assertEqual(node.get("/v1/reload", "POST")[0], 200, node.log())

    def test_halves_that_ended_apart_mix_once_more_when_they_meet(self):
        f = self.fleet(4, phases=HALVES, options={"train.epochs": "10"})
        f.start()
        f.wait_state("finished")
        self.assertGreater(self.distance(f), 1e-3, "else this shows nothing")
        f.rewire(range(4), fleet.exponential(4))
        self.reload(f)
        f.wait("one model", lambda: self.distance(f) < 1e-3)
        f.wait_state("finished")
        self.assertLessEqual(abs(self.total(f) - 4), 1e-9)
        self.assertLess(self.distance(f), 1e-3)
        self.assertEqual([s["disagrees"] for s in f.wait_state("finished")], [[]] * 4)

        def one_end():  # they may have met again in the middle
            return len({s["round"] for s in f.wait_state("finished")}) == 1
        f.wait("one last round for all", one_end)

    def test_a_slow_topology_mixes_until_it_agrees(self):
        f = self.fleet(5, phases=RING, options={"train.epochs": "10"})
        f.start()
        f.wait_state("finished")
        f.wait("one model", lambda: self.distance(f) < 1e-3)
        self.assertLessEqual(abs(self.total(f) - 5), 1e-9)

    def test_one_that_may_not_mix_says_with_whom_it_disagrees(self):
        f = self.fleet(5, phases=RING, options={"train.epochs": "10", "train.final_cycles": "0"})
        f.start()
        statuses = f.wait_state("finished")
        told = f.wait("a disagreement", lambda: next(
            (s for s in statuses + [n.status() for n in f.nodes] if s["disagrees"]), None))
        self.assertEqual(sorted(told["disagrees"][0]), ["distance", "peer", "relative"])
        self.assertGreater(told["disagrees"][0]["distance"], 0)
        self.assertIn("event=disagrees peer=", "".join(node.log() for node in f.nodes))

    def expect_one_end(self, f):
        """A share that a finished node owes to an absent one may begin the mixing anew. So nothing is in flight first."""
        def one_end():
            statuses = f.quiet()
            ended = all(s["state"] == "finished" and s["weight_in_flight"] == 0 for s in statuses)
            return statuses if ended and len({s["round"] for s in statuses}) == 1 else None
        statuses = f.wait("one last round for all", one_end)
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - f.n), 1e-9)
        self.assertLess(self.distance(f), 1e-3)
        self.assertEqual([s["disagrees"] for s in statuses], [[]] * f.n)

    def test_a_fleet_ends_though_one_node_missed_a_reload(self):
        """It was down, and comes back with the former file, whose cycle has one round; those of the others have three."""
        for algorithm in fleet.algorithms():
            with self.subTest(algorithm=algorithm):
                f = self.fleet(4, phases=BOTH_WAYS, options={
                    "train.algorithm": algorithm, "train.epochs": "20", "train.final_cycles": "10"})
                f.start()
                for i in range(f.n):  # asynchronous nodes do not wait for the start of each other
                    f.wait_round(i, 10)
                self.assertEqual(f.nodes[3].end(), 0)
                f.phases = IN_TURN
                for i in range(3):
                    f.write_topology(i)
                    self.assertEqual(f.nodes[i].get("/v1/reload", "POST")[0], 200, f.nodes[i].log())
                f.start([3])
                self.expect_one_end(f)
                f.close()

    def test_a_fleet_ends_though_one_node_is_to_mix_for_longer(self):
        f = self.fleet(4, options={"train.epochs": "5"}, own={3: {"train.final_cycles": "20"}})
        f.start()
        self.expect_one_end(f)

    def test_one_that_had_finished_is_finished_and_serves_while_its_neighbours_are_down(self):
        f = self.fleet(2, options={"train.epochs": "10"})
        f.start()
        f.wait_state("finished")
        for node in f.nodes:
            f.wait_log(node.index, "event=checkpoint")
        accuracy = f.nodes[0].status()["test_accuracy"]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for node in f.nodes:
                if node.process.poll() is None:
                    node.end(number)
            said = len(f.nodes[0].log())
            f.start([0])
            f.wait_state("finished", [0])
            f.wait("its accuracy", lambda: f.nodes[0].status()["test_accuracy"] == accuracy)
            self.assertNotIn("nan", f.nodes[0].log()[said:])
            self.assertLessEqual(abs(f.nodes[0].status()["weight"] - 1), 1e-9)


if __name__ == "__main__":
    fleet.main()
