# SPDX-License-Identifier: Apache-2.0
"""Prometheus collects a fleet, every query of the dashboard has an answer, and the rules are as promtool wants them:
test_dashboard.py SGPD SGPCTL. Without Debian's package prometheus it is skipped."""
import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../system"))
SGPD, SGPCTL = sys.argv[1:3]
os.environ["SGPD"] = SGPD
import fleet  # noqa: E402
import tap  # noqa: E402
from administrator import Administrator  # noqa: E402

MONITORING = os.path.join(HERE, "../../monitoring")
JOB = "sgpd"
CONFIGURATION = """global: {scrape_interval: 1s, evaluation_interval: 1s}
scrape_configs: [{job_name: %s, static_configs: [{targets: %s}]}]
rule_files: [%s]
"""


def promtool(*arguments, text=None):
    done = subprocess.run(["promtool", *arguments], input=text, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def queries():
    """(panel, query) of the dashboard, its variables filled in."""
    with open(os.path.join(MONITORING, "sgpd-dashboard.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert names == {"source", "job"}, names
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "10s").replace("$job", JOB)


@unittest.skipUnless(shutil.which("promtool"), "not installed: prometheus")
class Rules(unittest.TestCase):
    def test_they_are_plain_and_fire_when_they_should(self):
        for arguments in (("check", "rules", os.path.join(MONITORING, "sgpd-rules.yml")),
                          ("test", "rules", os.path.join(HERE, "sgpd-rules-test.yml"))):
            code, said = promtool(*arguments)
            self.assertEqual((code, "SUCCESS" in said, "FAILED" in said), (0, True, False), said)

    def test_the_example_is_valid(self):
        code, said = promtool("check", "config", os.path.join(MONITORING, "prometheus.yml"))
        self.assertEqual(code, 0, said)


@unittest.skipUnless(shutil.which("prometheus"), "not installed: prometheus")
class Dashboard(fleet.FleetTest):
    def begin(self, command, **options):
        process = subprocess.Popen(command, preexec_fn=fleet.die_with_parent, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def collect(self, f):
        """Serve the figures of every node and let Prometheus collect them; its address."""
        ports = fleet.free_ports(f.n + 1)
        for node, port in zip(f.nodes, ports):
            self.begin([SGPCTL, "-s", node.socket, "metrics", "--listen", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
        path = os.path.join(f.directory, "prometheus.yml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION % (JOB, json.dumps([f"127.0.0.1:{port}" for port in ports[:-1]]),
                                        os.path.join(MONITORING, "sgpd-rules.yml")))
        with open(os.path.join(f.directory, "prometheus.log"), "w", encoding="utf-8") as log:
            self.begin(["prometheus", "--config.file", path, "--storage.tsdb.path", os.path.join(f.directory, "tsdb"),
                        f"--web.listen-address=127.0.0.1:{ports[-1]}"], stdout=log, stderr=log)
        return f"http://127.0.0.1:{ports[-1]}/api/v1/"

    def ask(self, address, what, **fields):
        try:
            with urllib.request.urlopen(address + what + "?" + urllib.parse.urlencode(fields), timeout=10) as answer:
                return json.load(answer)["data"]
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code == 400:
                raise AssertionError(error.read()) from error
            return None  # not there yet

    def test_every_query_answers_on_a_running_fleet(self):
        options = {"train.epochs": None, "train.rounds": "1G"}
        f = self.fleet(3, options=options)
        Administrator(f, SGPCTL, options)  # without one there are no figures of signed files
        f.start()
        address = self.collect(f)
        code, said = promtool("check", "metrics", text=subprocess.run(
            [SGPCTL, "-s", self.ready(f), "metrics"], text=True, check=True, stdout=subprocess.PIPE).stdout)
        self.assertEqual((code, said), (0, ""))
        for panel, query in queries():
            def answers():
                found = self.ask(address, "query", query=query)
                return found is not None and found["result"]
            f.wait(f"an answer to {panel}: {query}", answers, interval=0.2)
        names = {sample["metric"]["node"] for sample in self.ask(address, "query", query="sgpd_info")["result"]}
        self.assertEqual(names, {"n0", "n1", "n2"})
        rules = f.wait("all rules to be read", lambda: [
            rule for group in self.ask(address, "rules")["groups"] for rule in group["rules"]
            if all(other["health"] == "ok" for other in group["rules"])], interval=0.2)
        self.assertGreater(len(rules), 5)

    def ready(self, f):
        f.wait_round(0, 20)
        f.wait("an evaluation", lambda: (f.nodes[0].status() or {}).get("test_accuracy") is not None)
        return f.nodes[0].socket


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[3:]
    tap.run_cases([])
