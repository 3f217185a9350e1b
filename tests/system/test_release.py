# SPDX-License-Identifier: Apache-2.0
"""scripts/release: what is not ready is named with its remedy and nothing is made; of what is ready, a source archive that is
the committed tree, byte for byte the same twice."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import tap

SOURCE = os.path.abspath(sys.argv.pop(1))
VERSION = "9.8.7"


def run(directory, *command):
    result = subprocess.run(command, cwd=directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.returncode, result.stdout


def has_history():
    return run(SOURCE, "git", "rev-parse", "--git-dir")[0] == 0


@unittest.skipUnless(has_history(), "the tree is no git repository")
class Release(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.tree = os.path.join(self.temporary.name, "tree")
        self.assertEqual(run("/", "git", "clone", "--quiet", SOURCE, self.tree)[0], 0)
        for key, value in (("user.name", "test"), ("user.email", "test@test.example")):
            run(self.tree, "git", "config", key, value)
        for name in ("scripts/release", ".gitattributes"):  # as they are, committed or not
            shutil.copy2(os.path.join(SOURCE, name), os.path.join(self.tree, name))
        self.write("VERSION", lambda _: VERSION + "\n")
        self.write("debian/changelog", lambda text: re.sub(r"\(.*?\)", "(%s)" % VERSION, text, count=1))
        self.write("python/pyproject.toml", lambda text: re.sub(r'(?m)^version = ".*"', 'version = "%s"' % VERSION, text, count=1))
        self.write("NEWS.md", lambda text: re.sub(r"(?m)^## .*", "## %s, 2031-02-03" % VERSION, text, count=1))
        self.commit()

    def write(self, name, change):
        path = os.path.join(self.tree, name)
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(change(text))

    def commit(self):
        run(self.tree, "git", "add", "--all")
        code, said = run(self.tree, "git", "commit", "--quiet", "--message", "release")
        self.assertEqual(code, 0, said)

    def release(self):
        return run(self.tree, "scripts/release")

    def archive(self):
        return os.path.join(self.tree, "build/release/sgpd-%s.tar.gz" % VERSION)

    def digest(self):
        with open(self.archive(), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def test_the_archive_is_the_committed_tree_and_the_same_twice(self):
        code, said = self.release()
        self.assertEqual(code, 0, said)
        self.assertNotIn("FAILED", said)
        self.assertIn("git tag --sign v" + VERSION, said)
        first = self.digest()
        self.assertIn(first, said)
        with tarfile.open(self.archive()) as tar:
            names = {member.name for member in tar if member.isfile()}
        committed = set(run(self.tree, "git", "ls-files")[1].split())
        left_out = {name for name in committed if name.startswith((".ci/", ".git"))}
        self.assertEqual(names, {"sgpd-%s/%s" % (VERSION, name) for name in committed - left_out})
        self.assertEqual(self.release()[0], 0)
        self.assertEqual(self.digest(), first)

    def test_what_is_not_ready_is_named_and_nothing_is_made(self):
        breaches = (
            ("VERSION", lambda _: VERSION + "~git\n", "VERSION is a release"),
            ("debian/changelog", lambda text: text.replace(VERSION, "9.8.6", 1), "debian/changelog begins with"),
            ("python/pyproject.toml", lambda text: text.replace(VERSION, "9.8.6", 1), "python/pyproject.toml has version"),
            ("NEWS.md", lambda text: text.replace("## %s, 2031-02-03" % VERSION, "## %s, not released" % VERSION, 1), "NEWS.md begins with"),
        )
        for name, change, what in breaches:
            with self.subTest(name):
                self.write(name, change)
                self.commit()
                code, said = self.release()
                self.assertEqual(code, 1, said)
                self.assertRegex(said, "(?m)^FAILED  %s.*; ." % re.escape(what))
                self.assertFalse(os.path.exists(self.archive()))
                self.assertEqual(run(self.tree, "git", "reset", "--quiet", "--hard", "HEAD~1")[0], 0)
        self.write("README.md", lambda text: text + "\n")
        self.assertRegex(self.release()[1], "(?m)^FAILED  the tree has no change")
        run(self.tree, "git", "checkout", "--quiet", "README.md")
        run(self.tree, "git", "tag", "v" + VERSION)
        self.assertRegex(self.release()[1], "(?m)^FAILED  there is no tag")

    def test_an_unknown_argument_is_refused(self):
        code, said = run(self.tree, "scripts/release", "--now")
        self.assertEqual((code, said.count("\n")), (2, 1), said)


if __name__ == "__main__":
    tap.run_cases(sys.argv[1:])
