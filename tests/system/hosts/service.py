#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The installed unit under a real systemd, in a container: what start, stop, restart and the watchdog
do, and who may touch what. service.py BUILD_FOLDER [TEST...]

With SGP_LONG=1 the unit is exactly the installed one; else its watchdog is made quicker, so that the
whole takes a minute."""
import json
import sys
import tempfile
import unittest

import sandbox
from container import NAMES, TOPOLOGY, Container, configuration, fleet  # its path is where tap is found
import tap

BUILD = sys.argv.pop(1)
EXPOSURE_TENTHS_MAX = 11
WATCHDOG_SECONDS = 60 if fleet.LONG else 10  # longer than a busy machine keeps a daemon waiting
QUICK = "[Service]\nWatchdogSec=%d\n" % WATCHDOG_SECONDS
USERS = "u reader 2001\nu stranger 2002\nm reader sgpd\n"


def rows():
    with tempfile.NamedTemporaryFile("r") as file:
        fleet.write_rows(file.name)
        return file.read()


@sandbox.once
def host():
    container = Container(BUILD)
    container.write("/etc/sgpd/fleet.dot", TOPOLOGY)
    for name in NAMES:
        container.write(f"/etc/sgpd/{name}.conf", configuration(name))
    container.write("/srv/sgpd/rows.csv", rows())
    container.write("/etc/sysusers.d/test.conf", USERS)
    if not fleet.LONG:
        container.write("/etc/systemd/system/sgpd@.service.d/quick.conf", QUICK)
    container.boot()
    container.run("systemd-sysusers")
    return container


class Service(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.host = host()
        cursor = self.host.run("journalctl", "-n", "0", "--show-cursor", "-o", "cat").stdout
        self.since = cursor.split("cursor:")[1].strip()
        self.addCleanup(self.clean)

    def clean(self):
        """As if nothing had been started; nobody waits for anybody's last shares."""
        self.run_("systemctl", "stop", "--no-block", "sgpd@*", "sgpd.target")
        self.run_("systemctl", "kill", "--signal=KILL", "sgpd@*")
        self.run_("systemctl", "stop", "sgpd@*", "sgpd.target")
        self.run_("systemctl", "reset-failed")
        self.run_("sh", "-c", "rm -rf /var/lib/sgpd/*")

    def run_(self, *command, **options):
        return self.host.run(*command, check=False, **options)

    def journal(self, *which):
        """What was written since this test began."""
        return self.run_("journalctl", "-o", "cat", "--after-cursor", self.since, *which).stdout

    def assert_told(self, words, *which):
        """journald writes a line some time after the event, so the test waits for the line."""
        self.wait(f"{words!r} in the journal", lambda: words in self.journal(*which))

    def logs(self):
        """The last lines; with a cursor, journalctl itself counts from the first."""
        return "\n".join(self.journal().splitlines()[-40:]) if hasattr(self, "since") else ""

    def start(self, *names):
        self.host.run("systemctl", "start", *(f"sgpd@{name}" for name in names))

    def show(self, name, property_):
        return self.host.run("systemctl", "show", "--value", "-p", property_, f"sgpd@{name}").stdout.strip()

    def wait(self, what, condition, timeout=fleet.PATIENCE):
        return fleet.poll(what, condition, timeout, self.logs)

    def wait_round(self, name, number):
        self.host.run("sgpctl", "-n", name, "wait", "--for", f"round:{number}", "--timeout", "60")

    def status(self, name):
        return json.loads(self.host.run("sgpctl", "-n", name, "--json", "status").stdout)

    def train(self):
        """All three, some rounds on."""
        self.start(*NAMES)
        for name in NAMES:
            self.wait_round(name, 20)

    def assert_trains(self):
        for name in NAMES:
            self.wait_round(name, self.status(name)["round"] + 20)


