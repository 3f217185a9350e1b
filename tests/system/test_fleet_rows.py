# SPDX-License-Identifier: Apache-2.0
"""What every node knows of the whole fleet: rows that each node publishes about itself, at every other node. The program's
second argument is sgpctl."""
import json
import re
import signal
import socket
import subprocess
import time

import fleet
import peer
import tls
from test_statements import Author
from tls_peer import CipheredPeer

FOREVER = {"train.start": "now", "train.epochs": "100000"}


def rows(node):
    """What a node says of all: name -> row; empty while it does not answer."""
    try:
        code, body = node.get("/v1/fleet")
        return {row["name"]: row for row in json.loads(body)["nodes"]} if code == 200 else {}
    except (OSError, fleet.http.client.HTTPException, ValueError):
        return {}


def refused(node):
    return node.json("/v1/fleet")["refused"]


class Fleet(fleet.FleetTest):
    def all_say(self, f, name, says, nodes=None):
        """Waits until every node shows such a row of one node."""
        f.wait("all nodes to know of %s" % name, lambda: all(
            says(rows(node).get(name) or {"state": None, "stale": True}) for node in nodes or f.nodes))

    def test_twelve_nodes_know_of_every_change(self):
        f = self.fleet(12, options={**FOREVER, "model.layers": "dense 4 relu, dense 2"})
        f.start()
        for node in f.nodes:
            self.all_say(f, node.name, lambda row: row["state"] == "training" and not row["stale"])
        one = rows(f.nodes[5])["n11"]
        status = f.nodes[11].status()
        for key in ("version", "rounds", "uptime_seconds", "topology", "waiting", "loss", "test_accuracy", "weight"):
            self.assertIn(key, one)
        self.assertEqual((one["version"], one["topology"]["digest"]), (status["version"], status["topology"]["digest"]))
        self.assertTrue(status["blas"].startswith(one["device"]))
        for index in (0, 7):
            f.nodes[index].get("/v1/pause", "POST")
            self.all_say(f, "n%d" % index, lambda row: row["state"] == "paused")
            f.nodes[index].get("/v1/resume", "POST")
            self.all_say(f, "n%d" % index, lambda row: row["state"] == "training")
        metrics = f.nodes[3].get("/metrics")[1].decode()
        self.assertIn('sgpd_fleet_nodes{state="training"} 12\n', metrics)
        self.assertIn('sgpd_fleet_nodes{state="stale"} 0\n', metrics)
        for name in ("round", "loss", "weight"):
            least, greatest = (float(re.search(r"^sgpd_fleet_%s_%s (\S+)$" % (name, bound), metrics, re.M).group(1))
                               for bound in ("least", "greatest"))
            self.assertLessEqual(least, greatest)
        self.check_ctl(f.nodes[3])
        self.assert_alive(f)

    def check_ctl(self, node):
        def ctl(*arguments):
            result = subprocess.run([tls.SGPCTL, "-s", node.socket, "fleet", *arguments], text=True,
                                    capture_output=True, timeout=fleet.PATIENCE, check=False)
            return result.returncode, result.stdout, result.stderr
        status, out, err = ctl("--json", "--sort", "name", "--reverse")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([row["name"] for row in json.loads(out)["nodes"]], ["n%d" % i for i in reversed(range(12))])

    def test_a_node_that_stands_still_becomes_stale_and_comes_back(self):
        f = self.fleet(3, phases=[[(0, 1), (1, 2), (2, 0)]], options=FOREVER)
        f.start()
        for node in f.nodes:
            self.all_say(f, node.name, lambda row: row["state"] == "training")
        f.nodes[1].kill(signal.SIGSTOP)
        others = [f.nodes[0], f.nodes[2]]
        self.all_say(f, "n1", lambda row: row["stale"] and row["age"] > 10, others)
        for index in (0, 2):
            f.wait_log(index, "event=unheard_of peer=n1 state=training")
        self.assertFalse(any(rows(node)[name]["stale"] for node in others for name in ("n0", "n2")))
        metrics = f.nodes[0].get("/metrics")[1].decode()
        self.assertIn('sgpd_fleet_nodes{state="stale"} 1\n', metrics)
        f.nodes[1].kill(signal.SIGCONT)
        self.all_say(f, "n1", lambda row: not row["stale"])
        for index in (0, 2):
            f.wait_log(index, "event=heard_of peer=n1")

    def test_a_node_that_has_finished_and_stopped_is_finished(self):
        f = self.fleet(2, phases=[[(0, 1), (1, 0)]], options={"train.epochs": None, "train.rounds": "20"})
        f.start()
        self.all_say(f, "n1", lambda row: row["state"] == "finished")
        f.nodes[1].end()
        self.all_say(f, "n1", lambda row: row["stale"], [f.nodes[0]])
        metrics = f.nodes[0].get("/metrics")[1].decode()
        self.assertIn('sgpd_fleet_nodes{state="stale"} 0\n', metrics)
        ended = [int(n) for n in re.findall(r'sgpd_fleet_nodes{state="(?:finished|draining)"} (\d+)\n', metrics)]
        self.assertEqual(sum(ended), 2)

    def test_a_node_that_starts_again_is_not_shown_by_its_old_row(self):
        f = self.fleet(3, phases=[[(0, 1), (1, 0), (1, 2), (2, 1)]], options=FOREVER)
        f.start()
        self.all_say(f, "n2", lambda row: row["state"] == "training" and row["uptime_seconds"] > 2)
        f.nodes[2].kill(signal.SIGKILL)
        f.nodes[2].process.wait()
        f.nodes[2].start()
        began = time.monotonic()
        self.all_say(f, "n2", lambda row: not row["stale"] and row["state"] and
                     row["uptime_seconds"] < time.monotonic() - began + 1)

    def test_a_target_that_does_not_take_rows_gets_none(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(fleet.PATIENCE)
        f = self.fleet(2, phases=[[(0, 1), (1, 0)]], options=FOREVER, dial={(0, 1): listener.getsockname()[1]})
        f.start([0])
        for takes in (False, True):
            n1, _, fingerprint = peer.dialled(listener)
            self.addCleanup(n1.close)
            n1.send(peer.WELCOME, "n1", 99, 0, *fingerprint, *([0] * 7 + [True] if takes else []))
            kinds = []
            while kinds.count(peer.BEAT) < 6 and peer.SUMMARY not in kinds:
                kinds.append(n1.take_frame()[0])
                n1.send(peer.BEAT)
            self.assertEqual(peer.SUMMARY in kinds, takes)
            n1.close()


class Signed(tls.TlsTest):
    """n2 has its key, and is played by the test."""

    def setUp(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(fleet.PATIENCE)
        self.f = self.tls_fleet(3, tls="off", phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]], options=FOREVER,
                                dial={(0, 2): listener.getsockname()[1]})
        self.f.start([0, 1])
        self.f.wait_round(0, 5)
        self.f.wait_round(1, 5)
        self.parameters, self.fingerprint = peer.overhear(listener)
        self.f.roll("require", order=[0, 1])
        self.node = self.f.nodes[0]
        self.f.wait("n1 to speak in ciphers", lambda: self.f.links().get((1, "n0", "in"), (None,))[0])

    def neighbour(self):
        n2 = CipheredPeer(self.node.listen, key=self.f.key_path(2))
        self.addCleanup(n2.close)
        n2.ends = self.node.status()["rounds"]
        n2.send(peer.HELLO, "n2", "n0", 77, self.parameters, *self.fingerprint)
        _, fields = n2.receive(peer.WELCOME)
        self.assertTrue(fields[18], "it takes rows")
        return n2

    def text(self, round_):
        return "1 1000 training %d 100000 1 0.5 0.5 0.9 1 0.1 10 100 1000 - - - 1 0 v d" % round_

    def row(self, n2, name, version, round_, signer=None, signed=None, model=None):
        """n2 brings a row of a node, by default signed with that node's key, for this fleet's model."""
        text = self.text(round_)
        author = Author(self.f.key_path(int(name[1:]) if signer is None else signer))
        what = "sgpd row\n%016x\n%s\n%d\n%s\n" % (model or self.fingerprint[0], name, version, signed or text)
        n2.send(peer.ROW, name, version, text, author.public, author.sign(what.encode()), 0)

    def shown(self, name):
        return (rows(self.node).get(name) or {}).get("round")

    def test_only_a_row_that_its_author_signed_counts(self):
        now = int(time.time()) << 32
        n2 = self.neighbour()
        self.row(n2, "n2", now + 5, 55)
        self.f.wait("the row of n2", lambda: self.shown("n2") == 55)
        self.f.wait("n1 to have it, too", lambda: (rows(self.f.nodes[1]).get("n2") or {}).get("round") == 55)
        before = refused(self.node)                     # n1 did not sign before it had read the present file
        self.row(n2, "n2", now + 4, 44)                 # an earlier one, replayed
        self.row(n2, "n2", now + (1 << 50), 77)         # of a time to come
        self.row(n2, "n9", 1, 88, signer=2)             # of a node that there is not
        n2.send(peer.ROW, "n2", now + 6, self.text(99), "", "", 0) # without a signature
        counts = {"earlier": 1, "forged": 1, "ahead": 1, "strangers": 1, "malformed": 0}
        self.f.wait("all to be refused", lambda: {
            reason: count - before[reason] for reason, count in refused(self.node).items()} == counts)
        self.assertEqual(self.shown("n2"), 55)
        self.row(n2, "n2", now + 7, 100)                # the link still stands
        self.f.wait("the row of n2", lambda: self.shown("n2") == 100)
        self.assert_alive(self.f, [0, 1])

    def assert_dropped(self, n2, forged):
        """The forged row was counted, and the link takes the next row: its sender may have another file."""
        self.f.wait("the row to be refused", lambda: refused(self.node)["forged"] == forged + 1)
        self.row(n2, "n2", int(time.time() + 7200) << 32, 100)
        self.f.wait("the row of n2", lambda: self.shown("n2") == 100)
        self.assert_alive(self.f, [0, 1])

    def test_a_row_that_was_changed_on_its_way_is_dropped(self):
        n2, now = self.neighbour(), int(time.time()) << 32
        self.row(n2, "n2", now + 7, 99)
        self.f.wait("the row of n2", lambda: self.shown("n2") == 99)
        forged = refused(self.node)["forged"]
        self.row(n2, "n2", now + 8, 101, signed=self.text(102))
        self.assert_dropped(n2, forged)

    def test_a_row_of_a_fleet_that_trains_another_model_is_dropped(self):
        n2, now = self.neighbour(), int(time.time()) << 32
        forged = refused(self.node)["forged"]
        self.row(n2, "n2", now + 7, 99, model=self.fingerprint[0] ^ 1)
        self.assert_dropped(n2, forged)

    def test_a_row_that_another_node_has_signed_is_dropped(self):
        n2, now = self.neighbour(), int(time.time()) << 32
        forged = refused(self.node)["forged"]
        self.row(n2, "n1", now + (1 << 32), 12345678, signer=2)
        self.assert_dropped(n2, forged)
        self.assertNotEqual(self.shown("n1"), 12345678)

    def test_a_row_in_the_name_of_its_reader_is_answered_by_a_later_one(self):
        n2 = self.neighbour()
        later = (int(time.time()) + 3600) << 32
        self.row(n2, "n0", later, 12345678)
        self.f.wait("n1 to know better", lambda: (rows(self.f.nodes[1]).get("n0") or {}).get("state") == "training")
        self.assertNotEqual(self.shown("n0"), 12345678)
        n2.send(peer.SUMMARY, False)
        self.f.wait("a later version of n0", lambda: self.offered(n2, "n0") > later)

    @staticmethod
    def offered(n2, name):
        digest = peer.checksum(name.encode())
        _, fields = n2.receive(peer.SUMMARY)
        return dict(zip(fields[1:25], fields[25:49])).get(digest, 0)

    def test_a_peer_that_asks_without_end_costs_bounded_bytes(self):
        n2 = self.neighbour()
        names = [peer.checksum(b"n0"), peer.checksum(b"n1")] + [7] * 22
        began = time.monotonic()
        for _ in range(2000): # some 430 KB of questions
            n2.send(peer.SUMMARY, True, *names)
        self.f.wait("an answer", lambda: self.offered(n2, "n0") > 0)
        sent = self.node.peer("n2", "in")["bytes_sent"]
        seconds = time.monotonic() - began
        self.assertLess(sent, 65536 + 4 * 16384 * (seconds + 1))
        n2.send(peer.SUMMARY, False)
        self.assert_alive(self.f, [0, 1])

    def test_a_row_before_the_greeting_ends_the_connection(self):
        n2 = CipheredPeer(self.node.listen, key=self.f.key_path(2))
        self.addCleanup(n2.close)
        n2.send(peer.SUMMARY, False)
        with self.assertRaises(peer.Closed):
            while True:
                n2.take_frame()


if __name__ == "__main__":
    tls.main()
