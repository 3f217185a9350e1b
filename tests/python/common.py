# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: where it lies, and a program that is run beside them."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PACKAGE = os.path.join(ROOT, "python")
sys.path[:0] = [PACKAGE, os.path.join(ROOT, "tests", "system")]

import tap  # noqa: E402

PATIENCE = 60  # seconds that anything may take at most


def start(code, *arguments, **options):
    """Another Python with the package, to be waited for."""
    return subprocess.Popen([sys.executable, "-c", code, *arguments], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": PACKAGE}, **options)


def state_of(pid):
    """The kernel's letter for the state of a process: S, it waits."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def main():
    tap.run_cases(sys.argv[1:])