class Unit(Service):
    def test_systemd_finds_nothing_to_say(self):
        units = ["sgpd@n0.service", "sgpd-metrics@n0.service"]
        verify = self.run_("systemd-analyze", "verify", *units, "sgpd.target", "sgpd.slice")
        self.assertEqual((verify.returncode, verify.stdout), (0, ""))
        for unit in units:
            security = self.run_("systemd-analyze", "security", f"--threshold={EXPOSURE_TENTHS_MAX}", unit)
            sandbox.tell(security.stdout.splitlines()[-1])
            self.assertEqual(security.returncode, 0, security.stdout)

    def test_what_the_kernel_holds_it_to(self):
        """A setting that this kernel cannot keep would be left out in silence."""
        self.train()
        pid = self.show("n0", "MainPID")
        status = dict(line.split(":\t", 1) for line in
                      self.host.run("cat", f"/proc/{pid}/status").stdout.splitlines() if ":\t" in line)
        uid = self.host.run("id", "-u", "sgpd").stdout.strip()
        self.assertEqual(status["Uid"].split(), [uid] * 4)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(status[kind], 16), 0, kind)
        mounts = [line.split() for line in
                  self.host.run("cat", f"/proc/{pid}/mountinfo").stdout.splitlines()]
        options = {mount[4]: mount[5].split(",") for mount in mounts}
        self.assertIn("ro", options["/"])
        self.assertIn("rw", options["/var/lib/sgpd/n0"])
        self.assertIn("rw", options["/run/sgpd/n0"])
        self.assertNotIn("/var/lib/sgpd/n1", options)


class Start(Service):
    def test_ready_with_no_neighbour_alive(self):
        self.start("n0")
        self.assertEqual(self.show("n0", "ActiveState"), "active")
        self.assertEqual(self.status("n0")["state"], "joining")
        self.wait("STATUS= to name the missing neighbour", lambda: "n1" in self.show("n0", "StatusText")
                  or "n2" in self.show("n0", "StatusText"))
        sandbox.tell("StatusText=" + self.show("n0", "StatusText"))
        self.start("n1", "n2")
        self.assert_trains()
        self.wait("STATUS= to say that it trains",
                  lambda: self.show("n0", "StatusText").startswith("training, round "))
        self.assertNotIn("waits for", self.show("n0", "StatusText"))

    def test_a_configuration_error_is_not_tried_again(self):
        self.host.write("/etc/sgpd/wrong.conf", configuration("n0") + "port = 1\n")
        self.assertNotEqual(self.run_("systemctl", "start", "sgpd@wrong").returncode, 0)
        self.assertEqual(self.show("wrong", "ExecMainStatus"), "78")
        self.assertEqual(self.show("wrong", "SubState"), "failed")  # not auto-restart
        self.assertEqual(self.show("wrong", "NRestarts"), "0")
        self.assert_told("/etc/sgpd/wrong.conf:16: ", "-u", "sgpd@wrong")

    def test_what_the_unit_may_not_read_is_told_by_a_check_before(self):
        """As root, who may: with the check's warnings the start fails, and without them it does not."""
        self.host.write("/etc/sgpd/hidden.conf", configuration("n0").replace("/srv/sgpd/", "/root/"))
        self.host.write("/etc/sgpd/closed.conf", configuration("n0").replace("rows.csv", "closed.csv"))
        self.host.write("/root/rows.csv", rows())
        self.host.write("/srv/sgpd/closed.csv", rows(), 0o600)
        for name, fault in (("n0", None), ("hidden", "sgpd@.service does not see it (ProtectHome=)"),
                            ("closed", "the user sgpd of sgpd@.service may not read it")):
            checked = self.host.run("sgpd", "--check", "-c", f"/etc/sgpd/{name}.conf").stdout
            told = [line for line in checked.splitlines() if "[data] train: " in line]
            self.assertEqual(len(told), 1 if fault else 0, checked)
            self.assertTrue(fault is None or fault in told[0], checked)
            self.assertEqual("service" in checked, fault is not None, checked)
            started = self.run_("systemctl", "start", f"sgpd@{name}").returncode == 0
            self.assertEqual(started, fault is None, name)
            self.assertEqual(self.show(name, "ExecMainStatus"), "0" if started else "78")
        self.assert_told("[data] train: /root/rows.csv: this service does not see it, whoever may read it: its unit "
                         "hides home directories (ProtectHome=)", "-u", "sgpd@hidden")

    def test_without_a_configuration_it_does_not_start(self):
        self.assertNotEqual(self.run_("systemctl", "start", "sgpd@nobody").returncode, 0)
        self.assertEqual(self.show("nobody", "AssertResult"), "no")

    def test_an_address_that_comes_late(self):
        """At boot the network may be a while; systemd must not give up before the address is there, even
        if somebody tries by hand meanwhile (its own limit is five starts in ten seconds)."""
        self.host.write("/etc/sgpd/n0.conf", configuration("n0", "192.0.2.1:7311"))
        self.addCleanup(self.host.write, "/etc/sgpd/n0.conf", configuration("n0"))
        for _ in range(7):
            self.run_("systemctl", "restart", "sgpd@n0")
        self.wait("another try", lambda: int(self.show("n0", "NRestarts")) >= 1)
        self.assert_told("192.0.2.1", "-u", "sgpd@n0")
        sandbox.call("nsenter", "-t", str(self.host.leader), "-n", "ip", "address", "add", "192.0.2.1/32",
                     "dev", "lo")
        self.wait("the node to be active", lambda: self.show("n0", "ActiveState") == "active")
        self.assertEqual(self.status("n0")["state"], "joining")

    def test_the_target_starts_and_stops_all(self):
        units = [f"sgpd@{name}" for name in NAMES]
        self.host.run("systemctl", "enable", *units)
        self.addCleanup(self.host.run, "systemctl", "disable", *units)
        self.host.run("systemctl", "start", "sgpd.target")
        self.wait("all to be active", lambda: all(self.show(n, "ActiveState") == "active" for n in NAMES))
        self.assert_trains()
        self.host.run("systemctl", "stop", "sgpd.target")
        self.wait("all to be stopped",
                  lambda: all(self.show(n, "ActiveState") == "inactive" for n in NAMES))
        self.assertEqual([self.show(n, "Result") for n in NAMES], ["success"] * 3)


