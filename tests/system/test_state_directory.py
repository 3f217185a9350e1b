# SPDX-License-Identifier: Apache-2.0
"""The state directory on a disk that is full, and with files in it that are damaged: a node that can go on does.

The disk is a tmpfs in a mount namespace of the test's own, gone with its process; without root these
tests are skipped."""
import errno
import os
import random
import signal
import sys

import fleet
from fleet import FleetTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts"))
import sandbox  # noqa: E402

OPTIONS = {"train.epochs": "1000000"}
FULL = "No space left on device"


@sandbox.once
def own_mounts():
    sandbox.need("mount")
    sandbox.enter(sandbox.MOUNTS)


class Disk:
    """A small file system at a node's state directory."""

    def __init__(self, node, kib=8192, files=24):
        os.mkdir(node.directory)
        sandbox.attempt("no tmpfs", "mount", "-t", "tmpfs", "-o", f"size={kib}k,nr_inodes={files},mode=750",
                        "sgpd-tests", node.directory)
        self.directory = node.directory
        self.ballast = []

    def fill(self):
        """Neither a byte nor a file more."""
        for number in range(1000):
            path = os.path.join(self.directory, f"ballast{number}")
            try:
                with open(path, "wb", buffering=0) as file:
                    self.ballast.append(path)
                    for size in (4096, 1):
                        while file.write(bytes(size)) == size:
                            pass
            except OSError as error:
                assert error.errno == errno.ENOSPC, error
                if path not in self.ballast:
                    return
        raise AssertionError("the disk does not fill up")

    def empty(self):
        for path in self.ballast:
            os.unlink(path)
        self.ballast = []

    def names(self):
        return sorted(name for name in os.listdir(self.directory) if not name.startswith("ballast"))


class StateTest(FleetTest):
    def trains(self, f, indices=None):
        f.wait_state("training", indices)
        for i in range(f.n) if indices is None else indices:
            f.wait_round(i, f.nodes[i].status()["round"] + 20)

    def assert_all_weight(self, f):
        for node in f.nodes:
            self.assertIn(node.get("/v1/pause", "POST")[0], (200, 202))
        f.wait_state("paused")
        statuses = f.quiet()
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - f.n), 1e-9)
        self.assertEqual([s["weight_minted"] for s in statuses], [0] * f.n)


