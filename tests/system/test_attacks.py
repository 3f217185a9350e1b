# SPDX-License-Identifier: Apache-2.0
"""A campaign against the gossip port of a node that requires ciphers, counted by kind: some hundreds of attacks, ten
thousand with SGP_LONG. Nothing gets in, nobody waits, and what was taken for it is given back.

n0 and n1 are daemons that train together; n2 is a neighbour of n0 that never comes. The attackers are OpenSSL by Python,
GnuTLS by ctypes, and bytes that were overheard on the line of a caller with a key, whole or spoilt."""
import collections
import concurrent.futures
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest

import fleet
import peer
import tls
from peer import Closed, Peer
from tls import TlsTest
from tls_peer import CipheredPeer, Refused, Relayed

SCALE = 1 if fleet.LONG else 25  # of the counts
AT_ONCE = 8  # attacks, beside those that stay
ELSEWHERE = "127.0.0.2"  # an address that is nobody's
HANDSHAKE, ALERT, CHANGE = 0x16, 0x15, 0x14  # types of records
MEMORY_MOST = 4 << 20  # while they attack
MEMORY_LEFT = 1 << 20  # after it
CALLS_EACH = 10000 if fleet.LONG else 1000  # of each process that calls at full speed
FINGERPRINT = [0, 0, 0, 0, 1, 0, 0.1, 10]


def records(flight):
    """Where its records begin and end."""
    begin = 0
    while begin < len(flight):
        end = begin + 5 + struct.unpack_from(">H", flight, begin + 3)[0]
        yield begin, end
        begin = end


def meaning(flight):
    """The bytes that mean something: not the version in a record's header, nor a change_cipher_spec, which TLS 1.3 carries for
    the sake of older ones."""
    return [at for begin, end in records(flight) if flight[begin] != CHANGE for at in range(begin + 3, end)]


def turned(draw, flight):
    at = draw.choice(meaning(flight))
    return flight[:at] + bytes([flight[at] ^ 1 << draw.randrange(8)]) + flight[at + 1:]


def cut(draw, flight):
    return flight[:draw.randrange(len(flight))]


def older(hello):
    """The same hello by somebody who has no TLS 1.3: extension 43 names 1.2."""
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + struct.unpack_from(">H", hello, at)[0]
    at += 1 + hello[at] + 2
    while struct.unpack_from(">H", hello, at)[0] != 43:
        at += 4 + struct.unpack_from(">H", hello, at + 2)[0]
    end = at + 4 + struct.unpack_from(">H", hello, at + 2)[0]
    return hello[:at] + hello[at:end].replace(b"\x03\x04", b"\x03\x03") + hello[end:]