class Restart(Service):
    def restarted(self, name, pid):
        """Another process of the unit is ready."""
        return self.show(name, "MainPID") not in ("0", pid) and self.show(name, "ActiveState") == "active"

    def check(self, signal, result):
        self.train()
        pid = self.show("n1", "MainPID")
        sandbox.tell("WatchdogUSec=" + self.show("n1", "WatchdogUSec"))
        self.host.run("systemctl", "kill", "--kill-who=main", f"--signal={signal}", "sgpd@n1")
        self.wait("another process", lambda: self.restarted("n1", pid), 150)
        self.assertEqual(self.show("n1", "NRestarts"), "1")
        self.assert_told(f"Failed with result '{result}'", "_PID=1")
        self.assert_trains()
        self.assertEqual([self.show(n, "NRestarts") for n in ("n0", "n2")], ["0", "0"])

    def test_a_process_killed(self):
        self.check("KILL", "signal")

    def test_a_process_that_hangs_is_ended_by_the_watchdog(self):
        self.check("STOP", "watchdog")

    def test_each_restarted_in_turn(self):
        """No weight is lost or made, and no node falls behind where it was."""
        self.train()
        for restarted in NAMES:
            before = {name: self.status(name)["round"] for name in NAMES}
            self.host.run("systemctl", "restart", f"sgpd@{restarted}")
            self.assert_trains()
            for name in NAMES:
                self.assertGreater(self.status(name)["round"], before[name])
        for name in NAMES:
            self.host.run("sgpctl", "-n", name, "pause")

        def quiet():
            statuses = [self.status(name) for name in NAMES]
            return all(s["state"] == "paused" and s["weight_in_flight"] == 0 for s in statuses)

        self.wait("all to be paused, and nothing in flight", quiet)
        statuses = [self.status(name) for name in NAMES]
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - len(NAMES)), 1e-9)
        self.assertEqual([s["weight_minted"] for s in statuses], [0] * len(NAMES))

    def test_paused_nodes_are_not_shot(self):
        """Idle, but well. With SGP_LONG the two others go on without it; else they are paused, too."""
        self.train()
        for name in ["n1"] if fleet.LONG else ["n1", "n0", "n2"]:
            self.host.run("sgpctl", "-n", name, "pause")
        pids = [self.show(name, "MainPID") for name in NAMES]
        began = self.status("n1")["uptime_seconds"]
        span = 1.5 * WATCHDOG_SECONDS
        self.wait("the watchdog's time to be over",
                  lambda: self.status("n1")["uptime_seconds"] - began > span, span + fleet.PATIENCE)
        self.assertEqual([self.show(name, "MainPID") for name in NAMES], pids)
        self.assertEqual(self.status("n1")["state"], "paused")


