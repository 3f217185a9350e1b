# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost when a process dies: kill -9 and restarts of real daemons.

The weights of a paused fleet are read from the control sockets; with what is in flight they must add up
to the number of nodes, however often and whenever nodes were killed.
"""
import os
import random
import signal
import struct
import subprocess
import time

import fleet
from fleet import FleetTest

OPTIONS = {"train.epochs": "1000000"}
PAIRS = [[(i, i ^ hop) for i in range(4)] for hop in (1, 2)]  # which every algorithm takes


def read_checkpoint(path):
    """The vectors of a checkpoint, as include/sgp/checkpoint.h lays them out: x, and the snapshots."""
    with open(path, "rb") as file:
        data = file.read()
    named, count = struct.unpack_from("<IQ", data, 12)
    counters, = struct.unpack_from("<Q", data, 56)
    snapshots, = struct.unpack_from("<Q", data, 72)
    first = 128 + 32 * (named + counters)
    vectors = [struct.unpack_from("<%df" % count, data, first + 4 * count * i)
               for i in range(1 + named + snapshots)]
    return vectors[0], vectors[1 + named:]


class Restarts(FleetTest):
    def weights(self, f):
        """The sum of the weights of a paused fleet in which nothing is owed any more."""
        return sum(s["weight"] for s in f.quiet())

    def pause(self, f):
        for node in f.nodes:
            self.assertIn(node.get("/v1/pause", "POST")[0], (200, 202))
        f.wait_state("paused")

    def all_train(self, f):
        f.wait_state("training")
        rounds = [node.status()["round"] for node in f.nodes]
        for i, number in enumerate(rounds):
            f.wait_round(i, number + 5)

    def kill(self, f, index):
        node = f.nodes[index]
        node.end(signal.SIGKILL)
        node.start()

    def test_twenty_kills_at_random_moments_keep_all_weight(self):
        seed = int(os.environ.get("SGP_SEED", "1"))
        draw = random.Random(seed)
        f = self.fleet(4, options=OPTIONS)
        f.start()
        self.all_train(f)
        for _ in range(20):
            time.sleep(draw.uniform(0, 0.2))  # the moment is what is tested
            self.kill(f, draw.randrange(4))
        f.wait_state("training")
        self.all_train(f)
        self.pause(f)
        self.assertLessEqual(abs(self.weights(f) - 4), 1e-9, "SGP_SEED=%d" % seed)
        self.assertEqual([n.status()["weight_minted"] for n in f.nodes], [0] * 4)
        for node in f.nodes:
            self.assertEqual(node.json("/v1/evaluate", "POST")["accuracy"] > 0.8, True, node.log())

    def test_a_ledger_from_a_backup_stalls_nobody_and_is_told(self):
        """12 rounds in 28 s, and a total that had changed without a word, before numbers were taken from there."""
        f = self.fleet(4, options=OPTIONS)
        f.start()
        self.all_train(f)
        node = f.nodes[1]
        ledger = os.path.join(node.directory, "ledger")
        node.end(signal.SIGKILL)
        with open(ledger, "rb") as file:
            backup = file.read()
        node.start()
        f.wait_state("training")
        self.all_train(f)
        node.end(signal.SIGKILL)
        with open(ledger, "wb") as file:
            file.write(backup)
        node.start()
        f.wait_log(1, "event=outdated peer=")
        f.wait_state("training")
        for i in range(4):
            f.wait_round(i, f.nodes[i].status()["round"] + 200)
        self.pause(f)
        off = abs(self.weights(f) - 4)
        self.assertLessEqual(off, node.status()["weight_unknown"] + 1e-9)
        self.assertGreater(node.status()["weight_unknown"], 0)
        for other in (f.nodes[0], f.nodes[2], f.nodes[3]):  # which may make good what the backup lacks
            self.assertEqual(other.status()["weight_unknown"] > 0, "event=lack" in other.log(), other.log())
        self.assertNotIn("out of range", "".join(n.log() for n in f.nodes))

    def test_a_killed_node_takes_the_estimate_of_a_neighbour(self):
        f = self.fleet(4, options=OPTIONS)
        f.start()
        f.wait_round(0, 300)
        self.kill(f, 2)
        f.wait_log(2, "event=restored")
        f.wait_log(2, "event=adopted peer=")
        self.all_train(f)
        self.assertGreaterEqual(f.nodes[2].status()["round"], 300)

    def test_a_guess_stays_a_guess_after_a_clean_end(self):
        """n1 is not there to hand n0 an estimate, so its first process after the kill ends with the old one: that of a
        checkpoint, if there was one, or the first parameters, which are not worth one."""
        for kept in ("none", "checkpoint"):
            f = self.fleet(2, options=OPTIONS)
            f.start()
            self.all_train(f)
            if kept == "checkpoint":
                f.nodes[0].get("/v1/checkpoint", "POST")
                f.wait_log(0, "event=checkpoint")
            for node in f.nodes:
                node.end(signal.SIGKILL)
            f.start([0])
            f.wait_state("joining", [0])
            self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
            told = len(f.nodes[0].log())
            f.start()
            self.all_train(f)
            self.assertIn("parameters=" + kept, f.nodes[0].log()[told:])
            self.pause(f)
            self.assertLessEqual(abs(self.weights(f) - 2), 1e-9)
            f.close()

    def test_a_clean_restart_goes_on_from_the_same_round_and_model(self):
        f = self.fleet(4, options=OPTIONS)
        f.start()
        self.all_train(f)
        self.pause(f)
        self.weights(f)
        before = [(node.status(), fleet.read_model(node.get("/v1/model")[1])) for node in f.nodes]
        for node in f.nodes:
            self.assertEqual(node.end(), 0, node.log())
        f.start([0])  # alone it joins and waits for the others, so nothing moves
        f.wait("a status", f.nodes[0].status)
        self.assertIn("parameters=exact", f.nodes[0].log())
        self.assertEqual(f.nodes[0].status()["round"], before[0][0]["round"])
        self.assertEqual(f.nodes[0].status()["weight"], before[0][0]["weight"])
        self.assertEqual(fleet.read_model(f.nodes[0].get("/v1/model")[1]), before[0][1])
        f.start([1, 2, 3])
        self.all_train(f)
        self.pause(f)
        self.assertLessEqual(abs(self.weights(f) - 4), 1e-9)
        for node in f.nodes:
            self.assertIn("parameters=exact", node.log())

    def test_what_was_owed_at_a_clean_stop_comes_home_exactly(self):
        f = self.fleet(2, options=OPTIONS)
        f.start()
        self.all_train(f)
        for attempt in range(1, 21):  # it may stop at a moment when nothing is on its way to it
            f.nodes[1].kill(signal.SIGSTOP)
            f.wait("absence", lambda: f.nodes[0].log().count("event=absent") >= 2 * attempt)
            if f.nodes[0].status()["weight_in_flight"] > 0:
                break
            f.nodes[1].kill(signal.SIGCONT)
            f.wait("return", lambda: all(p["state"] == "up" for p in f.nodes[0].json("/v1/peers")))
            f.wait_round(1, f.nodes[0].status()["round"])
        f.nodes[0].get("/v1/pause", "POST")
        f.wait_state("paused", [0])
        before = f.nodes[0].status()
        f.nodes[1].end(signal.SIGKILL)
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())

        x, snapshots = read_checkpoint(os.path.join(f.nodes[0].directory, "checkpoint"))
        self.assertEqual(len(snapshots), 1)
        total = before["weight"] + before["weight_in_flight"]
        expected = [(a + b / 2) / total for a, b in zip(x, snapshots[0])]

        f.start([0])
        f.wait("a status", f.nodes[0].status)
        f.nodes[0].get("/v1/pause", "POST")  # or it would train on at once
        os.rename(f.nodes[1].directory, f.nodes[1].directory + ".lost")  # and with it the share
        f.start([1])
        f.wait_log(0, "event=settled peer=n1 ")  # the one that n1 was knows nothing of it
        found = fleet.read_model(f.nodes[0].get("/v1/model")[1])
        self.assertEqual(len(found), len(expected))
        for a, b in zip(sorted(found), sorted(expected)):
            self.assertAlmostEqual(a, b, delta=1e-6 * max(1, abs(b)))
        self.assertAlmostEqual(f.nodes[0].status()["weight"], total, delta=1e-12)

    def each_restarted_in_turn(self, algorithm):
        """As `systemctl restart` does it: no weight is lost or made, and no node goes back."""
        f = self.fleet(4, phases=PAIRS, options={**OPTIONS, "train.algorithm": algorithm})
        f.start()
        self.all_train(f)
        for restarted in f.nodes:
            before = [node.status()["round"] for node in f.nodes]
            self.assertEqual(restarted.end(), 0, restarted.log())
            restarted.start()
            f.wait_log(restarted.index, "event=restored")
            self.all_train(f)
            for node, number in zip(f.nodes, before):
                self.assertGreater(node.status()["round"], number)
        self.pause(f)
        self.assertLessEqual(abs(self.weights(f) - 4), 1e-9)
        self.assertEqual([n.status()["weight_minted"] for n in f.nodes], [0] * 4)

    def test_a_fleet_comes_back_with_more_nodes_and_then_with_fewer(self):
        f = self.fleet(6, options=OPTIONS)
        f.rewire(range(4), fleet.exponential(4))
        f.start([0, 1, 2, 3])
        f.wait_round(0, 200)
        for node in f.nodes[:4]:
            self.assertEqual(node.end(), 0, node.log())
        rounds = [int(node.log().split("event=checkpoint round=")[-1].split()[0])
                  for node in f.nodes[:4]]

        f.rewire(range(6), fleet.exponential(6))
        f.start()
        self.all_train(f)
        self.assertGreaterEqual(f.nodes[4].status()["round"], min(rounds))
        for index in (4, 5):  # not with the parameters of a first round
            self.assertIn("event=adopted peer=", f.nodes[index].log())
        self.pause(f)
        self.assertLessEqual(abs(self.weights(f) - 6), 1e-9)
        for node in f.nodes:
            self.assertEqual(node.end(), 0, node.log())

        f.rewire(range(3), fleet.exponential(3))
        f.start([0, 1, 2])
        f.wait_state("training", [0, 1, 2])
        for i in (0, 1, 2):
            f.wait_round(i, f.nodes[i].status()["round"] + 50)
            self.assertIn("parameters=exact", f.nodes[i].log())
            self.assertGreater(f.nodes[i].json("/v1/evaluate", "POST")["accuracy"], 0.8)

    def test_all_killed_at_once_go_on_together(self):
        f = self.fleet(4, options=OPTIONS)
        f.start()
        self.all_train(f)
        for node in f.nodes:
            self.assertIn(node.get("/v1/checkpoint", "POST")[0], (200, 202))
            f.wait_log(node.index, "event=checkpoint")
        least = min(node.status()["round"] for node in f.nodes)
        for node in f.nodes:
            node.kill(signal.SIGKILL)
        for node in f.nodes:
            node.process.wait()
        f.start()
        self.all_train(f)
        self.assertGreaterEqual(min(node.status()["round"] for node in f.nodes), least)
        self.pause(f)
        self.assertLessEqual(abs(self.weights(f) - 4), 1e-9)
        self.assertIn("parameters=checkpoint", f.nodes[0].log())

    def test_a_lost_ledger_is_said_and_counted(self):
        f = self.fleet(4, options=OPTIONS)
        f.start()
        self.all_train(f)
        node = f.nodes[1]
        node.end(signal.SIGKILL)
        with open(os.path.join(node.directory, "ledger"), "r+b") as file:
            file.seek(80)
            file.write(b"\xff" * (os.path.getsize(file.name) - 80))
        node.start()
        f.wait_log(1, "event=minted weight=1")
        self.assertIn("its weight is lost", node.log())
        self.all_train(f)
        self.assertEqual(node.status()["weight_minted"], 1)

    def test_a_damaged_checkpoint_is_refused_and_the_one_before_used(self):
        f = self.fleet(2, options=OPTIONS)
        f.start()
        self.all_train(f)
        node = f.nodes[0]
        node.get("/v1/checkpoint", "POST")
        f.wait_log(0, "event=checkpoint")
        self.assertEqual(node.end(), 0)
        path = os.path.join(node.directory, "checkpoint")
        with open(path, "r+b") as file:
            file.seek(130)
            file.write(b"\x5a\x5a")
        node.start()
        f.wait_log(0, "event=restored")
        self.assertIn(path + ": the checkpoint is damaged", node.log())
        self.assertIn("parameters=checkpoint", node.log())
        self.all_train(f)
        self.pause(f)
        self.assertLessEqual(abs(self.weights(f) - 2), 1e-9)

    def test_the_ledger_of_another_node_is_refused(self):
        f = self.fleet(2, options=OPTIONS, own={1: {"node.state_directory": "n0"}})
        f.start([0])
        f.wait("a status", f.nodes[0].status)
        f.nodes[0].end()
        f.start([1])
        self.assertEqual(f.nodes[1].process.wait(fleet.PATIENCE), 1)
        self.assertIn("it is the ledger of node n0, and this is n1", f.nodes[1].log())

    def test_a_second_process_does_not_touch_the_state_of_the_first(self):
        f = self.fleet(2, options=OPTIONS)
        f.start()
        self.all_train(f)
        node = f.nodes[0]
        second = subprocess.run(f.command(node), capture_output=True, text=True, timeout=fleet.PATIENCE)
        self.assertEqual(second.returncode, 1)
        self.assertIn(node.directory + ": another sgpd uses this state directory; stop it", second.stderr)
        self.all_train(f)
        self.assertEqual(node.end(), 0)
        node.start()
        f.wait_log(0, "event=restored")
        self.assertIn("parameters=exact", node.log())
        self.assertNotIn("event=restored round=0 ", node.log())

    def test_a_finished_fleet_stays_finished(self):
        f = self.fleet(3, phases=fleet.exponential(3))
        f.start()
        before = f.wait_state("finished")
        for node in f.nodes:
            f.wait_log(node.index, "event=saved")
            self.assertEqual(node.end(), 0)
        f.start()
        after = f.wait_state("finished")
        self.assertEqual([s["round"] for s in after], [s["round"] for s in before])
        self.assertEqual([s["weight"] for s in after], [s["weight"] for s in before])


def add_case(algorithm):
    setattr(Restarts, f"test_{algorithm}_each_restarted_in_turn",
            lambda self: self.each_restarted_in_turn(algorithm))


if __name__ == "__main__":
    fleet.take_sgpd()
    for name in fleet.algorithms():
        add_case(name)
    fleet.main()