class Attackers:
    """Each attack returns what came of it, in a word or two; ANSWERED is for who has a key that may ask."""

    ANSWERED = "answered"

    def __init__(self, port, key_of_n1, key_of_nobody, key_that_was_struck, n2_key):
        self.port = port
        self.known, self.nobody, self.struck, self.n2 = key_of_n1, key_of_nobody, key_that_was_struck, n2_key
        self.overheard = self.overhear()

    def overhear(self):
        """What n1 says that asks a question: its hello, the end of its handshake, the question."""
        said = []
        assert self.ask(lambda: Relayed(self.port, lambda _, flight: said.append(flight) or flight, self.known)) \
            == self.ANSWERED
        return said

    # ---- what they say ----

    @staticmethod
    def speak(make, say):
        """Somebody is made who says something: what comes of it."""
        stranger = None
        try:
            stranger = make()
            say(stranger)
            kinds, _ = stranger.until_closed()
        except Refused:
            return "no handshake"
        except Closed:
            kinds = []
        finally:
            if stranger is not None:
                stranger.close()
        words = {(): "no word", (peer.GOODBYE,): "goodbye", (peer.ANSWER,): Attackers.ANSWERED}
        return words.get(tuple(kinds), "in: %s" % kinds)

    def ask(self, make):
        return self.speak(make, lambda stranger: stranger.send(peer.INQUIRE, "n1", 1, "n0", 1, 1))

    def greet(self, make):
        return self.speak(make, lambda stranger: stranger.hello("n2", "n0", 14, FINGERPRINT))

    def say_bytes(self, pieces, ends=True):
        """Bytes without a thought, and the end: what is heard until the other end closes."""
        heard = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as sock:
            try:
                for piece in pieces:
                    sock.sendall(piece)
                if ends:
                    sock.shutdown(socket.SHUT_WR)
                while data := sock.recv(1 << 16):
                    heard += data
            except TimeoutError:
                return "in: it stays"
            except OSError:  # reset, maybe before its last word
                pass
        if heard.startswith(peer.MAGIC):
            kind, = struct.unpack_from("<H", heard, 6)
            return "goodbye" if kind == peer.GOODBYE else "in: %d" % kind
        kinds = {heard[begin] for begin, _ in records(heard)} if heard else set()
        return "half a handshake" if HANDSHAKE in kinds else "alert" if ALERT in kinds else "no word"

    # ---- kinds ----

    def honest(self, _):
        return self.ask(lambda: CipheredPeer(self.port, self.known))

    def no_key(self, _):
        return self.greet(lambda: CipheredPeer(self.port))

    def wrong_key(self, _):
        return self.greet(lambda: CipheredPeer(self.port, self.nobody))

    def struck_key(self, _):
        return self.greet(lambda: CipheredPeer(self.port, self.struck))

    def key_of_another(self, _):
        return self.greet(lambda: CipheredPeer(self.port, self.known))

    def large_certificate(self, draw):
        large = draw.choice((5000, 20000, 100000))
        return self.greet(lambda: CipheredPeer(self.port, self.n2, large=large))

    def openssl(self, version):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        try:
            with context.wrap_socket(sock) as stranger:
                return "in: %s" % stranger.version()
        except (ssl.SSLError, ConnectionError):
            return "no handshake"
        finally:
            sock.close()

    def tls_1_2(self, _):
        return self.openssl(ssl.TLSVersion.TLSv1_2)

    def certificates(self, _):
        return self.openssl(ssl.TLSVersion.TLSv1_3)

    def downgrade_by_itself(self, _):
        return self.say_bytes([older(self.overheard[0])], ends=False)

    def downgrade_on_the_way(self, _):
        return self.ask(lambda: Relayed(self.port, lambda i, flight: older(flight) if i == 0 else flight, self.known))

    def without_tls(self, draw):
        stranger, said = Peer(self.port), []
        with stranger.socket:
            stranger.send_bytes = said.append
            stranger.hello("n1", "n0", 14, FINGERPRINT, incarnation=draw.randrange(1 << 60))
        return self.say_bytes(said)

    def handshake_cut(self, draw):
        return self.say_bytes([cut(draw, self.overheard[0])])

    def handshake_turned(self, draw):
        return self.say_bytes([turned(draw, self.overheard[0])])

    def spoilt(self, which, spoil):
        return self.ask(lambda: Relayed(self.port, lambda i, flight: spoil(flight) if i == which else flight, self.known))

    def known_handshake_cut(self, draw):
        return self.spoilt(draw.randrange(2), lambda flight: cut(draw, flight))

    def known_handshake_turned(self, draw):
        return self.spoilt(draw.randrange(2), lambda flight: turned(draw, flight))

    def record_cut(self, draw):
        return self.spoilt(2, lambda flight: cut(draw, flight))

    def record_turned(self, draw):
        return self.spoilt(2, lambda flight: turned(draw, flight))

    def replayed(self, draw):
        whole = b"".join(self.overheard)
        return self.say_bytes([whole] if draw.random() < 0.5 else self.overheard)