class Figures(Service):
    """sgpd-metrics@.service: the node's figures over HTTP, by a user who may read and nothing else."""

    def ask(self, port=9311):
        lines = f"exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3"
        return self.run_("bash", "-c", lines).stdout

    def test_they_are_served(self):
        self.addCleanup(self.run_, "systemctl", "stop", "sgpd-metrics@n0", "sgpd-metrics@n1")
        self.host.write("/etc/sgpd/n1.metrics", "LISTEN=127.0.0.1:9312\n")
        self.host.run("systemctl", "start", "sgpd-metrics@n0")
        self.wait("its port", lambda: "503" in self.ask())
        self.start("n0")
        self.wait("figures of n0", lambda: 'sgpd_info{node="n0"' in self.ask())
        self.host.run("systemctl", "start", "sgpd-metrics@n1")
        self.start("n1")
        self.wait("figures of n1", lambda: 'sgpd_info{node="n1"' in self.ask(9312))
        pid = self.host.run("systemctl", "show", "--value", "-p", "MainPID", "sgpd-metrics@n0").stdout.strip()
        status = dict(line.split(":\t", 1) for line in
                      self.host.run("cat", f"/proc/{pid}/status").stdout.splitlines() if ":\t" in line)
        self.assertNotIn(status["Uid"].split()[0], (self.host.run("id", "-u", "sgpd").stdout.strip(), "0"))
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"], int(status["CapBnd"], 16)), ("1", "2", 0))
        self.assertIn("sgpd.slice", self.host.run("systemctl", "show", "-p", "ControlGroup", "sgpd-metrics@n0").stdout)


class Journal(Service):
    def entries(self, *matches):
        return [json.loads(line) for line in self.run_("journalctl", "-o", "json", *matches).stdout.splitlines()]

    def test_lines_have_fields(self):
        self.train()
        self.host.run("systemctl", "stop", "sgpd@n0")
        self.assert_told("event=end status=0", "-u", "sgpd@n0")
        lines = self.entries("SGP_NODE=n0", "SGP_EVENT=up", "SGP_PEER=n1")
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertEqual((line["_SYSTEMD_UNIT"], line["_TRANSPORT"], line["SYSLOG_IDENTIFIER"], line["PRIORITY"]),
                             ("sgpd@n0.service", "journal", "sgpd", "6"))
            self.assertIn("node=n0 event=up peer=n1 ", line["MESSAGE"])
        saved = self.entries("SGP_NODE=n0", "SGP_EVENT=saved")[-1]
        self.assertIn(f" round={saved['SGP_ROUND']} ", saved["MESSAGE"])

    @unittest.skipUnless(fleet.LONG, "ten seconds; with scripts/check --long")
    def test_a_journal_that_stands_still_stops_no_training(self):
        self.train()
        self.addCleanup(self.run_, "systemctl", "kill", "--kill-who=main", "--signal=CONT", "systemd-journald")
        self.host.run("systemctl", "kill", "--kill-who=main", "--signal=STOP", "systemd-journald")
        lines = "for i in $(seq 300); do sgpctl -n n0 pause; sgpctl -n n0 resume; done"  # more than its socket takes
        self.host.run("sh", "-c", lines)
        self.assert_trains()
        self.host.run("systemctl", "kill", "--kill-who=main", "--signal=CONT", "systemd-journald")

        def told():
            self.host.run("sgpctl", "-n", "n0", "checkpoint")
            return self.entries("SGP_NODE=n0", "SGP_EVENT=lost")
        self.wait("the lost lines to be told", told)


