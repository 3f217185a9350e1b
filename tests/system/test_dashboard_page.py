# SPDX-License-Identifier: Apache-2.0
"""The page of `sgpctl dashboard` in Chromium, before real and scripted daemons: test_dashboard_page.py SGPCTL SGPD."""
import contextlib
import functools
import http.server
import math
import os
import sys
import threading
import unittest

import fleet
import tap
from administrator import Administrator
from browser import MISSING, PICTURES, Browser
from dashboards import Dashboard, serving
from fleet import FleetTest
from scripted import PEER, SGPCTL, STATUS, daemon

fleet.SGPD = os.path.abspath(sys.argv[2])
HEAP_BYTES_MAX = 48 << 20
ROWS_MAX = 4096  # that the page keeps
PAINTS = """return ["first-contentful-paint", "largest-contentful-paint"].map(type => {
    const seen = new PerformanceObserver(() => {});
    seen.observe({ type: type.startsWith("first") ? "paint" : type, buffered: true });
    return seen.takeRecords().filter(entry => entry.name !== "first-paint").at(-1).startTime / 1000; })"""
CONTRAST_LEAST = 4.5  # of text (WCAG 2.1, 1.4.3)
NO_FLEET = "v1/fleet - Failed to load resource: the server responded with a status of 404"  # of a daemon without it
# An answer of GET /v1/fleet; the row of n0 is older than its topology, one node has not told yet, one has read another topology,
# and two say what no node would.
TOLD = {"round": 7, "rounds": 10, "epoch": 0.5, "loss": 0.1, "test_loss": 0.2, "test_accuracy": 0.875, "weight": 1.0,
        "disagreement": 0.001, "waiting": None, "rounds_per_second": 25.0, "samples_per_second": 100.0, "uptime_seconds": 60.0,
        "topology": {"digest": STATUS["topology"]["digest"], "version": 0}, "version": "0.1.0", "device": "Zen",
        "interval_seconds": 2.0}
FLEET = {"name": "n0", "refused": {}, "nodes": [
    {"name": "n0", "age": 0.0, "stale": False, "state": "training", **TOLD,
     "topology": {"digest": "0000000000000009", "version": 0}},
    {"name": "n1", "age": 1.25, "stale": False, "state": "training", **TOLD, "round": 6, "loss": 0.5, "test_accuracy": 0.5,
     "weight": 0.75, "waiting": {"for": "share", "peer": "n0", "seconds": 12.0}},
    {"name": "n2", "age": 7200.0, "stale": True, "state": "training", **TOLD, "round": 3, "loss": 0.25, "test_accuracy": None},
    {"name": "n3", "age": 2.0, "stale": False, "state": "paused", **TOLD, "round": 5, "loss": None, "test_accuracy": None,
     "rounds_per_second": 0.0, "topology": {"digest": "0000000000000002", "version": 1}},
    {"name": "n4", "age": None, "stale": True, "state": None, **dict.fromkeys(TOLD)},
    {"name": "<img src=x onerror=alert(1)>", "age": 3.0, "stale": False, "state": "finished", **TOLD, "round": 9, "loss": 1e-9,
     "test_accuracy": 1.0},
    {"name": "n5", "age": 4.0, "stale": False, "state": "constructor", **TOLD, "round": 4}]}


def topology(nodes, phases):
    return {"file": "fleet.dot", "digest": STATUS["topology"]["digest"], "version": 0, "slices": 1, "exact": True, "tls": "off",
            "round": 7, "phase": 0, "nodes": [{"name": name, "address": "127.0.0.1:7311", "key": None} for name in nodes],
            "phases": [{"name": f"phase{i}", "rounds": 1, "once": False, "edge_count": len(edges), "edges": [
                {"source": nodes[source], "target": nodes[target], "fraction": 0.5} for source, target in edges]}
                for i, edges in enumerate(phases)]}


def row(number):
    return {"number": number, "round": number, "seconds": number / 10, "epoch": number / 100, "loss": 2 / (1 + number),
            "test_loss": 2.5 / (1 + number), "test_accuracy": 1 - 1 / (2 + number), "disagreement": math.exp(-number / 1e4),
            "weight": 1.0, "bytes_sent": 0, "bytes_received": 0}


