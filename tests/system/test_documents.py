# SPDX-License-Identifier: Apache-2.0
"""Members that lie about signed topology files, by the bytes of docs/PROTOCOL.md: what they send costs them a connection,
and daemons train on and change their file.

test_documents.py SGPD SGPCTL
"""
import os
import sys
import threading
import time

import fleet
import peer
import tls
from peer import BULLETIN, CALL, PULL, Closed, Peer
from signed import SignedTest

tls.SGPCTL = os.path.abspath(sys.argv.pop(2))

FIGURES, VOTE, RESULT, REPORT = 1, 2, 3, 4
ACTIVE, PROPOSED = 3, 4  # subjects
PIECE, MOST = 700, 2 << 20
NOW = {"train.start": "now"}


class Liar:
    """A member with an address and no link. It answers each question about a document by `lie`, and sees its connection
    end."""

    def __init__(self, test, index, lie):
        self.name, self.lie = "n%d" % index, lie
        self.ended = 0  # connections that the daemon has closed
        self.listener = fleet.socket.create_server(("127.0.0.1", test.f.ports[index]))
        test.addCleanup(self.listener.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:  # the test is over
                return
            threading.Thread(target=self.answer, args=(Peer(sock=sock),), daemon=True).start()

    def answer(self, asker):
        try:
            kind, fields = asker.receive(PULL, peer.HELLO)
            if kind == PULL and fields[3] in (ACTIVE, PROPOSED):
                for _ in range(fields[2]):
                    asker.receive(BULLETIN)
                self.tell(asker)
        except (Closed, OSError):
            pass
        asker.close()

    def tell(self, asker):
        try:
            self.lie(asker)
            asker.until_closed()
        except Closed:
            pass
        self.ended += 1


def piece(asker, text, first=0, end=None, stamp=18, **changes):
    fields = {"kind": RESULT, "author": "n9", "stamp": stamp, "digest": peer.checksum(text.encode()), "bytes": len(text),
              "first": first, "text": text[first:end], **changes}
    asker.send(BULLETIN, *fields.values())


def document(asker, text, **changes):
    for first in range(0, len(text), PIECE):
        piece(asker, text, first, first + PIECE, **changes)


class Documents(SignedTest):
    def members(self, lies, phases=None, **options):
        """n0 and n1 are daemons, which train. The others are liars, neighbours of n0."""
        liars = range(2, 2 + len(lies))
        edges = [(0, 1), (1, 0)] + [edge for i in liars for edge in ((0, i), (i, 0))]
        f = self.signed_fleet(2 + len(lies), phases=phases or [edges], options=NOW, **options)
        self.liars = [Liar(self, i, lie) for i, lie in zip(liars, lies)]
        self.begin()
        return f

    def begin(self):
        self.f.start([0, 1])
        for i, other in ((0, "n1"), (1, "n0")):
            self.f.wait_round(i, 3)
            for way in ("in", "out"):
                self.f.wait("a link", lambda i=i, other=other, way=way: self.f.nodes[i].peer(other, way)["state"] == "up")
        self.before = self.downs()
        for node in self.f.nodes[:2]:  # documents travel all the same, and no processor is busy meanwhile
            node.json("/v1/pause", "POST")

    def downs(self):
        """Of the links between n0 and n1."""
        return [self.f.nodes[i].log().count("event=down peer=n%d " % (1 - i)) for i in (0, 1)]

    def goes_on(self):
        """n0 has lost no link to n1, and the two change their file."""
        f = self.f
        for node in f.nodes[:2]:
            node.json("/v1/resume", "POST")
        despite = ",".join("n%d" % i for i in range(2, f.n))
        second = self.sign("r", *(["--despite", despite] if despite else []), after=self.first)
        self.assertEqual(self.push(0, second)[0], 200)
        self.wait_active(2, (0, 1))
        for i in (0, 1):
            f.wait_round(i, f.nodes[i].status()["round"] + 20)
        self.assertEqual(self.downs(), self.before)
        self.assert_alive(f, (0, 1))

    def test_answers_that_break_a_rule_end_their_connection(self):
        good = "x" * 1500

        def truncated(asker):
            piece(asker, good, 0, PIECE)
            asker.send(PULL, "n9", "n0", 0, ACTIVE)

        def unordered(asker):
            piece(asker, good, 0, PIECE)
            piece(asker, good, 2 * PIECE)

        def mixed(asker):
            piece(asker, good, 0, PIECE)
            piece(asker, "y" * 1500, PIECE)

        def flood(asker):
            while True:
                document(asker, self.first.strip(), stamp=2)

        def stream(asker):
            while True:  # each of another kind, and never a whole one
                piece(asker, good, 0, PIECE, kind=FIGURES)

        lies = {"too long": lambda asker: piece(asker, good, 0, PIECE, bytes=MOST + 1),
                "of 16 MiB": lambda asker: piece(asker, good, 0, PIECE, bytes=16 << 20),
                "longer than any": lambda asker: piece(asker, good, 0, PIECE, bytes=1 << 30),
                "longer than announced": lambda asker: piece(asker, good, 0, PIECE, bytes=PIECE - 1),
                "with another digest": lambda asker: document(asker, good, digest=7),
                "without a text": lambda asker: piece(asker, good, 0, 0),
                "a vote": lambda asker: piece(asker, good, 0, 0, kind=VOTE, bytes=0),
                "a report": lambda asker: document(asker, good, kind=REPORT),
                "truncated": truncated, "unordered": unordered, "mixed": mixed, "flood": flood, "stream": stream}
        f = self.members(list(lies.values()))
        for liar, words in zip(self.liars, lies):
            f.wait("an answer that is %s to end twice" % words, lambda liar=liar: liar.ended >= 2)
        self.assertEqual(f.nodes[0].status()["rollout"]["active"], 1)
        self.assertEqual(f.nodes[0].log().count("event=rollout_refused"), 0)  # nothing was a document
        self.goes_on()

    def test_documents_that_are_not_of_this_fleet_are_counted_and_named(self):
        texts = {}
        lies = [lambda asker, i=i: document(asker, texts[i]) for i in range(4)]
        f = self.signed_fleet(6, phases=[[(0, 1), (1, 0)] + [e for i in range(2, 6) for e in ((0, i), (i, 0))]], options=NOW)
        later = self.sign("ab", "--number", "9", after=self.first).strip()
        texts.update({0: self.sign("ab", "--fleet", "barn", "--number", "9").strip(),
                      1: self.sign("abx", "--number", "9", after=self.first).strip(),
                      2: later.replace("version=9", "version=8"), 3: "no document"})
        self.liars = [Liar(self, i, lie) for i, lie in zip(range(2, 6), lies)]
        self.begin()
        reasons = ["version 9 is of the fleet barn, and this node is of mill", "version 9: %s has signed, and is no administrator" % self.keys["x"],
                   "version 8: the signature of the public key", "the document has no file"]
        for i, reason in zip(range(2, 6), reasons):
            f.wait_log(0, 'event=rollout_refused peer=n%d reason="%s' % (i, reason))
        f.wait("all to be asked again", lambda: all(liar.ended >= 2 for liar in self.liars))
        lines = f.nodes[0].log().count("event=rollout_refused")
        self.assertGreaterEqual(lines, 8)
        self.assertEqual(self.rollout(0)["proposed"], None)
        self.goes_on()

    def test_what_nobody_has_asked_for_is_refused(self):
        f = self.members([])
        for first in (lambda s: document(s, self.first.strip()), lambda s: s.send(CALL, "n0", "n1"),
                      lambda s: s.send(PULL, "n9", "n0", 0, PROPOSED), lambda s: s.send(PULL, "n1", "n0", 0, 77)):
            stranger = Peer(f.ports[0])
            self.addCleanup(stranger.close)
            first(stranger)
            kinds, _ = stranger.until_closed()
            self.assertEqual(kinds[-1:], [peer.GOODBYE])
        caller = Peer(f.ports[0])
        self.addCleanup(caller.close)
        caller.send(PULL, "n1", "n0", 0, ACTIVE)
        while caller.receive(BULLETIN, PULL)[0] == BULLETIN:
            pass
        document(caller, self.first.strip())  # instead of a call
        self.assertEqual(caller.until_closed()[0], [])
        self.goes_on()

    def test_two_that_answer_slowly_do_not_keep_a_third_from_being_asked(self):
        over = threading.Event()
        self.addCleanup(over.set)

        def trickle(asker):
            for first in range(MOST):
                if over.wait(0.5):
                    return
                asker.send(BULLETIN, RESULT, "n9", 18, 7, MOST, first, "x")

        f = self.members([trickle, trickle], phases=[[(0, 1), (1, 0)] + [e for i in (2, 3) for e in ((1, i), (i, 1))]])
        f.wait_log(1, "event=start ")
        f.wait("both to answer", lambda: len(self.liars) == 2 and self.asks(1) >= 2)
        self.keep(self.sign("ab", after=self.first), "fleet.signed")
        self.assertEqual(f.nodes[0].get("/v1/reload", "POST")[0], 200)
        self.wait_active(2, (1,))
        self.assertGreaterEqual(sum(liar.ended for liar in self.liars), 1)

    def asks(self, index):
        """The liars to which a daemon has a connection now."""
        ends = {"0100007F:%04X" % self.f.ports[int(liar.name[1:])] for liar in self.liars}
        with open("/proc/net/tcp", encoding="ascii") as file:
            lines = [line.split() for line in file]
        return len({line[2] for line in lines if line[2] in ends and line[3] == "01"})

    def test_a_member_that_calls_and_is_asked_again_and_again_is_asked_after_pauses(self):
        class Callers(fleet.Fleet):
            def address(self, index, other):
                return "none" if other == 2 else super().address(index, other)

        f = self.signed_fleet(3, phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]], options=NOW, kind=Callers)
        self.begin()
        asked, began = 0, time.monotonic()
        for _ in range(40):
            asked += self.call(f.ports[0], "not a document")
        lasted = time.monotonic() - began
        self.assertEqual(f.nodes[0].log().count("event=rollout_refused peer=n2"), asked)
        # the pauses are of 1, 2, 4 s and so on
        self.assertLessEqual(2 ** (asked - 1) - 1, lasted)
        f.wait("the pause to be over", lambda: self.call(f.ports[0], "not a document"))
        self.goes_on()

    def call(self, port, text):
        """Ask n0, and call. Whether n0 asks; it is answered by this text."""
        caller = Peer(port)
        try:
            caller.send(PULL, "n2", "n0", 0, PROPOSED)
            caller.receive(PULL)
            caller.send(CALL, "n0", "n2")
            caller.receive(PULL)
            document(caller, text)
            self.assertEqual(caller.until_closed()[0], [])
            return True
        except Closed:
            return False
        finally:
            caller.close()


if __name__ == "__main__":
    fleet.main()
