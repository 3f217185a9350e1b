# SPDX-License-Identifier: Apache-2.0
"""The server of `sgpctl dashboard` before scripted and real daemons, and callers of every kind: test_dashboard.py SGPCTL
SGPD. What the page does in a browser is in test_dashboard_page.py."""
import contextlib
import http.client
import json
import os
import re
import socket
import sys
import tempfile
import time
import unittest

import fleet
import tap
from dashboards import Dashboard, serving
from fleet import LONG, PATIENCE, FleetTest, poll
from scripted import PEER, SGPCTL, STATUS, daemon, in_a_machine, run

fleet.SGPD = os.path.abspath(sys.argv[2])
STREAMS = 8
STRANGERS = 16
MEMORY_KB_MAX = 1048576 if os.environ.get("SGP_FEW") else 65536  # a sanitizer keeps what is freed
CSP = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
FILES = "index.html style.css icon.svg main.js transport.js document.js numbers.js history.js curves.js graph.js tables.js versions.js".split()
EMPTY = {"total": 0, "oldest": 0, "every": 1, "next": 0, "rows": []}


def answers(**more):
    return {"GET /v1/status": STATUS, "GET /v1/peers": [PEER], "GET /v1/topology": {"nodes": [], "phases": []},
            "GET /v1/history": EMPTY, "GET /v1/fleet": (404, {"error": {"message": "no"}}), **more}


@contextlib.contextmanager
def before(**more):
    """A dashboard before a scripted daemon."""
    with daemon(answers(**more)) as (path, requests), serving(SGPCTL, path) as dashboard:
        yield dashboard, requests


def begin(caller):
    """The answer to a caller, of which the head has been read."""
    answer = http.client.HTTPResponse(caller)
    answer.begin()
    return answer


def next_event(answer):
    """The JSON of the next event of a stream."""
    while True:
        line = answer.readline()
        if line.startswith(b"data: "):
            return json.loads(line[6:])


def hang_up(*callers):
    """Also if an answer that is not read to its end still has the socket."""
    for caller in callers:
        with contextlib.suppress(OSError):
            caller.shutdown(socket.SHUT_RDWR)
        caller.close()


def place(dashboard):
    """A stream, once there is a place for one more."""
    def room():
        caller = dashboard.stream()
        answer = begin(caller)
        if answer.status == 200:
            return caller, answer
        hang_up(caller)
        return None
    return poll("a place for a stream", room, PATIENCE, lambda: "", interval=0.2)


def closed(caller):
    """Whether the other side has hung up, once all that it said is read."""
    with contextlib.suppress(ConnectionError):
        while caller.recv(65536):
            pass
    return True


class Page(unittest.TestCase):
    def test_all_files_of_the_page_are_served_and_protected(self):
        with before() as (dashboard, requests):
            for name in ["", *FILES]:
                status, body, headers = dashboard.ask(name)
                self.assertEqual(status, 200, name)
                self.assertEqual(headers["Content-Security-Policy"], CSP)
                self.assertEqual(headers["X-Frame-Options"], "DENY")
                self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
                self.assertEqual(headers["Referrer-Policy"], "no-referrer")
                self.assertEqual(headers["Cache-Control"], "no-store")
                for needed in re.findall(r'(?:from "\./|href="|src=")([a-z.]+)"', body.decode()):
                    self.assertIn(needed, FILES)
            self.assertEqual(requests, [])

    def test_the_page_has_nothing_that_its_policy_forbids(self):
        with before() as (dashboard, _):
            page = dashboard.ask()[1].decode()
            self.assertNotRegex(page, r"<script(?![^>]* src=)|<style| style=| on[a-z]+=")
            for name in FILES:
                self.assertNotRegex(dashboard.ask(name)[1].decode(), r"innerHTML|insertAdjacent|eval\(|new Function|https?://(?!www\.w3\.org)")

    def test_each_start_has_a_token_of_its_own_and_says_it_once(self):
        with daemon(answers()) as (path, _):
            with serving(SGPCTL, path) as one, serving(SGPCTL, path, "--json") as other:
                self.assertRegex(one.path, r"^/[0-9a-f]{32}/$")
                self.assertNotEqual(one.path, other.path)
                code, (out, err) = one.end()
                self.assertEqual((code, out), (0, ""))
                self.assertNotIn(one.path, err)

    def test_an_address_that_cannot_be_had(self):
        with before() as (dashboard, _):
            taken = f"127.0.0.1:{dashboard.port}"
            self.assertEqual(run("-s", "/x", "dashboard", "--listen", taken, status=1)[1],
                             f"sgpctl: cannot listen on {taken}: Address already in use\n")
        self.assertIn("--listen is HOST:PORT such as", run("-s", "/x", "dashboard", "--listen", "9312", status=2)[1])
        self.assertIn("too many names", run("-s", "/x", "dashboard", "--host", ",".join("abcdefghijklmnop"), status=2)[1])


