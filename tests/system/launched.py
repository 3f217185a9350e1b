# SPDX-License-Identifier: Apache-2.0
"""What the tests of `sgpctl launch` and `sgpctl up` share: a program to train, and what is left after it."""
import os
import signal
import tempfile
import time
import unittest
import uuid

PATIENCE = 60.0

# Least squares with numpy: every node has rows of its own, and all end with one model.
TRAIN = """
import os, sys, time, numpy, sgp
draw = numpy.random.default_rng(1)
x = draw.standard_normal((64, 3)).astype(numpy.float32)
y = x @ numpy.array([1, -2, 3], numpy.float32)
model = {"w": numpy.zeros(3, numpy.float32)}
steps, pause = int(sys.argv[1]), float(sys.argv[2])
fails = sys.argv[3] if len(sys.argv) > 3 else ""
with sgp.attach(model, timeout=60) as node:
    print("begins", flush=True)
    done = 0
    while done < steps and not node.stopped:
        for rows, targets in node.shard((x, y), batch_size=8):
            error = rows @ model["w"] - targets
            model["w"] -= 0.1 * rows.T @ error / len(rows)
            node.mix(loss=float((error ** 2).mean()), rows=len(rows))
            done += 1
            time.sleep(pause)
            if done == 5 and node.name == fails:
                os._exit(3)
            if done == steps:
                break
print("model", *("%.6f" % value for value in model["w"]))
"""


def processes(marker):
    """The command lines of what was started with this marker in its environment, zombies aside."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if marker.encode() in environment and command:
            found[int(pid)] = command
    return found


class Case(unittest.TestCase):
    """Processes are known by a variable in their environment, files by their directories."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sgp-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.marker = f"LAUNCH_TEST={uuid.uuid4()}"
        for name in ("run", "tmp"):
            os.mkdir(os.path.join(self.folder, name))
        self.environment = {**os.environ, "LAUNCH_TEST": self.marker.split("=")[1], "TERM": "xterm",
                            "XDG_RUNTIME_DIR": os.path.join(self.folder, "run"),
                            "TMPDIR": os.path.join(self.folder, "tmp")}
        self.train = self.script(TRAIN)
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for pid in processes(self.marker):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def script(self, text, name="train.py"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not (value := condition()):
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}: {processes(self.marker)}")
            time.sleep(0.02)
        return value

    def left(self):
        return [os.path.join(name, path) for name in ("run", "tmp") for path in os.listdir(os.path.join(self.folder, name))]

    def expect_nothing_left(self):
        self.assertEqual(processes(self.marker), {})
        self.assertEqual(self.left(), [])

    def programs(self, word):
        return [pid for pid, command in processes(self.marker).items()
                if word in command and "sgpctl launch" not in command and "sgpctl up" not in command]

    def read_all(self, master, until=None):
        """What comes on a terminal, to its end or until it has said `until`."""
        text = b""
        while until is None or until not in text:
            try:
                more = os.read(master, 65536)
            except OSError:  # its end, on Linux
                break
            if not more:
                break
            text += more
        return text
