# SPDX-License-Identifier: Apache-2.0
"""The event journal of a daemon, fed to its core once more, does the same again: test_replay.py SGPD SGPCTL.

n0 writes its journal and, beside it, the trace of what it does; `sgpctl replay` makes a second trace out
of the journal alone. They are the same, to the byte, wherever the process was killed."""
import itertools
import os
import signal
import subprocess
import sys

import fleet
from fleet import FleetTest

SGPCTL = os.path.abspath(sys.argv.pop(2))
RING = [[(0, 1), (1, 2), (2, 0)]]
FULL = [[(i, k) for i in range(3) for k in range(3) if i != k]]
BLOCK = 512  # bytes, of ulimit -f


def replay(path, status=0):
    """The trace and what was said beside it."""
    done = subprocess.run([SGPCTL, "replay", path], text=True, timeout=fleet.PATIENCE, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == status, (path, done.returncode, done.stderr)
    return done.stdout, done.stderr


def parts(trace):
    """The lines of each process."""
    found = []
    for line in trace.splitlines(keepends=True):
        if " event=process " in line:
            found.append([])
        found[-1].append(line)
    return found


class ReplayTest(FleetTest):
    def make(self, n=3, phases=None, **own):
        self.own = {"log.events": "n0.events", "log.trace": "n0.trace", **own}
        f = self.fleet(n, phases=phases or RING,
                       options={"train.epochs": "1000000", "train.start": "now", "network.compression": "int8"},
                       own={0: self.own})
        self.node = f.nodes[0]
        self.events, self.trace = (os.path.join(f.directory, "n0." + what) for what in ("events", "trace"))
        return f

    def read_trace(self):
        with open(self.trace, encoding="utf-8") as file:
            text = file.read()
        return text[:text.rindex("\n") + 1]  # a line may be under way

    def assert_same(self, processes):
        """Each process's trace is that of its replay, but for the event that a killed one did not come to tell."""
        played, said = replay(self.events)
        self.assertRegex(said, r"\A(sgpctl: \S+: byte \d+: the record is cut off[^\n]*\n)*\Z")
        live, again = parts(self.read_trace()), parts(played)
        self.assertEqual((len(live), len(again)), (processes, processes))
        for told, retold in zip(live, again):
            self.assertEqual("".join(told), "".join(retold[:len(told)]))
            missing = {line.split()[0] for line in retold[len(told):]}
            self.assertLessEqual(len(missing), 1, retold[len(told):])
        return again


class KilledDaemon(ReplayTest):
    def test_what_it_did_is_done_again_to_the_byte(self):
        f = self.make()
        f.start()
        f.wait_round(0, 40)
        self.node.end(signal.SIGKILL)
        self.assert_same(1)
        self.node.start()  # from its ledger
        f.wait_round(0, f.nodes[1].status()["round"] + 10)
        f.rewire([0, 1, 2], FULL)
        for node in f.nodes:
            self.assertEqual(node.get("/v1/reload", "POST")[0], 200)
        f.nodes[1].end(signal.SIGKILL)
        f.wait_log(0, "event=down peer=n1")
        f.nodes[1].start()
        self.assertIn(self.node.get("/v1/pause", "POST")[0], (200, 202))
        f.wait_state("paused", [0])
        self.assertIn(self.node.get("/v1/resume", "POST")[0], (200, 202))
        f.wait_round(0, self.node.status()["round"] + 40)
        self.node.end(signal.SIGKILL)
        first, second = self.assert_same(2)
        self.assertIn(" restored=0 ", first[0])
        self.assertIn(" restored=1 ", second[0])
        self.assertEqual(sum(" event=reload " in line for line in second), 1)
        words = "".join(second)
        for event in ("event=message:in", "event=payload:in", "event=trained", "event=published",
                      "event=absorbed", "event=down:", "event=pause", "waits=share peer=n"):
            self.assertIn(event, words)

    def test_each_algorithm_is_played_again(self):
        for algorithm in fleet.algorithms():
            with self.subTest(algorithm):
                f = self.make(phases=FULL, **{"train.algorithm": algorithm})
                for i in (1, 2):
                    f.write_configuration(i, {"train.epochs": "1000000", "train.start": "now",
                                              "train.algorithm": algorithm}, {})
                f.start()
                f.wait_round(0, 30)
                self.node.end(signal.SIGKILL)
                self.assert_same(1)

    def test_one_that_ends_has_told_all(self):
        f = self.make(**{"train.epochs": "1", "train.final_cycles": "1"})
        for i in (1, 2):
            f.write_configuration(i, {"train.epochs": "1"}, {})
        f.start()
        f.wait_state("finished")
        self.assertEqual(self.node.end(), 0)
        self.assertEqual(replay(self.events), (self.read_trace(), ""))
        self.assertIn("event=sketched", self.read_trace())


class DamagedJournal(ReplayTest):
    def setUp(self):
        f = self.make()
        f.start()
        f.wait_round(0, 10)
        self.node.end(signal.SIGKILL)
        with open(self.events, "rb") as file:
            self.bytes = file.read()
        self.played = replay(self.events)[0]

    def write(self, data):
        with open(self.events, "wb") as file:
            file.write(data)
        return self.events

    def test_one_that_is_cut_off_is_played_as_far_as_it_goes(self):
        for cut in (15, 20, 100, len(self.bytes) // 2, len(self.bytes) // 2 + 1, len(self.bytes) - 1):
            trace, said = replay(self.write(self.bytes[:cut]))
            self.assertTrue(self.played.startswith(trace), cut)
            self.assertRegex(said, r"\Asgpctl: \S+: byte \d+: the record is cut off[^\n]*\n\Z|\A\Z")

    def test_one_that_is_cut_off_between_two_processes_is_told_once(self):
        trace, said = replay(self.write(self.bytes[:-3] + self.bytes))
        self.assertEqual(len(parts(trace)), 2)
        self.assertEqual(said.count("the record is cut off"), said.count("\n"))
        self.assertTrue(trace.endswith(self.played))

    def test_one_that_is_damaged_says_where(self):
        middle = len(self.bytes) // 2
        for at in (middle, middle + 1, middle + 37):
            damaged = bytearray(self.bytes)
            damaged[at] ^= 0x10
            said = replay(self.write(damaged), status=6)[1].splitlines()
            self.assertRegex(said[-1], r"\Asgpctl: \S+: byte \d+: the checksum of a record('s header)? does not match; ")
            self.assertLessEqual(int(said[-1].split("byte ")[1].split(":")[0]), at)

    def test_one_of_another_format_is_refused(self):
        said = replay(self.write(self.bytes.replace(b"sgpd events 4", b"sgpd events 3", 1)), status=6)[1]
        self.assertRegex(said, r"\Asgpctl: \S+: byte 0: an event journal of another format [^\n]*\n\Z")
        said = replay(self.trace, status=6)[1]
        self.assertRegex(said, r"\Asgpctl: \S+: byte 0: not an event journal; [^\n]*\n\Z")
        said = replay(self.events + ".none", status=1)[1]
        self.assertRegex(said, r"\Asgpctl: \S+: cannot be read: No such file [^\n]*\n\Z")


class Files(ReplayTest):
    def test_one_that_cannot_be_written_is_one_line_at_the_start(self):
        for key, path, why in (("events", "/dev/full", "No space left on device"),
                               ("trace", "/dev/full", "No space left on device"),
                               ("events", "/proc/none", "No such file or directory"),
                               ("trace", "n0.events", "Device or resource busy"),
                               ("events", "n0.dot", "not an event journal")):
            with self.subTest(key + " " + path):
                f = self.make(**{"log." + key: path})
                self.node.start()
                self.assertEqual(self.node.process.wait(fleet.PATIENCE), 1)
                errors = [line for line in self.node.log().splitlines() if "event=error" in line]
                self.assertEqual(len(errors), 1, self.node.log())
                self.assertIn(why, errors[0])
                self.assertIn("[log] " + key, errors[0])
                f.close()

    def test_one_that_finds_no_room_ends_and_training_goes_on(self):
        f = self.make()
        limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 1000; exec "$@"', "sh"]
        f.command = lambda node: limited * (node.index == 0) + [fleet.SGPD, "-c", node.configuration]
        f.start()
        for file in ("events", "trace"):
            f.wait_log(0, "n0.%s: cannot be written: File too large; it ends here" % file)
        f.wait_round(0, self.node.status()["round"] + 20)
        self.assertEqual(self.node.log().count("it ends here"), 2)
        self.assertLessEqual(os.path.getsize(self.events), 1000 * BLOCK)
        trace = replay(self.events)[0].splitlines()
        live = self.read_trace().splitlines()
        self.assertTrue(all(a == b for a, b in zip(trace, live)), list(itertools.islice(zip(trace, live), 3)))

    def test_the_seed_and_the_version_are_logged(self):
        f = self.make()
        f.start()
        f.wait_round(0, 1)
        line = next(line for line in self.node.log().splitlines() if "event=start " in line)
        head = self.read_trace().splitlines()[0]
        for word in ("version=", "seed="):
            said = next(part for part in line.split() if part.startswith(word))
            self.assertIn(f" {said} ", head)


if __name__ == "__main__":
    fleet.main()
