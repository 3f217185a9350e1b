# SPDX-License-Identifier: Apache-2.0
"""Exact cycles with real daemons: all-reduce as a file. What a death does to it, and what a reload."""
import os
import signal
import subprocess
import sys

import fleet
from fleet import Fleet, FleetTest
from raw_program import Program
from test_program import ATTACHED

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 and os.path.exists(sys.argv[2]) else "sgpctl"


class Scheduled(Fleet):
    """A fleet whose file is generated; those that are not `present` are struck from it."""

    def __init__(self, n, family, **options):
        self.family = family
        self.names = {}
        super().__init__(n, phases=[[]], **options)

    def write_topology(self, index):
        family, *more = self.family.split()
        more += ["--group", "3"] if family.endswith("groups") else []
        text = subprocess.run([SGPCTL, "topology", "generate", family, str(len(self.present)), *more],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        for i in range(len(self.present)):  # from the last, so that no name is taken for another
            place = len(self.present) - 1 - i
            name = "n%d" % self.present[place]
            address = 'address="%s:%d"' % (self.host(place), self.ports[self.present[place]])
            text = text.replace("  n%d;\n" % place, "  n%d [%s];\n" % (place, address), 1)
            text = text.replace("  n%d [train" % place, "  n%d [%s, train" % (place, address), 1)
            text = text.replace("n%d " % place, name + " ").replace("n%d;" % place, name + ";")
        path = os.path.join(self.directory, "n%d.dot" % index)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def switch(self, family, present=None):
        self.family = family
        self.present = self.present if present is None else present
        for i in range(self.n):
            self.write_topology(i)


class Cycle(FleetTest):
    def scheduled(self, n, family, own=None, **options):
        f = Scheduled(n, family, rows=options.pop("rows", 1000), own=own or {}, options=options)
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def expect_one_model(self, f, indices=None):
        nodes = [f.nodes[i] for i in (range(f.n) if indices is None else indices)]
        statuses = f.quiet(nodes)
        self.assertEqual([s["weight"] for s in statuses], [1.0] * len(nodes))
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in nodes]
        for values in zip(*models):
            self.assertLessEqual(max(values) - min(values), 1e-6 * max(1, max(map(abs, values))))
        return statuses

    def test_every_schedule_ends_with_one_model(self):
        for family, n in (("ring", 3), ("direct", 4), ("doubling", 3), ("halving", 4), ("blocks", 5), ("tree", 5),
                          ("groups", 5), ("hubs --hubs 2", 4), ("ring --pieces 2", 4), ("direct --pieces 3", 3)):
            with self.subTest(family=family):
                f = self.scheduled(n, "all-reduce-" + family)
                f.start()
                f.wait_state("finished")
                for status in self.expect_one_model(f):
                    self.assertEqual(status["cycles_renewed"], 0)
                    self.assertGreater(status["test_accuracy"], 0.9)
                f.close()

    def test_coded_cycles_send_fewer_bytes_and_end_with_one_model(self):
        sizes = []
        for compression in ("none", "int8"):
            f = self.scheduled(4, "all-reduce-direct", **{"model.layers": "dense 1400 relu, dense 2", "train.epochs": "12",
                                                          "network.compression": compression})
            f.start()
            f.wait_state("finished")
            for status in self.expect_one_model(f):
                self.assertGreater(status["test_accuracy"], 0.9)
                self.assertEqual(status["cycles_renewed"], 0)
            sizes.append(sum(peer["bytes_sent"] for node in f.nodes for peer in node.json("/v1/peers")))
            f.close()
        self.assertLess(sizes[1], 0.45 * sizes[0])

    def test_a_program_s_model_that_is_too_small_to_code_is_told(self):
        own = {i: {"control.attach": "n%d.attach" % i} for i in range(2)}
        f = self.scheduled(2, "all-reduce-direct", own=own, **{**ATTACHED, "network.compression": "int8"})
        f.start()
        for i in range(2):
            program = Program(os.path.join(f.directory, "n%d.attach" % i), [1.0, 2.0])
            self.addCleanup(program.close)
            f.wait_log(i, "[network] compression has no effect: a part of 2 parameters in 2 has fewer than 2048 values")

    def model_after_200_steps(self, n, family, rule):
        """Each step takes all rows of a node, so that all nodes together take those of one node alone."""
        f = self.scheduled(n, family, **{
            "train.rounds": "200", "train.epochs": None, "train.batch": str(400 // n), "data.holdout": None,
            "optimizer.kind": rule, "optimizer.weight_decay": "1e-3"}, rows=400)
        f.start()
        f.wait_state("finished")
        model = fleet.read_model(f.nodes[n - 1].get("/v1/model")[1])
        f.close()
        return model

    def test_every_schedule_is_one_node_with_all_rows_after_200_steps(self):
        files = (("ring", 4), ("direct", 5), ("doubling", 5), ("halving", 4), ("blocks", 5), ("tree", 5), ("groups", 5),
                 ("hubs --hubs 2", 4), ("ring --pieces 2", 4))
        for k, rule in enumerate(("momentum", "nesterov")):
            pooled = self.model_after_200_steps(1, "ring", rule)
            longest = max(map(abs, pooled))
            for family, n in files if fleet.LONG else files[k::2]:  # briefly: each family, with one rule
                with self.subTest(family=family, rule=rule):
                    model = self.model_after_200_steps(n, "all-reduce-" + family, rule)
                    self.assertLessEqual(max(abs(a - b) for a, b in zip(model, pooled)), 1e-5 * longest)

    def test_outer_steps_come_back_with_the_node_that_takes_them(self):
        outer = {"outer.kind": "nesterov", "outer.learning_rate": "0.7", "outer.momentum": "0.6"}
        f = self.scheduled(4, "all-reduce-ring --outer", **{"train.epochs": "60", "train.local_steps": "4", **outer})
        f.start()
        f.wait_round(0, 30)
        self.assertEqual(f.nodes[1].end(), 0)
        f.nodes[1].start()
        f.wait_log(1, "event=restored")
        f.wait_state("finished")
        for status in self.expect_one_model(f):
            self.assertGreater(status["test_accuracy"], 0.9)
        self.assertIn("outer step", f.check()[1])

    def test_a_file_with_outer_steps_needs_to_be_told_which(self):
        f = self.scheduled(2, "all-reduce-direct", **{"train.epochs": "100000"})
        f.start()
        f.wait_round(0, 10)
        f.switch("all-reduce-direct --outer")
        status, answer = f.nodes[0].get("/v1/reload", "POST")
        self.assertEqual(status, 422, answer)
        self.assertIn(b"says outer=true, and this node takes no outer step; set [outer] kind", answer)
        self.assert_alive(f, [0, 1])
        status, said = f.check()
        self.assertEqual(status, 6, said)
        self.assertIn("says outer=true", said)

    def stands_for(self, f, indices, name):
        """Each of them waits, and some of them for that one."""
        def all_wait():
            waits = [(f.nodes[i].status() or {}).get("waiting") for i in indices]
            return all(waits) and name in [w["peer"] for w in waits] and all(w["seconds"] > 1 for w in waits)
        f.wait("everybody to stand", all_wait)

    def test_a_kill_is_stood_for_and_renewed(self):
        # Six rounds a cycle, both. Eight daemons take most of the time, and test_one_that_stays_away_is_struck has them, too.
        for n, family in ((4, "all-reduce-ring"), (8, "all-reduce-halving"))[:2 if fleet.LONG else 1]:
            with self.subTest(n=n):
                f = self.scheduled(n, family, **{"train.epochs": "3000"})
                self.kill_and_renew(f, [i for i in range(n) if i != 2])
                f.close()

    def kill_and_renew(self, f, others):
        f.start()
        f.wait_round(0, 60)
        f.nodes[2].end(signal.SIGKILL)
        self.stands_for(f, others, "n2")
        f.wait_log(3, "event=waiting peer=n2")
        self.assert_alive(f, others)
        rounds = [f.nodes[i].status()["round"] for i in others]
        self.assertLessEqual(max(rounds) - min(rounds), 6)
        # Whoever asks amid a cycle is told the estimate with which the node entered it.
        for i in others:
            self.assertEqual(f.nodes[i].get("/v1/model")[0], 200)
            self.assertGreater(f.nodes[i].json("/v1/evaluate", "POST")["accuracy"], 0.5)
        f.nodes[2].start()
        for i in range(f.n):
            f.wait("a renewal of n%d" % i, lambda: (f.nodes[i].status() or {"cycles_renewed": 0})["cycles_renewed"] > 0)
            f.wait_round(i, max(rounds) + 60)
            f.wait_log(i, "event=renewed")
        for node in f.nodes:
            self.assertEqual(node.end(), 0)

    def test_one_that_stays_away_is_struck(self):
        for n in (4, 8):
            with self.subTest(n=n):
                f = self.scheduled(n, "all-reduce-direct", **{"train.epochs": "3000"})
                others = [i for i in range(n) if i != 1]
                f.start()
                f.wait_round(0, 60)
                f.nodes[1].end(signal.SIGKILL)
                self.stands_for(f, others, "n1")
                rounds = [f.nodes[i].status()["round"] for i in others]
                f.switch("all-reduce-direct", others)
                for i in reversed(others):
                    self.assertEqual(f.nodes[i].get("/v1/reload", "POST")[0], 200)
                for i in others:
                    f.wait_round(i, max(rounds) + 60)
                self.assert_alive(f, others)
                f.close()

    def test_schedules_change_while_a_fleet_trains(self):
        f = self.scheduled(4, "all-reduce-ring", **{"train.epochs": "300" if fleet.LONG else "150"})
        f.start()
        for i in range(4):  # n0 may be far before another serves its control socket
            f.wait_round(i, 0)
        for family, order in (("all-reduce-direct", (2, 0, 3, 1)), ("one-peer-exponential", (1, 3, 0, 2)),
                              ("all-reduce-tree", (0, 1, 2, 3))):
            f.wait_round(0, f.nodes[0].status()["round"] + 20)
            f.switch(family)
            for i in order:
                self.assertEqual(f.nodes[i].get("/v1/reload", "POST")[0], 200)
        f.wait_state("finished")
        self.expect_one_model(f)

    def test_a_fleet_of_gossip_is_begun_again_with_all_reduce(self):
        f = self.scheduled(4, "one-peer-exponential", **{"train.epochs": "300" if fleet.LONG else "150"})
        f.start()
        f.wait_round(0, 40)
        self.assertEqual([node.end() for node in f.nodes], [0] * 4)
        f.switch("all-reduce-ring")
        f.start()
        for i in range(4):  # n0 may be that far before another serves its control socket
            f.wait_round(i, 80)
        f.switch("all-reduce-direct")  # and stopped before anybody may have renewed
        for node in f.nodes:
            self.assertEqual(node.get("/v1/reload", "POST")[0], 200)
        self.assertEqual([node.end() for node in f.nodes], [0] * 4)
        f.start()
        f.wait_state("finished")
        for status in self.expect_one_model(f):
            self.assertGreater(status["test_accuracy"], 0.9)

    def test_a_hundred_parts_end_with_weights_of_their_own(self):
        # n1 sums up part by part, and gives a quarter or three quarters back: each part ends with another weight.
        f = self.fleet(2, phases=[[]], rows=400, features=60, options={"train.epochs": "40" if fleet.LONG else "10"})
        parts = range(100)
        rounds = ["digraph up%d { %s slices=100; NODES n0 -> n1 [slice=%d, fraction=1]; }" % (
            q, "" if q == 0 else "train=false;", q) for q in parts]
        rounds += ["digraph down%d { train=false; slices=100; n1 -> n0 [slice=%d, fraction=%g]; }" % (
            q, q, (0.25, 0.75)[q % 2]) for q in parts]
        for i in range(2):
            addresses = "".join('n%d [address="127.0.0.1:%d"]; ' % (j, f.ports[j]) for j in range(2))
            with open(os.path.join(f.directory, "n%d.dot" % i), "w") as file:
                file.write("\n".join(rounds).replace("NODES", addresses))
        self.assertEqual(f.check()[0], 0, f.check()[1])
        f.start()
        f.wait_state("finished")
        self.expect_one_model(f)

    def test_a_schedule_by_hand_is_checked_and_runs(self):
        # Three levels, and each of two parts goes its own way: part 0 up to n0 by n1 and n2, part 1 up to n3 by n1 and n4.
        text = """
            digraph up { slices=2; NODES
              n3 -> n1 [slice=0, fraction=1]; n4 -> n2 [slice=0, fraction=1];
              n0 -> n1 [slice=1, fraction=1]; n2 -> n4 [slice=1, fraction=1]; }
            digraph top { slices=2; train=false;
              n1 -> n0 [slice=0, fraction=1]; n2 -> n0 [slice=0, fraction=1];
              n1 -> n3 [slice=1, fraction=1]; n4 -> n3 [slice=1, fraction=1]; }
            digraph back { slices=2; train=false;
              n0 -> n1 [slice=0, fraction="2/5"]; n0 -> n2 [slice=0, fraction="2/5"];
              n3 -> n1 [slice=1, fraction="2/5"]; n3 -> n4 [slice=1, fraction="2/5"]; }
            digraph down { slices=2; train=false;
              n1 -> n3 [slice=0, fraction="1/2"]; n2 -> n4 [slice=0, fraction="1/2"];
              n1 -> n0 [slice=1, fraction="1/2"]; n4 -> n2 [slice=1, fraction="1/2"]; }"""
        f = self.fleet(5, phases=[[]], rows=1000, options={"train.epochs": "40"})
        addresses = "".join('n%d [address="127.0.0.1:%d"]; ' % (i, f.ports[i]) for i in range(5))

        def write(schedule):
            for i in range(5):
                with open(os.path.join(f.directory, "n%d.dot" % i), "w") as file:
                    file.write(schedule.replace("NODES", addresses))

        write(text.replace("n2 -> n0 [slice=0, fraction=1];", ""))
        code, told = f.check()
        self.assertNotEqual(code, 0)
        self.assertIn("part 0", told)
        write(text)
        self.assertEqual(f.check()[0], 0, f.check()[1])
        f.start()
        f.wait_state("finished")
        for status in self.expect_one_model(f):
            self.assertGreater(status["test_accuracy"], 0.9)

    def test_orders_wait_for_the_end_of_the_cycle(self):
        f = self.scheduled(3, "all-reduce-ring", **{"train.epochs": "3000"})
        f.start()
        f.wait_round(0, 30)
        f.nodes[1].get("/v1/pause", "POST")
        f.wait_state("paused", [1])
        self.assertEqual(f.nodes[1].status()["round"] % 4, 0)
        self.stands_for(f, [0, 2], "n1")
        f.nodes[1].get("/v1/resume", "POST")
        f.wait_round(0, f.nodes[0].status()["round"] + 30)
        self.assertEqual(f.nodes[1].end(), 0)  # a stop: what it leaves is exact, or renewed
        f.nodes[1].start()
        f.wait_round(1, f.nodes[0].status()["round"] + 30)
        self.assertEqual([node.end() for node in f.nodes], [0, 0, 0])

    def hub(self, text, algorithm="sgp", **options):
        """Three nodes that train, and n0, a relay without data, by a file of one's own."""
        f = self.fleet(4, phases=[[]], rows=1000,
                       options={"train.algorithm": algorithm, "train.final_cycles": "30", **options},
                       own={0: {"data.train": None, "data.label": None, "data.classes": None, "data.holdout": None,
                                "model.inputs": "6"}})
        for i in range(4):
            name = "n%d" % i
            addresses = "".join('  %s [address="127.0.0.1:%d"%s];\n' % (
                "n%d" % j, f.ports[j], ", train=false" + (", starts=1" if "starts" in text else "") if j == 0 else "")
                for j in range(4))
            with open(os.path.join(f.directory, name + ".dot"), "w") as file:
                file.write(text.replace("// starts\n", "").replace("NODES", addresses))
        return f

    UP_AND_DOWN = """digraph up { NODES {n1 n2 n3} -> n0 [fraction=1]; }
        digraph down { train=false; n0 -> {n1 n2 n3} [fraction="1/3"]; }"""
    ELASTIC = """// starts
        digraph elastic { NODES n0 -> {n1 n2 n3} [fraction=0.2]; {n1 n2 n3} -> n0 [fraction=0.2]; }"""

    def test_a_relay_without_data_serves_those_who_reach_only_it(self):
        f = self.hub(self.UP_AND_DOWN)
        self.assertIn("none: a relay", f.check()[1])
        f.start()
        f.wait_state("finished")
        statuses = f.quiet()
        self.assertEqual([s["weight"] for s in statuses], [0.0, 1.0, 1.0, 1.0])
        self.assertGreater(min(s["test_accuracy"] for s in statuses[1:]), 0.9)
        self.assertNotIn("error", f.nodes[0].log())
        self.assertEqual([node.end() for node in f.nodes], [0] * 4)

    def test_one_that_reaches_relays_alone_comes_back_from_its_death(self):
        """They have nothing to hand out: it goes on with what it has, and all begin the cycle again."""
        relay = {"data.train": None, "data.label": None, "data.classes": None, "data.holdout": None, "model.inputs": "6"}
        f = self.scheduled(5, "all-reduce-hubs --hubs 2 --relays", own={0: relay, 1: relay},
                           **{"train.epochs": "300" if fleet.LONG else "150"})
        f.start()
        f.wait_round(2, 30)
        for i in (3, 1):  # one that trains, and a hub
            before = f.nodes[4].status()["cycles_renewed"]
            f.nodes[i].end(signal.SIGKILL)
            f.nodes[i].start()
            f.wait("a renewal", lambda: (f.nodes[4].status() or {"cycles_renewed": 0})["cycles_renewed"] > before)
            f.wait_round(4, f.nodes[4].status()["round"] + 30)
        f.wait_state("finished")
        statuses = f.quiet()
        self.assertEqual([s["weight"] for s in statuses], [0.0, 0.0, 1.0, 1.0, 1.0])
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes[2:]]
        for values in zip(*models):
            self.assertLessEqual(max(values) - min(values), 1e-6 * max(1, max(map(abs, values))))
        self.assertGreater(min(s["test_accuracy"] for s in statuses[2:]), 0.9)

    def test_elastic_averaging_ends_with_one_model_synchronous_or_not(self):
        for algorithm in ("sgp", "agp"):
            with self.subTest(algorithm=algorithm):
                f = self.hub(self.ELASTIC, algorithm)
                f.start()
                f.wait_state("finished")
                statuses = f.quiet()
                self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - 4), 1e-9)
                models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
                for values in zip(*models):
                    self.assertLessEqual(max(values) - min(values), 1e-2 * max(1, max(map(abs, values))))
                f.close()

    def test_a_relay_is_told_what_it_lacks_and_what_it_has_too_much(self):
        f = self.hub(self.UP_AND_DOWN, **{"model.inputs": "6"})
        f.write_configuration(0, {"train.final_cycles": "30"}, {})
        code, text = f.check()
        self.assertEqual(code, 6)
        self.assertIn("this node is a relay (train=false) and has no data; remove the line", text)
        f.write_configuration(0, {}, {"data.train": None, "data.label": None, "data.classes": None,
                                      "data.holdout": None})
        self.assertIn("a relay has no rows to count the inputs of the model; add a line `inputs = N`", f.check()[1])
        f.write_configuration(1, {}, {"data.train": None})
        self.assertIn("[data] train is missing; add a line `train = ...` to section [data]", f.check(1)[1])

    def test_what_cannot_be_is_refused_with_file_and_line(self):
        f = self.scheduled(3, "all-reduce-ring", **{"train.algorithm": "osgp"})
        code, text = f.check()
        self.assertNotEqual(code, 0)
        self.assertIn("n0.dot:7: digraph reduce0: with algorithm osgp nobody could tell when a cycle that averages exactly "
                      "is complete", text)


if __name__ == "__main__":
    fleet.main()
