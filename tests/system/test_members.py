# SPDX-License-Identifier: Apache-2.0
"""Owners that train, as real daemons: one service, two nodes; what its end, its failure and its stop do to the fleet."""
import os
import re
import signal
import socket
import subprocess
import sys

import fleet
from fleet import PATIENCE, FleetTest
from owned import MANY, Owned

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 and os.path.exists(sys.argv[2]) else "sgpctl"
TWO = {"owners": (0, 1), "members": True}


class Members(FleetTest):
    def owned(self, n, **options):
        f = Owned(n, **{**TWO, **options})
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def status(self, f, node):
        return f.wait("a status of " + node.name, node.status)

    def model(self, node):
        return fleet.read_model(node.get("/v1/model")[1])

    def saved(self, node):
        with open(os.path.join(node.directory, "model.safetensors"), "rb") as file:
            return fleet.read_model(file.read())

    def goes_on(self, f, rounds=20):
        """All of them, with their owners."""
        for node in [*f.nodes, *(f.owner(i) for i in f.owners)]:
            label = self.status(f, node)["round"] + rounds
            f.wait("%s to come to label %d" % (node.name, label), lambda: self.status(f, node)["round"] >= label)

    def child(self, f, index):
        """The process of the owner co-located with a node."""
        parent = f.nodes[index].process.pid
        with open("/proc/%d/task/%d/children" % (parent, parent)) as file:
            return int(file.read())

    def gone(self, pid):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    def test_all_own_a_part_train_and_end_on_one_model(self):
        for algorithm, says in (("backup", ()), ("backup", ("backup=1",)), ("downpour", ("staleness=divide",))):
            with self.subTest(algorithm=algorithm, says=says):
                f = self.owned(3, owners=(0, 1, 2), algorithm=algorithm, says=says, **{"optimizer.learning_rate": "0.02",
                                                                                 "train.when_done": "exit"})
                f.start()
                self.assertEqual([node.process.wait(PATIENCE) for node in f.nodes], [0, 0, 0])
                models = [self.saved(node) for node in f.nodes]
                self.assertEqual(models[0], models[1])
                self.assertEqual(models[0], models[2])
                for i in range(3):
                    self.assertNotIn("level=error", f.nodes[i].log())
                    self.assertIn("node=n%d.owner event=end status=0" % i, f.nodes[i].log())
                f.close()

    def test_it_is_as_if_relays_owned(self):
        options = {"train.rounds": "200", "train.epochs": None, "data.holdout": None, "optimizer.kind": "nesterov",
                   "train.batch": "200", "rows": 400}
        both = self.owned(2, **options)
        both.start()
        both.wait_state("finished")
        relays = self.owned(4, members=False, **options)
        relays.start()
        relays.wait_state("finished")
        self.assertEqual(self.model(both.nodes[0]), self.model(both.nodes[1]))
        of_both, of_relays = self.model(both.nodes[0]), self.model(relays.nodes[2])
        self.assertLessEqual(max(abs(a - b) for a, b in zip(of_both, of_relays)), 1e-6 * max(map(abs, of_both)))

    def test_one_service_answers_for_two_nodes(self):
        f = self.owned(3, **MANY)
        f.start()
        self.goes_on(f)
        status = self.status(f, f.nodes[0])
        owner = self.status(f, f.owner(0))
        self.assertEqual((status["name"], status["weight"], status["owns"]), ("n0", 0.0, None))
        self.assertEqual((owner["name"], owner["weight"], owner["owns"]), ("n0.owner", 1.0, [0, 0]))
        self.assertEqual(sorted(p["name"] for p in f.nodes[2].json("/v1/peers")), ["n0.owner"] * 2 + ["n1.owner"] * 2)
        self.assertEqual(sorted(p["name"] for p in f.owner(1).json("/v1/peers")), sorted(["n0", "n1", "n2"] * 2))
        self.assertEqual(self.status(f, f.nodes[2])["name"], "n2")
        self.assertTrue(os.path.exists(os.path.join(f.owner(0).directory, "ledger")))

    def test_the_end_of_the_service_is_that_of_both(self):
        f = self.owned(3, **MANY)
        f.start()
        self.goes_on(f)
        for number, expected in ((signal.SIGTERM, 0), (signal.SIGKILL, -9)):
            child = self.child(f, 0)
            self.assertEqual(f.nodes[0].end(number), expected)
            f.wait("the owner to be gone", lambda: self.gone(child))
            f.nodes[0].start()
            self.goes_on(f)

    def test_the_signal_of_a_terminal_ends_both_cleanly(self):
        f = self.owned(3, **MANY)
        f.start((1, 2))
        f.nodes[0].start(start_new_session=True)
        self.goes_on(f)
        for _ in range(3):  # it was a race
            node, before = f.nodes[0], f.nodes[0].log().count("node=n0.owner event=checkpoint")
            os.killpg(node.process.pid, signal.SIGINT)
            self.assertEqual(node.process.wait(PATIENCE), 0)
            self.assertNotIn("at_once", node.log())
            self.assertGreater(node.log().count("node=n0.owner event=checkpoint"), before)
            node.start(start_new_session=True)
            self.goes_on(f)

    def test_a_stop_at_any_moment_is_clean(self):
        f = self.owned(2)
        for _ in range(12):
            f.nodes[0].start()
            f.wait("it to start", lambda: "node=n0 event=start" in f.nodes[0].log())
            self.assertEqual(f.nodes[0].end(signal.SIGTERM), 0, f.nodes[0].log())
            os.remove(f.nodes[0].log_path)

    def test_a_second_signal_ends_both_at_once(self):
        f = self.owned(2, **MANY)
        f.start()
        self.goes_on(f)
        child = self.child(f, 0)
        os.kill(child, signal.SIGSTOP)
        f.nodes[0].kill(signal.SIGTERM)
        f.wait_log(0, "event=signal number=15")
        status = f.nodes[0].end(signal.SIGTERM)
        unsaved = "the model was not saved: sgpd was told to end at once" in f.nodes[0].log()
        self.assertEqual(status, 1 if unsaved else 0)
        self.assertTrue(self.gone(child))

    def test_a_stop_of_the_owner_is_that_of_the_service(self):
        f = self.owned(3, **MANY)
        f.start()
        self.goes_on(f)
        self.assertEqual(f.owner(0).get("/v1/stop", "POST")[0], 200)
        self.assertEqual(f.nodes[0].process.wait(PATIENCE), 0)

    def test_what_was_saved_outlasts_a_start_that_fails(self):
        f = self.owned(2, **MANY)
        f.start()
        self.goes_on(f)
        for node in f.nodes:
            self.assertEqual(node.end(signal.SIGTERM), 0)
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", f.ports[0]))
            taken.listen()
            for _ in range(3):
                f.nodes[0].start()
                self.assertEqual(f.nodes[0].process.wait(PATIENCE), 1)
        self.assertNotIn("there is no model to save", f.nodes[0].log())
        f.nodes[0].start()
        f.wait("it to be back", lambda: f.nodes[0].log().count("node=n0 event=restored") == 4)
        told = [line for line in f.nodes[0].log().splitlines() if "node=n0 event=restored" in line]
        self.assertTrue(all("parameters=checkpoint" in line for line in told), told)

    def test_the_failure_of_the_owner_is_that_of_the_service(self):
        f = self.owned(3, **MANY)
        f.start()
        self.goes_on(f)
        os.kill(self.child(f, 0), signal.SIGKILL)
        self.assertEqual(f.nodes[0].process.wait(PATIENCE), 1)
        self.assertIn("the co-located owner was ended by signal 9", f.nodes[0].log())
        f.nodes[0].start()
        self.goes_on(f)

    def test_an_owner_that_cannot_start_ends_the_service(self):
        f = self.owned(2)
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", f.ports[0]))
            taken.listen()
            f.nodes[0].start()
            self.assertEqual(f.nodes[0].process.wait(PATIENCE), 1)
        self.assertIn("cannot listen on 127.0.0.1:%d" % f.ports[0], f.nodes[0].log())

    def say_in_its_name(self, f):
        """Another process says that the owner is alive, to every socket on which it could."""
        with open("/proc/net/unix") as file:
            names = {line.split()[-1] for line in file if line.split()[-1].startswith("@") and len(line.split()[-1]) == 6}
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as forger:
            for name in names:
                try:
                    forger.sendto(b"WATCHDOG=1", "\0" + name[1:])
                except OSError:
                    pass

    def test_a_service_manager_hears_of_both(self):
        f = self.owned(1, owners=(0,), **MANY)
        path = os.path.join(f.directory, "manager")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(PATIENCE)
            os.environ.update({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"})
            try:
                f.start()
            finally:
                del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
            heard = []
            while "READY=1" not in heard or heard.count("WATCHDOG=1") < 3:
                heard.append(manager.recv(4096).decode())
            self.assertEqual(self.status(f, f.owner(0))["weight"], 1.0)  # it was there before
            with open("/proc/%d/environ" % self.child(f, 0), "rb") as file:  # as it was begun with: this manager's
                self.assertIn(b"NOTIFY_SOCKET=" + path.encode(), file.read().split(b"\0"))
            os.kill(self.child(f, 0), signal.SIGSTOP)  # it hangs: the manager is to hear nothing more
            manager.settimeout(2)
            words = []
            try:
                while words.count("WATCHDOG=1") < 10:
                    words.append(manager.recv(4096).decode())
                    self.say_in_its_name(f)
            except socket.timeout:
                pass
            self.assertLess(words.count("WATCHDOG=1"), 3)
            f.nodes[0].kill(signal.SIGKILL)

    def test_a_stop_and_a_pause_of_one_of_them(self):
        f = self.owned(3, says=("backup=1",), **MANY)
        f.start()
        self.goes_on(f)
        self.assertEqual(f.nodes[0].get("/v1/pause", "POST")[0], 200)  # it is spare; what it owns goes on
        for node in (f.nodes[1], f.nodes[2], f.owner(0), f.owner(1)):
            label = self.status(f, node)["round"] + 50
            f.wait(node.name, lambda: self.status(f, node)["round"] >= label)
        self.assertEqual(f.nodes[0].get("/v1/resume", "POST")[0], 200)
        self.goes_on(f)
        child = self.child(f, 1)
        os.kill(child, signal.SIGSTOP)
        waits = re.compile("event=waiting peer=n1.owner for=(credit|estimate|acknowledgement)")  # by the moment of the stop
        f.wait("n2 waits for the owner", lambda: waits.search(f.nodes[2].log()))
        os.kill(child, signal.SIGCONT)
        self.goes_on(f)

    def test_one_that_leaves_still_owns(self):
        f = self.owned(3, **MANY)
        f.start()
        self.goes_on(f)
        self.assertEqual(f.nodes[0].get("/v1/leave", "POST")[0], 200)
        self.assertTrue(os.path.exists(os.path.join(f.nodes[0].directory, "ledger.left")))
        self.assertEqual(f.owner(0).get("/v1/leave", "POST")[0], 409)  # it is waited for
        for node in (f.nodes[1], f.nodes[2], f.owner(0)):
            label = self.status(f, node)["round"] + 50
            f.wait(node.name, lambda: self.status(f, node)["round"] >= label)
        self.assertEqual(f.nodes[0].end(signal.SIGTERM), 0)

    def test_a_reload_is_that_of_both(self):
        f = self.owned(4, **MANY)
        f.switch([0, 1, 2], owners=[0, 1])
        f.start([0, 1, 2])
        f.wait_round(0, 20)
        f.switch([0, 1, 2, 3], owners=[0, 1])
        f.reload((0, 1, 2))
        f.nodes[3].start()
        self.goes_on(f)
        f.switch([0, 1, 2, 3], owners=[0, 2])
        f.switch([0, 1, 2, 3], owners=[1, 0])
        code, body = f.nodes[0].get("/v1/reload", "POST")
        self.assertEqual(code, 409, body)
        self.assertIn(b"by the new file this node owns other values; stop it, and start it again for that", body)
        f.switch([0, 1, 2, 3], owners=[0, 2])
        for i, what in ((1, b"owns nothing any more"), (2, b"owns something, too")):
            code, body = f.nodes[i].get("/v1/reload", "POST")
            self.assertEqual(code, 409, body)
            self.assertIn(b"by the new file this node %s; stop it, and start it again for that" % what, body)
            f.nodes[i].end(signal.SIGTERM)
        f.reload((0, 3))
        f.start((1, 2))
        f.wait("it to adopt", lambda: "node=n2.owner event=adopted" in f.nodes[2].log())
        self.goes_on(f)

    def test_what_it_did_is_played_again(self):
        f = self.owned(3, algorithm="downpour", journals=(0,), **MANY)
        f.start()
        self.goes_on(f)
        f.nodes[0].end(signal.SIGKILL)
        for end in ("", ".owner"):
            with open(os.path.join(f.directory, "n0.trace" + end), encoding="utf-8") as file:
                told = file.read()
            told = told[:told.rindex("\n") + 1]
            again = subprocess.run([SGPCTL, "replay", os.path.join(f.directory, "n0.events" + end)], text=True,
                                   timeout=PATIENCE, check=True, capture_output=True).stdout
            self.assertEqual(told, again[:len(told)])

    def test_its_owner_is_no_node_to_configure(self):
        f = self.owned(2, **{"node.name": "n0.owner"})
        code, said = f.check()
        self.assertEqual(code, 6, said)
        self.assertIn("n0.conf:2: [node] name: n0.owner is what node n0 of", said)
        f = self.owned(2, **{"node.name": "n7"})
        self.assertIn("is called n7; its nodes are n0, n1\n", f.check()[1])

    def test_a_check_is_of_both(self):
        f = self.owned(3)
        code, said = f.check()
        self.assertEqual(code, 0, said)
        self.assertIn("node       n0 (1 of 5), calls the owners", said)
        self.assertIn("node       n0.owner (4 of 5), listens on 127.0.0.1:%d" % f.ports[0], said)
        self.assertIn("none: it owns parts 0 to 0 of 2", said)


fleet.main()
