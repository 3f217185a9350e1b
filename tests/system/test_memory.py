# SPDX-License-Identifier: Apache-2.0
"""What a daemon's vectors take: its peak of memory beside the written sum (docs/PERFORMANCE.md, `sgpd --check`).

A vector is as long as the model, 16 MiB here and 100 MB in a long run. The rows are a few kilobytes, but those of a large table
(docs/OWN-DATA.md), of 40 MB here and 2 GB in a long run."""
import array
import os
import re
import signal
import struct
import subprocess
import threading

import fleet
import raw_program
from fleet import FleetTest

FEATURES = 6
WIDTH = 5000 if fleet.LONG else 2040
VECTOR = 4 * ((FEATURES + 1) * WIDTH + (WIDTH + 1) * WIDTH + (WIDTH + 1) * 2)
BASE = 30 << 20 # what is not a vector: libraries, the stack of OpenBLAS, links
OPTIONS = {"train.epochs": None, "train.rounds": "1G", "train.batch": "8", "data.holdout": None,
           "model.layers": "dense %d relu, dense %d relu, dense 2" % (WIDTH, WIDTH),
           "optimizer.kind": "nesterov", "train.checkpoint_seconds": "0",
           "optimizer.learning_rate": "0.0001"}  # at the usual one so many features may diverge


ATTACHED = {"model.kind": "attached", "model.layers": None, "data.train": None, "data.label": None, "data.classes": None,
            "data.holdout": None, "train.epochs": None, "train.batch": None, "optimizer.learning_rate": None,
            "train.checkpoint_seconds": "0"}


def peak(node):
    """The most memory that a daemon ever had, in bytes."""
    with open("/proc/%d/status" % node.process.pid) as file:
        return int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1)) << 10


