# SPDX-License-Identifier: Apache-2.0
"""A crowd on the control socket: silent, slow, greedy and confused clients. Whoever asks properly is
answered, training goes on, and what the crowd held is given back when it leaves."""
import contextlib
import json
import os
import random
import select
import signal
import socket
import time
import unittest

import fleet
from fleet import FleetTest

CONNECTIONS_MAX = 256  # of daemon/control/control.h, as are all limits here
HEAD_SECONDS = 3
HEADER_BYTES_MAX = 32768
BODY_BYTES_MAX = 4 << 20
ASK = b"GET /v1/status HTTP/1.1\r\nHost: n\r\n\r\n"


class Client:
    """A raw connection to a control socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(fleet.PATIENCE)

    def send(self, data):
        """Send as much as the daemon takes: it may hang up in the middle."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)
        return self

    def read(self):
        """Everything up to the end of the connection."""
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while part := self.socket.recv(65536):
                data += part
        return data

    def answer(self):
        """(status, headers, body) of one answer; None if the connection ends without one."""
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while b"\r\n\r\n" not in data or len(data) < self.whole(data):
                part = self.socket.recv(65536)
                if not part:
                    break
                data += part
        if not data.startswith(b"HTTP/1.1 "):
            return None
        head, _, body = data.partition(b"\r\n\r\n")
        return int(head.split()[1]), head.decode().split("\r\n")[1:], body

    def ended(self):
        return bool(select.select([self.socket], [], [], 0)[0]) and self.read() == b""

    @staticmethod
    def whole(data):
        head, _, _ = data.partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n")
                   if line.lower().startswith(b"content-length:")]
        return len(head) + 4 + int(lengths[0]) if lengths else 1 << 62

    def close(self):
        self.socket.close()


def renew(path, count, told):
    """As nobody: hold so many silent connections, for ever: one that ends is opened anew at once. Tells when all have been
    opened."""
    try:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        ends = select.poll()
        held = {}

        def open_one():
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
            held[client.fileno()] = client
            ends.register(client, select.POLLIN)

        for _ in range(count):
            open_one()
        os.write(told, b".")
        while True:
            for descriptor, _ in ends.poll():
                ends.unregister(descriptor)
                held.pop(descriptor).close()
                open_one()
    finally:
        os._exit(1)


class Crowd(FleetTest):
    OPTIONS = {}

    def setUp(self):
        self.fleet_ = self.fleet(2, options={"train.epochs": "1000000", **self.OPTIONS})
        self.fleet_.start()
        self.node = self.fleet_.nodes[0]
        self.fleet_.wait("a first row, whose file stays open",
                         lambda: os.path.exists(os.path.join(self.node.directory, "history.csv")))
        self.before = self.descriptors()

    def connect(self, count=1):
        clients = [Client(self.node.socket) for _ in range(count)]
        for client in clients:
            self.addCleanup(client.close)
        return clients if count > 1 else clients[0]

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.node.process.pid))

    def assert_answers(self, times=1):
        for _ in range(times):
            self.assertEqual(self.node.get("/v1/status")[0], 200)

    def assert_goes_on(self):
        self.fleet_.wait_round(0, self.node.status()["round"] + 20)
        self.assert_alive(self.fleet_)

    def assert_left(self, clients):
        """The crowd goes; the daemon keeps nothing of it, and no mass is lost."""
        for client in clients:
            client.close()
        self.fleet_.wait("the descriptors to be given back",
                         lambda: self.descriptors() <= self.before)
        self.assert_goes_on()
        for node in self.fleet_.nodes:
            self.assertEqual(node.get("/v1/pause", "POST")[0], 200)
        self.fleet_.wait_state("paused")
        self.fleet_.wait("all to be acknowledged", lambda: all(
            node.status()["weight_in_flight"] == 0 for node in self.fleet_.nodes))
        total = sum(node.status()["weight"] for node in self.fleet_.nodes)
        self.assertLessEqual(abs(total - 2), 1e-12)


class Silent(Crowd):
    def test_100_clients_that_say_nothing_or_half_of_it(self):
        crowd = self.connect(100)
        for client in crowd[50:]:
            client.send(ASK[:17])
        self.assert_answers(20)
        self.assert_goes_on()
        self.assert_answers(20)
        self.assert_left(crowd)

    def test_half_a_request_may_be_finished_later(self):
        crowd = self.connect(100)
        for client in crowd:
            client.send(ASK[:17])
        self.assert_answers()
        for client in crowd:
            client.send(ASK[17:])
        for client in crowd:
            status, _, body = client.answer()
            self.assertEqual((status, json.loads(body)["name"]), (200, "n0"))
        self.assert_left(crowd)

    def test_beyond_the_limit_whoever_was_silent_longest_makes_room(self):
        crowd = self.connect(CONNECTIONS_MAX)
        self.assert_answers()
        more = [client.send(ASK).answer() for client in self.connect(40)]
        self.assertEqual([answer[0] for answer in more], 40 * [200])
        self.fleet_.wait("the first to be let go", crowd[0].ended)
        self.assertFalse(any(client.ended() for client in crowd[60:]))
        self.assert_goes_on()
        self.assert_left(crowd)

    @unittest.skipUnless(os.geteuid() == 0, "another user can be played by root alone")
    def test_another_user_that_renews_340_connections_for_ever_locks_nobody_out(self):
        os.chmod(self.fleet_.directory, 0o755)
        os.chmod(self.node.socket, 0o666)
        ready, renewed = os.pipe()
        child = os.fork()
        if child == 0:
            fleet.die_with_parent()
            renew(self.node.socket, 340, renewed)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        os.close(renewed)
        self.assertEqual(os.read(ready, 1), b".")
        os.close(ready)
        self.assert_answers(20)
        self.assertLess(self.descriptors() - self.before, 64 + 32)  # its places, and some that have just been left
        self.assert_goes_on()
        self.assertEqual(self.node.get("/v1/stop", "POST")[0], 200)
        self.assertEqual(self.node.process.wait(fleet.PATIENCE), 0)

    def test_silence_is_ended_and_slowness_is_not_felt(self):
        silent = self.connect(50)
        began = time.monotonic()
        slow = [client.send(ASK[:3]) for client in self.connect(50)]
        patience = HEAD_SECONDS + 5
        watched = silent + slow
        ended = []
        while len(ended) < len(watched):
            self.assertLess(time.monotonic() - began, patience, "%d ended" % len(ended))
            for client in slow: # a header that never ends, a byte at a time
                client.send(b"a")
            readable, _, _ = select.select([c.socket for c in watched if c not in ended], [], [], 0.5)
            for client in [c for c in watched if c.socket in readable]:
                if client in silent: # the slow may be told 408
                    self.assertEqual(client.read(), b"")
                ended.append(client)
            self.assert_answers()
        self.assertGreaterEqual(time.monotonic() - began, HEAD_SECONDS - 1)
        self.assert_goes_on()
        self.assert_left(silent + slow)


