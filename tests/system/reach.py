# SPDX-License-Identifier: Apache-2.0
"""What the tests of `sgpctl up` share whose hosts are reached by real programs: the hosts, their daemons, and ends.

The hosts are network namespaces of the test's process, with addresses of their own. They have one file system."""
import os
import re
import shutil
import subprocess
import sys

import launched
from launched import PATIENCE, processes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts"))
import sandbox  # noqa: E402
import switch  # noqa: E402
from switch import fleet  # noqa: E402, F401

PYTHON = sys.executable
WHERE = os.environ["PATH"] + ":/usr/sbin:/sbin"
OWN = "10.77.0.254"  # of the test itself, where the launcher runs


@sandbox.once
def lay_out(count):
    """So many hosts; the addresses of all."""
    switch.lay_out(count)
    sandbox.call("ip", "link", "set", "lo", "up")
    sandbox.call("ip", "address", "add", OWN + "/24", "dev", "switch")
    return [f"10.77.0.{i + 1}" for i in range(count)]


class Reach(launched.Case):
    def need(self, package, *programs):
        for program in programs:
            if shutil.which(program, path=WHERE) is None:
                self.skipTest(f"not installed: {package} ({program}); scripts/setup --long installs it")

    def serve(self, host, *words):
        """A daemon in the foreground on a host, whose name is the word `host`; None: where the test runs. If this is root, in a
        view of the machine with a /run of its own."""
        if os.geteuid() == 0:
            words = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"',
                     "sh", *words]
        if host is not None:
            words = ["ip", "netns", "exec", host, *words]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                                       start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def logs(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def expect_models(self, output, count):
        """So many nodes have printed the model that all rows ask for."""
        models = re.findall(r"^\S+\| model (.*)$", output, re.MULTILINE)
        self.assertEqual(len(models), count, output)
        for text in models:
            for value, wanted in zip(text.split(), (1, -2, 3)):
                self.assertLess(abs(float(value) - wanted), 0.1)

    def expect_end(self, files=True):
        """No program and no daemon is left, and none of their files: at most 60 s of silence, and the ends."""
        def gone():
            return self.programs("train.py") == [] and self.programs("sgpd") == [] and (not files or self.left() == [])
        for _ in range(2):
            try:
                self.until("all to be gone", gone)
                return
            except AssertionError:
                continue
        self.assertTrue(gone(), (processes(self.marker), self.left()))
