# SPDX-License-Identifier: Apache-2.0
"""Another topology for a fleet that trains: reloaded node by node, in any order, good files and bad.

Nobody measures time here: a node that was left behind would have jumped, one that was waited for in vain
is told of in the log, and after every reload all nodes must go on.
"""
import os
import random
import shutil
import signal

import fleet
from fleet import FleetTest, exponential

SEED = int(os.environ.get("SGP_SEED", "1"))
OPTIONS = {"train.epochs": "1000000"}


def ring(n):
    return [[(i, (i + 1) % n) for i in range(n)]]


class ReloadTest(FleetTest):
    def write(self, f, index, n, phases, ports=None, version=0):
        """The file of node `index`, naming n nodes."""
        with open(os.path.join(f.directory, "n%d.dot" % index), "w") as file:
            for p, edges in enumerate(phases):
                file.write("digraph phase%d {\n" % p)
                file.write("  version=%d;\n" % version if version else "")
                for i in range(n) if p == 0 else []:
                    file.write('  n%d [address="127.0.0.1:%d"];\n' % (i, (ports or f.ports)[i]))
                for source, target in edges:
                    file.write("  n%d -> n%d;\n" % (source, target))
                file.write("}\n")

    def reload(self, f, index):
        code, body = f.nodes[index].get("/v1/reload", "POST")
        answer = fleet.json.loads(body)
        self.assertEqual(code, 200, answer)
        return answer

    def running(self, f):
        return [node for node in f.nodes if node.process is not None]

    def go_on(self, f, rounds=20):
        """Everybody that runs advances, and none is far from the others."""
        nodes = self.running(f)
        begin = [node.status()["round"] for node in nodes]
        for node, number in zip(nodes, begin):
            f.wait_round(node.index, number + rounds)

    def total(self, f):
        for node in self.running(f):
            self.assertIn(node.get("/v1/pause", "POST")[0], (200, 202))

        f.wait_state("paused", [node.index for node in self.running(f)])
        total = sum(s["weight"] for s in f.quiet(self.running(f)))
        for node in self.running(f):
            node.get("/v1/resume", "POST")
        return total

    def digests(self, f):
        return {node.status()["topology"]["digest"] for node in self.running(f)}


class Rolling(ReloadTest):
    def test_from_a_ring_to_one_peer_exponential_and_from_six_nodes_to_eight(self):
        draw = random.Random(SEED)
        f = self.fleet(8, phases=ring(8), options=OPTIONS)
        for i in range(6):
            self.write(f, i, 6, ring(6))
        f.start(range(6))
        f.wait_state("training", range(6))
        self.go_on(f)
        for i in draw.sample(range(6), 6):
            self.write(f, i, 6, exponential(6))
            answer = self.reload(f, i)
            self.assertEqual((answer["phases"], answer["edges_added"], answer["edges_removed"]), (3, 12, 0))
            self.go_on(f)
        self.assertEqual(len(self.digests(f)), 1)
        self.assertEqual(self.jumps(f), [0] * 6, "SGP_SEED=%d" % SEED)
        self.assertLessEqual(abs(self.total(f) - 6), 1e-9)
        self.go_on(f)
        jumps = self.jumps(f)  # whom the others left behind because it was resumed last
        for i in draw.sample(range(8), 8):
            self.write(f, i, 8, exponential(8))
            if i < 6:
                self.assertEqual(self.reload(f, i)["nodes_added"], 2)
            else:
                f.start([i])
            for node in f.nodes[:6]:
                f.wait_round(node.index, node.status()["round"] + 20)
        f.wait_state("training")
        self.go_on(f)
        self.assertEqual(len(self.digests(f)), 1)
        self.assertEqual(self.jumps(f), jumps, "SGP_SEED=%d" % SEED)
        for node in f.nodes[:6]:
            for word in ("event=waiting", "event=absent"):
                self.assertNotIn(word, node.log(), "SGP_SEED=%d" % SEED)
        for node in f.nodes[6:]:
            self.assertIn("event=adopted", node.log())
        self.assertLessEqual(abs(self.total(f) - 8), 1e-9, "SGP_SEED=%d" % SEED)
        self.restart_and_finish(f)

    def jumps(self, f):
        return [node.status()["jumps"] for node in f.nodes[:6]]

    def restart_and_finish(self, f):
        """With the same files and an end in sight: the ledgers are those of the new topology."""
        last = max(node.status()["round"] for node in f.nodes)
        for node in f.nodes:
            node.kill(signal.SIGTERM)
        for node in f.nodes:
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0, node.log())
        for node in f.nodes:
            f.write_configuration(node.index, {"train.rounds": str(last + 200), "train.epochs": None}, {})
        f.start()
        statuses = f.wait_state("finished")
        self.assertLessEqual(abs(sum(s["weight"] + s["weight_in_flight"] for s in statuses) - 8), 1e-9)
        for node in f.nodes:
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8, node.log())


