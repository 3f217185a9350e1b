# SPDX-License-Identifier: Apache-2.0
"""Files that are wrong: one clear line that says where, what, and what would be right. `sgpd --check`
ends with 6, the daemon with 78, so that its unit does not start it again."""
import gzip
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import fleet
import tap

FLEET = """\
digraph ring {
  n0 [address="127.0.0.1:17311"];
  n1 [address="127.0.0.1:17312"];
  n2 [address="127.0.0.1:17313"];
  n0 -> n1 -> n2 -> n0;
}
"""
FRAGMENTS = """\
digraph up0 { slices=4;
  n0 [address="127.0.0.1:17311"];
  n1 [address="127.0.0.1:17312"];
  n0 -> n1 [slice=1, fraction=1];
  n1 -> n0 [slice=0, fraction=1];
}
digraph down0 { slices=4; train=false; n0 -> n1 [slice=0]; n1 -> n0 [slice=1]; }
digraph up1 { slices=4; n0 -> n1 [slice=3, fraction=1]; n1 -> n0 [slice=2, fraction=1]; }
digraph down1 { slices=4; train=false; n0 -> n1 [slice=2]; n1 -> n0 [slice=3]; }
"""
PIXELS = 6
ROWS = 24
CLASSES = 3


def images():
    draw = random.Random(3)
    return struct.pack(">IIII", 0x803, ROWS, 2, PIXELS // 2) + draw.randbytes(ROWS * PIXELS)


def labels():
    return struct.pack(">II", 0x801, ROWS) + bytes(i % CLASSES for i in range(ROWS))


def unpack(packed):
    """The contents, or None."""
    try:
        return gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        return None


class BadInput(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sgpd-")
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name
        self.write("fleet.dot", FLEET)
        self.write("n0.conf", self.configuration("label = label\nclasses = neg pos", "rows.csv", 2))
        fleet.write_rows(self.path("rows.csv"), rows=ROWS, features=2)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def configuration(self, data, train, outputs):
        return (f"[node]\nname = n0\nstate_directory = {self.directory}\n"
                f"[topology]\nfile = fleet.dot\n"
                f"[train]\nepochs = 3\nbatch = 4\n"
                f"[model]\nlayers = dense {outputs}\n"
                f"[data]\ntrain = {train}\n{data}\nholdout = 0.25\n"
                f"[network]\nlisten = 127.0.0.1:17311\n"
                f"[control]\nsocket = {self.path('control.sock')}\n")

    def use_images(self, suffix=""):
        """A configuration that trains on IDX files."""
        self.write("n0.conf", self.configuration(f"labels = labels{suffix}", f"images{suffix}",
                                                 CLASSES))
        pack = gzip.compress if suffix else bytes
        self.write(f"images{suffix}", pack(images()))
        self.write(f"labels{suffix}", pack(labels()))

    def replace(self, name, old, new):
        text = self.read(name).decode()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new))

    def sgpd(self, *arguments, **options):
        return subprocess.run([fleet.SGPD, *arguments], capture_output=True, timeout=20, check=False,
                              encoding="utf-8", errors="replace", preexec_fn=fleet.die_with_parent,
                              **options)

    def line_of(self, text):
        """The number of the line of the configuration that begins so."""
        lines = self.read("n0.conf").decode().splitlines()
        return next(i for i, line in enumerate(lines, 1) if line.startswith(text))

    def line_of_bytes(self, text):
        lines = self.read("n0.conf").splitlines()
        return next(i for i, line in enumerate(lines, 1) if line.startswith(text))

    def check(self):
        return self.sgpd("--check", "-c", self.path("n0.conf"))

    def refusal(self):
        """The one line of --check; the daemon must say the same and open nothing."""
        checked = self.check()
        self.assertEqual((checked.returncode, checked.stdout), (6, ""), checked)
        self.assertEqual(checked.stderr.count("\n"), 1, checked.stderr)
        self.assertTrue(checked.stderr.startswith("sgpd: "), checked.stderr)
        started = self.sgpd("-c", self.path("n0.conf"))
        self.assertEqual((started.returncode, started.stderr), (78, checked.stderr))
        self.assertFalse(os.path.exists(self.path("control.sock")))
        return checked.stderr.removeprefix("sgpd: ").rstrip("\n")

    def refused(self, name, message):
        """The line is the message about this file: NAME, then ":LINE: ..." and so on."""
        self.assertEqual(self.refusal(), self.path(name) + message)

    def accepted(self):
        checked = self.check()
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        return checked.stdout


class Good(BadInput):
    """What the other cases break is whole to begin with."""

    def test_rows_of_text(self):
        self.assertIn("18 rows of 2 features to train on", self.replace_shards().accepted())

    def replace_shards(self):
        self.replace("n0.conf", "holdout = 0.25", "holdout = 0.25\nshards = none")
        return self

    def test_images_plain_and_packed(self):
        for suffix in ("", ".gz"):
            self.use_images(suffix)
            self.replace_shards()
            self.assertIn("18 rows of 6 features to train on", self.accepted())


