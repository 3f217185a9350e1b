# SPDX-License-Identifier: Apache-2.0
"""The page inside Cockpit, in Chromium, before real daemons: test_cockpit.py PAGE SGPD SGPCTL.

PAGE is the folder that a package of Cockpit has. cockpit-ws and its bridge run as nobody, in a mount namespace whose /run has the
sockets of the daemons: so its port, which asks for no password, gives away nothing."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import fleet
import tap
from administrator import Administrator
from browser import MISSING, Browser
from fleet import FleetTest

PAGE, fleet.SGPD, SGPCTL = map(os.path.abspath, sys.argv[1:4])
WS, BRIDGE = "/usr/lib/cockpit/cockpit-ws", "/usr/bin/cockpit-bridge"
NOBODY = 65534
READS = ("/v1/predict", "/v1/evaluate", "/v1/evaluate/fleet")  # they have a body, and change nothing
OPTIONS = {"train.epochs": "100000"}
WITHOUT = MISSING or (None if shutil.which(WS) and shutil.which(BRIDGE) else "not installed: cockpit-ws, cockpit-bridge")
# sh -c START sh FOLDER COMMAND...: the sockets FOLDER/NAME are those of /run/sgpd.
START = """mount -t tmpfs none /run && mkdir /run/sgpd || exit
for socket in $(find "$1" -type l); do
    mkdir "/run/sgpd/${socket##*/}" && ln -s "$socket" "/run/sgpd/${socket##*/}/control.sock" || exit
