# SPDX-License-Identifier: Apache-2.0
"""Signed topology files among real daemons: pushed to one, tried and voted on by all, used or refused by all.

test_rollout.py SGPD SGPCTL
"""
import contextlib
import json
import os
import re
import sys

import fleet
import tls
from signed import RING, SignedTest
from test_state_directory import FULL, Disk, own_mounts, sandbox

tls.SGPCTL = os.path.abspath(sys.argv.pop(2))


class Rollout(SignedTest):
    def figures(self, index):
        """What /metrics says of signed files: {name without sgpd_: value}."""
        lines = self.f.nodes[index].get("/metrics")[1].decode().splitlines()
        return {line.rsplit(" ", 1)[0].removeprefix("sgpd_"): int(line.rsplit(" ", 1)[1]) for line in lines
                if line.startswith(("sgpd_rollout_", "sgpd_fleet_rollout_"))}

    def assert_figures(self, index, version, proposed=0, accepted=0, missing=0, refused=0, fork=0, least=None):
        """`least`: the earliest version that a node of the fleet uses; None: `version`, as all others."""
        figures = self.figures(index)
        figures.pop("rollout_documents_refused_total")
        self.assertEqual(figures, {
            "rollout_version": version, "rollout_proposed_version": proposed, "rollout_fork": fork,
            'rollout_votes{vote="accepted"}': accepted, 'rollout_votes{vote="missing"}': missing,
            'rollout_votes{vote="refused"}': refused, "fleet_rollout_version_least": version if least is None else least,
            "fleet_rollout_version_greatest": version})

    def wait_figure(self, index, name, value):
        self.f.wait("%s to be %d" % (name, value), lambda: self.figures(index)[name] == value)

    def test_a_push_to_one_node_is_used_by_all(self):
        f = self.started()
        document = self.second()
        self.assertEqual(f.nodes[0].status()["topology"]["file"], self.path("fleet.signed"))
        code, answer = self.push(1, document)
        self.assertEqual((code, answer["version"], answer["state"]), (200, 2, "proposed"), answer)
        self.wait_active(2)
        for i in range(4):
            view = self.rollout(i)
            self.assertEqual((view["fleet"], view["proposed"], view["fork"], view["vote"]), ("mill", None, False, "none"))
            self.assertEqual(view["active"]["identity"], answer["identity"])
            self.assertEqual(self.phases(i), 1)
            self.assertEqual(f.nodes[i].status()["rollout"]["active"], 2)
            for place in (f.nodes[i].status()["topology"], f.nodes[i].json("/v1/topology")):
                self.assertEqual(place["file"], "version 2 of mill")
            self.assertEqual(f.nodes[i].get("/v1/rollout/document?version=active")[1].decode(), document.strip())
            log = f.nodes[i].json("/v1/rollout/log")["versions"]
            self.assertEqual([v["version"] for v in log], [2, 1])
            self.assertEqual(log[0]["predecessor"], log[1]["identity"])
            self.assertEqual(sorted(log[0]["signers"]), sorted(self.keys[k] for k in "ab"))
            self.assertRegex(log[0]["used_at"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            said = f.nodes[i].log()
            for line in ("event=rollout_proposed version=2", "event=rollout_vote version=2 vote=accepted",
                         "event=rollout_activated version=2"):
                self.assertEqual(said.count(line), 1, said)
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        code, answer = self.push(3, document)
        self.assertEqual((code, answer["state"]), (200, "active"))
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=1")[1].decode(), self.first.strip())
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=9")[0], 404)
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=proposed")[0], 404)
        self.assertEqual(f.nodes[0].get("/v1/rollout/document?version=two")[0], 400)
        self.wait_figure(0, "fleet_rollout_version_least", 2)
        self.assert_figures(0, version=2)
        f.nodes[2].end()  # the file of its configuration is version 1 still
        f.nodes[2].start()
        f.wait_round(2, 3)
        self.assertEqual((self.rollout(2)["active"]["version"], self.phases(2)), (2, 1))
        self.assertEqual(f.nodes[2].status()["topology"]["file"], "version 2 of mill")
        self.keep(document, "fleet.signed")
        self.assertEqual(f.nodes[2].get("/v1/reload", "POST")[0], 200)
        self.assertEqual(f.nodes[2].status()["topology"]["file"], self.path("fleet.signed"))

    def test_a_kept_version_whose_key_was_changed_was_not_signed_by_a_recovery_key(self):
        """The list is not judged anew. No configuration here names a recovery key."""
        f = self.started(options={"administrators.recovery": None})
        path = os.path.join(f.nodes[0].directory, "versions", "1")
        with open(path, encoding="ascii") as file:
            text = file.read()
        changed = re.sub(r"(signatures=)[^:]*", r"\1nokey", text)
        self.assertNotEqual(changed, text)
        with open(path, "w", encoding="ascii") as file:
            file.write(changed)
        [version] = f.nodes[0].json("/v1/rollout/log")["versions"]
        self.assertEqual((version["version"], version["recovered"], len(version["signers"])), (1, False, 1))

    def test_what_is_not_signed_well_is_refused_with_one_line_and_told_to_nobody(self):
        f = self.started()
        good = self.second()
        cases = ((self.sign("a", after=self.first), "2 of 3 administrators must sign, and 1 did"),
                 (self.sign("abx", after=self.first), self.keys["x"] + " has signed, and is no administrator"),
                 (good.replace("version=2", "version=3"), "is wrong"),
                 (self.sign("ab", "--fleet", "barn"), "is of the fleet barn, and this node is of mill"),
                 ("digraph {}", "sgpctl topology sign makes one"), (good[:-20], "another size"))
        for document, reason in cases:
            code, answer = self.push(0, document)
            self.assertEqual(code, 400, answer)
            self.assertIn(reason, answer["error"]["message"], document)
        lines = [line for line in f.nodes[0].log().splitlines() if "event=rollout_refused" in line]
        self.assertEqual(len(lines), len(cases), lines)
        self.assertEqual(self.push(0, good)[0], 200)  # and it goes on
        self.wait_active(2)
        code, answer = self.push(2, self.first)
        self.assertEqual(code, 400)
        self.assertIn("version 1 is not above version 2, which is in use", answer["error"]["message"])


    def relay(self, index):
        """The file of the fleet, in which a node is a relay: that node refuses it, as it trains."""
        return re.sub(r'(n%d \[address="[^"]*")' % index, r"\1, train=false", self.plain(), count=1)

    def test_a_node_that_refuses_holds_a_version_and_is_passed_over_by_another(self):
        f = self.started()
        self.assertEqual(self.push(0, self.sign("ab", after=self.first, text=self.relay(3)))[0], 200)
        f.wait("n1 to count", lambda: (self.rollout(1)["accepted"], self.rollout(1)["refused"]) == (3, 1))
        f.wait("n3 to count", lambda: (self.rollout(3)["accepted"], self.rollout(3)["refused"]) == (3, 1))
        view = self.rollout(1)
        self.assertEqual((view["active"]["version"], view["proposed"]["version"], view["vote"], view["waits_for"], view["missing"],
                          view["ready"]), (1, 2, "accepted", "n3", 0, False), view)
        n3 = next(node for node in view["nodes"] if node["name"] == "n3")
        self.assertEqual((n3["active"], n3["vote"]), (1, "refused"))
        self.assertTrue(n3["why"].startswith("version 2 of mill: this node trains, and by the new"), n3)
        self.assert_figures(1, version=1, proposed=2, accepted=3, refused=1)
        own = self.rollout(3)
        self.assertIn("by the new file it is a relay; stop it", own["why"])
        self.assertIn(own["why"], f.nodes[3].log())
        f.wait("n3's row at n0", lambda: next(
            [node["rollout"][key] for key in ("active", "proposed", "vote")] == [1, 2, "refused"]
            for node in f.nodes[0].json("/v1/fleet")["nodes"] if node["name"] == "n3" and node["rollout"]))
        despite = self.sign("bc", "--number", "3", "--despite", "n3", after=self.first, text=self.relay(3))
        self.assertEqual(self.push(2, despite)[0], 200)
        self.wait_active(3, range(3))
        self.assertEqual(self.rollout(3)["active"]["version"], 1)  # it cannot use it, and goes on
        self.wait_figure(2, "fleet_rollout_version_greatest", 3)
        self.assert_figures(2, version=3, least=1)
        f.wait_log(3, "the former topology is kept")
        f.nodes[3].end()
        f.nodes[3].start()  # a restart learns of it, and its configuration does not fit
        self.assertNotEqual(f.nodes[3].process.wait(fleet.PATIENCE), 0)
        self.assertIn("event=rollout_learned version=3 later=1", f.nodes[3].log())
        self.assertIn("[data] train: by version 3 of mill this node is a relay", f.nodes[3].log())

    def test_a_neighbour_with_other_administrators_costs_a_line_now_and_then(self):
        """It shows a version that is later, and gives a document that its own administrator alone has signed."""
        f = self.signed_fleet()
        f.write_configuration(3, {**self.options, "topology.file": "other.signed", "administrators.threshold": "1",
                                  "administrators.keys": self.keys["x"]}, {})
        self.keep(self.sign("x", "--fleet", "mill", "--number", "9"), "other.signed")
        f.start()
        for i in (0, 2):
            f.wait_log(i, "event=rollout_refused peer=n3 reason=\"version 9: " + self.keys["x"] + " has signed, and is no administrator")
            f.wait("n%d to refuse it once it has begun" % i, lambda: "n3: version 9: " in self.rollout(i)["refused_last"])
        for i in range(4):
            f.wait_round(i, 200)
        self.assertEqual(self.push(1, self.sign("ab", "--despite", "n3", after=self.first))[0], 200)
        self.wait_active(2, range(3))
        for i in range(3):  # pauses double from 1 s on
            refused = f.nodes[i].log().rpartition("event=start ")[2].count("event=rollout_refused")  # before, no figure counts it
            self.assertLess(refused, 12)
            self.assertGreaterEqual(self.figures(i)["rollout_documents_refused_total"], refused)
            self.assertEqual(self.rollout(i)["fork"], False)
        self.assertEqual(self.rollout(3)["active"]["version"], 9)

    def test_two_files_of_one_version_are_refused_and_shown_by_all_until_a_higher_one(self):
        f = self.started()
        for index, relay in ((0, 3), (2, 1)):
            f.nodes[index].get("/v1/rollout", "POST", self.sign("ab", after=self.first, text=self.relay(relay)))
        for i in range(4):
            f.wait("n%d to show a fork" % i, lambda i=i: self.rollout(i)["fork"])
            view = self.rollout(i)
            self.assertEqual((view["active"]["version"], view["proposed"]["version"], view["vote"]), (1, 2, "forked"))
            self.assertIn("two files have version 2", view["why"])
            self.assert_figures(i, version=1, proposed=2, fork=1)
            f.wait_log(i, "event=rollout_fork version=2")
        code, answer = self.push(1, self.sign("cb", after=self.first))
        self.assertEqual(code, 400)
        self.assertIn("two files have version 2", answer["error"]["message"])
        f.rewire(list(range(4)), [RING[0]])
        self.assertEqual(self.push(3, self.sign("ab", "--number", "3", after=self.first))[0], 200)
        self.wait_active(3)

    def test_a_node_that_was_away_uses_the_new_version_before_it_greets_anybody(self):
        f = self.started()
        f.nodes[3].end()
        self.assertEqual(self.push(0, self.second())[0], 200)
        for i in range(3):
            f.wait("n%d to wait" % i, lambda i=i: (self.rollout(i)["accepted"], self.rollout(i)["waits_for"]) == (3, "n3"))
            self.assertEqual(self.rollout(i)["active"]["version"], 1)
            self.assert_figures(i, version=1, proposed=2, accepted=3, missing=1)
        third = self.sign("ab", "--number", "3", "--despite", "n3", after=self.first)
        self.assertEqual(self.push(1, third)[0], 200)
        self.wait_active(3, range(3))
        before = len(f.nodes[3].log())
        f.nodes[3].start()  # its file is version 1 still
        self.wait_active(3, [3])
        f.wait_round(3, f.nodes[0].status()["round"])
        said = f.nodes[3].log()[before:]
        self.assertIn("event=rollout_learned version=3 later=1", said)
        self.assertIn("fleet.signed has an earlier version; this node uses version 3 of mill, which it has stored", said)
        self.assertLess(said.index("event=rollout_learned version=3"), said.index("event=start"))
        self.assertNotIn("event=mismatch", said)
        self.assertEqual(self.phases(3), 1)

    def fleet_with_a_full_disk(self):
        """A fleet that trains, and the full disk of its n3."""
        own_mounts()
        f = self.signed_fleet()
        disk = Disk(f.nodes[3])
        self.addCleanup(sandbox.call, "umount", "--lazy", disk.directory)
        f.start()
        for i in range(4):
            f.wait_round(i, 3)
        disk.fill()
        return f, disk

    def test_a_node_whose_disk_is_full_refuses_with_that_reason_until_it_has_room(self):
        f, disk = self.fleet_with_a_full_disk()
        why = "%s/rollout.new: cannot be written: %s" % (disk.directory, FULL)
        second = self.second()
        for version, index, document in ((2, 0, second), (3, 3, None)):
            document = document or self.sign("ab", after=second)
            self.assertEqual(self.push(index, document)[0], 200)
            f.wait("n1 to count", lambda: (self.rollout(1)["accepted"], self.rollout(1)["refused"]) == (3, 1))
            view = self.rollout(3)
            self.assertEqual((view["active"]["version"], view["proposed"]["version"], view["vote"]), (version - 1, version, "refused"))
            self.assertRegex(view["why"], "/rollout(.new)?: cannot be written: " + FULL)
            self.assertTrue(why.startswith(self.rollout(0)["nodes"][3]["why"][:30]))
            f.wait_round(3, f.nodes[3].status()["round"] + 500)
            lines = [line for line in f.nodes[3].log().splitlines() if "event=error" in line and "rollout" in line]
            self.assertEqual(len(lines), version - 1, lines)  # one each
            self.assertEqual([name for name in disk.names() if name.endswith(".new")], [])
            disk.empty()
            self.wait_active(version)
            disk.fill()
        disk.empty()
        f.nodes[3].end()
        f.nodes[3].start()
        self.wait_active(3, [3])

    def test_a_reason_that_is_cut_within_a_letter_is_shown_all_the_same(self):
        """n1 cannot store, and the name of its state directory has letters of two bytes."""
        f = self.signed_fleet(2, phases=[[(0, 1), (1, 0)]])
        state = self.path("x" * (len(f.directory) % 2 + 1) + "\u00e9" * 30)
        f.write_configuration(1, self.options, {"node.state_directory": state})
        f.start()
        for i in (0, 1):
            f.wait_round(i, 3)
        os.mkdir(os.path.join(state, "rollout.new"))  # in the place of the temporary file
        self.assertEqual(self.push(0, self.second(phases=[[(0, 1), (1, 0)], [(0, 1), (1, 0)]]))[0], 200)
        f.wait("n0 to count", lambda: self.rollout(0)["refused"] == 1)
        for i in (0, 1):
            nodes = self.rollout(i)["nodes"]
            self.assertEqual([(node["name"], node["vote"]) for node in nodes], [("n0", "accepted"), ("n1", "refused")])
            self.assertTrue(nodes[1]["why"].startswith(f.directory), nodes)
        self.assertIn(state + "/rollout.new: cannot be written", self.rollout(1)["why"])
        os.rmdir(os.path.join(state, "rollout.new"))
        self.wait_active(2)

    def test_a_version_that_cannot_be_stored_strikes_all_the_same(self):
        f, disk = self.fleet_with_a_full_disk()
        struck = self.second(present=[0, 1, 2], phases=[[(0, 1), (1, 2), (2, 0)]])
        self.assertEqual(self.push(1, struck)[0], 200)
        self.wait_active(2, range(3))
        f.wait_log(3, "event=rollout_struck version=2")
        node = f.nodes[3]
        self.assertEqual(node.process.wait(fleet.PATIENCE), 1)  # its model finds no room either
        told = len(node.log())
        node.start()  # and learns it again, before it greets anybody
        self.assertEqual(node.process.wait(fleet.PATIENCE), 1)
        said = node.log()[told:]
        self.assertIn("event=rollout_learned version=2 later=1", said)
        self.assertIn("/rollout.new: cannot be written: " + FULL, said)
        self.assertNotIn("event=start ", said)
        disk.empty()
        node.start()
        f.wait_state("struck", [3])
        self.assertEqual(self.inet_sockets(3), set())

    def inet_sockets(self, index):
        """The TCP and UDP sockets that a daemon has."""
        directory = "/proc/%d/fd" % self.f.nodes[index].process.pid
        held = set()
        for fd in os.listdir(directory):
            with contextlib.suppress(FileNotFoundError):  # it was closed since
                held.add(os.readlink(os.path.join(directory, fd)))
        known = set()
        for table in ("tcp", "tcp6", "udp", "udp6"):
            with open("/proc/net/" + table, encoding="ascii") as file:
                known |= {"socket:[%s]" % line.split()[9] for line in file.readlines()[1:]}
        return held & known

    def test_a_struck_node_is_silent_and_comes_back_by_a_later_version(self):
        f = self.started()
        struck = self.second(present=[0, 1, 2], phases=[[(0, 1), (1, 2), (2, 0)]])
        self.assertEqual(self.push(1, struck)[0], 200)
        f.wait_state("struck", [3])
        self.wait_active(2, range(3))
        self.assertEqual(self.inet_sockets(3), set())
        self.assertIn("version 2 of mill, the topology file in use, does not name n3", f.nodes[3].status()["last_error"])
        self.assertEqual(f.nodes[3].log().count("event=rollout_struck version=2"), 1)
        for i in range(3):
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
            self.assertNotIn("n3", {peer["name"] for peer in f.nodes[i].json("/v1/peers")})
        f.nodes[3].end()
        f.nodes[3].start()  # and it is silent at once
        f.wait_state("struck", [3])
        self.assertEqual(self.inet_sockets(3), set())
        f.rewire(list(range(4)), [RING[0]])
        back = self.sign("ab", after=struck)
        self.assertEqual(self.push(0, back)[0], 200)
        self.wait_active(3, range(3))
        self.assertEqual(f.nodes[3].get("/v1/reload", "POST")[0], 422)  # its file names it, and is earlier
        self.keep(back, "fleet.signed")
        self.assertEqual(f.nodes[3].get("/v1/reload", "POST")[0], 200)
        self.wait_active(3, [3])
        f.wait_round(3, f.nodes[0].status()["round"])

    def test_all_hear_of_a_version_that_strikes_the_node_between_them(self):
        f = self.started(phases=[[(0, i) for i in (1, 2, 3)] + [(i, 0) for i in (1, 2, 3)]])
        self.assertEqual(self.push(1, self.second(present=[1, 2, 3], phases=[[(1, 2), (2, 3), (3, 1)]]))[0], 200)
        f.wait_state("struck", [0])
        self.wait_active(2, (1, 2, 3))
        for i in (1, 2, 3):
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        self.assertEqual(self.inet_sockets(0), set())

    def test_a_node_that_was_struck_while_it_was_away_learns_it_by_its_former_key(self):
        f = self.started(kind=tls.TlsFleet)
        f.nodes[3].end()
        struck = self.second(present=[0, 1, 2], phases=[[(0, 1), (1, 2), (2, 0)]])
        self.assertEqual(self.push(1, struck)[0], 200)
        self.wait_active(2, range(3))
        f.nodes[0].end()  # the list of former nodes outlives the process
        f.nodes[0].start()
        self.wait_active(2, [0])
        f.nodes[3].start()
        f.wait_state("struck", [3])
        said = f.nodes[3].log()
        self.assertIn("event=rollout_learned version=2 later=1", said)
        self.assertEqual(said.count("event=start "), 1)  # of its first life
        self.assertEqual(self.inet_sockets(3), set())


if __name__ == "__main__":
    fleet.main()