class Topology(BadInput):
    def topology(self, old, new):
        self.replace("fleet.dot", old, new)

    def test_syntax_error(self):
        self.topology("n2 -> n0;", "n2 -> n0 [;")
        self.refused("fleet.dot", ":5: syntax error near ';'; look here and just above for a missing "
                     "brace, bracket, quote or semicolon")

    def test_cut_short(self):
        self.topology("n0;\n}\n", "n0;\n")
        self.refused("fleet.dot", ":6: syntax error at the end of the text; look here and just above "
                     "for a missing brace, bracket, quote or semicolon")

    def test_unknown_node(self):
        self.topology("n2 -> n0", "n3 -> n0")
        self.refused("fleet.dot", ":5: digraph ring: unknown node n3; nodes are those with an address "
                     "(n0, n1, n2)")

    def test_column_above_1(self):
        self.topology("n0 -> n1 ->", "n0 -> n2 [fraction=0.75]; n0 -> n1 [fraction=\"1/2\"]; n1 ->")
        self.refused("fleet.dot", ":2: digraph ring: node n0 gives away 1.25 in all (column above 1); "
                     "its fractions must add up to at most 1")

    def test_duplicate_address(self):
        self.topology("17313", "17311")
        self.refused("fleet.dot", ":4: nodes n0 and n2 have the same address 127.0.0.1:17311; every "
                     "node needs one of its own")

    def test_own_name_missing(self):
        self.replace("n0.conf", "name = n0", "name = n7")
        self.refused("n0.conf", f":2: [node] name: no node of {self.path('fleet.dot')} is called n7; "
                     "its nodes are n0, n1, n2")

    def test_undirected(self):
        self.write("fleet.dot", FLEET.replace("digraph", "graph").replace("->", "--"))
        self.refused("fleet.dot", ":1: graph ring is undirected; write digraph, and a -> b; b -> a for "
                     "both directions")

    def test_self_loop_and_repeated_edge(self):
        self.topology("n0 -> n1 ->", "n0 -> n1; n1 -> n1; n1 ->")
        self.refused("fleet.dot", ":5: digraph ring: edge n1 -> n1 is a self-loop; what is not given "
                     "away stays, so leave it out")
        self.write("fleet.dot", FLEET.replace("n0;\n}", "n0;\n  n2 -> n0;\n}"))
        self.refused("fleet.dot", ":6: digraph ring: edge n2 -> n0 is repeated; write it once, with the "
                     "sum as its fraction")

    def test_training_within_an_exact_cycle(self):
        """Two fragments of the vector in turn, with steps between."""
        self.write("fleet.dot", FRAGMENTS)
        self.refused("fleet.dot", ":8: digraph up1 trains, but the exchange of the exact cycle has begun in digraph up0; "
                     "write train=false in digraph up1")
        self.topology("digraph up1 { slices=4;", "digraph up1 { slices=4; train=false;")
        self.accepted()

    def test_missing_file(self):
        os.unlink(self.path("fleet.dot"))
        self.refused("fleet.dot", ": No such file or directory; correct its path in "
                     f"{self.path('n0.conf')}:{self.line_of('file =')}")

    def test_unreachable_node_is_warned_of_by_name(self):
        self.topology("n0 -> n1 -> n2 -> n0;", "n0 -> n1 -> n0; n2 -> n1;")
        self.assertIn(f"warning: {self.path('fleet.dot')}: cannot converge: n2 cannot be reached from "
                      "n0; add an edge towards them\n", self.accepted())
        self.topology("n0 -> n1 -> n0; n2 -> n1;", "n0 -> n1 -> n0;")
        self.assertIn("cannot converge: n2 cannot be reached from n0; add an edge towards them\n",
                      self.accepted())

    def test_random_damage_is_refused_in_one_line_or_accepted(self):
        draw = random.Random(11)
        refused = 0
        for _ in range(60):
            text = bytearray(FLEET.encode())
            text[draw.randrange(len(text))] ^= 1 << draw.randrange(8)
            self.write("fleet.dot", bytes(text))
            checked = self.check()
            self.assertIn(checked.returncode, (0, 6), bytes(text))
            if checked.returncode == 6:
                refused += 1
                self.assertRegex(checked.stderr, r"\Asgpd: .+\n\Z", bytes(text))
        self.assertGreater(refused, 20)


