# SPDX-License-Identifier: Apache-2.0
"""An owner and its workers as real daemons: backup workers, and what a death, a stop, a pause, a leave and a reload do."""
import os
import signal
import subprocess
import sys
import time

import fleet
from fleet import Fleet, FleetTest
from owned import MANY, Owned

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 and os.path.exists(sys.argv[2]) else "sgpctl"


class Owner(FleetTest):
    def owned(self, n, **options):
        f = Owned(n, **options)
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def status(self, f, index):
        return f.wait("a status", f.nodes[index].status)

    def expect_one_model(self, f, indices=None, owner=0):
        indices = range(f.n) if indices is None else indices
        models = [f.nodes[i].get("/v1/model")[1] for i in indices]
        models = [fleet.read_model(model) for model in models]
        for model in models:
            self.assertEqual(model, models[0])
        for i in indices:
            self.assertEqual(self.status(f, i)["weight"], 1.0 if i == owner else 0.0)
        return [self.status(f, i) for i in indices]

    def saved(self, node):
        with open(os.path.join(node.directory, "model.safetensors"), "rb") as file:
            return file.read()

    def goes_on(self, f, index=0, rounds=20, timeout=20):
        f.wait_round(index, self.status(f, index)["round"] + rounds, timeout)


    def test_a_fleet_ends_on_one_model(self):
        for backup in (0, 1):
            with self.subTest(backup=backup):
                f = self.owned(4, backup=backup)
                f.start()
                f.wait_state("finished")
                statuses = self.expect_one_model(f)
                self.assertIsNone(statuses[0]["copy"])
                for status in statuses[1:]:
                    self.assertGreater(status["test_accuracy"], 0.9)
                    self.assertEqual(status["copy"]["label"], statuses[0]["round"])
                f.close()

    def test_without_backup_it_is_one_node_with_all_rows(self):
        options = {"train.rounds": "200", "train.epochs": None, "data.holdout": None, "optimizer.kind": "nesterov",
                   "optimizer.weight_decay": "1e-3"}
        alone = Fleet(1, phases=[[]], rows=400, options={**options, "train.batch": "400"})
        self.addCleanup(alone.close)
        alone.start()
        alone.wait_state("finished")
        pooled = fleet.read_model(alone.nodes[0].get("/v1/model")[1])
        f = self.owned(5, rows=400, **{**options, "train.batch": "100"})
        f.start()
        f.wait_state("finished")
        model = fleet.read_model(f.nodes[3].get("/v1/model")[1])
        self.assertLessEqual(max(abs(a - b) for a, b in zip(model, pooled)), 1e-5 * max(map(abs, pooled)))

    def test_a_worker_that_is_stopped_or_killed_makes_nobody_wait(self):
        f = self.owned(4, backup=1, **MANY)
        f.start()
        f.wait_round(0, 20)
        f.nodes[2].kill(signal.SIGSTOP)
        self.goes_on(f, rounds=100, timeout=2.5)  # less than the least silence that is absence
        f.nodes[2].kill(signal.SIGCONT)
        f.wait("n2 to come on", lambda: self.status(f, 2)["round"] >= self.status(f, 0)["round"] - 5)
        f.nodes[3].kill(signal.SIGKILL)
        f.nodes[3].process.wait()
        self.goes_on(f, rounds=100, timeout=2.5)
        f.nodes[3].start()
        f.wait("n3 to come on", lambda: self.status(f, 3)["round"] >= self.status(f, 0)["round"] - 5)
        self.assertEqual(self.status(f, 0)["weight"], 1.0)

    def test_a_worker_that_is_too_late_ends_its_round(self):
        """A round of n2 is a million steps; it begins one after the other."""
        f = self.owned(3, backup=1, long=(2,), **{"train.epochs": None, "train.rounds": "1G"})
        f.start()
        labels = set()
        f.wait("n2 to begin many rounds", lambda: labels.add(self.status(f, 2)["round"]) or len(labels) > 200)
        self.assertEqual(self.peers(f, 0)["n2"]["shares_received"], 0)

    def kill_the_owner(self, f, times):
        """Each time it comes back with the newest copy, and a label beyond all."""
        for _ in range(times):
            f.nodes[0].kill(signal.SIGKILL)
            f.nodes[0].process.wait()
            labels = [self.status(f, i)["copy"]["label"] for i in (1, 2, 3)]
            f.nodes[0].start()
            f.wait_log(0, "event=adopted")
            self.goes_on(f)
            self.assertGreater(self.status(f, 0)["round"], max(labels))
            for i in (1, 2, 3):
                f.wait_round(i, max(labels) + 5)
        self.assertEqual(f.nodes[0].log().count("event=adopted"), times)
        self.assertEqual(self.status(f, 0)["weight"], 1.0)

    def test_an_owner_that_is_killed_takes_the_newest_copy(self):
        f = self.owned(4, backup=1, **MANY)
        f.start()
        f.wait_round(0, 50)
        self.kill_the_owner(f, 3)

    def test_an_owner_that_is_started_again_knows_that_training_is_not_over(self):
        """Alone, too, and where the end of training is the end of its process."""
        f = self.owned(3, **MANY, **{"train.when_done": "exit"})
        f.start()
        f.wait_round(0, 50)
        f.nodes[0].end(signal.SIGTERM)
        f.nodes[0].start()
        self.goes_on(f)
        self.assertEqual(self.status(f, 0)["state"], "training")
        for node in f.nodes:
            node.end(signal.SIGTERM)
        f.nodes[0].start()
        f.wait("n0 to wait for its workers", lambda: (self.status(f, 0)["waiting"] or {}).get("for") == "hello")
        for i in (1, 2):
            f.nodes[i].start()
        self.goes_on(f)
        self.assertEqual(self.status(f, 0)["state"], "training")
        self.assertNotIn("state=finished", f.nodes[0].log())

    def test_an_owner_that_is_paused_makes_its_workers_wait(self):
        f = self.owned(3, **MANY)
        f.start()
        f.wait_round(0, 20)
        f.nodes[0].get("/v1/pause", "POST")
        f.wait_state("paused", [0])
        f.wait("workers to wait for the copy", lambda: all(
            (s["waiting"] or {}).get("for") == "estimate" and s["waiting"]["peer"] == "n0"
            for s in (self.status(f, i) for i in (1, 2))))
        f.nodes[0].get("/v1/resume", "POST")
        self.goes_on(f)
        f.nodes[1].get("/v1/pause", "POST")
        f.wait_state("paused", [1])
        self.goes_on(f)
        f.nodes[1].get("/v1/resume", "POST")
        f.wait("n1 to come on", lambda: self.status(f, 1)["round"] >= self.status(f, 0)["round"] - 5)

    def test_an_owner_that_is_stopped_makes_its_workers_wait(self):
        f = self.owned(3, **MANY)
        f.start()
        f.wait_round(0, 20)
        f.nodes[0].kill(signal.SIGSTOP)
        for i in (1, 2):  # 5 s; it is absent then, and owed two updates
            f.wait_log(i, "event=waiting peer=n0 for=estimate")
        if fleet.LONG:
            time.sleep(30)
        f.nodes[0].kill(signal.SIGCONT)
        self.goes_on(f)

    def test_an_owner_says_for_whom_it_waits(self):
        f = self.owned(3, **MANY)
        f.start()
        f.wait_round(0, 20)
        f.nodes[2].kill(signal.SIGSTOP)
        f.wait("n0 to wait for n2", lambda: (self.status(f, 0)["waiting"] or {}).get("peer") == "n2", timeout=2)
        self.assertEqual(self.status(f, 0)["waiting"]["for"], "share")
        self.goes_on(f)  # n2 is absent then

    def test_a_worker_leaves_and_an_owner_does_not(self):
        f = self.owned(4, backup=1, **MANY)
        f.start()
        f.wait_round(0, 20)
        code, body = f.nodes[0].get("/v1/leave", "POST")
        self.assertEqual(code, 409, body)
        self.assertIn(b"owns the vector", body)
        self.assertEqual(f.nodes[3].get("/v1/leave", "POST")[0], 200)
        self.assertEqual(f.nodes[3].process.wait(fleet.PATIENCE), 0)
        self.assertIn("event=left", f.nodes[3].log())
        self.goes_on(f)
        f.switch([0, 1, 2])
        f.reload((0, 1, 2))
        self.goes_on(f)
        f.switch([0, 1, 2, 3])  # and comes back as a new worker
        f.nodes[3].start()
        f.reload((0, 1, 2))
        f.wait("n3 to come on", lambda: self.status(f, 3)["round"] >= self.status(f, 0)["round"] - 5)
        self.assertEqual(self.status(f, 0)["weight"], 1.0)

    def test_a_dead_owner_is_replaced_by_another_file(self):
        for algorithm in ("backup", "downpour"):
            with self.subTest(algorithm=algorithm):
                self.replace_owner(algorithm)

    def replace_owner(self, algorithm):
        f = self.owned(5, algorithm=algorithm, spare=(4,), **MANY)
        f.switch([0, 1, 2, 3])
        f.start([0, 1, 2, 3])
        f.wait_round(0, 50)
        f.nodes[0].kill(signal.SIGKILL)
        f.nodes[0].process.wait()
        labels = [self.status(f, i)["copy"]["label"] for i in (1, 2, 3)]
        f.switch([4, 1, 2, 3], owners=[4])
        f.nodes[4].start()
        f.reload((1, 2, 3))
        f.wait_log(4, "event=adopted")
        f.wait_round(4, max(labels) + 20)
        for i in (1, 2, 3):
            f.wait_round(i, max(labels) + 10)
        self.assertEqual(self.status(f, 4)["weight"], 1.0)
        f.close()

    def configure_all(self, f, before, after):
        for node in f.nodes:
            with open(node.configuration) as file:
                text = file.read()
            self.assertIn(before, text)
            with open(node.configuration, "w") as file:
                file.write(text.replace(before, after))

    def begin_under_a_new_owner(self, f):
        """All nodes are stopped, and the workers n1 to n3 start again with n4 as their owner. Its model must be theirs: the
        steps afterwards hardly change it."""
        model = fleet.read_model(f.nodes[1].get("/v1/model")[1])
        label = self.status(f, 1)["round"]
        for i in f.present:
            f.nodes[i].kill(signal.SIGTERM)
        for i in f.present:
            self.assertEqual(f.nodes[i].process.wait(fleet.PATIENCE), 0)
        self.configure_all(f, "learning_rate = 0.1", "learning_rate = 1e-9")
        f.switch([4, 1, 2, 3], owners=[4])
        f.start([4, 1, 2, 3])
        f.wait_round(4, label + 10)
        owned = fleet.read_model(f.nodes[4].get("/v1/model")[1])
        self.assertGreater(sum(a * b for a, b in zip(owned, model)), 0.5 * sum(a * a for a in model))
        self.assertIn("event=adopted", f.nodes[4].log())

    def test_an_owner_is_replaced_while_all_are_stopped(self):
        for algorithm in ("backup", "downpour"):
            with self.subTest(algorithm=algorithm):
                f = self.owned(5, algorithm=algorithm, spare=(4,), **MANY)
                f.switch([0, 1, 2, 3])
                f.start([0, 1, 2, 3])
                f.wait_round(1, 100)
                self.begin_under_a_new_owner(f)
                f.close()

    def test_a_new_owner_that_finds_no_training_says_so(self):
        f = self.owned(3, spare=(2,), **MANY)
        f.switch([0, 1])
        f.start([0, 1])
        f.wait_round(1, 100)
        for i in (0, 1):
            f.nodes[i].end(signal.SIGKILL)
        f.nodes[1].lose_checkpoints()
        f.switch([2, 1], owners=[2])
        f.start([2, 1])
        f.wait_log(2, "event=untrained lost_rounds=")
        f.wait_round(2, 120)
        log = f.nodes[2].log()
        self.assertIn("event=jump", log)
        self.assertNotIn("event=adopted", log)
        f.wait_log(1, "event=untrained lost_rounds=")
        self.assertIn("this node, or the one from which they came, has lost it", f.nodes[1].log())
        lost_here = f.nodes[1].status()["lost_rounds"]
        self.assertGreater(lost_here, 90)
        lost = f.nodes[2].status()["lost_rounds"]
        self.assertGreater(lost, 90)
        f.wait_round(2, lost + 5)  # with updates of n1
        self.assertEqual(f.nodes[2].status()["lost_rounds"], lost)
        self.assertEqual(f.nodes[1].status()["lost_rounds"], lost_here)
        checked = subprocess.run([SGPCTL, "-s", f.nodes[2].socket, "status", "--check"], text=True, stdout=subprocess.PIPE, check=False)
        self.assertEqual((checked.returncode, "lost the training of the first" in checked.stdout), (7, True), checked.stdout)

    def test_a_finished_fleet_that_lost_its_training_keeps_its_models(self):
        f = self.owned(3)
        f.start()
        f.wait_state("finished")
        for node in f.nodes:
            node.end(signal.SIGTERM)
            node.lose_checkpoints()
        models = [self.saved(node) for node in f.nodes]
        f.start()
        f.wait_state("finished")
        for i, node in enumerate(f.nodes):
            f.wait_log(i, "model.safetensors stays as it was")
            self.assertEqual(node.status()["lost_rounds"], node.status()["round"])
            node.end(signal.SIGTERM)
            self.assertEqual(self.saved(node), models[i])

    def test_a_worker_is_started_again_as_the_owner(self):
        f = self.owned(4, **MANY)
        f.start()
        f.wait_round(1, 100)
        for i in (0, 1):
            f.nodes[i].kill(signal.SIGTERM)
            f.nodes[i].process.wait(fleet.PATIENCE)
        with open(f.nodes[1].configuration) as file:
            lines = [line for line in file if not line.startswith(("train =", "label =", "classes =", "holdout ="))]
        with open(f.nodes[1].configuration, "w") as file:
            file.write("".join(lines).replace("[model]\n", "[model]\ninputs = 6\n"))
        label = self.status(f, 2)["round"]
        f.switch([1, 2, 3], owners=[1])
        f.nodes[1].start()
        f.reload((2, 3))
        for i in (1, 2, 3):
            f.wait_round(i, label + 20)
        self.assertEqual(self.status(f, 1)["weight"], 1.0)
        self.assertIn("event=adopted", f.nodes[1].log())

    def test_a_fleet_of_gossip_becomes_one_of_workers(self):
        f = self.owned(5, algorithm="sgp", owners=(), spare=(0, 4), **MANY)
        f.present = [1, 2, 3]
        for i in f.present:
            with open(os.path.join(f.directory, "n%d.dot" % i), "w") as file:
                file.write("digraph ring {\n  n1 -> n2 -> n3 -> n1;\n  n2 -> n1;\n%s}\n" % "".join(
                    '  n%d [address="%s:%d"];\n' % (k, f.host(k), f.ports[k]) for k in f.present))
        f.start([1, 2, 3])
        f.wait_round(1, 100)
        self.configure_all(f, "algorithm = sgp", "algorithm = backup")
        self.begin_under_a_new_owner(f)

    def test_what_an_owner_and_a_worker_did_is_played_again(self):
        f = self.owned(4, backup=1, journals=(0, 1), **MANY)
        f.start()
        f.wait_round(0, 30)
        for i in (1, 0):
            told, again = f.replay(SGPCTL, i)
            self.assertEqual(told, again)
            self.assertIn("follow" if i == 1 else "send:estimate:n1", told)

    # at its own pace

    def stale(self, n, *says, **options):
        return self.owned(n, algorithm="downpour", says=says, **options)

    def peers(self, f, index):
        return {p["name"]: p for p in f.nodes[index].json("/v1/peers") if p["direction"] == "in"}

    def test_each_update_is_a_step(self):
        for says in ((), ("staleness=divide", "staleness_max=4"), ("staleness=compensate", 'compensation="0.5"')):
            with self.subTest(says=says):
                f = self.stale(4, *says, **{"optimizer.learning_rate": "0.02"})
                f.start()
                f.wait_state("finished")
                statuses = self.expect_one_model(f)
                for status in statuses[1:]:
                    self.assertGreater(status["test_accuracy"], 0.9)
                    self.assertEqual(status["copy"]["label"], statuses[0]["round"])
                into = self.peers(f, 0).values()
                late = sum(p["shares_late"] for p in into)
                self.assertEqual(sum(p["shares_received"] for p in into) - late, statuses[0]["round"])
                for p in into:  # on a busy machine a worker may come to no update
                    counted = p["shares_received"] - p["shares_late"]
                    self.assertEqual((p["staleness"] or 0) >= 0 and p["staleness"] is not None, counted > 0, p)
                self.assertIsNone(self.peers(f, 1)["n0"]["staleness"])
                f.close()

    def test_a_slow_or_dead_worker_holds_nobody_back_but_by_the_bound(self):
        f = self.stale(4, "staleness_max=3", **MANY)
        f.start()
        f.wait_round(0, 30)
        f.nodes[2].kill(signal.SIGSTOP)
        f.wait("n1 and n3 to wait for n0", lambda: all(
            (self.status(f, i)["waiting"] or {}).get("for") == "estimate" for i in (1, 3)), timeout=2.5)
        self.goes_on(f, rounds=100)  # n2 is absent then
        f.nodes[2].kill(signal.SIGCONT)
        received = self.peers(f, 0)["n2"]["shares_received"]
        f.wait("n2 to give again", lambda: self.peers(f, 0)["n2"]["shares_received"] > received + 20)
        f.nodes[3].kill(signal.SIGKILL)
        f.nodes[3].process.wait()
        self.goes_on(f, rounds=100)
        f.nodes[3].start()
        f.wait("n3 to give again", lambda: self.peers(f, 0)["n3"]["shares_received"] > 20)
        self.assertEqual(self.status(f, 0)["weight"], 1.0)

    def test_an_owner_at_its_own_pace_that_is_killed_takes_the_newest_copy(self):
        f = self.stale(4, "staleness=compensate", 'compensation="0.1"', journals=(0,), **MANY)
        f.start()
        f.wait_round(0, 50)
        self.kill_the_owner(f, 2)
        f.nodes[0].end(signal.SIGKILL)
        again = subprocess.run([SGPCTL, "replay", os.path.join(f.directory, "n0.events")], text=True,
                               timeout=fleet.PATIENCE, check=True, capture_output=True).stdout
        self.assertIn("compensate,absorb", again)

    def test_an_owner_at_its_own_pace_is_paused_and_its_workers_pause_leave_and_come(self):
        f = self.stale(4, "staleness=divide", "staleness_max=2", **MANY)
        f.start()
        f.wait_round(0, 20)
        f.nodes[0].get("/v1/pause", "POST")
        f.wait_state("paused", [0])
        f.wait("workers to wait for the copy", lambda: all(
            (self.status(f, i)["waiting"] or {}).get("for") == "estimate" for i in (1, 2, 3)))
        f.nodes[0].get("/v1/resume", "POST")
        self.goes_on(f)
        f.nodes[1].get("/v1/pause", "POST")
        f.wait_state("paused", [1])
        self.goes_on(f, rounds=50)
        f.nodes[1].get("/v1/resume", "POST")
        self.assertEqual(f.nodes[3].get("/v1/leave", "POST")[0], 200)
        self.assertEqual(f.nodes[3].process.wait(fleet.PATIENCE), 0)
        f.switch([0, 1, 2])
        f.reload((0, 1, 2))
        self.goes_on(f, rounds=50)
        f.says = ["staleness=divide", "staleness_max=9"]
        f.switch([0, 1, 2, 3])  # and comes back as a new worker
        f.nodes[3].start()
        f.reload((0, 1, 2))
        f.wait("n3 to give", lambda: self.peers(f, 0).get("n3", {}).get("shares_received", 0) > 5)
        self.assertEqual(self.status(f, 0)["weight"], 1.0)

    def test_the_file_and_the_algorithm_must_suit(self):
        f = self.owned(3, algorithm="sgp")
        code, said = f.check()
        self.assertEqual(code, 6, said)
        self.assertIn("node n0 owns the vector, which algorithm sgp has no use for", said)
        g = Fleet(2, options={"train.algorithm": "backup"})
        self.addCleanup(g.close)
        code, said = g.check()
        self.assertEqual(code, 6, said)
        self.assertIn("algorithm backup wants a node that owns the vector", said)
        code, said = self.owned(3, says=("staleness_max=2",)).check()
        self.assertEqual(code, 6, said)
        self.assertIn("digraph owner speaks of staleness, but with algorithm backup no update", said)
        code, said = self.owned(3, backup=1, algorithm="downpour").check()
        self.assertEqual(code, 6, said)
        self.assertIn("digraph owner says backup, but with algorithm downpour no update is waited for", said)
        h = self.owned(3)
        self.assertIn("copy of the owner's parameters", h.check(1)[1])


fleet.main()