def scripted(nodes, phases, **more):
    names = [f"n{i}" for i in range(nodes)]
    return {"GET /v1/status": {**STATUS, "test_loss": 0.2}, "GET /v1/peers": [
        {**PEER, "rtt_ms": 1.5, "cipher": "AES-128-GCM"}, {**PEER, "direction": "in"}],
        "GET /v1/topology": topology(names, phases), "GET /v1/fleet": (404, {"error": {"message": "none"}}),
        "GET /v1/history?limit=1024": {"total": 1, "oldest": 0, "every": 1, "next": 1, "rows": [row(0)]},
        "GET /v1/history?since=1&limit=1024": {"total": 1, "oldest": 0, "every": 1, "next": 1, "rows": []}, **more}


@unittest.skipIf(MISSING, MISSING)
class Case(FleetTest):
    def browse(self, url):
        browser = Browser()
        self.addCleanup(browser.close)
        browser.look()
        browser.driver.get(url)
        return browser

    @contextlib.contextmanager
    def before(self, answers):
        """The page before a scripted daemon."""
        with daemon(answers) as (path, _), serving(SGPCTL, path) as dashboard:
            browser = self.browse(dashboard.url)
            browser.wait("the graph", lambda: browser.rows("#fleet") and browser.text("#graph-note"))
            yield browser, dashboard


class Daemons(Case):
    def test_four_nodes_that_train_and_one_is_killed(self):
        f = self.fleet(4, options={"train.epochs": "100000"})
        f.start()
        f.wait_state("training")
        dashboard = Dashboard(SGPCTL, f.nodes[0].socket, "--log", f.nodes[0].log_path)
        self.addCleanup(dashboard.close)
        browser = self.browse(dashboard.url)
        browser.wait("four rows", lambda: [row[1][2:] for row in browser.rows("#fleet")] == ["training"] * 4)
        self.assertEqual([row[0] for row in browser.rows("#fleet")], ["n0", "n1", "n2", "n3"])
        self.assertEqual(browser.text("h1"), "sgpd: n0")
        browser.wait("its news", lambda: browser.text("#news").startswith("n0 is training"))
        browser.wait("rates", lambda: all("/s" in row[3] for row in browser.rows("#links")))
        self.assertEqual({(row[2], row[4]) for row in browser.rows("#links")}, {("up", "plain")})
        pace, of_the_row = browser.run(  # at one time
            "return ['#summary div:nth-child(8) dd', '#fleet tbody tr td:nth-child(5)']"
            ".map(selector => document.querySelector(selector).innerText)")
        self.assertEqual(pace, of_the_row)
        browser.wait("curves", lambda: browser.run("return document.querySelectorAll('.line[d^=M]').length") >= 5)
        browser.wait("the log", lambda: "event=epoch" in browser.text("#log"))
        browser.wait("the graph", lambda: browser.text("#graph-note") == "4 nodes; 4 edges.")
        browser.run("const list = document.querySelector('#phase'); list.value = 'cycle'; list.dispatchEvent(new Event('change'))")
        self.assertEqual(browser.text("#graph-note"), "4 nodes; 8 edges.")
        browser.run("document.querySelector('#topology').open = true")
        self.assertIn("n0 -> n1 [fraction=0.5];", browser.text("#topology-text"))
        browser.draw("training")

        f.nodes[3].end(9)
        browser.wait("one absent", lambda: [row[1][:8] for row in browser.rows("#fleet")].count("A absent") == 1)
        browser.wait("its news", lambda: "not heard: n3" in browser.text("#news"))
        self.assertIn("(stale)", browser.rows("#fleet")[3][2])
        self.assertIn(["n3", "in", "down"], [row[:3] for row in browser.rows("#links")])
        tree = browser.accessible()
        names = {role: [name for other, name, _ in tree if other == role] for role, _, _ in tree}
        for name in ("n0, this node: training", "n1: training", "n2: training", "n3: absent, last training"):
            self.assertTrue(any(button.startswith(name) for button in names["button"]), (name, names["button"]))
        self.assertEqual(names["slider"], ["Loss", "Accuracy (%)", "Consensus distance (relative)", "Weight (push-sum)",
                                           "Rounds a second (1/s)"])
        self.assertLessEqual({"Graph", "Fleet", "Links of this node", "Curves", "Last events of the log", "Topology"},
                             set(names["heading"]))
        self.assertIn("columnheader", names)
        self.assertIn("rowheader", names)
        self.assertEqual(len(names["status"]), 1)
        round_before = f.nodes[0].status()["round"]
        f.wait_round(0, round_before + 100)
        browser.draw("killed")
        if PICTURES:
            browser.look(1000)
            browser.picture(os.path.join(PICTURES, "dashboard.png"), end="#links-title")
            browser.look()
        self.assertEqual([line for line in browser.complaints() if NO_FLEET not in line], [])

        f.nodes[0].end(9)
        browser.wait("the silence", lambda: browser.text("#news") == "The daemon does not answer. What is shown is old.")
        f.nodes[0].start()
        browser.wait("its return", lambda: browser.text("#news").startswith("n0 is "))


    def test_a_pushed_topology_and_its_votes(self):
        options = {"train.epochs": "100000"}
        f = self.fleet(4, options=options)
        administrator = Administrator(f, SGPCTL, options)
        f.start()
        for i in range(4):
            f.wait_round(i, 3)
        dashboard = Dashboard(SGPCTL, f.nodes[0].socket, "--log", f.nodes[0].log_path)
        self.addCleanup(dashboard.close)
        browser = self.browse(dashboard.url)
        browser.wait("version 1", lambda: [row[0] for row in browser.rows("#versions")] == ["1"])
        self.assertEqual(browser.rows("#versions")[0][6], administrator.key)
        self.assertIn("The fleet mill uses version 1 here.", browser.text("#versions-note"))
        self.assertFalse(browser.find("#proposed").is_displayed())
        self.assertNotIn("Proposed", [name for role, name, _ in browser.accessible() if role == "heading"])
        f.nodes[3].end()
        f.rewire(list(range(4)), [[(0, 1), (1, 2), (2, 3), (3, 0)]])
        administrator.push(1, "--no-wait")
        said = "Version 2 is proposed: 3 of 4 nodes accept it. It waits for n3."
        votes = [["n0", "1", "accepted", "–"], ["n1", "1", "accepted", "–"], ["n2", "1", "accepted", "–"], ["n3", "1", "none", "–"]]
        browser.wait("its votes", lambda: browser.text("#proposed-note") == said)
        self.assertEqual(browser.rows("#votes"), votes)
        self.assertEqual(browser.accessible_part("Proposed"), ([said], votes))
        browser.wait("its news", lambda: "version 2 of the topology waits for n3" in browser.text("#news"))
        browser.draw("proposed")
        f.nodes[3].start()
        browser.wait("version 2", lambda: [row[0] for row in browser.rows("#versions")] == ["2", "1"])
        used = browser.rows("#versions")
        self.assertEqual((used[0][3], used[0][5], used[0][6]), (used[1][2], "–", administrator.key))
        browser.wait("nothing proposed", lambda: not browser.find("#proposed").is_displayed())
        self.assertEqual(browser.accessible_part("Used by this node"), ([], used))
        self.assertEqual(browser.accessible_part("Signed versions of the topology")[0],
                         ["The fleet mill uses version 2 here. This node keeps 2 versions that it has used, the latest first."])
        browser.wait("the new graph", lambda: browser.text("#graph-note") == "4 nodes; 4 edges."
                     and browser.text("#phase option[value=cycle]") == "the whole cycle (1 phase)")
        browser.wait("no news", lambda: browser.text("#news") == "n0 is training.")
        browser.draw("pushed")
        self.assertEqual([line for line in browser.complaints() if NO_FLEET not in line], [])