class Configuration(BadInput):
    def configure(self, old, new, message):
        self.replace("n0.conf", old, new)
        self.refused("n0.conf", message)

    def test_unknown_key(self):
        self.configure("epochs = 3", "epoks = 3", ":7: [train] epoks: unknown key; did you mean [train] "
                       "epochs?")

    def test_unknown_section(self):
        self.configure("[train]", "[trane]", ":7: [trane]: unknown section; did you mean [train]?")

    def test_bad_number(self):
        self.configure("batch = 4", "batch = four", ":8: [train] batch: \"four\" is not a whole number "
                       "from 1 to 65536; write digits, with k, M or G for thousands, millions or "
                       "billions")

    def test_number_out_of_range(self):
        self.configure("batch = 4", "batch = 0", ":8: [train] batch: \"0\" is not a whole number from "
                       "1 to 65536; write digits, with k, M or G for thousands, millions or billions")

    def test_nothing_where_a_number_is_due(self):
        self.configure("batch = 4", "batch = # 64", ":8: [train] batch: \"\" is not a whole number from "
                       "1 to 65536; write digits, with k, M or G for thousands, millions or billions")

    def test_classes_in_another_encoding(self):
        self.write("n0.conf", self.read("n0.conf").replace(b"classes = neg pos", b"classes = Z\xfcrich Bern"))
        self.refused("n0.conf", f":{self.line_of_bytes(b'classes')}: [data] classes: the names are not UTF-8; "
                     "save this file and the data as UTF-8")

    def test_bad_choice(self):
        self.configure("epochs = 3", "epochs = 3\nalgorithm = magic", ":8: [train] algorithm: \"magic\" "
                       "does not exist; choose one of sgp|osgp|agp|dpsgd|adpsgd|backup|downpour|cyclic")

    def test_steps_by_rate_where_all_make_rounds_at_one_rate(self):
        self.configure("epochs = 3", "epochs = 3\nstep_by_rate = yes",
                       ":8: [train] step_by_rate: with algorithm sgp all nodes make rounds at one "
                       "rate; it is for agp and adpsgd")

    def test_no_line_of_a_configuration(self):
        self.configure("epochs = 3", "epochs three", ":7: not understood; a line is `[section]`, `key = "
                       "value`, or a comment that begins with # or ;")

    def test_missing_key(self):
        self.configure("name = n0\n", "", ": [node] name is missing; add a line `name = ...` to section "
                       "[node]: name of this node, as in the topology file")

    def test_missing_file(self):
        os.unlink(self.path("n0.conf"))
        self.refused("n0.conf", ": there is no such file; write one (sgpd.conf(5) tells how), or name another with -c")
        said = self.sgpd("-c", "n0.conf", cwd=self.directory)
        self.assertEqual((said.returncode, said.stderr), (
            78, f"sgpd: n0.conf: there is no such file in {self.directory}; write one (sgpd.conf(5) tells how), or name "
                "another with -c\n"))

    def test_missing_data(self):
        os.unlink(self.path("rows.csv"))
        self.refused("rows.csv", ": cannot be opened: No such file or directory; correct its path in "
                     f"{self.path('n0.conf')}:{self.line_of('train =')}")

    def test_usage(self):
        missing = "sgpd: the configuration is missing; name it with -c FILE\n"
        for arguments, message in (((), missing), (("--check",), missing),
                                   (("--frobnicate",), "--frobnicate"),
                                   (("-c", "a", "b"), "sgpd: 'b' is one argument too many\n")):
            wrong = self.sgpd(*arguments)
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
            self.assertIn(message, wrong.stderr.partition("Usage: sgpd -c FILE")[0])
            self.assertIn("Usage: sgpd -c FILE", wrong.stderr)


class Text(BadInput):
    """CSV, whose line 1 is f0,f1,label."""

    def flip(self, line, what, bit, message):
        """Flip a bit in the first byte of `what` in a line."""
        lines = self.read("rows.csv").split(b"\n")
        at = lines[line - 1].index(what)
        damaged = bytearray(lines[line - 1])
        damaged[at] ^= bit
        lines[line - 1] = bytes(damaged)
        self.write("rows.csv", b"\n".join(lines))
        self.refused("rows.csv", message)

    def test_cut_in_the_middle_of_a_line(self):
        whole = self.read("rows.csv").split(b"\n")
        self.write("rows.csv", b"\n".join(whole[:10]) + b"\n" + whole[10].split(b",")[0])
        self.refused("rows.csv", ":11: 1 fields, but the first line names 3 columns")

    def test_cut_in_the_middle_of_a_label(self):
        self.write("rows.csv", self.read("rows.csv").rstrip()[:-1])
        last = self.read("rows.csv").rsplit(b",", 1)[1].decode()
        self.refused("rows.csv", f":{ROWS + 1}: column 'label': '{last}' is not among the classes; list "
                     "every class in classes = ...")

    def test_cut_after_the_names(self):
        self.write("rows.csv", self.read("rows.csv").split(b"\n")[0] + b"\n")
        self.refused("rows.csv", ":2: no rows; at least one is needed")

    def test_empty(self):
        self.write("rows.csv", "")
        self.refused("rows.csv", ":1: the file is empty; the first line names the columns")

    def test_a_bit_of_a_name(self):
        self.flip(1, b"label", 0x04, ":1: there is no column 'label'; the columns are f0, f1, habel")

    def test_a_bit_of_a_comma(self):
        self.flip(7, b",", 0x40, ":7: 2 fields, but the first line names 3 columns")

    def test_a_bit_of_a_number(self):
        line = self.read("rows.csv").split(b"\n")[8].split(b",")[0].decode()
        damaged = line.replace(".", "n", 1)
        self.flip(9, b".", 0x40, f":9: column 'f0': '{damaged}' is not a number; a column of words "
                  "needs its values in a scaling file")

    def test_a_zero_byte(self):
        self.flip(5, b".", ord("."), ":5: a zero byte in field 1; CSV is text (is the file UTF-16?)")

    def test_packed_and_cut(self):
        packed = gzip.compress(self.read("rows.csv"))
        self.write("rows.csv", packed[:-4])
        line = self.refusal()
        self.assertTrue(line.startswith(self.path("rows.csv")), line)
        self.assertTrue(line.endswith("the gzip data ends too early; copy the file again"), line)