class FullDisk(StateTest):
    def small(self, **more):
        """Two nodes, the state directory of the first on a small disk."""
        own_mounts()
        f = self.fleet(2, options={**OPTIONS, **more})
        disk = Disk(f.nodes[0])
        self.addCleanup(sandbox.call, "umount", "--lazy", disk.directory)
        return f, disk

    def test_a_node_starts_with_the_ledger_that_is_there(self):
        f, disk = self.small()
        f.start()
        self.trains(f)
        for ending in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(ending=ending):
                f.nodes[0].end(ending)
                os.unlink(os.path.join(disk.directory, "history.csv"))
                disk.fill()
                f.nodes[0].start()
                self.trains(f)
                f.wait("a row that finds no room", lambda: FULL in (f.nodes[0].status()["last_error"] or ""))
                self.assertEqual([name for name in disk.names() if name.endswith(".new")], [])
                disk.empty()
                f.wait("a row", lambda: "history.csv" in disk.names())
        self.assert_all_weight(f)

    def test_without_a_ledger_it_says_so_and_starts_once_there_is_room(self):
        f, disk = self.small()
        disk.fill()
        node = f.nodes[0]
        f.start([0])
        self.assertEqual(node.process.wait(fleet.PATIENCE), 1, node.log())  # not 78: it is tried again
        told = [line for line in node.log().splitlines() if "event=error" in line]
        self.assertEqual(len(told), 1, node.log())
        self.assertRegex(told[0], f"/(ledger: its [0-9]+ bytes|(ledger|run).new:) cannot be written: {FULL}")
        self.assertEqual(disk.names(), [])
        disk.empty()
        f.start()
        self.trains(f)
        self.assert_all_weight(f)

    def test_a_checkpoint_that_finds_no_room_is_told_and_written_later(self):
        f, disk = self.small()
        node = f.nodes[0]
        f.start()
        self.trains(f)
        node.get("/v1/checkpoint", "POST")
        f.wait_log(0, "event=checkpoint")
        names = disk.names()
        disk.fill()
        told = len(node.log())

        def fails():  # a row of the history finds no room either, and may be the last error by the time we look
            node.get("/v1/checkpoint", "POST")
            return "checkpoint" in (node.status()["last_error"] or "")
        f.wait("the failure in status", fails)
        self.assertIn(f"the checkpoint was not written: {disk.directory}/checkpoint", node.log()[told:])
        f.wait("the one before alone, and nothing half written", lambda: disk.names() == names)
        self.trains(f)
        disk.empty()
        told = len(node.log())
        node.get("/v1/checkpoint", "POST")
        f.wait("a checkpoint", lambda: "event=checkpoint" in node.log()[told:])
        self.assertEqual(node.end(), 0, node.log())
        node.start()
        self.trains(f)
        self.assertIn("parameters=exact", node.log())
        self.assert_all_weight(f)

    def unsaved(self):
        """Both nodes have finished, and the model of the first found no room."""
        f, disk = self.small(**{"train.epochs": "3"})
        f.start([0])
        f.wait_state("joining", [0])
        disk.fill()
        f.start([1])
        f.wait_state("finished")
        f.wait_log(0, "the model was not saved")
        f.wait("a failure in status", lambda: "No space left on device" in (f.nodes[0].status()["last_error"] or ""))
        self.assertNotIn("model.safetensors", disk.names())
        return f.nodes[0], f, disk

    def test_a_model_that_finds_no_room_is_saved_with_a_later_checkpoint(self):
        node, f, disk = self.unsaved()
        node.get("/v1/checkpoint", "POST")
        f.wait("another failure", lambda: node.log().count("the model was not saved") > 1)
        disk.empty()

        def saved():  # a try that began before there was room may end after it
            node.get("/v1/checkpoint", "POST")
            return "event=saved" in node.log()
        f.wait("the model to be saved", saved)
        self.assertIn("model.safetensors", disk.names())
        self.assertEqual(node.end(), 0, node.log())

    def test_a_model_that_was_not_saved_at_the_end_either_is_an_end_with_1(self):
        node, _, disk = self.unsaved()
        self.assertEqual(node.end(), 1, node.log())
        self.assertEqual([name for name in disk.names() if name.endswith(".new")], [])


class LeftBehind(StateTest):
    def test_half_written_files_of_a_killed_process_go_at_the_next_start(self):
        f = self.fleet(2, options=OPTIONS)
        f.start()
        self.trains(f)
        node = f.nodes[0]
        node.end(signal.SIGKILL)
        for name in ("ledger", "checkpoint", "model.safetensors", "history.csv"):
            with open(os.path.join(node.directory, name + ".new"), "w") as file:
                file.write("half of it")
        node.start()
        self.trains(f)
        self.assertEqual([name for name in os.listdir(node.directory) if name.endswith(".new")], [])
        self.assert_all_weight(f)