class Guard(unittest.TestCase):
    def test_a_wrong_token_gets_nothing(self):
        with before() as (dashboard, requests):
            token = dashboard.path[1:-1]
            last = "0" if token[-1] != "0" else "1"
            for path in ("/", "/index.html", "/v1/status", "/events", f"/{token[:-1]}{last}/", f"/{token[:-1]}/", f"/{token}",
                         f"/{token}0/", "//", f"//{token}/", f"/{'0' * 32}/v1/status", f"/{token.upper()}x/"):
                status, body, headers = dashboard.ask(path, whole=True)
                self.assertEqual(status, 403, path)
                self.assertIn("Content-Security-Policy", headers)
                self.assertNotIn(token, body.decode())
            self.assertEqual(requests, [])

    def test_a_foreign_name_of_the_host_gets_nothing(self):
        with before() as (dashboard, requests):
            port = dashboard.port
            for host in ("rebinding.example", f"rebinding.example:{port}", f"127.0.0.1.example:{port}", "127.0.0.1:80:80",
                         "127.0.0.1:x", "", "[::1", "[::1]x", "127.0.0.1 ", "@127.0.0.1", None,
                         [f"127.0.0.1:{port}", "rebinding.example"], ["rebinding.example", f"127.0.0.1:{port}"]):
                status = dashboard.ask("v1/status", headers={"Host": host})[0]
                self.assertIn(status, (400, 403), host)  # libmicrohttpd itself refuses a request without the header
            self.assertEqual(requests, [])
            for host in (f"localhost:{port}", "LOCALHOST", f"[::1]:{port}", "127.0.0.1", "localhost:9999"):
                self.assertEqual(dashboard.ask("v1/status", headers={"Host": host})[0], 200, host)

    def test_a_name_of_a_tunnel_can_be_accepted(self):
        with daemon(answers()) as (path, _), serving(SGPCTL, path, "--host", "n0.example,fleet.example") as dashboard:
            for host, status in (("n0.example", 200), ("fleet.example:80", 200), ("other.example", 403)):
                self.assertEqual(dashboard.ask("v1/status", headers={"Host": host})[0], status)

    def test_another_site_gets_nothing(self):
        with before() as (dashboard, requests):
            own = f"127.0.0.1:{dashboard.port}"
            for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ""}, {"Origin": f"http://{own}0"},
                            {"Origin": f"http://localhost:{dashboard.port}"}, {"Origin": own}, {"Sec-Fetch-Site": "cross-site"},
                            {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": ["none", "cross-site"]},
                            {"Origin": [f"http://{own}", "http://evil.example"]},
                            {"Origin": f"http://{own}", "Sec-Fetch-Site": "cross-site"}):
                status, _, answered = dashboard.ask("v1/status", headers=headers)
                self.assertEqual(status, 403, headers)
                self.assertNotIn("Access-Control-Allow-Origin", answered)
            self.assertEqual(requests, [])
            for headers in ({"Origin": f"http://{own}"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
                self.assertEqual(dashboard.ask("v1/status", headers=headers)[0], 200, headers)

    def test_only_what_is_on_the_list_reaches_the_daemon(self):
        with before() as (dashboard, requests):
            for path in ("v1/model", "v1/scaling", "v1/report", "metrics", "v1/stop", "v1/statuses", "v1/", "v1/../v1/model", "v1/rollout/document",
                         "%2e%2e/v1/model", "../etc/passwd", "v1/status/", "v1//status", "page/main.js", "main.js/"):
                self.assertEqual(dashboard.ask(path)[0], 404, path)
            for path in ("v1/rollout/document?version=active", "v1/rollout?x=1", "v1/status?x=1", "v1/peers?since=1", "v1/history?limit=x", "v1/history?since=-1", "v1/history?since=",
                         "v1/history?since", "v1/history?a=1", "v1/history?since=1%20HTTP/1.1", "v1/history?since=1%0d%0aX:y",
                         "v1/history?since=" + "9" * 21):
                self.assertEqual(dashboard.ask(path)[0], 400, path)
            self.assertEqual(requests, [])

    def test_nothing_can_be_changed(self):
        with before() as (dashboard, requests):
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"):
                for path in ("v1/stop", "v1/status", ""):
                    status, _, headers = dashboard.ask(path, method, body=b"x" * 65536)
                    self.assertEqual((status, headers["Allow"]), (405, "GET"), method)
            self.assertEqual(requests, [])


class Answers(unittest.TestCase):
    def test_what_the_daemon_says_is_forwarded(self):
        rows = {"nodes": [{"name": "n0", "age": 0.5, "stale": False}]}
        rollout, log = {"fleet": "mill", "proposed": None}, {"versions": []}
        with before(**{"GET /v1/fleet": rows, "GET /v1/rollout": rollout, "GET /v1/rollout/log": log,
                       "GET /v1/history?since=7&limit=1024": {**EMPTY, "next": 7}}) as (dashboard, requests):
            self.assertEqual(dashboard.json("v1/status"), STATUS)
            self.assertEqual(dashboard.json("v1/peers"), [PEER])
            self.assertEqual(dashboard.json("v1/fleet"), rows)
            self.assertEqual(dashboard.json("v1/rollout"), rollout)
            self.assertEqual(dashboard.json("v1/rollout/log"), log)
            self.assertEqual(dashboard.json("v1/history?since=7&limit=1024")["next"], 7)
            self.assertEqual(dashboard.json("state"), {"status": STATUS, "peers": [PEER], "log": 0})
            self.assertTrue(all(what.startswith("GET ") for what, _, _ in requests), requests)

    def test_a_daemon_without_a_path_and_one_that_is_silent_are_told_apart(self):
        there = []
        with before(**{"GET /v1/status": lambda _: STATUS if there else None}) as (dashboard, _):
            self.assertEqual(dashboard.ask("v1/fleet")[0], 404)
            self.assertEqual(dashboard.ask("v1/status")[0], 503)
            self.assertEqual(dashboard.json("state")["status"], None)
            there.append(True)
            poll("the daemon's status", lambda: dashboard.json("state")["status"], PATIENCE, lambda: "", interval=0.2)
        with serving(SGPCTL, "/nowhere/control.sock") as dashboard:
            self.assertEqual(dashboard.json("state"), {"status": None, "peers": None, "log": 0})

    def test_the_daemon_is_asked_once_a_second_however_many_ask(self):
        with before() as (dashboard, requests):
            start = time.monotonic()
            for _ in range(300):
                self.assertEqual(dashboard.ask("v1/status")[0], 200)
            self.assertLessEqual(len(requests), time.monotonic() - start + 1)

    def test_events_have_the_state_without_line_feeds(self):
        text = json.dumps({**STATUS, "last_error": "a\nb\r\n\ndata: x"}, indent=2).encode()
        with before(**{"GET /v1/status": text}) as (dashboard, _), contextlib.closing(dashboard.stream()) as caller:
            answer = begin(caller)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/event-stream"))
            event = next_event(answer)
            self.assertEqual(event["status"]["last_error"], "a\nb\r\n\ndata: x")

    def test_the_last_lines_of_the_log(self):
        with tempfile.NamedTemporaryFile("wb", buffering=0) as log, daemon(answers()) as (path, _):
            for i in range(500):
                log.write(b"line %d\n" % i)
            log.write(b"\xff\0<b>" + b"x" * 5000 + b"\n")
            with serving(SGPCTL, path, "--log", log.name) as dashboard:
                poll("the last line", lambda: dashboard.json("log")["lines"][-1:] and dashboard.json("log")["total"] == 200,
                     PATIENCE, lambda: "")
                lines = dashboard.json("log")["lines"]
                self.assertEqual(lines[0], "line 301")
                self.assertEqual(lines[-1], "?<b>" + "x" * 1020)
                log.write(b"one more\n")
                poll("one more", lambda: dashboard.json("state")["log"] == 201, PATIENCE, lambda: "")
                self.assertEqual((len(dashboard.json("log")["lines"]), dashboard.json("log")["lines"][-1]), (200, "one more"))
                self.assertEqual(dashboard.end()[0], 0)
            with serving(SGPCTL, path) as dashboard:
                self.assertEqual(dashboard.json("log"), {"source": None, "total": 0, "lines": []})

    def test_the_log_of_a_unit_is_in_the_journal(self):
        done = in_a_machine("""printf '#!/bin/sh\necho "$*"\nexec sleep 100\n' >/run/bin/journalctl; chmod +x /run/bin/journalctl
            "$1" -n n0 dashboard >/run/url 2>/run/said & dashboard=$!
            until [ -s /run/url ]; do sleep 0.05; done
            until curl -s "$(cat /run/url)log" >/run/log && grep -q short-iso /run/log; do sleep 0.05; done
            cat /run/log; kill $dashboard; wait $dashboard; echo " ended $?" """)
        log, ended = done.stdout.rsplit(" ended ", 1)
        self.assertEqual((json.loads(log), ended), ({"source": "sgpd@n0.service", "total": 1, "lines": [
            "-q -f -n 200 -o short-iso -u sgpd@n0.service"]}, "0\n"), done.stderr)


class Bounds(unittest.TestCase):
    def test_a_thousand_streams_are_eight(self):
        with before() as (dashboard, requests):
            kept, refused = [], 0
            for _ in range(1000):
                caller = dashboard.stream()
                answer = begin(caller)
                if answer.status == 200:
                    kept.append((caller, answer))
                else:
                    self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "5"))
                    refused += 1
                    hang_up(caller)
            self.assertEqual((len(kept), refused), (STREAMS, 1000 - STREAMS))
            start, asked = time.monotonic(), len(requests)
            for _, answer in kept:
                next_event(answer)
            # the status and the peers, once for all of them
            self.assertLessEqual(len(requests) - asked, 2 * (time.monotonic() - start) + 4)
            self.assertEqual(dashboard.ask()[0], 200)
            self.assertLess(fleet.memory_kb(dashboard.process), MEMORY_KB_MAX)
            hang_up(kept.pop()[0])
            kept.append(place(dashboard))
            self.assertEqual(dashboard.end()[0], 0)  # while streams are open
            for caller, _ in kept:
                self.assertTrue(closed(caller))

    def test_readers_that_take_nothing_hold_one_event(self):
        peers = [{**PEER, "last_error": "x" * 1000} for _ in range(2000)]  # 4 MB an event
        with before(**{"GET /v1/peers": peers}) as (dashboard, requests):
            slow = [dashboard.stream() for _ in range(STREAMS)]
            poll("some events", lambda: len(requests) > 12, PATIENCE, lambda: "")
            self.assertLess(fleet.memory_kb(dashboard.process), MEMORY_KB_MAX)
            self.assertEqual(dashboard.ask("v1/status")[0], 200)
            if LONG:  # 15 seconds; then they are closed
                slow.append(place(dashboard)[0])
            hang_up(*slow)
            caller, answer = place(dashboard)
            self.assertEqual(len(next_event(answer)["peers"]), 2000)
            hang_up(caller)

    def test_strangers_do_not_keep_the_reader_from_a_place(self):
        with before() as (dashboard, _):
            silent = [dashboard.raw(b"GET /" if i % 2 else b"") for i in range(20 * STRANGERS)]
            self.assertEqual(dashboard.ask("v1/status")[0], 200)
            for caller in silent[:-STRANGERS]:
                self.assertTrue(closed(caller))
            hang_up(*silent)
            self.assertLess(fleet.memory_kb(dashboard.process), MEMORY_KB_MAX)

    def test_garbage_costs_one_connection(self):
        with before() as (dashboard, requests):
            path = dashboard.path.encode()
            for garbage in (b"\0" * 4096 + b"\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"\r\n" * 50000,
                            b"GET " + path + b" HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                            b"GET " + path + b"v1/status?" + b"a&" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                            b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                            b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n"):
                for _ in range(20):
                    dashboard.raw(garbage).close()
                self.assertEqual(dashboard.ask()[0], 200, garbage[:40])
            self.assertEqual(requests, [])
            self.assertLess(fleet.memory_kb(dashboard.process), MEMORY_KB_MAX)


