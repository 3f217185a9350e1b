# SPDX-License-Identifier: Apache-2.0
"""Twelve daemons under tls=require whose topology file is pushed by sgpctl: the votes, the version on which a node wakes, and the refusals.

test_push.py SGPD SGPCTL
"""
import contextlib
import datetime
import json
import os
import subprocess

import fleet
import tls

NODES = 12
OPTIONS = {"train.epochs": "1000000", "train.start": "now"}
SILENT_SECONDS = 1.0  # docs/ROLLOUT.md: from the first use of a file to the silence of a node that it strikes
STRANGERS = "x"


def run(*arguments, text=None):
    return subprocess.run([tls.SGPCTL, *map(str, arguments)], input=text, text=True, timeout=2 * fleet.PATIENCE, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Push(tls.TlsTest):
    def started(self, n=NODES, guests=0):
        """Nodes whose file two of the administrators a, b and c must sign; r is the recovery key, x nobody's. The last of
        them are guests, which no file names and which have nothing."""
        f = self.f = self.tls_fleet(n, options=OPTIONS)
        n -= guests
        if guests:
            f.rewire(list(range(n)), [[(i, (i + 1) % n) for i in range(n)]])
        self.keys = {name: self.ctl("key", "generate", name, "--file", self.path(name + ".key"), "--json")["key"] for name in "abcrx"}
        administrators = {"topology.file": "fleet.signed", "administrators.fleet": "mill", "administrators.threshold": "2",
                          "administrators.keys": " ".join(self.keys[name] for name in "abc"), "administrators.recovery": self.keys["r"]}
        for i in range(n):
            f.write_configuration(i, {**OPTIONS, **administrators}, {})
        self.first = self.sign("ab", self.plain(), "--fleet", "mill")
        self.write("fleet.signed", self.first)
        f.start(range(n))
        f.wait("all to use version 1", lambda: all(self.version(i) == 1 for i in range(n)), 2 * fleet.PATIENCE)
        f.wait("all rows", lambda: all(node["rollout"] for node in f.nodes[0].json("/v1/fleet")["nodes"]))
        return f

    def ctl(self, *arguments, text=None):
        done = run(*arguments, text=text)
        self.assertEqual(done.returncode, 0, done)
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    def topology(self, index, *arguments, status=0):
        """sgpctl topology ... at a node."""
        done = run("-s", self.f.nodes[index].socket, "topology", *arguments)
        self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
        return done.stdout if status == 0 else done.stderr

    def path(self, name):
        return os.path.join(self.f.directory, name)

    def write(self, name, text):
        with open(self.path(name + ".new"), "w", encoding="ascii") as file:
            file.write(text)
        os.replace(self.path(name + ".new"), self.path(name))
        return self.path(name)

    def plain(self, without=None):
        """The fleet's file; or the same ring of all nodes but one."""
        if without is not None:
            present = [i for i in range(self.f.n) if i != without]
            self.f.rewire(present, [[(i, present[(k + hop) % len(present)]) for k, i in enumerate(present)] for hop in (1, 2, 4)])
        with open(self.path("n0.dot"), encoding="ascii") as file:
            return file.read()

    def signers(self, names):
        return [word for name in names for word in ("--sign", self.path(name + ".key"))]

    def sign(self, names, text, *options):
        for name in names:
            text = self.ctl("topology", "sign", "-", *options, "--key", self.path(name + ".key"), text=text)
            options = ()
        return text

    def rollout(self, index):
        with contextlib.suppress(OSError, ValueError, fleet.http.client.HTTPException):
            code, body = self.f.nodes[index].get("/v1/rollout")
            return json.loads(body) if code == 200 else None
        return None

    def version(self, index):
        return (self.rollout(index) or {"active": {"version": -1}})["active"]["version"]

    def wait_version(self, version, indices):
        self.f.wait(f"version {version} at {indices}", lambda: all(self.version(i) == version for i in indices), 2 * fleet.PATIENCE)

    def one_line(self, said, reason):
        """The last line of sgpctl is its error, and there is no other."""
        self.assertEqual(said.count("sgpctl: "), 1, said)
        self.assertIn(reason, said.splitlines()[-1])

    def test_a_node_that_was_stopped_wakes_on_the_new_version_before_it_greets_anybody(self):
        f = self.started()
        last = NODES - 1
        f.nodes[last].end()
        new = self.write("new.dot", self.plain() + "// again\n")
        said = self.topology(0, "push", new, *self.signers("ab"), "--timeout", "0", status=5)
        self.one_line(said, "version 2 is not in use after 0 s: it waits for ")
        f.wait("all others to accept", lambda: self.rollout(0)["accepted"] == last)
        self.assertEqual(self.rollout(0)["waits_for"], "n11")
        self.assertEqual([self.version(i) for i in range(last)], [1] * last)
        f.wait("it to be shown", lambda: "version 2 is proposed: 11 of 12 accept it, waits for n11" in self.screen(5))
        out = json.loads(self.topology(3, "push", new, *self.signers("bc"), "--despite", "n11", "--json"))
        self.assertEqual((out["version"], out["state"]), (3, "active"), out)
        self.wait_version(3, range(last))
        f.nodes[last].start()
        self.wait_version(3, [last])

        def since():
            return f.nodes[last].log().split("event=end status=0")[-1]

        f.wait("n11 to greet somebody", lambda: "event=up peer=" in since())
        log = since()
        self.assertLess(log.index("event=rollout_learned version=3"), log.index("event=up peer="), log)
        versions = json.loads(self.topology(last, "log", "--json"))["versions"]
        self.assertEqual([it["version"] for it in versions], [3, 1])
        f.wait_round(last, 3)

    def screen(self, index):
        """What `sgpctl fleet` prints on a terminal."""
        line = f"{tls.SGPCTL} -s {self.f.nodes[index].socket} fleet"
        return subprocess.run(["script", "-qec", line, "/dev/null"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              check=True, timeout=fleet.PATIENCE).stdout

    def test_what_is_refused_is_refused_everywhere_with_one_line(self):
        f = self.started()
        new = self.write("new.dot", self.plain() + "// again\n")
        active = self.write("1.signed", self.first)
        good = self.sign("ab", self.plain() + "// good\n", "--after", active)
        cases = ((new, self.signers("a"), 1, "2 of 3 administrators must sign, and 1 did"),
                 (new, self.signers("ax"), 1, self.keys[STRANGERS] + " has signed, and is no administrator"),
                 (self.write("bad.signed", good.replace("version=2", "version=9")), (), 6, "is wrong; somebody has changed"),
                 (self.write("barn.signed", self.sign("ab", self.plain(), "--fleet", "barn")), (), 6, "it is of the fleet barn"),
                 (self.write("none.dot", self.plain(without=11)), (), 2, "--sign KEY is missing"))
        for i in range(NODES):
            path, options, status, reason = cases[i % len(cases)]
            self.one_line(self.topology(i, "push", path, *options, status=status), reason)
        # not by our client: each node judges for itself
        forged = good.replace("version=2", "version=9").strip()
        for node in f.nodes:
            code, body = node.get("/v1/rollout", "POST", forged)
            self.assertEqual(code, 400)
            message = json.loads(body)["error"]["message"]
            self.assertIn("is wrong", message)
            self.assertNotIn("\n", message)
        self.assertEqual({(self.version(i), self.rollout(i)["proposed"] is None) for i in range(NODES)}, {(1, True)})
        # a fork: both are refused, wherever they are pushed
        other = self.sign("bc", self.plain() + "// other\n", "--after", active)
        f.nodes[11].end()  # so that none is used before the other is there
        self.assertEqual(f.nodes[0].get("/v1/rollout", "POST", good)[0], 200)
        f.nodes[6].get("/v1/rollout", "POST", other)  # 200, or 400 if the first is there already
        f.wait("the fork everywhere", lambda: all(self.rollout(i)["fork"] for i in range(11)))
        self.one_line(self.topology(4, "push", self.write("good.signed", good), status=1), "two files have version 2")
        f.nodes[11].start()
        f.wait("the fork there, too", lambda: (self.rollout(11) or {"fork": False})["fork"])
        self.assertEqual([self.version(i) for i in range(NODES)], [1] * NODES)
        # a higher version ends it
        self.topology(7, "push", new, *self.signers("ab"), "--yes")
        self.wait_version(3, range(NODES))
        # what was in use before does not come back but as a new version
        code, body = f.nodes[2].get("/v1/rollout", "POST", self.first.strip())
        self.assertEqual(code, 400, body)
        self.one_line(self.topology(5, "push", self.write("old.signed", self.first), status=6), "it was made for the version 0 of")
        self.topology(5, "rollback", "1", *self.signers("ac"))
        self.wait_version(4, range(NODES))
        said = json.loads(self.topology(8, "log", "--json"))["versions"]
        self.assertEqual([it["version"] for it in said], [4, 3, 1])
        self.assertEqual(said[0]["file"], said[2]["file"])
        self.assertIn("the two files say the same", self.topology(8, "diff", "1", "4"))

    def up(self, index):
        """The peers to which a node has links that are up."""
        return {peer["name"] for peer in self.f.peers(self.f.nodes[index]) if peer["state"] == "up"}

    def connections(self, index):
        """The established connections of a daemon over TCP, as the kernel has them."""
        folder = f"/proc/{self.f.nodes[index].process.pid}"
        inodes = set()
        for name in os.listdir(folder + "/fd"):
            with contextlib.suppress(FileNotFoundError):
                inodes.add(os.readlink(f"{folder}/fd/{name}"))
        with open(folder + "/net/tcp", encoding="ascii") as file:
            lines = [line.split() for line in file][1:]
        return [line for line in lines if line[3] == "01" and f"socket:[{line[9]}]" in inodes]

    def told(self, index, event):
        """When a daemon first logged an event, in seconds; all of them have one clock."""
        line = next(line for line in self.f.nodes[index].log().splitlines() if event in line)
        return datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00")).timestamp()

    def test_a_struck_node_is_silent_and_the_recovery_key_signs_alone(self):
        f = self.started()
        f.wait("links of n11", lambda: any("n11" in self.up(i) for i in range(11)))
        last, rest = 11, range(11)
        less = self.write("less.dot", self.plain(without=last))
        self.one_line(self.topology(last, "push", less, *self.signers("r"), status=1), "it strikes n11, whose daemon was asked")
        self.topology(0, "push", less, *self.signers("r"), "--no-wait")
        f.wait_log(last, "event=rollout_struck version=2", 2 * fleet.PATIENCE)
        self.wait_version(2, rest)
        f.wait("n11 to have no connection", lambda: not self.connections(last))
        used = min(self.told(i, "event=rollout_activated version=2") for i in rest)
        self.assertLess(self.told(last, "event=rollout_struck version=2") - used, SILENT_SECONDS)
        f.wait_state("struck", [last])
        said = json.loads(self.topology(3, "log", "--json"))["versions"][0]
        self.assertEqual((said["recovered"], said["signers"]), (True, [self.keys["r"]]))
        before = f.nodes[0].status()["round"]
        while f.nodes[0].status()["round"] < before + 20:  # the others train on, and it stays silent
            self.assertEqual(self.connections(last), [])
            f.wait_round(0, f.nodes[0].status()["round"] + 1)
        self.assertFalse(any("n11" in self.up(i) for i in rest))
        # its key counts for nothing after a restart, either
        self.assertEqual(f.nodes[last].end(), 0)
        f.nodes[last].start()
        f.wait_state("struck", [last])
        self.assertEqual(self.connections(last), [])


    def test_a_machine_joins_and_leaves_for_good_by_pushes(self):
        f = self.started(4, guests=1)
        for kept in ("n3.conf", "n3.dot", "n3.key"):
            os.remove(self.path(kept))
        # the file of the configuration is version 1 to the end: what counts is the version in use
        self.topology(1, "push", self.write("new.dot", self.plain() + "// again\n"), *self.signers("ab"))
        self.wait_version(2, range(3))
        invitation = self.ctl("-s", f.nodes[0].socket, "invite", "n3").strip()
        self.ctl("join", "-", "--address", f"127.0.0.1:{f.ports[3]}", "--train", f.rows, "--output", self.path("n3.conf"), "--topology",
                 self.path("n3.dot"), "--key", self.path("n3.key"), text=invitation + "\n")
        with open(self.path("n3.conf"), "a", encoding="utf-8") as file:
            file.write(f"[node]\nstate_directory = {f.nodes[3].directory}\n[control]\nsocket = {f.nodes[3].socket}\n")
        said = self.ctl("-s", f.nodes[0].socket, "admit", "n3", "--output", self.path("more.dot"), "--json")
        self.assertEqual((said["nodes"], said["push"]),
                         (4, f"sgpctl -s {f.nodes[0].socket} topology push {self.path('more.dot')} --sign KEY"))
        self.topology(0, "push", self.path("more.dot"), *self.signers("bc"))
        self.wait_version(3, range(3))
        self.write("n3.dot", self.topology(2, "log", "active"))
        f.nodes[3].start()
        f.wait_round(3, 3)
        self.wait_version(3, [3])
        done = run("-s", f.nodes[1].socket, "leave", "--for-good", "--output", self.path("less.dot"))
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(f"on a node that stays: sgpctl topology push {self.path('less.dot')} --sign KEY", done.stderr)
        f.wait("n1 to end", lambda: f.nodes[1].process.poll() is not None)
        self.topology(3, "push", self.path("less.dot"), *self.signers("ac"))
        self.wait_version(4, [0, 2, 3])
        self.assertEqual([node["name"] for node in f.nodes[0].json("/v1/topology")["nodes"]], ["n0", "n2", "n3"])
        f.wait_round(3, f.nodes[3].status()["round"] + 10)

    def test_without_administrators_nothing_is_pushed(self):
        f = self.f = self.tls_fleet(2, options=OPTIONS)
        self.keys = {"a": self.ctl("key", "generate", "a", "--file", self.path("a.key"), "--json")["key"]}
        f.start()
        f.wait_round(0, 3)
        for arguments in (("push", self.path("n0.dot"), *self.signers("a")), ("log",), ("diff",), ("rollback", "1", *self.signers("a"))):
            self.one_line(self.topology(0, *arguments, status=1), "has no section [administrators]")
        self.assertIsNone(json.loads(run("-s", f.nodes[0].socket, "fleet", "--json").stdout)["rollout"])


if __name__ == "__main__":
    tls.main()