done
shift; exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --pdeathsig KILL -- "$@"
"""


class Cockpit:
    """cockpit-ws and its bridge, which nobody runs; `sockets` are {name: path} of the daemons of its machine."""

    def __init__(self, sockets):
        self.folder = tempfile.TemporaryDirectory(prefix="sgpd-cockpit-")
        data, links, bridge = (os.path.join(self.folder.name, name) for name in ("data", "sockets", "bridge"))
        shutil.copytree(PAGE, os.path.join(data, "cockpit/sgpd"))
        with open(bridge, "w", encoding="utf-8") as file:  # cockpit-ws hands over no environment
            file.write(f'#!/bin/sh\nXDG_DATA_HOME={data} exec {BRIDGE} "$@"\n')
        os.chmod(bridge, 0o755)
        os.mkdir(links)
        for name, path in sockets.items():
            os.symlink(path, os.path.join(links, name))
        subprocess.run(["chmod", "-R", "a+rX", self.folder.name], check=True)
        [port] = fleet.free_ports(1)
        self.log = os.path.join(self.folder.name, "log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["unshare", "-m", "sh", "-c", START, "sh", links, WS, f"--port={port}", "--address=127.0.0.1", "--no-tls",
                 f"--local-session={bridge}"], stdout=log, stderr=log, preexec_fn=fleet.die_with_parent)
        self.url = f"http://127.0.0.1:{port}/cockpit/@localhost/sgpd/index.html"
        fleet.poll("cockpit-ws", lambda: self.listens(port), fleet.PATIENCE, self.said)

    def listens(self, port):
        with socket.socket() as caller:
            return caller.connect_ex(("127.0.0.1", port)) == 0

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


@unittest.skipIf(WITHOUT, WITHOUT)
class Page(FleetTest):
    def setUp(self):
        super().setUp()
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            raise unittest.SkipTest("no mount name-space may be made here")

    def train(self, n=4):
        f = self.fleet(n, options=OPTIONS)
        self.begin(f)
        return f

    def begin(self, f):
        os.chmod(f.directory, 0o711)  # nobody comes as far as to the sockets
        f.start()
        f.wait_state("training")

    def admit(self, node):
        """What the group sgpd is on a machine with the package."""
        os.chown(node.socket, -1, NOBODY)

    def browse(self, sockets, end=""):
        cockpit = Cockpit(sockets)
        self.addCleanup(cockpit.close)
        browser = Browser()
        self.addCleanup(browser.close)
        browser.look()
        browser.driver.get(cockpit.url + end)
        return browser

    def test_four_nodes_of_which_one_is_killed(self):
        f = self.train()
        for node in f.nodes:
            self.admit(node)
        browser = self.browse({node.name: node.socket for node in f.nodes})
        browser.wait("four rows", lambda: [row[1][2:] for row in browser.rows("#fleet")] == ["training"] * 4)
        self.assertEqual(browser.text("h1"), "sgpd: n0")
        browser.wait("its news", lambda: browser.text("#news").startswith("n0 is training"))
        browser.wait("rates", lambda: all("/s" in row[3] for row in browser.rows("#links")))
        browser.wait("curves", lambda: browser.run("return document.querySelectorAll('.line[d^=M]').length") >= 5)
        browser.wait("the graph", lambda: browser.text("#graph-note") == "4 nodes; 4 edges.")
        browser.wait("the journal", lambda: "the journal of sgpd@n0.service" in browser.text("#log-note"))
        browser.draw("cockpit")

        f.nodes[3].end(9)
        browser.wait("one absent", lambda: [row[1][:8] for row in browser.rows("#fleet")].count("A absent") == 1)
        browser.wait("its news", lambda: "not heard: n3" in browser.text("#news"))
        self.assertIn("(stale)", browser.rows("#fleet")[3][2])
        browser.draw("cockpit-killed")
        self.assertEqual(browser.complaints(), [])

        f.nodes[0].end(9)
        browser.wait("the silence", lambda: browser.text("#news") ==
                     "The daemon does not run: systemctl start sgpd@n0 starts it. What is shown is old.")
        f.nodes[0].start()
        f.wait("its socket", lambda: f.nodes[0].status())
        self.admit(f.nodes[0])
        browser.wait("its return", lambda: browser.text("#news").startswith("n0 is "))

    def test_a_pushed_topology(self):
        f = self.fleet(4, options=OPTIONS)
        administrator = Administrator(f, SGPCTL, OPTIONS)
        self.begin(f)
        for node in f.nodes:
            self.admit(node)
        browser = self.browse({node.name: node.socket for node in f.nodes})
        browser.wait("version 1", lambda: [row[0] for row in browser.rows("#versions")] == ["1"])
        f.nodes[3].end()
        f.rewire(list(range(4)), [[(0, 1), (1, 2), (2, 3), (3, 0)]])
        administrator.push(1, "--no-wait")
        said = "Version 2 is proposed: 3 of 4 nodes accept it. It waits for n3."
        browser.wait("its votes", lambda: browser.accessible_part("Proposed") == ([said], [
            ["n0", "1", "accepted", "–"], ["n1", "1", "accepted", "–"], ["n2", "1", "accepted", "–"], ["n3", "1", "none", "–"]]))
        browser.draw("cockpit-proposed")
        f.nodes[3].start()
        browser.wait("version 2", lambda: [row[0] for row in browser.rows("#versions")] == ["2", "1"])
        browser.wait("no news", lambda: browser.text("#news") == "n0 is training.")
        browser.wait("the new graph", lambda: browser.text("#phase option[value=cycle]") == "the whole cycle (1 phase)")
        browser.draw("cockpit-pushed")
        self.assertEqual(browser.complaints(), [])

    def test_a_node_is_chosen_by_its_socket(self):
        f = self.train()
        for node in f.nodes:
            self.admit(node)
        browser = self.browse({node.name: node.socket for node in f.nodes}, "#/n2")
        browser.wait("the node of the address", lambda: browser.text("h1") == "sgpd: n2")
        self.assertEqual(browser.run("return [...document.querySelector('#socket').options].map(o => o.value)"),
                         ["n0", "n1", "n2", "n3"])
        self.assertEqual(browser.run("return document.querySelector('#socket').value"), "n2")
        browser.run("const list = document.querySelector('#socket'); list.value = 'n1'; list.dispatchEvent(new Event('change'))")
        browser.wait("the chosen node", lambda: browser.text("h1") == "sgpd: n1")
        self.assertTrue(browser.driver.current_url.endswith("#/n1"), browser.driver.current_url)
        browser.run("location.hash = '#/%2E%2E%2Fsecret'")
        browser.wait("a refusal", lambda: browser.text("#news") == "No node ../secret runs here: it has no socket in /run/sgpd.")

    def test_a_reader_of_the_socket_changes_nothing(self):
        f = self.train(2)
        self.admit(f.nodes[0])
        browser = self.browse({"n0": f.nodes[0].socket})
        browser.wait("the node", lambda: browser.text("h1") == "sgpd: n0")
        posts = [path[5:] for path in f.nodes[0].json("/v1/nothing")["error"]["paths"] if path.startswith("POST ")]
        orders = [path for path in posts if path not in READS]
        self.assertIn("/v1/rollout", orders)
        browser.run("window.said = []; for (const order of arguments[0])"
                    " window.cockpit.http({unix: '/run/sgpd/n0/control.sock'}).post(order, '')"
                    ".then(() => window.said.push('done'), (error) => window.said.push(error.status))", orders)
        browser.wait("all answers", lambda: browser.run("return window.said.length") == len(orders))
        self.assertEqual(browser.run("return window.said"), [403] * len(orders))
        self.assertEqual(f.nodes[0].status()["state"], "training")

    def test_a_user_without_the_group_reads_one_line(self):
        f = self.train(2)
        browser = self.browse({"n0": f.nodes[0].socket})
        browser.wait("the line", lambda: browser.text("#news") ==
                     "You may not read /run/sgpd/n0/control.sock; it is for root and the group sgpd.")
        self.assertFalse(browser.find("main").is_displayed())
        browser.draw("cockpit-refused")
        self.assertEqual(browser.complaints(), [])
        self.admit(f.nodes[0])
        browser.wait("the node, once it is allowed", lambda: browser.text("h1") == "sgpd: n0")

    def test_a_machine_without_a_node(self):
        browser = self.browse({})
        browser.wait("the line", lambda: browser.text("#news") ==
                     "No node runs here: there is no socket in /run/sgpd. systemctl start sgpd@NAME starts one.")


if __name__ == "__main__":
    tap.run_cases(sys.argv[4:])
