# SPDX-License-Identifier: Apache-2.0
"""`sgpctl metrics --listen` before scripted daemons and callers of every kind: test_metrics.py SGPCTL."""
import contextlib
import http.client
import os
import socket
import subprocess
import time
import unittest

import tap
from fleet import LONG, PATIENCE, die_with_parent, free_ports, memory_kb, poll
from scripted import SGPCTL, daemon, run

TEXT = b'# HELP sgpd_round x\n# TYPE sgpd_round gauge\nsgpd_round 7\n'
OTHER = ("127.0.0.2", 0)  # a caller's own address that is not everybody's
PER_ADDRESS = 8
MEMORY_KB_MAX = 65536


class Server:
    """One that serves the figures behind a socket, at a port of its own."""

    def __init__(self, path):
        [self.port] = free_ports(1)
        self.process = subprocess.Popen([SGPCTL, "-s", path, "metrics", "--listen", f"127.0.0.1:{self.port}"], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        self.said = self.process.stderr.readline()

    def ask(self, path="/metrics", method="GET", source=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE, source_address=source)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders())

    def raw(self, data=b""):
        caller = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        if data:
            with contextlib.suppress(OSError):  # it may have heard enough
                caller.sendall(data)
        return caller

    def end(self):
        self.process.terminate()
        rest = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, rest


@contextlib.contextmanager
def serving(answers):
    with daemon(answers) as (path, requests):
        server = Server(path)
        try:
            yield server, requests
        finally:
            server.process.kill()
            server.process.communicate()


def closed(caller):
    """Whether the other side has hung up, once all that it said is read."""
    with contextlib.suppress(ConnectionError):
        while caller.recv(65536):
            pass
    return True


class Metrics(unittest.TestCase):
    def test_what_the_daemon_says_is_served(self):
        with serving({"GET /metrics": TEXT}) as (server, requests):
            self.assertIn(f"http://127.0.0.1:{server.port}/metrics", server.said)
            status, body, headers = server.ask()
            self.assertEqual((status, body), (200, TEXT))
            self.assertEqual(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            self.assertEqual(server.ask(method="HEAD")[:2], (200, b""))
            self.assertEqual({request[0] for request in requests}, {"GET /metrics"})
            self.assertEqual(server.end(), (0, ("", "")))

    def test_nothing_else_is_there_and_nothing_can_be_changed(self):
        with serving({"GET /metrics": TEXT}) as (server, requests):
            for path in ("/", "/v1/status", "/metrics/", "/../metrics"):
                self.assertEqual(server.ask(path)[0], 404, path)
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                self.assertEqual(server.ask(method=method, body=b"x" * 65536)[0], 405, method)
            self.assertEqual(server.ask("/v1/stop", "POST")[0], 404)
            self.assertEqual(requests, [])
            self.assertEqual(server.ask()[:2], (200, TEXT))

    def test_the_daemon_is_asked_once_a_second_however_many_ask(self):
        with serving({"GET /metrics": TEXT}) as (server, requests):
            begin = time.monotonic()
            for _ in range(300):
                self.assertEqual(server.ask()[0], 200)
            self.assertLessEqual(len(requests), time.monotonic() - begin + 1)

    def test_a_daemon_that_does_not_answer_is_asked_again(self):
        there = []
        with serving({"GET /metrics": lambda _: TEXT if there else None}) as (server, _):
            status, body, _ = server.ask()
            self.assertEqual((status, body), (503, b"the daemon does not answer\n"))
            there.append(True)
            poll("the daemon's figures", lambda: server.ask()[0] == 200, PATIENCE, lambda: "")
        server = Server("/nowhere/control.sock")  # it may come yet
        self.addCleanup(server.process.communicate)
        self.addCleanup(server.process.kill)
        self.assertEqual(server.ask()[0], 503)

    def test_callers_who_say_nothing_keep_nobody_else_waiting(self):
        with serving({"GET /metrics": TEXT}) as (server, _):
            silent = [server.raw(b"GET /met") for _ in range(5 * PER_ADDRESS)]
            self.assertEqual(server.ask(source=OTHER)[:2], (200, TEXT))
            for caller in silent[PER_ADDRESS:]:
                self.assertTrue(closed(caller))
            for caller in silent:
                caller.close()
            self.assertEqual(server.ask(source=OTHER)[:2], (200, TEXT))

    def test_garbage_costs_one_connection(self):
        with serving({"GET /metrics": TEXT}) as (server, requests):
            for garbage in (b"\0" * 4096 + b"\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                            b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n", b"\r\n" * 50000,
                            b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                            b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n"):
                for _ in range(20):
                    server.raw(garbage).close()
                self.assertEqual(server.ask(source=OTHER)[:2], (200, TEXT), garbage[:20])
            self.assertEqual({request[0] for request in requests}, {"GET /metrics"})
            self.assertLess(memory_kb(server.process), MEMORY_KB_MAX)

    @unittest.skipUnless(LONG, "ten seconds; with scripts/check --long")
    def test_a_caller_who_dawdles_is_cut(self):
        with serving({"GET /metrics": TEXT}) as (server, _):
            caller = server.raw(b"GET /metrics HTTP/1.1\r\n")

            def dawdle():
                try:
                    caller.sendall(b"X")
                except OSError:
                    return True
                return False
            poll("the caller to be cut", dawdle, PATIENCE, lambda: "", interval=1)

    def test_an_address_that_cannot_be_had(self):
        with serving({"GET /metrics": TEXT}) as (server, _):
            taken = f"127.0.0.1:{server.port}"
            self.assertEqual(run("-s", "/x", "metrics", "--listen", taken, status=1)[1],
                             f"sgpctl: cannot listen on {taken}: Address already in use\n")
        for wrong in ("9311", "127.0.0.1", "[::1]", "127.0.0.1:0", "127.0.0.1:http", ""):
            self.assertIn("--listen is HOST:PORT such as", run("-s", "/x", "metrics", "--listen", wrong, status=2)[1])

    def test_a_daemon_has_to_be_named_if_none_runs(self):
        if not os.path.exists("/run/sgpd"):
            self.assertIn("no daemon is running", run("metrics", "--listen", "127.0.0.1:1", status=3)[1])


if __name__ == "__main__":
    tap.run_cases([])
