# SPDX-License-Identifier: Apache-2.0
"""Ciphered links between daemons: what they carry and show, and how they are turned on in a fleet that trains."""
import subprocess

import between
import fleet
import peer
import tls
from tls import TlsTest

FOREVER = {"train.epochs": "1000000"}


class Fleets(TlsTest):
    def test_a_fleet_trains_and_shows_ciphers_and_keys(self):
        f = self.tls_fleet(4)
        f.start()
        f.wait_state("finished")
        f.wait_ciphered()
        self.assertEqual({cipher for cipher, _ in f.links().values()}, {"AES-128-GCM"})
        self.assertLessEqual(abs(sum(s["weight"] for s in f.quiet()) - 4), 1e-12)
        for node in f.nodes:
            self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)
            self.assertNotIn("event=refused", node.log())


class Listener(between.Between):
    """Keeps what each side said, and may change it: `change(bytes)` of what the source says."""

    def __init__(self, target_port, change=None):
        self.change = change or (lambda data: data)
        self.said = []  # a connection: what the source said, what the target said
        super().__init__(target_port)

    def carry(self, one, other, which, kept):
        if which == 0:
            self.said.append(kept)
        while data := one.recv(65536):
            kept[which].extend(data)
            other.sendall(self.change(data) if which == 0 else data)


