# SPDX-License-Identifier: Apache-2.0
"""Which rows are a node's: what it says of them when it starts, and of neighbours whose files are others."""
import gzip
import os

import fleet
from fleet import FleetTest

REMEDY = ("both take a part of [data] train, and the files differ: where each node has a file of its own, set "
          "shards = none")


class Data(FleetTest):
    def own_files(self, **options):
        """Two nodes, each with a file that only it has."""
        f = self.fleet(2, options=options, own={1: {"data.train": "mine.csv"}}, rows=337)
        fleet.write_rows(os.path.join(f.directory, "mine.csv"), rows=337, seed=2)
        return f

    def told(self, f, index):
        return f.nodes[index].log().count("event=other_data")

    def test_a_node_says_how_many_rows_are_its_own(self):
        f = self.fleet(4, rows=337)
        f.start([0])
        f.wait_log(0, ' data="85 of 337 rows (round-robin, part 1 of 4)"')
        self.assertIn("data       84 of 337 rows (round-robin, part 4 of 4)\n", f.check(3)[1])

    def test_files_of_ones_own_that_are_sharded(self):
        f = self.own_files(**{"train.rounds": "1G", "train.epochs": None})
        f.start()
        for i, other in ((0, "n1"), (1, "n0")):
            for direction in ("in", "out"):
                f.wait_log(i, f'event=other_data peer={other} direction={direction} reason="{REMEDY}"')
                self.assertTrue(f.nodes[i].peer(other, direction)["mismatch"])
        f.wait_round(0, 20)
        f.nodes[1].end()
        f.start([1])
        f.wait("n1 to be back", lambda: f.nodes[0].log().count("event=up peer=n1") == 4)
        self.assertEqual(self.told(f, 0), 2, "once for each link")

    def test_files_of_ones_own_as_they_should_be(self):
        f = self.own_files(**{"data.shards": "none"})
        f.start()
        f.wait_state("finished")
        self.assertEqual((self.told(f, 0), self.told(f, 1)), (0, 0))
        self.assertFalse(f.nodes[0].peer("n1", "in")["mismatch"])

    def test_one_file_that_all_have(self):
        """Packed or not, it is the same rows."""
        f = self.fleet(2, own={1: {"data.train": "copy.csv.gz"}})
        with open(f.rows, "rb") as file, gzip.open(os.path.join(f.directory, "copy.csv.gz"), "wb") as copy:
            copy.write(file.read().replace(b"\n", b"\r\n"))
        f.start()
        f.wait_state("finished")
        self.assertEqual((self.told(f, 0), self.told(f, 1)), (0, 0))


class Large(FleetTest):
    """A table of 18 MB, whose rows go through a file in the state directory."""
    ROWS = 320000

    def large(self):
        """Two nodes. The second has a packed copy, which is small enough to be read into memory."""
        f = self.fleet(2, options={"train.epochs": None, "train.rounds": "20"},
                       own={1: {"data.train": "copy.csv.gz"}}, rows=1000)
        with open(f.rows, "rb") as file:
            header, *lines = file.readlines()
        table = header + b"".join(lines) * (self.ROWS // 1000)
        with open(f.rows, "wb") as file:
            file.write(table)
        with gzip.open(os.path.join(f.directory, "copy.csv.gz"), "wb", 1) as copy:
            copy.write(table)
        self.rows = os.path.join(f.nodes[0].directory, "train.rows")
        return f

    def again(self, f):
        for node in f.nodes:
            node.end()
        f.start()
        f.wait_state("finished")

    def test_rows_are_parsed_once(self):
        f = self.large()
        status, text = f.check(0)[:2]
        self.assertEqual(status, 0)
        self.assertRegex(text, r"\ndisk\n  rows, mapped from there +8\.5 MiB\n")
        self.assertFalse(os.path.exists(self.rows), "a check leaves nothing")
        os.makedirs(f.nodes[0].directory, exist_ok=True)
        with open(self.rows + ".new", "w", encoding="utf-8") as left:
            left.write("of a daemon that was killed while it wrote")
        f.start()
        f.wait_state("finished")
        log = f.nodes[0].log()
        self.assertEqual(log.count(f'event=rows file="{self.rows}" table="{f.rows}" rows={self.ROWS} '), 1)
        self.assertIn(' data="160000 of 320000 rows (round-robin, part 1 of 2)"', log)
        self.assertFalse(os.path.exists(self.rows + ".new"))
        for node in f.nodes:
            self.assertNotIn("event=other_data", node.log(), "the rows are those of a table in memory")
        self.assertNotIn("event=rows", f.nodes[1].log())
        made = os.stat(self.rows).st_ino
        self.again(f)
        self.assertEqual(f.nodes[0].log().count("event=rows"), 1, "the file is used")
        self.assertEqual(os.stat(self.rows).st_ino, made)

    def test_damage_is_found(self):
        f = self.large()
        f.start()
        f.wait_state("finished")
        with open(self.rows, "r+b") as file:
            good = file.read()
            file.seek(len(good) // 2)
            file.write(bytes([good[len(good) // 2] ^ 1]))
        self.again(f)
        self.assertIn(f'event=rows file="{self.rows}" made_anew="its rows are damaged"', f.nodes[0].log())
        with open(self.rows, "rb") as file:
            self.assertEqual(file.read(), good)


if __name__ == "__main__":
    fleet.main()