class Scripted(Case):
    def test_a_fork_and_a_refusal_are_shown(self):
        hashes = {name: name * 64 for name in "abc"}
        rollout = {"fleet": "mill", "active": {"version": 6, "identity": hashes["a"]}, "proposed": {"version": 7, "identity": hashes["b"]},
                   "fork": False, "vote": "accepted", "why": "", "accepted": 1, "missing": 0, "refused": 1, "waits_for": "n1", "ready": False,
                   "refused_last": "n3: <b>a signature is wrong</b>", "nodes": [
                       {"name": "n0", "active": 6, "mark": "b" * 16, "vote": "accepted", "why": ""},
                       {"name": "n1", "active": 6, "mark": "b" * 16, "vote": "refused", "why": "<i>no memory</i>"},
                       {"name": "n2", "active": 0, "mark": "c" * 16, "vote": "accepted", "why": ""}]}
        log = {"versions": [{"version": 6, "identity": hashes["a"], "predecessor": "", "file": hashes["c"], "bytes": 2048,
                             "signers": ["SHA256:x", "SHA256:y"], "recovered": True, "despite": ["n4", "n5"], "used_at": "2026-11-27T04:20:00Z"}]}
        status = {**STATUS, "rollout": {"active": 6, "proposed": 7, "vote": "accepted", "waits_for": "n1"}}
        with self.before(scripted(3, [[(0, 1)]], **{"GET /v1/status": status, "GET /v1/rollout": lambda _: rollout,
                                                    "GET /v1/rollout/log": log})) as (browser, _):
            browser.wait("the refusal", lambda: browser.text("#proposed-note")
                         == "Version 7 is proposed: 1 of 3 nodes accept it. It waits for n1, and was refused.")
            self.assertEqual(browser.rows("#votes"), [["n0", "6", "accepted", "–"], ["n1", "6", "refused", "<i>no memory</i>"],
                                                      ["n2", "–", "none", "–"]])
            self.assertEqual(browser.rows("#versions"), [["6", "2026-11-27T04:20:00Z", "a" * 16, "–", "2.0 KiB", "n4, n5",
                                                          "SHA256:x, SHA256:y (recovery)"]])
            self.assertIn("A document was refused: n3: <b>a signature is wrong</b>", browser.text("#versions-note"))
            self.assertEqual(browser.text("#news"), "n0 is training; version 7 of the topology waits for n1.")
            self.assertEqual(browser.run("return [...document.querySelectorAll('#votes tr.bad')].map(row => row.cells[0].innerText)"), ["n1"])
            rollout["fork"] = True
            status["rollout"] = {**status["rollout"], "vote": "forked", "waits_for": None}
            browser.wait("the fork", lambda: browser.text("#proposed-note").startswith("Two files have version 7: neither is used"))
            browser.wait("its news", lambda: browser.text("#news") == "n0 is training; two files have version 7 of the topology.")
            browser.draw("fork")
            self.assertEqual([line for line in browser.complaints() if NO_FLEET not in line], [])

    def test_the_keyboard_is_enough(self):
        history = {"total": 100, "oldest": 0, "every": 1, "next": 100, "rows": [row(i) for i in range(100)]}
        answers = scripted(4, [[(0, 1), (1, 2), (2, 3), (3, 0)]], **{
            "GET /v1/history?limit=1024": history, "GET /v1/history?since=100&limit=1024": {**history, "rows": []}})
        with self.before(answers) as (browser, _):
            browser.wait("curves", lambda: browser.text("#curves-note").startswith("100 rows of 100"))
            visited = []
            for _ in range(40):
                browser.press("Tab")
                visited.append(browser.run("const e = document.activeElement; return e.getAttribute('aria-label') ?? e.id"))
            for wanted in ("phase", "n0, this node: training", "unit", "zoom-in", "zoom-all", "Log scale of loss"):
                self.assertIn(wanted, visited)
            browser.run("document.querySelector('.vertex[tabindex=\"0\"]').focus()")
            browser.press("ArrowRight")
            self.assertEqual(browser.run("return document.activeElement.dataset.name"), "n1")
            self.assertIn("Node n1", browser.text("#node-title"))
            self.assertIn("AES-128-GCM", browser.text("#node-facts"))
            browser.press("End")
            self.assertEqual(browser.text("#node-title"), "Node n3")
            browser.run("document.querySelector('[role=slider]').focus()")
            self.assertEqual(self.value(browser)[:31], "round 99: training 0.02, test 0")
            browser.press("ArrowLeft")
            self.assertTrue(self.value(browser).startswith("round 98: "), self.value(browser))
            browser.press("Home")
            self.assertTrue(self.value(browser).startswith("round 0: training 2, test 2.5"), self.value(browser))
            browser.press("+")
            self.assertIn("of the chosen part of 100", browser.text("#curves-note"))
            browser.press("0")
            self.assertTrue(browser.text("#curves-note").startswith("100 rows of 100"))

    def value(self, browser):
        return browser.run("return document.activeElement.getAttribute('aria-valuetext')")

    def test_zoom_units_and_scale(self):
        history = {"total": 100, "oldest": 0, "every": 1, "next": 100, "rows": [row(i) for i in range(100)]}
        answers = scripted(4, [[(0, 1)]], **{"GET /v1/history?limit=1024": history,
                                             "GET /v1/history?since=100&limit=1024": {**history, "rows": []}})
        with self.before(answers) as (browser, _):
            browser.wait("curves", lambda: browser.text("#curves-note").startswith("100 rows of 100"))
            line = "return document.querySelector('figure .line').getAttribute('d')"
            linear = browser.run(line)
            browser.find("figure input").click()
            self.assertNotEqual(browser.run(line), linear)
            browser.drag("figure .plot svg", 0.5, 0.9)
            self.assertRegex(browser.text("#curves-note"), r"^4\d rows of the chosen part of 100 ")
            browser.find("#earlier").click()
            self.assertRegex(browser.text("#curves-note"), r"^4\d rows of the chosen part of 100 ")
            browser.find("#zoom-all").click()
            browser.run("const list = document.querySelector('#unit'); list.value = 'seconds'; list.dispatchEvent(new Event('change'))")
            self.assertIn("time 9.9 s: ", browser.text("figcaption"))

    def test_a_recorded_fleet(self):
        with self.before(scripted(5, [[(0, 1), (1, 0)]], **{"GET /v1/fleet": FLEET})) as (browser, _):
            browser.wait("seven rows", lambda: len(browser.rows("#fleet")) == 7)
            rows = {row[0]: row[1:] for row in browser.rows("#fleet")}
            self.assertEqual(rows["n0"], ["T training", "0.0 s", "7", "25", "0.1", "87.5 %", "1", "–"])
            self.assertIn("Rounds a second\n25\n", browser.text("#summary"))
            self.assertEqual(rows["n1"], ["W training", "1.3 s", "6", "25", "0.5", "50 %", "0.75", "n0 (share)"])
            self.assertEqual(rows["n2"], ["A absent, last training", "2.0 h (stale)", "3", "25", "0.25", "–", "1", "–"])
            self.assertEqual(rows["n3"], ["P paused", "2.0 s", "5", "0", "–", "–", "1", "–"])
            self.assertEqual(rows["n4"], ["? not known", "never heard", *["–"] * 6])
            self.assertEqual(rows["<img src=x onerror=alert(1)>"],
                             ["F finished", "3.0 s", "9", "25", "1.00e-9", "100 %", "1", "–"])
            self.assertEqual(rows["n5"], ["? constructor", "4.0 s", "4", "25", "0.1", "87.5 %", "1", "–"])
            self.assertIn("7 nodes, 2 of them absent", browser.text("#fleet-note"))
            self.assertEqual(browser.text("#waits"), "n1 waits for n0 (share, 12 s)")
            self.assertEqual(browser.text("#node-title"), "Node n0 (this one)")
            self.assertNotIn("another than this node's", browser.text("#node-facts"))
            browser.find(".vertex[data-name=n3]").click()
            self.assertIn("another than this node's", browser.text("#node-facts"))
            browser.find("#fleet thead th:nth-child(3) button").click()
            self.assertEqual([row[0] for row in browser.rows("#fleet")][-2:], ["n2", "n4"])
            browser.find("#fleet thead th:nth-child(3) button").click()
            self.assertEqual(browser.run("return document.querySelector('#fleet [aria-sort]').ariaSort"), "descending")
            browser.draw("recorded")
            self.assertEqual(browser.complaints(), [])

    def test_64_nodes_and_100000_rounds(self):
        phases = [[(i, (i + hop) % 64) for i in range(64)] for hop in (1, 2, 4, 8, 16, 32)]
        total, oldest = 100000, 100000 - 4096
        latest = [total]

        def more(_):
            """1,024 rows more for each reading, ten times."""
            first = latest[0]
            latest[0] = min(first + 1024, total + 10240)
            return {"total": latest[0], "oldest": oldest, "every": 1, "next": latest[0], "rows": [row(i) for i in range(first, latest[0])]}
        overview = {"total": total, "oldest": oldest, "every": 4, "next": total, "rows": [row(i) for i in range(oldest, total, 4)]}
        answers = scripted(64, phases, **{"GET /v1/history?limit=1024": overview, "GET /v1/fleet": {"nodes": [
            {"name": f"n{i}", "age": 0.5 * i, "stale": i % 13 == 12, "state": "training", "round": 100000 - i, "loss": 0.1,
             "accuracy": 0.9, "weight": 1.0} for i in range(64)]}})
        for number in range(total, total + 10241, 1024):
            answers[f"GET /v1/history?since={number}&limit=1024"] = more
        with self.before(answers) as (browser, dashboard):
            browser.wait("all rows", lambda: len(browser.rows("#fleet")) == 64)
            self.assertIn("64 nodes, 4 of them absent", browser.text("#fleet-note"))
            browser.run("const list = document.querySelector('#phase'); list.value = 'cycle'; list.dispatchEvent(new Event('change'))")
            self.assertEqual(browser.text("#graph-note"), "64 nodes; 384 edges.")
            browser.wait("the latest rows", lambda: "110,240" in browser.text("#curves-note"))
            note = browser.text("#curves-note")
            self.assertRegex(note, r"Thinned: of every (4|8|16) rows the page shows one. The daemon keeps the rows from 95,904 on")
            self.assertLessEqual(int(note.split()[0].replace(",", "")), ROWS_MAX)
            self.assertLess(browser.run("return Math.max(...[...document.querySelectorAll('.line')]"
                                        ".map(line => line.getAttribute('d').length))"), 40000)
            self.assertLessEqual(browser.run("return document.querySelector('#fleet').parentElement.clientHeight"), 640)
            axis = browser.run("return [...document.querySelectorAll('figure:nth-child(2) .grid + text')].map(text => text.textContent)")
            self.assertEqual(len(set(axis)), len(axis))  # of values that differ by 1e-6
            browser.draw("many")
            browser.cdp("HeapProfiler.collectGarbage")
            heap = {entry["name"]: entry["value"] for entry in browser.metrics()}["JSHeapUsedSize"]
            self.assertLess(heap, HEAP_BYTES_MAX)
            self.assertLess(fleet.memory_kb(dashboard.process), 65536)
            print("# first paint after %.2f s, the largest after %.2f s; memory: %.1f MB the page, %.1f MB its server" % (
                *browser.run(PAINTS), heap / 1e6, fleet.memory_kb(dashboard.process) / 1e3))

    def test_a_page_without_a_stream_polls(self):
        with daemon(scripted(4, [[(0, 1)]])) as (path, _), serving(SGPCTL, path) as dashboard:
            callers = [dashboard.stream() for _ in range(8)]
            for caller in callers:
                self.assertIn(b"200 OK", caller.recv(64))
            browser = self.browse(dashboard.url)
            browser.wait("the fleet", lambda: len(browser.rows("#fleet")) == 4)
            for caller in callers:
                caller.close()

    def test_other_sites_see_nothing(self):
        with daemon(scripted(4, [[(0, 1)]])) as (path, requests), serving(SGPCTL, path) as dashboard, stranger(dashboard.url) as url:
            browser = self.browse(url)
            browser.wait("all attempts", lambda: browser.run("return window.done"))
            self.assertEqual(browser.run("return window.read"), [])
            self.assertEqual(browser.run("return frames[0].length"), 0)
            self.assertEqual(browser.run("try { return frames[0].document.title } catch (e) { return e.name }"), "SecurityError")
            self.assertEqual(requests, [])

    def test_texts_have_contrast_in_both_schemes(self):
        with self.before(scripted(4, [[(0, 1)]])) as (browser, _):
            for dark in (False, True):
                browser.look(dark=dark)
                for ink, paper in (("ink", "paper"), ("soft", "paper"), ("ink", "panel"), ("soft", "panel"),
                                   *((state, "paper") for state in
                                     "training changing waiting paused finished absent unknown own second focus".split())):
                    self.assertGreaterEqual(contrast(self.colour(browser, ink), self.colour(browser, paper)), CONTRAST_LEAST,
                                            (dark, ink, paper))

    def colour(self, browser, name):
        text = browser.run("return getComputedStyle(document.documentElement).getPropertyValue('--' + arguments[0])", name)
        return [int(text.strip()[i:i + 2], 16) / 255 for i in (1, 3, 5)]


def contrast(one, other):
    """Of two colours (WCAG 2.1, relative luminance)."""
    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return sum(part * c for part, c in zip((0.2126, 0.7152, 0.0722), linear))
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@contextlib.contextmanager
def stranger(target):
    """A site of another origin, which even knows the token: it frames the page, and tries to read it."""
    page = f"""<!DOCTYPE html><iframe src="{target}"></iframe><script>
      window.read = [];
      const attempts = ["", "state", "v1/status", "main.js"].flatMap((path) => ["cors", "no-cors"].map((mode) =>
        fetch("{target}" + path, {{ mode }}).then((answer) => answer.text()).then((text) => text && window.read.push(text), () => 0)));
      attempts.push(fetch("{target}v1/stop", {{ method: "POST", mode: "no-cors", body: "x" }}).catch(() => 0));
      Promise.all(attempts).then(() => {{ window.done = true; }});
      </script>""".encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()


if __name__ == "__main__":
    tap.run_cases(sys.argv[3:])