class Images(BadInput):
    def damage(self, name, at, value):
        content = bytearray(self.read(name))
        content[at] = value
        self.write(name, bytes(content))

    def test_cut_images(self):
        self.use_images()
        self.write("images", images()[:-1])
        whole = 16 + ROWS * PIXELS
        self.refused("images", f": byte {whole - 1}: the file ends after {ROWS - 1} of {ROWS} rows; "
                     f"{whole} bytes would be right")

    def test_cut_header(self):
        self.use_images()
        self.write("images", images()[:9])
        self.refused("images", ": byte 9: the file ends in the middle of the header; an IDX file begins "
                     "with 0 0 8 D and D sizes of 4 bytes")

    def test_cut_labels(self):
        self.use_images()
        self.write("labels", labels()[:-5])
        self.refused("labels", f": byte {8 + ROWS - 5}: the file ends after {ROWS - 5} of {ROWS} rows; "
                     f"{8 + ROWS} bytes would be right")

    def test_exchanged_files(self):
        self.use_images()
        self.write("images", labels())
        self.refused("images", ": byte 3: 1 dimension; rows of numbers need 2 or more (is this the file "
                     "of labels?)")

    def test_a_label_beyond_the_classes(self):
        self.use_images()
        self.damage("labels", 8 + 5, 0x80)
        self.refused("labels", f": byte 13: label 128 of row 5; with {CLASSES} classes it is at most "
                     f"{CLASSES - 1}")

    def test_every_bit_of_the_headers(self):
        self.use_images()
        for name, whole, size in (("images", images(), 16), ("labels", labels(), 8)):
            for bit in range(8 * size):
                damaged = bytearray(whole)
                damaged[bit // 8] ^= 1 << bit % 8
                self.write(name, bytes(damaged))
                checked = self.check()
                self.assertEqual((checked.returncode, checked.stdout), (6, ""), f"{name} bit {bit}")
                self.assertRegex(checked.stderr, r"\Asgpd: .*(images|labels): byte \d+: .+\n\Z")
            self.write(name, whole)

    def test_packed_and_cut(self):
        self.use_images(".gz")
        packed = self.read("images.gz")
        for count in (12, len(packed) // 2, len(packed) - 1):
            self.write("images.gz", packed[:count])
            line = self.refusal()
            self.assertTrue(line.startswith(self.path("images.gz") + ": byte "), line)
            self.assertTrue(line.endswith("the gzip data ends too early; copy the file again"), line)

    def test_packed_and_damaged(self):
        """Whatever bit flips in the packed bytes and their checksum: Python's reader is the judge of
        the few that mean nothing."""
        self.use_images(".gz")
        packed = self.read("images.gz")
        draw = random.Random(7)
        harmless = 0
        for at in range(10, len(packed)):
            damaged = bytearray(packed)
            damaged[at] ^= 1 << draw.randrange(8)
            self.write("images.gz", bytes(damaged))
            checked = self.check()
            if unpack(bytes(damaged)) == images():
                harmless += 1
                self.assertEqual((checked.returncode, checked.stderr), (0, ""), f"byte {at}")
                continue
            self.assertEqual((checked.returncode, checked.stdout), (6, ""), f"byte {at}")
            self.assertRegex(checked.stderr, r"\Asgpd: \S+/images\.gz: byte \d+.*; .+\n\Z")
        self.assertLess(harmless, 3)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
        fleet.SGPD = os.path.abspath(sys.argv.pop(1))
    tap.run_cases(sys.argv[1:])
