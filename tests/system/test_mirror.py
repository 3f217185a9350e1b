# SPDX-License-Identifier: Apache-2.0
"""The Debian that the host tests install comes from where this machine's own apt gets it."""
import functools
import http.server
import os
import re
import shutil
import sys
import tempfile
import threading
import unittest
import unittest.mock

import tap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "hosts"))
import mirror  # noqa: E402

APT = """Dir::Etc "{0}/etc/";
Dir::State "{0}/state/";
Dir::State::status "/dev/null";
Dir::Cache "{0}/cache/";
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Mirror(unittest.TestCase):
    """apt of the test's own, and a server that is a mirror at /debian and another's at /other."""

    def setUp(self):
        if shutil.which("apt-get") is None:
            self.skipTest("not installed: apt-get")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path in ("etc/sources.list.d", "etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache"):
            os.makedirs(os.path.join(self.root, path))
        self.write("apt.conf", APT.format(self.root))
        for name, origin in (("debian", "Debian"), ("other", "Other")):
            self.write(f"www/{name}/dists/bookworm/InRelease", f"Hash: SHA256\n\nOrigin: {origin}\nLabel: x\n")
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=self.root + "/www"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = "http://127.0.0.1:%d" % server.server_port
        environment = unittest.mock.patch.dict(os.environ, APT_CONFIG=self.root + "/apt.conf", no_proxy="*")
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("SGP_DEBIAN_MIRROR", None)

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def test_lines_of_a_list(self):
        self.write("etc/sources.list", f"# deb {self.url}/gone bookworm main\n"
                   f"deb {self.url}/security bookworm-security main\n"
                   f"deb [arch=amd64] {self.url}/debian bookworm main contrib\n")
        self.assertEqual(mirror.find("bookworm"), self.url + "/debian")

    def test_stanzas_of_sources(self):
        self.write("etc/sources.list.d/debian.sources",
                   f"Types: deb deb-src\nURIs: {self.url}/debian/\nSuites: bookworm bookworm-updates\n"
                   "Components: main\n")
        self.assertEqual(mirror.find("bookworm"), self.url + "/debian")

    def test_neither_what_is_not_debian_nor_what_does_not_answer(self):
        self.write("etc/sources.list", "".join(
            f"deb {self.url}/{name} bookworm main\n" for name in ("other", "gone", "debian")))
        self.assertEqual(mirror.find("bookworm"), self.url + "/debian")

    def test_none_is_a_reason_to_skip(self):
        with self.assertRaisesRegex(unittest.SkipTest, "apt has no source of it"):
            mirror.find("bookworm")
        self.write("etc/sources.list", f"deb {self.url}/other bookworm main\n")
        with self.assertRaisesRegex(unittest.SkipTest, "/other is not Debian's own"):
            mirror.find("bookworm")

    def test_another_can_be_named(self):
        os.environ["SGP_DEBIAN_MIRROR"] = self.url + "/debian"
        self.assertEqual(mirror.find("bookworm"), self.url + "/debian")

    def test_no_file_of_the_tests_names_a_mirror(self):
        """Nor does a page of the manual: an address with a path like those of mirrors."""
        found = []
        for top in ("tests", "docs", "scripts", "bench"):
            for folder, _, names in os.walk(os.path.join(HERE, "../..", top)):
                for name in names:
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8", errors="replace") as file:
                        found += [(path, url) for url in re.findall(r"https?://[\w.-]+/(?:debian|ubuntu)\b", file.read())]
        self.assertEqual(found, [])


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