# What comes of each kind at most, and how many there are.
KINDS = {
    Attackers.no_key: (1000, {"no handshake", "no word"}),
    Attackers.wrong_key: (1000, {"no handshake", "no word"}),
    Attackers.struck_key: (800, {"no handshake", "no word"}),
    Attackers.key_of_another: (800, {"goodbye"}),
    Attackers.large_certificate: (400, {"no handshake", "no word"}),
    Attackers.tls_1_2: (600, {"no handshake"}),
    Attackers.certificates: (400, {"no handshake"}),
    Attackers.downgrade_by_itself: (400, {"alert", "no word"}),
    Attackers.downgrade_on_the_way: (400, {"no handshake"}),
    Attackers.without_tls: (400, {"goodbye"}),
    Attackers.handshake_cut: (500, {"alert", "no word"}),
    Attackers.handshake_turned: (500, {"alert", "no word", "half a handshake"}),
    Attackers.known_handshake_cut: (500, {"no handshake", "no word"}),
    Attackers.known_handshake_turned: (500, {"no handshake", "no word"}),
    Attackers.record_cut: (500, {"no word"}),
    Attackers.record_turned: (500, {"no word", "goodbye"}),  # it may be longer now, and is waited for
    Attackers.replayed: (700, {"half a handshake", "no word"}),
    Attackers.honest: (1000, {Attackers.ANSWERED}),
}
SILENT, SLOW = 1000, 100  # callers that stay