class Line(TlsTest):
    """n0 -> n1 over somebody."""

    def overheard(self, mode, options):
        ports = fleet.free_ports(1)  # n1's is not known before the fleet is
        f = self.tls_fleet(2, tls=mode, options=options, dial={(0, 1): ports[0]})
        listener = Listener(f.ports[1])
        self.addCleanup(listener.close)
        f.dial[(0, 1)] = listener.port
        f.write_topology(0)
        f.start()
        return f, listener

    def test_a_plain_line_is_an_open_book_and_a_ciphered_one_is_closed(self):
        """The same run three times, which repeats to the bit: what a plain line shows twice is all known, and none of it is on a
        ciphered one: names, frames, parameters."""
        shown = []
        for mode in ("off", "off", "require"):
            f, listener = self.overheard(mode, {"train.epochs": None, "train.rounds": "40"})
            f.wait_state("finished")
            f.close()
            shown.append(b"".join(bytes(kept) for said in listener.said for kept in said))
        book, again, closed = map(self.pieces, shown)
        hello = b"\xa2n0\xa2n1"  # of whom to whom, as HELLO says it
        self.assertEqual([data.count(hello) > 0 for data in shown], [True, True, False])
        self.assertEqual([data.count(peer.MAGIC) > 80 for data in shown], [True, True, False])
        self.assertGreater(len(book & again), 40 * 4 * 14)  # a share a round, of 14 values
        self.assertEqual(book & closed, set())
        self.assertGreater(len(closed), 40 * 4 * 14)

    @staticmethod
    def pieces(data, size=8):
        """All that is so long and has more to say than zeros."""
        pieces = (data[at:at + size] for at in range(len(data) - size + 1))
        return {piece for piece in pieces if len(set(piece)) > size // 2}

    def test_a_changed_byte_ends_the_connection_and_no_weight_is_lost(self):
        changed = []

        def change(data):
            if len(changed) < 3 and len(data) > 3000:  # a share of its values
                changed.append(len(data))
                return data[:2000] + bytes([data[2000] ^ 1]) + data[2001:]
            return data

        f = self.tls_fleet(2, options={**FOREVER, "model.layers": "dense 200 relu, dense 2"},
                           dial={(0, 1): fleet.free_ports(1)[0]})
        listener = Listener(f.ports[1], change)
        self.addCleanup(listener.close)
        f.dial[(0, 1)] = listener.port
        f.write_topology(0)
        f.start()
        f.wait("three connections to be broken", lambda: len(changed) == 3)
        f.wait_log(1, "TLS: Decryption has failed.")
        for i in range(2):
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        self.assertLessEqual(abs(self.total(f) - 2), 1e-12)


class Rolling(TlsTest):
    """A fleet under training: nobody may be left behind, and no mass lost."""

    N = 8 if fleet.LONG else 3

    def go_on(self, f, rounds=20):
        begin = [node.status()["round"] for node in f.nodes]
        for node, number in zip(f.nodes, begin):
            f.wait_round(node.index, number + rounds)

    def test_from_off_to_offer_to_require_and_a_new_key_for_everybody(self):
        f = self.tls_fleet(self.N, tls=None, options=FOREVER)
        f.start()
        f.wait_state("training")
        digests = {node.status()["topology"]["digest"] for node in f.nodes}
        self.assertEqual({cipher for cipher, _ in f.links().values()}, {None})
        f.roll("offer")
        self.go_on(f)
        self.assertEqual({cipher for cipher, _ in f.links().values()}, {None})  # what stands, stands
        f.roll("require", order=range(self.N - 1, -1, -1))
        f.wait_ciphered()
        self.go_on(f)
        former = dict(f.keys)
        for i in range(self.N):
            f.make_key(i, ".new")
        f.roll(shown={i: former[i] + " " + f.keys[i] for i in range(self.N)})  # both
        f.wait_ciphered()
        for i in range(self.N):
            fleet.os.replace(f.key_path(i) + ".new", f.key_path(i))
        f.roll()  # the nodes take their new keys up
        f.roll(shown=f.keys)  # and the former ones end
        f.wait_ciphered()
        self.assertEqual({key for _, key in f.links().values()}, set(f.keys.values()))
        self.go_on(f)
        self.assertEqual({node.status()["topology"]["digest"] for node in f.nodes}, digests)
        self.assertEqual([node.status()["jumps"] for node in f.nodes], [0] * self.N)
        self.assertLessEqual(abs(self.total(f) - self.N), 1e-9)
        self.assert_alive(f)
        for node in f.nodes:
            self.assertNotIn("event=absent", node.log())

    def test_a_key_that_is_struck_ends_its_links_at_once_and_gets_nobody_in(self):
        f = self.tls_fleet(3, phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]], options={**FOREVER, "train.start": "now"})
        f.start()
        f.wait_ciphered()
        stolen = f.keys[2]
        f.shown[2] = f.make_key(2, ".new")
        f.write_topology(0)
        self.assertEqual(f.reload(0)["keys_changed"], 1)
        links = f.links()
        self.assertNotIn((0, "n2", "out"), links)
        self.assertNotIn((0, "n2", "in"), links)
        self.assertIn((0, "n1", "in"), links)
        self.assertIn("its key %s any more" % stolen, f.nodes[0].log())
        f.wait_log(0, "its key is %s, which the topology file gives to nobody; ours is %s" % (stolen, f.keys[0]))
        f.wait_log(0, "event=refused")
        told = "it has the key %s, and the topology file gives n2 %s" % (stolen, f.keys[2])
        f.wait("n0 to name both keys", lambda: told in (f.nodes[0].peer("n2", "out")["last_error"] or ""))
        told = "the peer refused our key " + stolen
        f.wait("n2 to hear why", lambda: told in (f.nodes[2].peer("n0", "out")["last_error"] or ""))
        f.wait_round(0, f.nodes[0].status()["round"] + 20)