class Links(StateTest):
    """A symbolic link in the state directory leads to a file that sgpd neither reads nor writes."""

    def setUp(self):
        super().setUp()
        self.f = self.fleet(1, phases=[[]], options={**OPTIONS, "log.events": "n0/events", "log.trace": "n0/trace"})
        self.node = self.f.nodes[0]
        self.f.start()
        self.trains(self.f)
        for count in (1, 2):
            self.node.get("/v1/checkpoint", "POST")
            self.f.wait("a checkpoint", lambda n=count: self.node.log().count("event=checkpoint") >= n)
        self.assertEqual(self.node.end(), 0, self.node.log())

    def lead_away(self, name):
        """The file lies elsewhere, and a link in its place; where, and what it holds."""
        away = os.path.join(self.f.directory, "away-" + name)
        os.rename(os.path.join(self.node.directory, name), away)
        os.symlink(away, os.path.join(self.node.directory, name))
        with open(away, "rb") as file:
            return away, file.read()

    def test_what_it_can_do_without_is_told(self):
        names = ("checkpoint", "checkpoint.1", "history.csv", "model.safetensors")
        away = [self.lead_away(name) for name in names]
        told = len(self.node.log())
        self.node.start()
        self.trains(self.f)
        self.f.wait("a row", lambda: "history.csv: cannot be written" in self.node.log()[told:])
        self.node.get("/v1/checkpoint", "POST")
        self.f.wait("a checkpoint", lambda: "event=checkpoint" in self.node.log()[told:])
        self.assertEqual(self.node.end(), 0, self.node.log())
        log = self.node.log()[told:]
        self.assertIn("parameters=none", log)
        for name in names[:3]:
            self.assertRegex(log, name + ": cannot be (read|written): it is a symbolic link, which is not followed here")
        for path, content in away:
            with open(path, "rb") as file:
                self.assertEqual(file.read(), content, path)

    def test_without_the_others_it_does_not_start(self):
        for name in ("ledger", "events", "trace"):
            with self.subTest(file=name):
                away, content = self.lead_away(name)
                told = len(self.node.log())
                self.node.start()
                self.assertEqual(self.node.process.wait(fleet.PATIENCE), 1, self.node.log()[told:])
                self.assertRegex(self.node.log()[told:], "/" + name + ": cannot be [a-z]+: it is a symbolic link")
                with open(away, "rb") as file:
                    self.assertEqual(file.read(), content, away)
                os.replace(away, os.path.join(self.node.directory, name))


def shorten(path, size):
    os.truncate(path, size)


def scribble(path):
    with open(path, "r+b") as file:
        file.write(random.Random(1).randbytes(os.path.getsize(path)))


def replace_by_folder(path):
    os.unlink(path)
    os.mkdir(path)


DAMAGE = {
    "empty": lambda path: shorten(path, 0),
    "one byte": lambda path: shorten(path, 1),
    "half": lambda path: shorten(path, os.path.getsize(path) // 2),
    "scribbled": scribble,
    "gone": os.unlink,
}
FOLDER = ("a folder", replace_by_folder)


class Damage(StateTest):
    """Each file in turn: the node starts, trains, and has its weight as long as its ledger is sound."""

    def damage(self, name, *more):
        f = self.fleet(2, options=OPTIONS)
        f.start()
        self.trains(f)
        node = f.nodes[0]
        for _ in range(2):  # so that there is a checkpoint.1
            told = node.log().count("event=checkpoint")
            node.get("/v1/checkpoint", "POST")
            f.wait("a checkpoint", lambda: node.log().count("event=checkpoint") > told)
        path = os.path.join(node.directory, name)
        for what, act in [*DAMAGE.items(), *more]:
            with self.subTest(file=name, damage=what):
                self.assertEqual(node.end(), 0, node.log())
                act(path)
                node.start()
                self.trains(f)
                told = node.log().count("event=checkpoint")
                node.get("/v1/checkpoint", "POST")
                f.wait("a checkpoint", lambda: node.log().count("event=checkpoint") > told)
            if os.path.isdir(path):  # nothing can be written there meanwhile
                os.rmdir(path)
            if not os.path.exists(path):
                open(path, "w").close()
        return f

    def test_a_damaged_checkpoint(self):
        self.assert_all_weight(self.damage("checkpoint"))

    def test_a_damaged_checkpoint_of_before(self):
        self.assert_all_weight(self.damage("checkpoint.1"))

    def test_a_damaged_history(self):
        self.assert_all_weight(self.damage("history.csv", FOLDER))

    def test_a_damaged_model(self):
        self.assert_all_weight(self.damage("model.safetensors", FOLDER))


if __name__ == "__main__":
    fleet.main()
