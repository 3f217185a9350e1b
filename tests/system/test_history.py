# SPDX-License-Identifier: Apache-2.0
"""The rows of the history, as sgpctl and TensorBoard show them: test_history.py SGPD SGPCTL [TORN].

TORN is the library of torn_write.c, which does not go together with a sanitizer.
Event files are read by event_files.py, which is skipped without python3-protobuf."""
import csv
import glob
import json
import os
import signal
import struct
import subprocess
import sys
import unittest
import unittest.mock

import fleet
from fleet import FleetTest

SGPCTL = None  # the second argument
TORN = os.path.abspath(sys.argv.pop(3)) if sys.argv[3:] and sys.argv[3].endswith(".so") else None
PAIR = [[(0, 1), (1, 0)]]
try:
    import event_files
    MISSING = None
except ImportError as error:
    MISSING = f"not installed: python3-protobuf ({error.name}); scripts/setup --check installs it"


def sgpctl(*arguments, status=0):
    """Standard output, and standard error."""
    done = subprocess.run([SGPCTL, *arguments], text=True, timeout=fleet.PATIENCE, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def single(value):
    """A number as float32 keeps it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def fields(text):
    """The numbers of the rows of a CSV file; None for an empty field."""
    return [[float(field) if field else None for field in row] for row in csv.reader(text.splitlines()[1:])]


class HistoryTest(FleetTest):
    def trained(self, **own):
        """A pair of nodes that has finished."""
        f = self.fleet(2, phases=PAIR, own={0: own})
        f.start()
        f.wait_state("finished")
        self.path = os.path.join(f.directory, f.nodes[0].directory, "history.csv")
        return f

    def rows(self):
        with open(self.path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def numbers(self):
        return [{key: float(value) if value else None for key, value in row.items()} for row in self.rows()]


class Command(HistoryTest):
    def test_a_daemon_and_its_file_tell_the_same_rows(self):
        f = self.trained()
        socket = os.path.join(f.directory, f.nodes[0].socket)
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        self.assertGreater(text.count("\n"), 4)
        printed = sgpctl("history", self.path, "--format", "csv")[0]
        self.assertEqual(printed.splitlines()[0], text.splitlines()[0])
        self.assertEqual(fields(printed), fields(text))
        told = json.loads(sgpctl("history", "--json", self.path)[0])
        asked = json.loads(sgpctl("-s", socket, "history", "--format", "json")[0])
        self.assertEqual([list(row) for row in asked], [list(row) for row in told])
        self.assertEqual(len(asked), len(told))
        for one, other in zip(asked, told):
            for key, value in one.items():
                if value is None:
                    self.assertIsNone(other[key])
                else:
                    self.assertAlmostEqual(value, other[key], delta=max(1e-3, abs(value) * 1e-8), msg=key)
        table = sgpctl("-s", socket, "history")[0].splitlines()
        self.assertEqual(table[0].split("\t")[:4], ["round", "seconds", "epoch", "loss"])
        self.assertEqual(len(table), len(told) + 1)

    def test_a_row_that_is_being_written_is_left_out(self):
        path = self.temporary("round,seconds,loss\n1,0.5,\n2,0.75,3e-1\n3,0.8")
        self.assertEqual(json.loads(sgpctl("history", path, "--json")[0]),
                         [{"round": 1, "seconds": 0.5, "loss": None}, {"round": 2, "seconds": 0.75, "loss": 0.3}])
        self.assertEqual(sgpctl("history", path, "--format", "csv")[0], "round,seconds,loss\n1,0.5,\n2,0.75,0.3\n")
        self.assertEqual(json.loads(sgpctl("history", self.temporary("round,seconds\n"), "--json")[0]), [])

    def test_what_is_wrong_is_told_in_one_line(self):
        head = "round,seconds,loss\n"
        for text, words in ((head + "1,2,3\n1,2\n", ":3: fewer fields than the first line has columns"),
                            (head + "1,2,3,4\n", ":2: more fields than the first line has columns"),
                            (head + "1,2,three\n", ":2: a field that is no number"),
                            ("a,b\n1,2\n", ":1: no history.csv of sgpd: its first line begins with round,seconds"),
                            ("", ":1: no history.csv of sgpd: its first line begins with round,seconds")):
            path = self.temporary(text)
            self.assertEqual(sgpctl("history", path, status=6), ("", f"sgpctl: {path}{words}\n"))
        for arguments, words in ((("/none.csv",), "/none.csv: cannot be read: No such file or directory"),):
            self.assertEqual(sgpctl("history", *arguments, status=1), ("", f"sgpctl: {words}\n"))
        for arguments, words in ((("--format", "xml", path), "--format is table, csv, json or tensorboard, not 'xml'"),
                                 (("--format", "tensorboard", path), "--format tensorboard needs --output DIRECTORY"),
                                 (("--output", "x", path), "--output is for --format tensorboard; the other formats are printed"),
                                 (("-n", "a", path), "a FILE asks no daemon; leave it out, or -n and -s")):
            said = sgpctl("history", *arguments, status=2)[1]
            self.assertTrue(said.startswith(f"sgpctl: {words}"), said)
            self.assertEqual(said.count("\n"), 1)

    def test_without_the_library_of_the_checksum_there_is_a_word_and_no_file(self):
        f = self.trained()
        directory, damaged = (os.path.join(f.directory, name) for name in ("events", "damaged"))
        os.mkdir(damaged)
        with open(os.path.join(damaged, "libisal.so.2"), "wb"):
            pass
        with unittest.mock.patch.dict(os.environ, LD_LIBRARY_PATH=damaged):
            said = sgpctl("history", self.path, "--format", "tensorboard", "--output", directory, status=1)[1]
        self.assertRegex(said, r"^sgpctl: an event file needs a library that cannot be loaded: \S*libisal.so.2: .*; "
                               r"install the package libisal2\n$")
        self.assertFalse(os.path.exists(directory))

    def temporary(self, text):
        f = self.fleet(1, phases=[[]])
        path = os.path.join(f.directory, "rows.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


@unittest.skipIf(MISSING, MISSING)
class Events(HistoryTest):
    def files(self, directory):
        return sorted(glob.glob(os.path.join(glob.escape(directory), "events.out.tfevents.*")), key=os.path.getmtime)

    def assert_rows(self, path, rows):
        """Each number of the rows is a scalar of its round, to the last bit of float32, and there is no other."""
        wanted = [(int(row["round"]), tag, single(value)) for row in rows
                  for tag, value in row.items() if tag not in ("round", "seconds") and value is not None]
        found = event_files.scalars(path)
        self.assertEqual([s[:3] for s in found if s.tag != "seconds"], wanted)
        seconds = [s for s in found if s.tag == "seconds"]
        self.assertEqual([s.step for s in seconds], [int(row["round"]) for row in rows])
        for scalar, row in zip(seconds, rows):
            self.assertAlmostEqual(scalar.value, row["seconds"], delta=1e-3)
        return found

    def test_a_daemon_writes_the_rows_of_its_history(self):
        f = self.trained(**{"log.tensorboard": "board"})
        directory = os.path.join(f.directory, "board")
        (path,) = self.files(directory)
        self.assert_rows(path, self.numbers())
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
        times = [scalar.wall_time for scalar in event_files.scalars(path)]
        self.assertEqual(times, sorted(times))
        self.assertAlmostEqual(times[-1], os.path.getmtime(path), delta=60)

    def test_a_killed_daemon_leaves_whole_records_and_the_next_begins_a_file(self):
        f = self.fleet(2, phases=PAIR, options={"train.epochs": "1000000"}, own={0: {"log.tensorboard": "board"}})
        f.start()
        directory = os.path.join(f.directory, "board")
        f.wait("rows", lambda: self.files(directory) and len(event_files.read(self.files(directory)[0])[0]) > 5)
        node = f.nodes[0]
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
        (first,) = self.files(directory)
        whole = event_files.read(first)[0]
        for cut in range(1, 40):  # as if the process had been killed in its last write
            with open(first, "rb") as file:
                data = file.read()
            with open(first + ".cut", "wb") as file:
                file.write(data[:-cut])
            events, rest = event_files.read(first + ".cut")
            self.assertEqual(events, whole[:len(events)])
            self.assertIn(len(events), (len(whole) - 1, len(whole) - 2))
            self.assertGreaterEqual(rest, 0)
        os.unlink(first + ".cut")
        node.start()
        f.wait("another file", lambda: len(self.files(directory)) == 2)
        f.wait("its rows", lambda: len(event_files.read(self.files(directory)[-1])[0]) > 2)
        self.assertEqual(event_files.read(first)[0], whole)

    @unittest.skipUnless(TORN, "no LD_PRELOAD beside a sanitizer")
    def test_a_daemon_that_is_killed_within_a_record(self):
        """In its length, in the checksum of that, in its message, and in the checksum of that."""
        f = self.fleet(2, phases=PAIR, options={"train.epochs": "1000000"}, own={0: {"log.tensorboard": "board"}})
        f.nodes[1].start()
        directory = os.path.join(f.directory, "board")
        for record, torn in enumerate((3, 10, 40, -1), 4):
            before = set(self.files(directory))
            f.nodes[0].start(env={**os.environ, "LD_PRELOAD": TORN, "TORN_RECORD": str(record), "TORN_BYTES": str(torn)})
            self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), -signal.SIGKILL)
            (path,) = set(self.files(directory)) - before
            events, rest = event_files.read(path)
            with open(path, "rb") as file:
                data = file.read()
            whole = 16 + struct.unpack_from("<Q", data, len(data) - rest)[0] if rest >= 8 else 0
            self.assertEqual((len(events), rest), (record - 1, torn if torn > 0 else whole + torn))
        files = {path: event_files.read(path) for path in self.files(directory)}
        f.nodes[0].start()
        f.wait("another file", lambda: len(self.files(directory)) == len(files) + 1)
        f.wait("its rows", lambda: len(event_files.read(self.files(directory)[-1])[0]) > 2)
        for path, read in files.items():
            self.assertEqual(event_files.read(path), read)

    def test_sgpctl_turns_a_history_into_an_event_file(self):
        f = self.trained()
        socket = os.path.join(f.directory, f.nodes[0].socket)
        for name, source in (("of a file", (self.path,)), ("of a daemon", ("-s", socket))):
            directory = os.path.join(f.directory, name)
            said = sgpctl("history", *source, "--format", "tensorboard", "--output", directory)[0]
            (path,) = self.files(directory)
            rows = self.numbers()
            self.assertEqual(said, f"{path}: {len(rows)} rows\n")
            found = self.assert_rows(path, rows)
            apart = [later.wall_time - earlier.wall_time for earlier, later in zip(found, found[1:])]
            self.assertGreaterEqual(min(apart), 0)
            took = rows[-1]["seconds"] - rows[0]["seconds"]
            self.assertAlmostEqual(found[-1].wall_time - found[0].wall_time, took, delta=0.01)
            self.assertAlmostEqual(found[-1].wall_time, os.path.getmtime(self.path), delta=30)

    def test_a_directory_that_cannot_be_ends_the_start(self):
        f = self.fleet(1, phases=[[]], options={"log.tensorboard": "none/such"})
        node = f.nodes[0]
        node.start()
        self.assertEqual(node.process.wait(timeout=fleet.PATIENCE), 1)
        lines = [line for line in node.log().splitlines() if "tensorboard" in line]
        self.assertEqual(len(lines), 1, node.log())
        self.assertRegex(lines[0], r'n0\.conf:\d+: \[log\] tensorboard: \S*none/such: no event file can be written: No such file or directory"?$')


if __name__ == "__main__":
    fleet.take_sgpd()
    SGPCTL = os.path.abspath(sys.argv.pop(1))
    fleet.main()