class Loud(Crowd):
    def refused(self, request, status, code, message):
        got, _, body = self.connect().send(request).answer()
        self.assertEqual(got, status, body)
        if code:
            self.assertEqual(json.loads(body)["error"],
                             {"status": status, "code": code, "message": message})
        self.assert_answers()

    def test_100_clients_that_ask_at_once_are_all_answered(self):
        crowd = self.connect(100)
        for client in crowd:
            client.send(ASK)
        for client in crowd:
            status, _, body = client.answer()
            self.assertEqual((status, json.loads(body)["name"]), (200, "n0"))
        self.assert_left(crowd)

    def test_a_header_over_its_limit(self):
        for name in (b"X", b"Cookie"):
            self.refused(b"GET /v1/status HTTP/1.1\r\nHost: n\r\n" + name + b": " +
                         HEADER_BYTES_MAX * b"a" + b"\r\n\r\n", 431, None, None)
        self.refused(b"GET /" + HEADER_BYTES_MAX * b"a" + b" HTTP/1.1\r\nHost: n\r\n\r\n", 414, None,
                     None)
        many = b"".join(b"h%d: x\r\n" % i for i in range(10000))
        self.refused(b"GET /v1/status HTTP/1.1\r\nHost: n\r\n" + many + b"\r\n", 431, None, None)
        self.assert_goes_on()

    def test_a_body_over_its_limit(self):
        self.refused(b"POST /v1/predict HTTP/1.1\r\nHost: n\r\nContent-Length: %d\r\n\r\n"
                     % (BODY_BYTES_MAX + 1), 413, "too_large",
                     f"the body is larger than the {BODY_BYTES_MAX} bytes that /v1/predict takes")
        self.refused(b"POST /v1/predict HTTP/1.1\r\nHost: n\r\nContent-Length: %d\r\n\r\n"
                     % (1 << 62), 413, "too_large",
                     f"the body is larger than the {BODY_BYTES_MAX} bytes that /v1/predict takes")
        self.refused(b"POST /v1/pause HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\n\r\nplease", 413,
                     "too_large", "the body is larger than the 0 bytes that /v1/pause takes")
        piece = b"10000\r\n" + 65536 * b"1" + b"\r\n"
        self.refused(b"POST /v1/predict HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n" +
                     65 * piece + b"0\r\n\r\n", 413, "too_large",
                     f"the body is larger than {BODY_BYTES_MAX} bytes")
        self.assert_goes_on()

    def test_too_many_rows(self):
        rows = "f0,f1,f2,f3,f4,f5\n" + 16385 * "1,2,3,4,5,6\n"
        status, body = self.node.get("/v1/predict", "POST", rows)
        self.assertEqual(status, 413)
        self.assertEqual(json.loads(body)["error"]["message"], "16385 rows are more than 16384, or than "
                         "256 MiB of features; send fewer at a time")
        self.assert_goes_on()

    def test_noise(self):
        draw = random.Random(9)
        tls = bytes.fromhex("16030100c8010000c40303") + draw.randbytes(192)
        noises = [tls, b"\r\n" * 3000, b"\x9dSGP" + bytes(28), b"GET\r\n\r\n"]
        noises += [draw.randbytes(600) for _ in range(40)]
        crowd = [self.connect().send(noise) for noise in noises]
        self.refused(b"GET /v1/status HTTP/9.9\r\n\r\n", 505, None, None)
        self.assert_left(crowd)


class Greedy(Crowd):
    OPTIONS = {"model.layers": "dense 40000 relu, dense 2", "train.batch": "2"}  # 1.4 MB

    def test_clients_that_do_not_read_the_model_they_asked_for(self):
        crowd = self.connect(12)
        for client in crowd:
            client.send(b"GET /v1/model HTTP/1.1\r\nHost: n\r\n\r\n")
        self.assert_answers(5)
        self.assert_goes_on()
        statuses = []
        for client in crowd[:6]:
            status, _, body = client.answer()
            statuses.append(status)
            if status == 503:
                self.assertEqual(json.loads(body)["error"]["message"],
                                 "too many jobs wait; try again")
            else:
                self.assertGreater(len(body), 4 * 40000 * 8)
        self.assertEqual(set(statuses) - {200, 503}, set())
        self.assertIn(200, statuses)
        self.assert_left(crowd)


if __name__ == "__main__":
    fleet.main()
