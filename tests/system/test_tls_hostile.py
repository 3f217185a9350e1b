# SPDX-License-Identifier: Apache-2.0
"""Whoever comes to the gossip port of a node whose links are ciphered, and is nobody: nothing gets in, nobody waits, and
what was taken for it is given back."""
import concurrent.futures
import os
import random
import socket
import time
import unittest

import fleet
import peer
import tls
import tls_peer
from peer import Closed, Peer
from tls import TlsTest
from tls_peer import CipheredPeer, Refused

PHASES = [[(0, 1), (1, 0), (0, 2), (2, 0)]]


class TlsTrio(TlsTest):
    """n0 and n1 are daemons that train together; n2, a neighbour of n0, is played by the test."""

    MODE = "require"
    HOST = "127.0.0.1"  # in the file, of n2

    def setUp(self):
        self.fleet_ = self.tls_fleet(3, tls=self.MODE, phases=PHASES,
                                     options={"train.start": "now", "train.epochs": "100000"})
        self.fleet_.start([0, 1])
        self.node = self.fleet_.nodes[0]
        self.fleet_.wait("n0 and n1 to speak", lambda: all(
            self.fleet_.links().get(link, (None,))[0] for link in ((0, "n1", "in"), (0, "n1", "out"))))
        self.fleet_.wait("all files to be open", lambda: os.path.exists(os.path.join(self.node.directory, "history.csv")))
        self.before = self.taken()
        self.downs = self.node.log().count("event=down")

    def key(self, index):
        return self.fleet_.key_path(index)

    def taken(self):
        """Descriptors of n0."""
        return len(os.listdir("/proc/%d/fd" % self.node.process.pid))

    def tearDown(self):
        """Whatever came: n0 trains with n1, which it did not lose, and no descriptor is left of it."""
        before = self.node.status()["round"]
        self.fleet_.wait_round(0, before + 20)
        self.fleet_.wait("descriptors to return", lambda: self.taken() <= self.before)
        self.assertNotIn("event=up peer=n2", self.node.log())
        self.assertEqual(self.node.log().count("event=up peer=n1 direction=in"), 1)
        self.assert_alive(self.fleet_, [0, 1])

    def connect(self):
        stranger = Peer(self.node.listen)
        self.addCleanup(stranger.close)
        return stranger

    def ciphered(self, **options):
        stranger = CipheredPeer(self.node.listen if "sock" not in options else None, **options)
        self.addCleanup(stranger.close)
        return stranger

    def hello(self, stranger, source="n2"):
        """What comes of it: the kinds of frames until the end."""
        stranger.hello(source, "n0", 14, [0, 0, 0, 0, 1, 0, 0.1, 10])
        return stranger.until_closed()

    def shut_out(self, **options):
        """Whoever comes so hears nothing, be it that the handshake fails at its end or at ours."""
        try:
            self.assertEqual(self.hello(self.ciphered(**options))[0], [])
        except (Refused, Closed):
            pass


class Rollout(TlsTrio):
    MODE = "offer"

    def begin(self, send):
        """Half of what somebody says who speaks without TLS, while that is allowed; the other half comes when it is not."""
        stranger, said = self.connect(), []
        stranger.send_bytes = said.append
        send(stranger)
        del stranger.send_bytes
        whole = b"".join(said)
        stranger.send_bytes(whole[:8])
        self.fleet_.wait("n0 to read it", lambda: self.unread(stranger) == 0)
        self.fleet_.roll("require", order=[0, 1])
        stranger.send_bytes(whole[8:])
        return stranger.until_closed()[0]

    def unread(self, stranger):
        """Bytes of a caller's that the kernel still keeps for n0."""
        ends = ["0100007F:%04X" % port for port in (self.node.listen, stranger.port)]
        with open("/proc/net/tcp", encoding="utf-8") as file:
            lines = [line.split() for line in file]
        return next((int(line[4].split(":")[1], 16) for line in lines if line[1:3] == ends), None)

    def test_a_greeting_that_was_begun_before(self):
        kinds = self.begin(lambda stranger: stranger.hello("n2", "n0", 14, [0, 0, 0, 0, 1, 0, 0.1, 10]))
        self.assertEqual(kinds, [peer.GOODBYE])
        self.fleet_.wait_log(0, "it speaks without TLS, which the topology file requires")

    def test_a_question_that_was_begun_before(self):
        self.assertEqual(self.begin(lambda stranger: stranger.send(peer.INQUIRE, "n1", 1, "n0", 1, 1)), [])