class Daemons(FleetTest):
    def test_a_fleet_under_a_flood_of_readers_trains_to_its_end(self):
        f = self.fleet(2, options={"train.epochs": "400"})
        f.start()
        f.wait_round(0, 10)
        dashboard = Dashboard(SGPCTL, f.nodes[0].socket, "--log", f.nodes[0].log_path)
        self.addCleanup(dashboard.close)
        callers = [dashboard.stream() for _ in range(200)] + [dashboard.raw() for _ in range(100)]
        for _ in range(200):
            self.assertEqual(dashboard.ask("v1/history?limit=1024")[0], 200)
        statuses = f.wait_state("finished")
        self.assertEqual([(s["jumps"], s["weight_minted"], s["hears_nobody"]) for s in statuses], [(0, 0, False)] * 2)
        self.assertEqual([s["round"] for s in statuses], [statuses[0]["rounds"]] * 2)
        state = poll("the end on the page", lambda: (dashboard.json("state")["status"] or {}).get("state") == "finished" and
                     dashboard.json("state"), PATIENCE, f.logs)
        self.assertEqual([peer["name"] for peer in state["peers"]], ["n1", "n1"])
        self.assertIn("event=", "\n".join(dashboard.json("log")["lines"]))
        hang_up(*callers)
        self.assertEqual(dashboard.end()[0], 0)


if __name__ == "__main__":
    tap.run_cases(sys.argv[3:])