class Reload(Service):
    BACK = TOPOLOGY + "digraph back { n0 -> n2; n2 -> n1; n1 -> n0; }\n"

    def digest(self, name):
        return self.status(name)["topology"]["digest"]

    def test_another_topology_and_then_a_bad_one(self):
        self.addCleanup(self.host.write, "/etc/sgpd/fleet.dot", TOPOLOGY)
        self.train()
        pids = [self.show(name, "MainPID") for name in NAMES]
        before = self.digest("n0")
        self.host.write("/etc/sgpd/fleet.dot", self.BACK)
        self.host.run("systemctl", "reload", *(f"sgpd@{name}" for name in NAMES))
        self.assertEqual(len({self.digest(name) for name in NAMES} - {before}), 1)
        self.assert_told("change=phase_added phase=back rounds=1", "-u", "sgpd@n0")
        self.assert_trains()
        after = self.digest("n0")
        self.host.write("/etc/sgpd/fleet.dot", "digraph ring {\n  n0 -> \n")
        failed = self.run_("systemctl", "reload", "sgpd@n0")
        self.assertNotEqual(failed.returncode, 0, failed.stdout)
        self.assert_told("/etc/sgpd/fleet.dot:", "-u", "sgpd@n0")
        self.assertEqual(self.digest("n0"), after)
        self.assertEqual(self.show("n0", "ActiveState"), "active")
        self.assert_trains()
        self.assertEqual([self.show(name, "MainPID") for name in NAMES], pids)


class Keys(Service):
    def test_a_key_of_roots_is_handed_over_and_links_are_ciphered(self):
        lines = [self.host.run("sgpctl", "key", "generate", name).stdout for name in NAMES]
        self.addCleanup(self.host.write, "/etc/sgpd/fleet.dot", TOPOLOGY)
        self.addCleanup(self.host.run, "sh", "-c", "rm /etc/sgpd/*.key")
        self.host.write("/etc/sgpd/fleet.dot", TOPOLOGY.replace("{\n", "{\n  tls=require;\n" + "".join(lines), 1))
        for name in NAMES:  # as root, before it starts
            self.host.run("sgpd", "--check", "-c", f"/etc/sgpd/{name}.conf")
        self.train()
        for name in NAMES:
            stat = self.host.run("stat", "-c", "%a %U", f"/etc/sgpd/{name}.key").stdout.strip()
            self.assertEqual(stat, "600 root")
            peers = json.loads(self.host.run("sgpctl", "-n", name, "--json", "peers").stdout)
            self.assertEqual({peer["cipher"] for peer in peers if peer["state"] == "up"}, {"AES-128-GCM"})
        self.assert_trains()


class Stop(Service):
    def test_stop_writes_the_model(self):
        self.train()
        self.host.run("systemctl", "stop", "sgpd@n0")
        self.assertEqual(self.show("n0", "ActiveState"), "inactive")
        self.assertEqual(self.show("n0", "Result"), "success")  # `timeout` if it had to be killed
        self.assertEqual(self.show("n0", "ExecMainStatus"), "0")
        self.assertEqual(self.stat("/var/lib/sgpd/n0/model.safetensors"), "600 sgpd sgpd")
        self.assertEqual(self.run_("test", "-e", "/run/sgpd/n0/control.sock").returncode, 1)
        self.wait_round("n1", self.status("n1")["round"] + 20)  # the others go on

    def stat(self, path):
        return self.host.run("stat", "-c", "%a %U %G", path).stdout.strip()

    def test_who_may_do_what(self):
        self.train()
        self.assertEqual(self.stat("/var/lib/sgpd/n0"), "750 sgpd sgpd")
        self.assertEqual(self.stat("/run/sgpd/n0"), "750 sgpd sgpd")
        self.assertEqual(self.stat("/run/sgpd/n0/control.sock"), "660 sgpd sgpd")
        self.assertEqual(self.stat("/var/lib/sgpd/n0/history.csv"), "600 sgpd sgpd")
        ask, change = ("sgpctl", "-n", "n0", "status"), ("sgpctl", "-n", "n0", "pause")
        for user, expected in {"stranger": (4, 4), "reader": (0, 4), "sgpd": (0, 0), None: (0, 0)}.items():
            with self.subTest(user=user):
                codes = tuple(self.run_(*command, user=user).returncode for command in (ask, change))
                self.assertEqual(codes, expected)
        self.assertEqual(self.run_("cat", "/var/lib/sgpd/n0/history.csv", user="reader").returncode, 1)

    def test_systemd_had_no_complaint_about_the_unit(self):
        """No warning in the journal, such as of a setting that it does not know. Plain news is none: the
        end of an earlier test's mount may be told during this one."""
        self.train()
        said = self.host.run("journalctl", "-o", "cat", "--after-cursor", self.since, "-p", "notice", "-t", "systemd")
        self.assertEqual(said.stdout, "")
        self.assertEqual([self.show(name, "NRestarts") for name in NAMES], ["0"] * 3)


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