class Strangers(TlsTrio):
    def test_no_key(self):
        self.shut_out(key=None)
        self.fleet_.wait_log(0, "event=refused")

    def test_a_key_that_nobody_has(self):
        stranger = self.fleet_.make_key(2, ".other")
        self.shut_out(key=self.key(2) + ".other")
        self.fleet_.wait_log(0, "its key is %s, which the topology file gives to nobody; ours is %s"
                             % (stranger, self.fleet_.keys[0]))

    def test_the_key_of_another_node(self):
        kinds, last = self.hello(self.ciphered(key=self.key(1)))
        self.assertEqual((kinds, last[0]), ([peer.GOODBYE], 8))
        self.fleet_.wait_log(0, "it is called n2 and has the key %s; the topology file gives n2 %s"
                             % (self.fleet_.keys[1], self.fleet_.keys[2]))

    def test_a_certificate_that_is_far_too_large(self):
        for large in (5000, 100000):
            self.shut_out(key=self.key(2), large=large)
        self.fleet_.wait("two lines", lambda: self.node.log().count("event=refused") == 2)

    def test_an_older_version(self):
        self.shut_out(key=self.key(2), suites=tls_peer.OLD_SUITES)
        self.shut_out(key=self.key(2), suites="NORMAL:-VERS-ALL:+VERS-TLS1.2:-CTYPE-ALL:+CTYPE-RAWPK")
        self.fleet_.wait("two lines", lambda: self.node.log().count("event=refused") == 2)

    def test_without_tls(self):
        stranger = self.connect()
        stranger.hello("n2", "n0", 14, [0, 0, 0, 0, 1, 0, 0.1, 10])
        self.assertEqual(stranger.until_closed()[0], [peer.GOODBYE])
        self.fleet_.wait_log(0, "it speaks without TLS, which the topology file requires")

    def test_a_question_without_tls(self):
        stranger = self.connect()
        stranger.send(peer.INQUIRE, "n1", 1, "n0", 1, 1)
        self.assertEqual(stranger.until_closed()[0], [peer.GOODBYE])

    def test_an_http_client(self):
        stranger = self.connect()
        stranger.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
        stranger.until_closed()
        self.fleet_.wait_log(0, "event=refused")

    # ---- handshakes that are no whole ones ----

    def test_handshakes_that_are_cut(self):
        hello = self.client_hello()
        for cut in range(1, len(hello), 7):
            stranger = self.connect()
            stranger.send_bytes(hello[:cut])
            stranger.close()
        self.assertEqual(self.node.log().count("event=down"), self.downs)

    def test_handshakes_in_which_bits_are_turned(self):
        draw = random.Random(1)
        hello = self.client_hello()
        for _ in range(40):
            turned = bytearray(hello)
            turned[draw.randrange(5, len(hello))] ^= 1 << draw.randrange(8)
            stranger = self.connect()
            stranger.send_bytes(bytes(turned) + draw.randbytes(300))
            stranger.socket.settimeout(0.2)
            try:
                while stranger.socket.recv(65536):
                    pass
            except OSError: # it waits for more
                pass
            stranger.close()
        self.fleet_.wait_log(0, "event=refused")

    def client_hello(self):
        """What n1 says first when it dials."""
        return self.overheard()[0]

    def overheard(self):
        """What a neighbour says on a connection to n0, in pieces as they came: a hello, and what follows the answer."""
        sent = []
        between, line = socket.create_server(("127.0.0.1", 0)), None
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            caller = pool.submit(CipheredPeer, between.getsockname()[1], self.key(1))
            line, _ = between.accept()
            target = socket.create_connection(("127.0.0.1", self.node.listen))
            sent.append(line.recv(65536))
            target.sendall(sent[0])
            line.sendall(target.recv(65536))
            sent.append(line.recv(65536))
            stranger = caller.result()
        stranger.send(peer.INQUIRE, "n1", 1, "n0", 1, 1)
        sent.append(line.recv(65536))
        for sock in (between, line, target, stranger):
            sock.close()
        return sent

    def test_a_connection_that_was_recorded(self):
        pieces = self.overheard()
        for together in (True, False):
            stranger = self.connect()
            for piece in [b"".join(pieces)] if together else pieces:
                try:
                    stranger.send_bytes(piece)
                except Closed:
                    break
            answered = b""
            try:
                while data := stranger.socket.recv(65536):
                    answered += data
            except OSError:
                pass
            self.assertLess(len(answered), 1024) # a handshake that comes to nothing
        self.fleet_.wait("two lines", lambda: self.node.log().count("event=refused") >= 2)

    # ---- silence ----

    def test_many_that_stay_silent_and_one_that_shakes_hands_slowly_keep_nobody_out(self):
        hello = self.client_hello()
        slow = self.connect()
        silent = [self.connect() for _ in range(40)]
        for stranger in silent[::2]:
            stranger.send_bytes(hello[:100])
        for byte in hello[:20]:
            slow.send_bytes(bytes([byte]))
        self.assertEqual(self.hello(self.ciphered(key=self.key(1)))[0], [peer.GOODBYE])
        self.fleet_.wait_log(0, "it said no hello within 5 s")
        slow.until_closed()
        for stranger in silent:
            stranger.until_closed()

    @unittest.skipIf(os.environ.get("SGP_FEW"), "a sanitizer has memory of its own")
    def test_two_thousand_handshakes_leave_no_memory_behind(self):
        hello = self.client_hello()

        def resident():
            with open("/proc/%d/statm" % self.node.process.pid) as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def shake(times):
            for _ in range(times):
                with socket.create_connection(("127.0.0.1", self.node.listen)) as sock:
                    sock.sendall(hello)
                    sock.recv(65536)

        shake(300)
        before = resident()
        shake(2000)
        self.assertLess(resident() - before, 2 << 20)


