# SPDX-License-Identifier: Apache-2.0
"""Namespaces of the test itself: mounts, devices and addresses made in them are gone with its process,
however it ends. Needs root; says what is missing where it cannot work."""
import ctypes
import os
import shutil
import subprocess
import unittest

MOUNTS = 0x00020000  # CLONE_NEWNS
NETWORK = 0x40000000  # CLONE_NEWNET
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

_libc = ctypes.CDLL(None, use_errno=True)


def call(*command, **options):
    """Run a command that must succeed; what it printed."""
    result = subprocess.run(command, text=True, check=False, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: status {result.returncode}: {result.stdout}")
    return result.stdout


def need(*programs):
    """Skip unless this is root on Linux with these programs."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("only root can make namespaces")
    os.environ["PATH"] = PATH + ":" + os.environ.get("PATH", "")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise unittest.SkipTest("not installed: " + " ".join(missing))


def attempt(what, *command, **options):
    """Run a command that this machine may be unable to carry out: then skip."""
    try:
        return call(*command, **options)
    except AssertionError as error:
        raise unittest.SkipTest(f"{what}: {error}") from None


def enter(namespaces):
    """Move this process into namespaces of its own."""
    if _libc.unshare(namespaces) != 0:
        raise unittest.SkipTest("no namespaces here: " + os.strerror(ctypes.get_errno()))
    if namespaces & MOUNTS:
        attempt("mounts cannot be kept private", "mount", "--make-rprivate", "/")


def once(function):
    """Remember what a function returned, or why it could not: what it left half done would fail for another reason."""
    kept = []

    def remembered(*arguments):
        if not kept:
            try:
                kept.append((function(*arguments), None))
            except Exception as reason:  # SkipTest among them
                kept.append((None, reason))
        value, reason = kept[0]
        if reason is not None:
            raise reason
        return value
    return remembered


def tell(text):
    """A line for whoever reads the log of a test that passes."""
    print(f"# {text}", flush=True)