class Lowered(TlsTest):
    def test_a_reload_that_leaves_require_is_told_in_answer_log_and_status_until_it_is_back(self):
        f = self.tls_fleet(2, options=FOREVER)
        f.start()
        f.wait_ciphered()
        topology = f.nodes[0].status()["topology"]
        self.assertEqual((topology["tls"], topology["tls_before"]), ("require", None))
        for mode in ("offer", "off"):
            f.tls = mode
            f.write_topology(0)
            said = ("%s: the file said tls=require and says tls=%s now: somebody who reaches this node's port may "
                    "get in without a key; write tls=require again unless that is meant" % (f.nodes[0].status()["topology"]["file"], mode))
            answer = f.reload(0)
            self.assertEqual((answer["tls"], answer["tls_before"]), (mode, "require"))
            self.assertIn(said, answer["warnings"])
            self.assertIn('warning node=n0 event=warning text="%s"' % said, f.nodes[0].log())
            topology = f.nodes[0].status()["topology"]
            self.assertEqual((topology["tls"], topology["tls_before"]), (mode, "require"))
        f.reload(0)  # the same once more: it stays told
        self.assertEqual(f.nodes[0].status()["topology"]["tls_before"], "require")
        run = subprocess.run([tls.SGPCTL, "-s", f.nodes[0].socket, "reload"], text=True, capture_output=True, check=True,
                             timeout=fleet.PATIENCE)
        self.assertIn("\nwarning: " + said + "\n", run.stdout)
        run = subprocess.run([tls.SGPCTL, "-s", f.nodes[0].socket, "status", "--check"], text=True, capture_output=True,
                             check=False, timeout=fleet.PATIENCE)
        self.assertEqual(run.returncode, 7, run.stdout)
        self.assertIn("\ndegraded: links may be plain: the topology file says tls=off, and said tls=require before\n",
                      run.stdout)
        f.tls = "require"
        f.write_topology(0)
        answer = f.reload(0)
        self.assertEqual((answer["tls"], answer["tls_before"], answer["warnings"]), ("require", None, []))


class Offer(TlsTest):
    def test_a_downgrade_is_shown_and_one_after_a_ciphered_link_is_refused(self):
        f = self.tls_fleet(2, tls=None, options={**FOREVER, "train.start": "now"})
        f.tls = "offer"
        f.write_topology(0)
        f.start()
        for i in range(2):
            f.wait_round(i, 5)
        f.wait("both links of n0", lambda: len([key for key in f.links() if key[0] == 0]) == 2)
        self.assertEqual(f.nodes[0].peer("n1", "out")["cipher"], None)
        f.wait_log(0, "event=plain peer=n1 direction=out")
        f.nodes[1].end()
        f.write_topology(1)
        f.nodes[1].start()
        f.wait_ciphered()
        f.nodes[1].end()
        f.tls = None
        f.write_topology(1)
        f.nodes[1].start()
        f.wait_log(0, "it is called n1 and speaks without TLS, and n1 spoke with it before")
        f.wait("n0 to refuse a line without", lambda: "TLS" in (f.nodes[0].peer("n1", "out")["last_error"] or "")
               or "closed" in (f.nodes[0].peer("n1", "out")["last_error"] or ""))
        self.assertNotIn("up", {f.nodes[0].peer("n1", d)["state"] for d in ("in", "out")})
        f.wait_round(0, f.nodes[0].status()["round"] + 20)
        f.nodes[0].end()
        f.nodes[0].start()
        f.wait("n0, started again, to believe", lambda: len(f.links()) == 4)


class BadFiles(TlsTest):
    def test_what_does_not_fit_together_is_refused_with_both_keys(self):
        f = self.tls_fleet(2)
        self.assertEqual(f.check()[0], 0, f.check()[1])
        keys = dict(f.keys)
        f.shown[0] = f.make_key(0, ".new")
        f.write_topology(0)
        code, said = f.check()
        self.assertEqual(code, 6)
        self.assertIn("n0.key is the key %s, and by" % keys[0], said)
        self.assertIn("node n0 has %s; correct" % f.keys[0], said)
        fleet.os.chmod(f.key_path(0), 0o640)
        self.assertIn("others may read or change it (mode 0640", f.check()[1])
        fleet.os.remove(f.key_path(0))
        self.assertIn("[node] key: ", f.check()[1])
        f.write_configuration(0, {"node.key": None}, {})
        self.assertIn("says tls=require, and this node has no secret key", f.check()[1])

    def test_a_reload_that_would_shut_the_node_out_is_refused(self):
        f = self.tls_fleet(2, options=FOREVER)
        f.start()
        f.wait_ciphered()
        former = f.shown[0]
        f.shown[0] = f.make_key(0, ".new")
        f.write_topology(0)
        code, body = f.nodes[0].get("/v1/reload", "POST")
        self.assertEqual(code, 422, body)
        self.assertIn(b"node n0 has " + f.keys[0].encode(), body)
        f.wait_round(0, f.nodes[0].status()["round"] + 20)
        f.shown[0] = former
        f.wait_ciphered()


if __name__ == "__main__":
    tls.main()
