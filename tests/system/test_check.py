# SPDX-License-Identifier: Apache-2.0
"""`sgpd --check` of the place where a node will stand: its address, state directory and control socket.
What would keep it from starting is one line and status 6; nothing is made, taken or left behind."""
import contextlib
import os
import re
import resource
import socket
import subprocess

import fleet
from fleet import FleetTest

NOBODY = 65534


class Place(FleetTest):
    def make(self, **own):
        f = self.fleet(2, own={0: own})
        self.node = f.nodes[0]
        return f

    def check(self, **options):
        """The status, output and complaint; whatever they are, nothing on disk is another."""
        before = self.files()
        result = subprocess.run([fleet.SGPD, "--check", "-c", self.node.configuration], capture_output=True,
                                text=True, check=False, **options)
        self.assertEqual(self.files(), before)
        return result.returncode, result.stdout, result.stderr

    def files(self):
        return sorted((os.path.join(folder, name), os.lstat(os.path.join(folder, name)).st_ino)
                      for folder, folders, names in os.walk(self.node.fleet.directory)
                      for name in folders + names)

    def assert_refused(self, key, text):
        """By the line of `key` in the configuration, with `text` behind."""
        section, name = key.split(".")
        with open(self.node.configuration, encoding="utf-8") as file:
            line = next(i for i, line in enumerate(file, 1) if line.startswith(name + " ="))
        code, out, said = self.check()
        self.assertEqual((code, out, said.count("\n")), (6, "", 1), said)
        start = f"sgpd: {self.node.configuration}:{line}: [{section}] {name}: "
        self.assertTrue(said.startswith(start), said)
        self.assertIn(text, said)

    def test_a_good_place_and_again(self):
        self.make()
        for _ in range(2):
            code, out, said = self.check()
            self.assertEqual((code, said), (0, ""))
            self.assertNotIn("running", out)
            self.assertNotIn("Permission", out)

    def test_the_memory_of_a_small_model_is_told_in_units_that_suit_it(self):
        self.make()
        out = self.check()[1]
        self.assertNotIn(" 0.0 ", out)
        self.assertRegex(out, r"\n  parameters +56 B\n")
        self.assertRegex(out, r"\n  training rows +\d+\.\d KiB\n")

    def test_a_journal_or_a_trace_that_cannot_be_made(self):
        for key in ("log.events", "log.trace"):
            self.make(**{key: "none/such"})
            self.assert_refused(key, "No such file or directory; make the directory, or give another path")
            self.make(**{key: "."})
            self.assert_refused(key, "Is a directory; give a file that sgpd may write to")

    def test_an_address_of_another_machine(self):
        self.make(**{"network.listen": "192.0.2.1:7311"})
        self.assert_refused("network.listen", "cannot listen on 192.0.2.1:7311: address not available; this "
                            "machine has lo 127.0.0.1")

    def test_a_port_that_somebody_else_has(self):
        f = self.make()
        with contextlib.closing(socket.create_server(("127.0.0.1", f.ports[0]))):
            self.assert_refused("network.listen", f"cannot listen on 127.0.0.1:{f.ports[0]}: address already in use")
        self.assertEqual(self.check()[0], 0)

    def test_a_node_that_runs_is_in_nobodys_way(self):
        f = self.make()
        f.start([0])
        f.wait("its socket", self.node.status)
        code, out, said = self.check()
        self.assertEqual((code, said), (0, ""))
        self.assertIn(f"running    an sgpd uses {self.node.directory} now\n", out)
        self.assertEqual(self.node.status()["name"], "n0")
        self.node.end()
        self.assertNotIn("running", self.check()[1])

    def test_a_state_directory_that_cannot_be(self):
        f = self.make(**{"node.state_directory": "rows.csv"})
        self.assert_refused("node.state_directory", "rows.csv: Not a directory; give a directory")
        f.write_configuration(0, {"node.state_directory": "none/n0"}, {})
        self.assert_refused("node.state_directory", "none: No such file or directory; make the directory")

    def test_directories_that_the_unit_makes_may_be_missing(self):
        self.make(**{"node.state_directory": "/var/lib/sgpd/none-such", "control.socket": "/run/sgpd/none-such/s"})
        self.assertEqual(self.check()[0], 0)

    def test_a_socket_that_cannot_be(self):
        f = self.make(**{"control.socket": "rows.csv"})
        self.assert_refused("control.socket", "rows.csv: exists and is not a socket; remove it")
        f.write_configuration(0, {"control.socket": "none/s"}, {})
        self.assert_refused("control.socket", "none: No such file or directory; make the directory")
        f.write_configuration(0, {"control.socket": "s" * 108}, {})
        self.assert_refused("control.socket", "longer than the 107 bytes that a socket's path may have")

    def test_a_socket_with_somebody_behind_it_and_without(self):
        self.make()
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as other:
            other.bind(self.node.socket)
            other.listen()
            self.assert_refused("control.socket", f"{self.node.socket}: another daemon answers there")
        self.assertEqual(self.check()[0], 0, "the file is left over, and a start would take its place")

    def test_a_billion_parameters_are_checked_and_not_made(self):
        """Their memory is named, and none of it is taken; what fits no machine is still refused."""
        f = self.make(**{"model.layers": "dense 32000 relu, dense 32000, dense 2"})
        code, out, said = self.check()
        self.assertEqual((code, said), (0, ""))
        self.assertIn(f": {6 * 32000 + 32000 + 32000 * 32000 + 32000 + 2 * 32000 + 2} parameters\n", out)
        peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertLess(peak, 2 ** 30, "a quarter of the parameters alone")
        number, unit = re.search(r"  sum +([0-9.]+) ([KMGT]iB)", out).groups()
        total = float(number) * 1024.0 ** ("KMGT".index(unit[0]) - 1)
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2 ** 20
        self.assertEqual("MiB of memory, and this machine has" in out, total > machine, out)
        f.write_configuration(0, {"model.layers": "dense 65536 relu, " * 8 + "dense 2"}, {})
        code, out, said = self.check()
        self.assertEqual((code, out, said.count("\n")), (6, "", 1), said)
        f.write_configuration(0, {"model.layers": "dense 65536, dense 2", "train.batch": "65536"}, {})
        self.assertEqual(self.check()[0], 0)

    def test_what_another_user_might_do_is_a_warning(self):
        f = self.make()
        root = os.geteuid() == 0
        os.chmod(f.directory, 0o755 if root else 0o555)
        self.addCleanup(os.chmod, f.directory, 0o755)
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}
        try:
            code, out, said = self.check(**user)
        except PermissionError:
            self.skipTest("another user may not run the program")
        self.assertEqual((code, said), (0, ""))
        for name in (r"\[node\] state_directory", r"\[control\] socket"):
            self.assertRegex(out, rf"warning: \S+:\d+: {name}: {f.directory}: Permission denied; .*; check again as "
                                  "the user that sgpd will run as\n")


if __name__ == "__main__":
    fleet.main()
