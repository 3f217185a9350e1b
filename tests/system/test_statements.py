# SPDX-License-Identifier: Apache-2.0
"""Words on the end of a fleet whose links are ciphered: what counts is what as many nodes have signed as the file asks for,
whoever brings it. n2 has its key, and n1's, and is played by the test."""
import base64
import ctypes
import socket

import fleet
import peer
import tls
from tls_peer import CipheredPeer, Datum, PEM, _tls, call

ENDS, STOP = 1, 2
LINES_MOST = 5  # of one kind about one link within 10 s
PHASES = [[(0, 1), (1, 0), (0, 2), (2, 0)]]
FOREVER = {"train.start": "now", "train.epochs": "100000"}


class Fleet(tls.TlsFleet):
    stops = 1
    owns = {}  # what the file says of some nodes

    def says(self):
        return super().says() + ("  stops=%d;\n" % self.stops if self.tls == "require" else "")

    def says_of(self, index):
        return super().says_of(index) + self.owns.get(index, "")


class FleetWithOwner(Fleet):
    """n0 owns, and trains; a step does without n2."""
    owns = {0: ", owns=all"}

    def says(self):
        return super().says() + "  backup=1;\n"


class Found(ctypes.Structure):
    """A datum that GnuTLS made: its bytes may be zero."""
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint)]

    def text(self):
        return base64.b64encode(ctypes.string_at(self.data, self.size)).decode()


class Author:
    """Who has this key."""

    def __init__(self, path):
        self.secret, public = ctypes.c_void_p(), ctypes.c_void_p()
        with open(path, "rb") as file:
            text = file.read()
        call("gnutls_privkey_init", ctypes.byref(self.secret))
        call("gnutls_privkey_import_x509_raw", self.secret, ctypes.byref(Datum(text, len(text))), PEM, None, 0)
        call("gnutls_pubkey_init", ctypes.byref(public))
        call("gnutls_pubkey_import_privkey", public, self.secret, 0, 0)
        point, unused, curve = Found(), Found(), ctypes.c_int()
        call("gnutls_pubkey_export_ecc_raw2", public, ctypes.byref(curve), ctypes.byref(point), ctypes.byref(unused), 0)
        self.public = point.text()

    def sign(self, text):
        signature = Found()
        algorithm = _tls.gnutls_sign_get_id(b"EdDSA-Ed25519")
        call("gnutls_privkey_sign_data2", self.secret, algorithm, 0, ctypes.byref(Datum(text, len(text))),
             ctypes.byref(signature))
        return signature.text()