class Staying(threading.Thread):
    """Callers that stay until they are closed, all at once: silent ones from an address that is nobody's, and those of a
    neighbour's address who say a byte of a handshake from time to time."""

    def __init__(self, port, hello, silent, slow):
        super().__init__(daemon=True)
        self.hello, self.silent, self.slow = hello, [], []
        for held, count, host in ((self.silent, silent, ELSEWHERE), (self.slow, slow, "127.0.0.1")):
            for _ in range(count):
                sock = socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(host, 0))
                sock.setblocking(False)
                held.append(sock)
        self.outcomes = collections.Counter()

    def run(self):
        for turn in range(3 * len(self.hello)):
            self.slow = [sock for sock in self.slow if self.stays(sock, "slow", self.hello[turn // 3:][:turn % 3 == 0])]
            self.silent = [sock for sock in self.silent if self.stays(sock, "silent")]
            if not self.slow and not self.silent:
                return
            time.sleep(0.1)
        self.outcomes["in: it stays"] += len(self.slow) + len(self.silent)

    def stays(self, sock, kind, byte=b""):
        try:
            sock.send(byte)
            heard = sock.recv(1 << 16)
        except BlockingIOError:
            return True
        except ConnectionError:
            heard = b""
        self.outcomes[kind, "goodbye" if heard.startswith(peer.MAGIC) else "in: heard" if heard else "no word"] += 1
        sock.close()
        return False


# Silent callers of a port, as fast as one process makes them: the port, an address to call from, how many. Each has the last
# hundred open.
CALLS = """
import socket, sys
port, host, count, held = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), []
for _ in range(count):
    held.append(socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(host, 0)))
    if len(held) > 100:
        held.pop(0).close()
"""


class Campaign(TlsTest):
    def setUp(self):
        f = self.tls_fleet(3, phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]],
                           options={"train.start": "now", "train.epochs": "1000000"})
        self.fleet_, self.node = f, f.nodes[0]
        f.start([0, 1])
        f.wait("n0 and n1 to speak", lambda: all(
            f.links().get(link, (None,))[0] for link in ((0, "n1", "in"), (0, "n1", "out"))))
        struck = f.key_path(2) + ".struck"
        os.rename(f.key_path(2), struck)
        f.shown[2] = f.make_key(2)
        f.write_topology(0)
        self.assertEqual(f.reload(0)["keys_changed"], 1)
        f.make_key(2, ".nobody")
        self.attackers = Attackers(self.node.listen, f.key_path(1), f.key_path(2) + ".nobody", struck, f.key_path(2))
        self.outcomes = collections.Counter()
        self.came = self.comings()

    def comings(self):
        """How often neighbours of n0 have come and gone."""
        log = self.node.log()
        return [log.count("event=%s peer=%s" % (what, who)) for who in ("n1", "n2") for what in ("up", "down")]

    def resident(self):
        with open("/proc/%d/statm" % self.node.process.pid, encoding="utf-8") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def mappings(self):
        """Resident KiB of each mapping."""
        resident = collections.Counter()
        with open("/proc/%d/smaps" % self.node.process.pid, encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if not words[0].endswith(":"):
                    name = words[5] if len(words) > 5 else words[0]
                elif words[0] == "Rss:":
                    resident[name] += int(words[1])
        return resident

    def peak_since(self, act):
        """The most that was resident while act() ran."""
        with open("/proc/%d/clear_refs" % self.node.process.pid, "w", encoding="utf-8") as file:
            file.write("5")  # proc(5): forget the peak
        act()
        with open("/proc/%d/status" % self.node.process.pid, encoding="utf-8") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))

    def wait_memory(self, memory, mappings):
        """Memory returns to the system a second after many callers have left."""
        try:
            self.fleet_.wait("memory to return", lambda: self.resident() - memory < MEMORY_LEFT)
        finally:
            grown = (self.mappings() - mappings).most_common(5)
            print("# %d KiB more than before, by mapping: %s" % ((self.resident() - memory) >> 10, grown), flush=True)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.node.process.pid))

    def attack(self, scale):
        """All kinds, mixed, with honest callers among them; n0 trains on meanwhile."""
        plan = [kind for kind, (count, _) in KINDS.items() for _ in range(count // scale)]
        random.Random(1).shuffle(plan)
        draws = [random.Random(seed) for seed in range(len(plan))]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = list(pool.map(lambda kind, draw: kind(self.attackers, draw), plan, draws))
        return collections.Counter(zip(plan, outcomes))

    def tell(self, staying):
        lines = [(kind.__name__.replace("_", " "), outcome, count) for (kind, outcome), count in self.outcomes.items()]
        lines += [(kind, outcome, count) for (kind, outcome), count in staying.items()]
        for kind, outcome, count in sorted(lines):
            print("# %-24s %-18s %6d" % (kind, outcome, count), flush=True)
        print("# %-24s %-18s %6d" % ("all", "", sum(count for *_, count in lines)), flush=True)

    def test_nothing_gets_in_and_nobody_waits(self):
        self.attack(100)  # libraries fill their caches
        self.fleet_.wait("descriptors to return", lambda: self.descriptors() < 64)
        descriptors, memory, round_ = self.descriptors(), self.resident(), self.node.status()["round"]
        mappings = self.mappings()
        staying = Staying(self.node.listen, self.attackers.overheard[0], SILENT // min(SCALE, 5), SLOW // min(SCALE, 5))
        staying.start()
        self.outcomes = self.attack(SCALE)
        self.fleet_.wait_round(0, round_ + 100)
        staying.join()
        self.tell(staying.outcomes)
        for (kind, outcome), _ in self.outcomes.items():
            self.assertIn(outcome, KINDS[kind][1], kind.__name__)
        self.assertEqual({outcome for _, outcome in staying.outcomes} - {"goodbye", "no word"}, set())
        self.fleet_.wait("descriptors to return", lambda: self.descriptors() <= descriptors)
        if "SGP_FEW" not in os.environ:  # a sanitizer has memory of its own
            self.wait_memory(memory, mappings)
        self.assertEqual(self.comings(), self.came)
        self.assert_alive(self.fleet_, [0, 1])

    def rush(self, host):
        """Callers from this address by three processes, faster than n0 refuses them."""
        callers = [subprocess.Popen([sys.executable, "-c", CALLS, str(self.node.listen), host, str(CALLS_EACH)])
                   for _ in range(3)]
        self.assertEqual([caller.wait() for caller in callers], [0, 0, 0])

    @unittest.skipIf("SGP_FEW" in os.environ, "a sanitizer has memory of its own")
    def test_callers_at_full_speed_take_bounded_memory(self):
        self.attack(100)
        for host in (ELSEWHERE, "127.0.0.1"):
            memory, round_ = self.resident(), self.node.status()["round"]
            peak = self.peak_since(lambda host=host: self.rush(host))
            print("# from %s: %d KiB at most" % (host, (peak - memory) >> 10), flush=True)
            self.assertLess(peak - memory, MEMORY_MOST)
            self.fleet_.wait_round(0, round_ + 100)
        self.assertEqual(self.comings(), self.came)
        self.assert_alive(self.fleet_, [0, 1])


if __name__ == "__main__":
    tls.main()
