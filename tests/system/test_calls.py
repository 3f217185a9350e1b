# SPDX-License-Identifier: Apache-2.0
"""Nodes that cannot be dialled: they make all connections, and are greeted on those of their in-edges."""
import signal

import peer
import tls
from peer import Peer
from tls import TlsFleet, TlsTest
from tls_peer import CipheredPeer

FOREVER = {"train.epochs": "1000000"}


class Hidden(TlsFleet):
    """The last node has no address, and nobody knows where it listens."""

    def address(self, index, other):
        return "none" if other == self.n - 1 else super().address(index, other)


class Calls(TlsTest):
    def hidden(self, n, tls_mode, **options):
        f = Hidden(n, tls=tls_mode, **options)
        self.fleets = getattr(self, "fleets", []) + [f]
        self.addCleanup(f.close)
        return f

    def test_it_trains_with_the_others_ciphered_and_plain(self):
        for mode in ("require", None):
            f = self.hidden(4, mode)
            f.start()
            f.wait_state("finished")
            self.assertLessEqual(abs(sum(s["weight"] for s in f.quiet()) - 4), 1e-12)
            if mode:
                f.wait_ciphered()
            self.assertEqual([node.status()["jumps"] for node in f.nodes], [0] * 4)
            for node in f.nodes:
                self.assertGreater(node.json("/v1/evaluate", "POST")["accuracy"], 0.8)

    def test_it_comes_back_after_a_crash_and_a_reload_keeps_its_links(self):
        f = self.hidden(3, "require", options={**FOREVER, "train.start": "now"})
        f.start()
        f.wait_ciphered()
        hidden = f.nodes[2]
        hidden.kill(signal.SIGKILL)
        hidden.process.wait()
        f.wait_round(0, f.nodes[0].status()["round"] + 20)
        hidden.start()
        f.wait_ciphered()
        f.roll()
        f.wait_ciphered()
        for node in f.nodes:
            f.wait_round(node.index, node.status()["round"] + 20)
        self.assertLessEqual(abs(self.total(f) - 3), 1e-9)

    def test_nobody_else_is_greeted(self):
        f = self.hidden(2, None, options={**FOREVER, "train.start": "now"})
        f.start()
        f.wait("both links", lambda: len(f.links()) == 4)

        def called(source, target):
            stranger = Peer(f.nodes[0].listen)
            self.addCleanup(stranger.close)
            stranger.send(peer.CALL, source, target)
            kinds, last = stranger.until_closed()
            self.assertEqual(kinds, [peer.GOODBYE])
            return last[0]

        self.assertEqual(called("n0", "n1"), 14)  # a connection stands, and is not cut
        f.wait_log(0, "it calls as n1, to which a connection stands")
        self.assertEqual(called("n0", "n7"), 8)
        self.assertEqual(called("n1", "n1"), 8)
        self.assertEqual(called("n0", "n0"), 8)
        for i in range(2):
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        self.assertEqual(f.nodes[0].log().count("event=down"), 0)

    def test_a_call_needs_the_key_of_whom_it_names(self):
        f = self.hidden(3, "require", phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]], options={**FOREVER, "train.start": "now"})
        f.start([0, 1])
        f.wait_round(0, 20)

        stranger = CipheredPeer(f.nodes[0].listen, key=f.key_path(1))
        self.addCleanup(stranger.close)
        stranger.send(peer.CALL, "n0", "n2")
        self.assertEqual(stranger.until_closed()[0], [peer.GOODBYE])
        f.wait_log(0, "it is called n2 and has the key " + f.keys[1])
        caller = CipheredPeer(f.nodes[0].listen, key=f.key_path(2))
        self.addCleanup(caller.close)
        caller.send(peer.CALL, "n0", "n2")
        self.assertEqual(caller.receive(peer.HELLO)[1][:2], ["n0", "n2"])


if __name__ == "__main__":
    tls.main()