class Files(ReloadTest):
    def trio(self, **options):
        f = self.fleet(3, phases=ring(3), options={**OPTIONS, **options})
        f.start()
        f.wait_state("training")
        return f

    def refused(self, f, text):
        before, told = self.digests(f), len(f.nodes[0].log())
        code, body = f.nodes[0].get("/v1/reload", "POST")
        error = fleet.json.loads(body)["error"]
        self.assertEqual((code, error["code"]), (422, "invalid_file"), error)
        self.assertIn(text, error["message"])
        self.assertIn("the former topology is kept", f.nodes[0].log()[told:])
        self.assertIn(text, f.nodes[0].status()["last_error"])
        self.assertEqual(self.digests(f), before)
        self.go_on(f)

    def test_a_bad_file_is_refused_with_its_fault_and_the_former_is_kept(self):
        f = self.trio()
        path = os.path.join(f.directory, "n0.dot")
        for content, text in (("digraph { n0 -> n1 ->", "n0.dot:"),
                              ("graph { n0 -- n1 }", "undirected"),
                              ('digraph { a [address="h:1"]; b [address="h:2"]; a -> b; }', "sgpctl leave"),
                              ("", "n0.dot")):
            with open(path, "w") as file:
                file.write(content)
            self.refused(f, text)
        os.unlink(path)
        self.refused(f, "n0.dot")

    def test_a_method_that_wants_a_symmetric_file_refuses_another(self):
        both = [[(0, 1), (1, 0), (1, 2), (2, 1)]]
        f = self.fleet(3, phases=both, options={**OPTIONS, "train.algorithm": "dpsgd"})
        f.start()
        f.wait_state("training")
        self.write(f, 0, 3, ring(3))
        self.refused(f, "n0.dot")

    def test_sighup_reloads_and_what_changed_is_in_the_log(self):
        f = self.trio()
        self.write(f, 0, 3, exponential(3))
        f.nodes[0].kill(signal.SIGHUP)
        f.wait_log(0, "event=reloaded")
        self.assertIn("change=phase_added phase=phase1 rounds=1", f.nodes[0].log())
        self.assertIn("change=edge_added phase=phase1 source=n0 target=n2 fraction=0.5", f.nodes[0].log())
        self.assertEqual(f.nodes[0].json("/v1/topology")["phases"][1]["edge_count"], 3)
        self.assertEqual(f.nodes[0].status()["topology"]["phases"], 2)
        with open(os.path.join(f.directory, "n0.dot"), "w") as file:
            file.write("digraph {")
        f.nodes[0].kill(signal.SIGHUP)
        f.wait_log(0, "the former topology is kept")
        self.go_on(f)
        self.assert_alive(f)

    def test_a_reload_of_one_node_alone_is_a_mismatch_on_both_sides_until_the_other_has_the_file_too(self):
        f = self.fleet(2, phases=ring(2), options=OPTIONS)
        f.start()
        f.wait_state("training")

        def seen():
            return [sorted(node.status()["mismatch"]) for node in f.nodes]

        self.assertEqual(seen(), [[], []])
        other = [[(0, 1), (1, 0)], [(0, 1)]]
        for order in ((0, 1), (1, 0)):
            self.write(f, order[0], 2, other)
            self.reload(f, order[0])
            f.wait("both to see that the files differ", lambda: seen() == [["n1"], ["n0"]])
            f.wait_log(order[1], "event=mismatch peer=n%d" % order[0])
            self.go_on(f)
            self.write(f, order[1], 2, other)
            self.reload(f, order[1])
            f.wait("both to see that they do not", lambda: seen() == [[], []])
            other = ring(2)
        self.go_on(f)

    def test_what_is_mended_is_no_error_any_more_and_what_is_not_has_its_age(self):
        f = self.fleet(2, phases=ring(2), options=OPTIONS)
        f.start()
        f.wait_state("training")
        self.assertEqual([f.nodes[0].status()[key] for key in ("last_error", "last_error_seconds")], [None, None])
        with open(os.path.join(f.directory, "n0.dot"), "w", encoding="ascii") as file:
            file.write("digraph {")
        self.assertEqual(f.nodes[0].get("/v1/reload", "POST")[0], 422)
        status = f.nodes[0].status()
        self.assertIn("reload: ", status["last_error"])
        self.assertTrue(0 <= status["last_error_seconds"] <= status["uptime_seconds"], status)
        self.write(f, 0, 2, ring(2))
        self.reload(f, 0)
        self.assertEqual([f.nodes[0].status()[key] for key in ("last_error", "last_error_seconds")], [None, None])
        for layers, error in (("dense 3 relu, dense 2", "n1: the models have other layers"), ("dense 2", None)):
            f.nodes[1].end()
            shutil.rmtree(f.nodes[1].directory)
            os.mkdir(f.nodes[1].directory)
            f.write_configuration(1, OPTIONS, {"model.layers": layers})
            f.nodes[1].start()
            if error:
                f.wait("n0 to say why", lambda: (f.nodes[0].status()["last_error"] or "").startswith(error))
        f.wait("n0 to have no error", lambda: f.nodes[0].status()["last_error"] is None)

    def test_an_edge_that_the_file_has_dropped_is_retired_and_not_down(self):
        f = self.fleet(3, phases=exponential(3), options=OPTIONS)
        f.start()
        f.wait_state("training")
        for i in range(3):
            self.write(f, i, 3, ring(3))
            self.reload(f, i)
        f.wait("n0's edge to n2 to end",
               lambda: {peer["state"] for peer in f.nodes[0].json("/v1/peers")
                        if (peer["name"], peer["direction"]) in (("n2", "out"), ("n1", "in"))} == {"retired"})
        self.assertEqual({peer["state"] for peer in f.nodes[0].json("/v1/peers") if not peer["retired"]}, {"up"})

    def test_an_unchanged_file_changes_nothing(self):
        f = self.trio()
        answer = self.reload(f, 0)
        self.assertEqual({key: answer[key] for key in answer if key.endswith(("ed", "changed"))},
                         dict.fromkeys(("nodes_added", "nodes_removed", "addresses_changed", "keys_changed", "phases_changed",
                                        "edges_added", "edges_removed", "fractions_changed"), 0))
        self.go_on(f)
        self.assertNotIn("event=link_failed", f.nodes[0].log())

    def test_an_earlier_version_is_read_with_a_warning(self):
        f = self.trio()
        self.write(f, 0, 3, ring(3), version=5)
        self.assertEqual(self.reload(f, 0)["warnings"], [])
        self.assertIn("change=version from=0 to=5", f.nodes[0].log())
        self.write(f, 0, 3, ring(3), version=3)
        said = ("%s: the file has version 3, the former had 5; copy the later file and reload again unless that is meant" %
                f.nodes[0].status()["topology"]["file"])
        self.assertEqual(self.reload(f, 0)["warnings"], [said])
        self.assertEqual(f.nodes[0].log().count('event=warning text="%s"' % said), 1)
        self.assertEqual(f.nodes[0].json("/v1/topology")["version"], 3)
        self.go_on(f)

    def test_an_edge_that_goes_and_comes_back(self):
        f = self.fleet(3, phases=exponential(3), options=OPTIONS)
        f.start()
        f.wait_state("training")
        for phases in (ring(3), exponential(3), [[(0, 2), (2, 1), (1, 0)]], exponential(3)):
            for i in range(3):
                self.write(f, i, 3, phases)
                self.reload(f, i)
                self.go_on(f)
            self.assertLessEqual(abs(self.total(f) - 3), 1e-9)

    def test_a_node_that_moved_is_dialled_where_it_is_now(self):
        f = self.trio()
        self.assertEqual(f.nodes[1].end(), 0)
        ports = f.ports[:1] + fleet.free_ports(1) + f.ports[2:]
        f.write_configuration(1, {**OPTIONS, "network.listen": "127.0.0.1:%d" % ports[1]}, {})
        for i in range(3):
            self.write(f, i, 3, ring(3), ports)
        f.start([1])
        for i in (0, 2):
            self.assertEqual(self.reload(f, i)["addresses_changed"], 1)
        f.wait("a link to where it is", lambda: f.nodes[0].peer("n1", "out")["state"] == "up")
        self.assertEqual(f.nodes[0].peer("n1", "out")["address"], "127.0.0.1:%d" % ports[1])
        f.wait_state("training")
        self.go_on(f)
        self.assertLessEqual(abs(self.total(f) - 3), 1e-9)

    def test_a_node_that_left_is_struck_from_the_file_and_no_weight_with_it(self):
        f = self.fleet(4, phases=exponential(4), options=OPTIONS)
        f.start()
        f.wait_state("training")
        self.go_on(f)
        self.assertEqual(f.nodes[3].get("/v1/leave", "POST")[0], 200)
        self.assertEqual(f.nodes[3].process.wait(fleet.PATIENCE), 0, f.nodes[3].log())
        f.nodes[3].process = None
        for i in random.Random(SEED).sample(range(3), 3):
            self.write(f, i, 3, exponential(3))
            self.reload(f, i)
            self.go_on(f)
        f.wait("the surplus to be dissolved",
               lambda: all(node.status()["surplus"] == 0 for node in self.running(f)))
        self.assertLessEqual(abs(self.total(f) - 3), 1e-9)

    def test_a_dead_node_is_struck_from_the_file(self):
        f = self.fleet(4, phases=exponential(4), options=OPTIONS)
        f.start()
        f.wait_state("training")
        self.go_on(f)
        f.nodes[3].end(signal.SIGKILL)
        f.nodes[3].process = None
        for i in range(3):
            self.write(f, i, 3, exponential(3))
            self.assertEqual(self.reload(f, i)["nodes_removed"], 1)
        self.go_on(f)
        self.assertEqual({p["name"] for p in f.nodes[0].json("/v1/peers")}, {"n1", "n2"})
        self.assertIn("change=node_removed name=n3", f.nodes[0].log())
        self.assert_alive(f, range(3))


if __name__ == "__main__":
    fleet.main()