class Memory(FleetTest):
    def start(self):
        f = self.fleet(4, options=OPTIONS)
        f.start()
        f.wait_round(0, 12, 600)
        return f

    def written_sum(self, node):
        """What `sgpd --check` says that the daemon may need at most, in bytes."""
        node.end()
        text = subprocess.run([fleet.SGPD, "--check", "-c", node.configuration], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return float(re.search(r"^ *sum +([\d.]+) MiB", text, re.MULTILINE).group(1)) * (1 << 20)

    def test_a_healthy_fleet_needs_seven_vectors(self):
        f = self.start()
        peaks = [peak(node) for node in f.nodes]
        for node, most in zip(f.nodes, peaks):
            self.assertEqual(node.status()["parameters"] * 4, VECTOR)
            self.assertLessEqual(most, 7 * VECTOR + BASE, node.name)
            self.assertGreater(most, 3 * VECTOR, "x, gradient and velocity at least")
        self.assertLessEqual(max(peaks), self.written_sum(f.nodes[0]) + BASE)

    def test_images_need_what_is_written_of_them(self):
        """What lies between the layers of a convolutional network, and of each layer's own, is the largest term."""
        layers = "conv 16 3x3 relu, conv 16 3x3, norm batch relu, conv 16 3x3, residual 2, norm layer, dropout 0.1, pool avg all, dense 2"
        options = {"train.epochs": "2", "train.batch": "256", "model.layers": layers, "data.label": None, "data.classes": None}
        f = self.fleet(1, phases=[[]], options=options)
        for name, head, count in (("train", struct.pack(">IIII", 0x803, 600, 28, 28), 600 * 784),
                                  ("labels", struct.pack(">II", 0x801, 600), 600)):
            options["data." + name] = os.path.join(f.directory, name + ".idx")
            with open(options["data." + name], "wb") as file:
                file.write(head + bytes(i % 2 for i in range(count)))
        f.write_configuration(0, options, {})
        f.start()
        f.wait_state("finished", timeout=600)
        most = peak(f.nodes[0])
        total = self.written_sum(f.nodes[0])
        self.assertGreater(total, 64 << 20)
        self.assertLessEqual(most, total + BASE)
        self.assertGreater(most, 0.8 * total)

    def turns(self, n, phases=None):
        """Daemons whose programs have taken a dozen turns; the most that one had."""
        own = {i: {"control.attach": "n%d.attach" % i} for i in range(n)}
        f = self.fleet(n, phases=phases, options=ATTACHED, own=own)
        f.start()
        ones = array.array("f", [1]) * (VECTOR // 4)
        programs = [raw_program.Program(os.path.join(f.directory, "n%d.attach" % i), ones) for i in range(n)]

        def act(program):
            program.take(600)
            for _ in range(12):
                program.done()
                program.take(600)
        threads = [threading.Thread(target=act, args=(program,)) for program in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        most = max(peak(node) for node in f.nodes)
        print("# peak of %d with programs of %d parameters: %.1f vectors" % (n, VECTOR // 4, (most - BASE) / VECTOR))
        for program in programs:
            program.close()
        return f, most

    def test_a_program_needs_two_beside_x(self):
        """The estimate that it was given, and the memory that both see: as many as a step of ours."""
        _, most = self.turns(1, [[]])
        self.assertLessEqual(most, 3 * VECTOR + BASE // 2)  # no links here
        f, most = self.turns(4)
        self.assertLessEqual(most, self.written_sum(f.nodes[0]) + BASE)  # which has these two beside x and links

    def test_one_more_for_a_neighbour_that_is_not_reached(self):
        f = self.start()
        stopped, others = f.nodes[0], f.nodes[1:]
        stopped.kill(signal.SIGSTOP)
        try:
            now = max(node.status()["round"] for node in others)
            f.wait("the others to go on", lambda: all(n.status()["round"] > now + 12 for n in others), 600)
            for node in others:
                self.assertLessEqual(peak(node), 8 * VECTOR + BASE, node.name)
        finally:
            stopped.kill(signal.SIGCONT)


class Table(FleetTest):
    BYTES = 2 * 10 ** 9 if fleet.LONG else 40 * 10 ** 6
    COLUMNS, ROWS = 20, 2000  # of the part that is repeated

    def anonymous(self, node):
        with open("/proc/%d/status" % node.process.pid, encoding="ascii") as file:
            return int(re.search(r"RssAnon:\s*(\d+) kB", file.read()).group(1)) << 10

    def watched(self, least):
        """A daemon has read a table of so many bytes or more: its rows, if they are in a file of rows; the size of the table; the
        processor time until then; and the most memory of the daemon's own."""
        f = self.fleet(1, phases=[[]], rows=self.ROWS, features=self.COLUMNS,
                       options={"train.epochs": None, "train.rounds": "1", "data.shards": "none", "data.holdout": None})
        with open(f.rows, "rb") as file:
            header, rows = file.readline(), file.read()
        with open(f.rows, "wb") as file:
            file.write(header)
            while file.tell() < least:
                file.write(rows)
        f.start()
        [node], most = f.nodes, []

        def started():
            most.append(self.anonymous(node))
            return "event=start " in node.log()
        f.wait("the daemon to have its rows", started, 600, interval=0.005)
        with open("/proc/%d/stat" % node.process.pid, encoding="ascii") as file:
            seconds = sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        made, size = re.search(r"event=rows .* rows=(\d+) ", node.log()), os.path.getsize(f.rows)
        f.close()
        return int(made.group(1)) if made else 0, size, seconds, max(most)

    def test_a_large_table_is_read_in_the_written_memory(self):
        """1 MiB, a block of 4, and 8 bytes for each label, beside what a daemon has that reads a small table."""
        none, _, _, base = self.watched(1000)
        self.assertEqual(none, 0, "it is read into memory")
        rows, size, seconds, most = self.watched(self.BYTES)
        self.assertEqual(rows % self.ROWS, 0)
        self.assertGreaterEqual(size, self.BYTES)
        beside, written = most - base, (5 << 20) + 8 * rows
        print("# %.2f GB, %d rows: %.0f MB a second of processor time; %.1f MiB beside the %.1f of a small table, written %.1f" % (
            size / 1e9, rows, size / 1e6 / seconds, beside / (1 << 20), base / (1 << 20), written / (1 << 20)))
        self.assertLessEqual(beside, written)


if __name__ == "__main__":
    fleet.main()