class Flood(TlsTrio):
    """From an address that is nobody's."""

    ELSEWHERE = "127.0.0.2"

    def flood(self, number, seconds):
        """So many silent callers a second."""
        held, begin, made = [], time.monotonic(), 0
        while time.monotonic() < begin + seconds:
            while made < (time.monotonic() - begin) * number:
                sock = socket.socket()
                sock.setblocking(False)
                sock.bind((self.ELSEWHERE, 0))
                sock.connect_ex(("127.0.0.1", self.node.listen))
                held.append(sock)
                made += 1
            while len(held) > 500:
                held.pop(0).close()
            time.sleep(0.001)
        for sock in held:
            sock.close()
        return made / (time.monotonic() - begin)

    def come_in(self, address):
        """Neighbours with a key that come from this address while the others flood: how many, and the slowest of them; each
        is answered."""
        number, seconds = (3000, 20) if fleet.LONG else (600, 2)
        slowest, came = 0, 0
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            flood = pool.submit(self.flood, number, seconds)
            while not flood.done():
                begin = time.monotonic()
                stranger = self.ciphered(key=self.key(1), sock=socket.create_connection(
                    ("127.0.0.1", self.node.listen), timeout=30, source_address=(address, 0)))
                stranger.send(peer.INQUIRE, "n1", 1, "n0", 1, 1)
                self.assertEqual(stranger.until_closed()[0], [peer.ANSWER])
                stranger.close()
                slowest = max(slowest, time.monotonic() - begin)
                came += 1
                time.sleep(0.1)
            rate = flood.result()
        print("# %d callers came in, the slowest after %.3f s, beside %.0f silent ones a second" % (came, slowest, rate))
        self.fleet_.wait_log(0, "event=refused remote=%s:" % self.ELSEWHERE)
        self.assertGreater(came, 3)
        if fleet.LONG:
            self.assertGreater(rate, 0.8 * number)
            self.assertLess(slowest, 1)

    def test_callers_of_the_file_are_in_at_once_whatever_comes_from_elsewhere(self):
        self.come_in("127.0.0.1")

    def test_neighbours_that_call_from_elsewhere_are_in_beside_one_who_floods(self):
        self.come_in("127.0.0.3")


if __name__ == "__main__":
    tls.main()