class Statements(tls.TlsTest):
    STOPS = 2
    FLEET, OPTIONS, TARGET = Fleet, FOREVER, "n0"

    def setUp(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(fleet.PATIENCE)
        self.f = self.FLEET(3, tls="off", phases=PHASES, options=self.OPTIONS, dial={(0, 2): listener.getsockname()[1]})
        self.addCleanup(self.f.close)
        self.f.start([0, 1])
        self.node = self.f.nodes[0]
        self.f.wait_round(0, 5)
        self.f.wait_round(1, 5)
        self.parameters, self.fingerprint = peer.overhear(listener)
        self.f.stops = self.STOPS
        self.f.roll("require", order=[0, 1])
        self.f.wait("n1 to speak in ciphers", lambda: self.f.links().get((1, self.TARGET, "in"), (None,))[0])

    def neighbour(self, **pulse):
        n2 = CipheredPeer(self.node.listen, key=self.f.key_path(2))
        self.addCleanup(n2.close)
        n2.ends = self.node.status()["rounds"]
        for name, value in pulse.items():
            setattr(n2, name, value)
        n2.send(peer.HELLO, "n2", self.TARGET, 77, self.parameters, *self.fingerprint)
        n2.receive(peer.WELCOME)
        return n2

    def text(self, kind, round_, name):
        return ("sgpd statement\n%s\n%016x\n%016x\n%d\n%s\n" % (
            {ENDS: "ends", STOP: "stop"}[kind], self.fingerprint[5], self.fingerprint[0], round_, name)).encode()

    def say(self, n2, kind, round_, author, key=None, of=""):
        """n2 brings a word of n`author`, signed with the key of n`key`."""
        name = "n%d%s" % (author, of)
        signer = Author(self.f.key_path(author if key is None else key))
        n2.send(peer.STATEMENT, kind, round_, name, signer.public, signer.sign(self.text(kind, round_, name)))

    def assert_goes_on(self, indices=(0, 1)):
        for i in indices:
            self.f.wait_round(i, self.f.nodes[i].status()["round"] + 50)
            self.assertEqual(self.f.nodes[i].status()["state"], "training")

    def test_two_authors_are_two_and_one_is_one_however_often_it_speaks(self):
        ends = self.node.status()["rounds"]
        n2 = self.neighbour(stop=0, ends=2 * ends) # its mere word
        for _ in range(5):
            n2.send(peer.BEAT)
        round_ = self.node.status()["round"] + 10
        for later in (2, 1, 0): # and its signed one
            self.say(n2, STOP, round_ + later, 2)
        self.say(n2, ENDS, 2 * ends, 2)
        self.f.wait_log(0, "event=statement author=n2 kind=ends")
        n2.ends = 1
        n2.send(peer.BEAT) # to one whose end is nearer n0 proves its own, and two authors have signed that one
        while n2.receive(peer.STATEMENT)[1][:3] != [ENDS, ends, "n0"]:
            pass
        self.assert_goes_on()
        for i in range(2):
            self.assertEqual(self.f.nodes[i].status()["rounds"], ends)
        # the second author; both hear of it though one of them alone is n2's neighbour
        self.say(n2, STOP, round_, 1)
        n2.close()
        self.f.wait_log(1, "event=statement author=n1 kind=stop round=%d from=n0" % round_)
        self.f.wait_state("finished", [0, 1])

    def test_a_wrong_signature_ends_its_connection_and_a_wrong_key_counts_for_nothing(self):
        n2 = self.neighbour()
        self.say(n2, STOP, 1, 1, key=2) # in another's name
        self.f.wait_log(0, "event=statement_refused author=n1 kind=stop round=1")
        n2.send(peer.STATEMENT, STOP, 1, "n2", Author(self.f.key_path(2)).public, base64.b64encode(bytes(64)).decode())
        n2.until_closed()
        self.f.wait_log(0, "whose signature is wrong")
        n2 = self.neighbour()
        n2.send(peer.STATEMENT, STOP, 1, "n2", "x", "y")
        n2.until_closed()
        self.assert_goes_on()
        self.assertNotIn("event=statement author", self.node.log())

    def test_of_a_key_that_the_file_does_not_name_no_signature_is_verified(self):
        """However often the same is said: each time counts, and few are logged."""
        n2 = self.neighbour()
        self.f.make_key(2, ".fresh")
        fresh = Author(self.f.key_path(2) + ".fresh")
        genuine = fresh.sign(self.text(STOP, 1, "n2"))
        for _ in range(200):
            n2.send(peer.STATEMENT, STOP, 1, "n2", fresh.public, genuine)
        self.wait_refused(n2, 200)
        self.assertLessEqual(self.node.log().count("event=statement_refused"), LINES_MOST)
        n2.send(peer.STATEMENT, STOP, 1, "n2", fresh.public, base64.b64encode(bytes(64)).decode())
        self.wait_refused(n2, 201)
        self.say(n2, STOP, 1, 1)
        self.f.wait_log(0, "event=statement author=n1 kind=stop round=1 from=n2")

    def wait_refused(self, n2, count):
        def refused():
            n2.send(peer.BEAT)  # its connection stands
            return self.node.status()["statements_refused"] == count
        self.f.wait("%d statements to be refused" % count, refused)

    def test_the_word_of_one_whose_key_was_struck_counts_no_more(self):
        n2 = self.neighbour()
        round_ = self.node.status()["round"]
        self.say(n2, STOP, round_, 2)
        self.f.wait_log(1, "event=statement author=n2 kind=stop round=%d from=n0" % round_)
        stolen = Author(self.f.key_path(1))
        self.f.make_key(2)
        self.f.roll(shown={2: self.f.keys[2]}, order=[0, 1])
        n2 = self.neighbour()
        self.say(n2, STOP, round_, 1)
        self.f.wait_log(1, "event=statement author=n1 kind=stop")
        self.assertTrue(stolen.public)
        self.assert_goes_on()


class OneKey(Statements):
    """Of a node and the owner co-located with it."""
    FLEET, OPTIONS, TARGET = FleetWithOwner, {**FOREVER, "train.algorithm": "backup"}, "n0.owner"

    def test_two_authors_are_two_and_one_is_one_however_often_it_speaks(self):
        n2 = self.neighbour()
        round_ = self.node.status()["round"] + 10
        self.say(n2, STOP, round_, 0)
        self.f.wait_log(0, "node=n0.owner event=statement author=n0 kind=stop")
        self.say(n2, STOP, round_, 0, of=".owner")
        self.f.wait_log(0, "event=statement_refused author=n0.owner kind=stop")
        self.assert_goes_on()
        self.say(n2, STOP, round_, 1)
        n2.close()
        self.f.wait_state("finished", [0, 1])

    test_a_wrong_signature_ends_its_connection_and_a_wrong_key_counts_for_nothing = None
    test_of_a_key_that_the_file_does_not_name_no_signature_is_verified = None
    test_the_word_of_one_whose_key_was_struck_counts_no_more = None


class Goal(tls.TlsTest):
    def test_who_has_reached_the_goal_signs_and_all_end(self):
        chain = [[(0, 1), (1, 0), (1, 2), (2, 1)]]
        f = Fleet(3, tls="require", phases=chain, options={"train.epochs": "100000"}, own={0: {"train.stop_at_accuracy": "0.5"}})
        self.addCleanup(f.close)
        f.start()
        f.wait_log(2, "event=statement author=n0 kind=stop")
        f.wait_state("finished")
        self.assertIn("from=n1", [line for line in f.nodes[2].log().splitlines() if "event=statement " in line][0])


if __name__ == "__main__":
    tls.main()
