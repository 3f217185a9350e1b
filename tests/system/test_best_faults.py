# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the best model: test_best_faults.py SGPD SGPCTL. Disks, links, ends and measurements that are cut,
nodes without held-out rows, and a neighbour that is no daemon of ours."""
import json
import os
import random
import re
import signal
import socket
import struct

import fleet
import peer
from peer import BULLETIN, PULL, Peer
from test_best import BestTest, head_of, write_table

RESULT, BEST = 3, 2  # a kind of bulletin, a subject
OUTDATED = 7  # an exit status


class Disk(BestTest):
    def in_the_way(self, node):
        """A directory where best.json is to be written, which is not empty."""
        path = os.path.join(node.directory, "best.json.new")
        os.makedirs(os.path.join(path, "there"))

        def go():
            os.rmdir(os.path.join(path, "there"))
            os.rmdir(path)
        return go

    def test_no_word_is_told_that_is_not_on_the_disk(self):
        f = self.tables(2, options={"train.best_patience": None})
        go = self.in_the_way(f.nodes[0])
        f.start()
        f.wait_log(0, "the best model is not written")  # the status has the latest error, which may be another by now
        f.wait("the word of the other", lambda: (f.nodes[1].status() or {}).get("best_waits") == "n0")
        f.wait_round(0, f.nodes[0].status()["round"] + 1000)
        for node in f.nodes:
            self.assertEqual((node.status()["best_round"], node.log().count("the best model is not written")),
                             (None, 1 - node.index))
        go()
        f.wait("a best model", lambda: f.nodes[1].status()["best_round"])
        f.wait("no error", lambda: f.nodes[0].status()["last_error"] is None)

    def test_a_node_that_may_keep_an_older_model_says_so(self):
        f = self.tables(2, options={"train.when_done": "exit", "train.rounds": "1000"})
        self.in_the_way(f.nodes[1])
        f.start()
        self.assertEqual([node.process.wait(fleet.PATIENCE) for node in f.nodes], [OUTDATED] * 2)
        says = "; other nodes may keep a better model than this one in model.safetensors: start this node again while one of them"
        self.assertIn("keep_best: no counts have come of n1 for 10 s" + says, f.nodes[0].log())
        self.assertIn("keep_best: this node could not tell its counts" + says, f.nodes[1].log())

    def test_a_copy_that_cannot_be_written_is_tried_again(self):
        f = self.tables(2)
        f.start()
        kept, models = self.assert_one_end(f)
        f.nodes[1].end()
        ways = []
        for name in os.listdir(f.nodes[1].directory):
            if name.startswith(("best", "model")):
                os.remove(os.path.join(f.nodes[1].directory, name))
        for number in range(5):
            ways.append(os.path.join(f.nodes[1].directory, "best.%d.safetensors.new" % number))
            os.makedirs(os.path.join(ways[-1], "there"))
        f.nodes[1].start()
        f.wait("an error", lambda: "the best model is not copied" in ((f.nodes[1].status() or {}).get("last_error") or ""))
        for way in ways:
            os.rmdir(os.path.join(way, "there"))
            os.rmdir(way)
        again = self.wait_alike(f, kept)
        self.assertEqual(again[1][1], models[0][1])
        self.assertIsNone(f.nodes[1].status()["last_error"])


class Links(BestTest):
    def since_start(self, node):
        return node.log().split("event=start")[-1]

    def start_again(self, f, node):
        starts = node.log().count("event=start")
        node.start()
        f.wait("its start", lambda: node.log().count("event=start") > starts)

    def test_links_are_not_followed(self):
        f = self.tables(2)
        f.start()
        kept, models = self.assert_one_end(f)
        f.nodes[1].end()
        elsewhere = os.path.join(f.directory, "elsewhere")
        os.mkdir(elsewhere)
        before = {}
        for name in os.listdir(f.nodes[1].directory):
            if name.startswith("best"):
                path, target = os.path.join(f.nodes[1].directory, name), os.path.join(elsewhere, name)
                os.rename(path, target)
                os.symlink(target, path)
                with open(target, "rb") as file:
                    before[target] = file.read()
        self.start_again(f, f.nodes[1])
        f.wait_state("finished")
        f.wait("a copy", lambda: "event=copied" in self.since_start(f.nodes[1]))
        again = self.wait_alike(f, kept)
        self.assertEqual(again[1][1], models[0][1])
        self.assertIn("best.json: not what a node has kept; the best model begins anew", f.nodes[1].log())
        for target, content in before.items():
            with open(target, "rb") as file:
                self.assertEqual(file.read(), content, target)
        self.assertFalse(os.path.islink(os.path.join(f.nodes[1].directory, "best.json")))

    def test_a_model_file_that_is_a_link_or_of_another_round_is_not_the_best(self):
        """Of the first node, whose copy all others take."""
        f = self.tables(2)
        f.start()
        kept, models = self.assert_one_end(f)
        node = f.nodes[0]

        def link(path):
            os.rename(path, path + ".away")
            os.symlink(path + ".away", path)

        def replace(path):
            for name in os.listdir(node.directory):
                with open(os.path.join(node.directory, name), "rb") as file:
                    other = file.read() if re.fullmatch(r"best\.\d\.safetensors", name) else None
                if other and int(head_of(other)[0]["round"]) != kept["best_round"]:
                    with open(path, "wb") as file:
                        file.write(other)
                    return
            self.fail("there is no file of another round")

        for change in link, replace:
            node.end()
            with open(os.path.join(node.directory, "best.json"), encoding="ascii") as file:
                number = json.load(file)["models"].index(kept["best_round"])
            change(os.path.join(node.directory, "best.%d.safetensors" % number))
            self.start_again(f, node)
            f.wait("a copy", lambda: "event=copied" in self.since_start(node))
            self.assertEqual(self.wait_alike(f, kept)[0][1], models[0][1])


class Ends(BestTest):
    def test_no_node_has_held_out_rows(self):
        f = self.tables(2, options={"train.rounds": "3000"}, own={i: {"data.test": None} for i in range(2)})
        self.assertIn("keep_best: this node has no held-out rows, so the best model is chosen by the rows of the others",
                      f.check()[1])
        f.start()
        for node in f.nodes:
            f.wait("a line", lambda node=node: (node.status() or {}).get("last_error") ==
                   "keep_best: no node has held-out rows; give [data] test or holdout on one of them")
        f.wait_state("finished")
        for node in f.nodes:  # and the last model is that of the fleet
            f.wait("the reports", lambda node=node: node.get("/v1/report")[0] == 200 and node.json("/v1/report")["told"] == 2)
            self.assertEqual((node.status()["best_round"], node.json("/v1/report")["best"]), (None, False))

    def test_a_finished_node_waits_for_the_others(self):
        """The other node tells its counts late. The model has so many outputs that no node waits for reports."""
        f = self.tables(2, options={
            "train.when_done": "exit", "train.rounds": "3000", "train.keep_best": "accuracy", "model.layers": "dense 101",
            "data.classes": "neg pos" + "".join(("\n  c%d" if i % 40 == 0 else " c%d") % i for i in range(2, 101))})
        go = Disk.in_the_way(self, f.nodes[1])
        f.start()
        f.wait_state("finished", [0])
        ended = f.nodes[0].status()["uptime_seconds"]
        f.wait("its wait", lambda: (s := f.nodes[0].status()) and s["best_waits"] == "n1" and s["uptime_seconds"] > ended + 4)
        go()
        self.assertEqual([node.process.wait(fleet.PATIENCE) for node in f.nodes], [0, 0])
        models = self.models(f)
        self.assertEqual(models[0][1], models[1][1])
        self.assertEqual([tags.get("fleet_measure") for tags, _ in models], ["accuracy"] * 2)

    def test_a_node_that_is_started_again_after_all_have_agreed_has_nothing_to_wait_for(self):
        f = self.tables(2, options={"train.when_done": "exit", "train.rounds": "1000"})
        f.start()
        self.assertEqual([node.process.wait(fleet.PATIENCE) for node in f.nodes], [0, 0])
        before = self.models(f)
        f.start([0])
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 0)
        self.assertEqual(self.models(f)[0][1], before[0][1])

    def test_a_measurement_that_is_cut_is_not_told(self):
        """One node, whose measurements take far longer than the rounds between them."""
        f = self.tables(1, phases=[[]], options={"train.evaluate_every": "2", "model.layers": "dense 2048 relu, dense 2"})
        write_table(os.path.join(f.directory, "test0.csv"), 100, 20000)
        f.start()
        for _ in range(3):
            began = f.wait("a best model", lambda: (f.nodes[0].status() or {}).get("best_round"))
            self.assertEqual(f.nodes[0].end(), 0)
            with open(os.path.join(f.nodes[0].directory, "best.json"), encoding="ascii") as file:
                kept = json.load(file)
            self.assertGreaterEqual(kept["best"]["label"], 2, began)
            for score in kept["pending"] + [kept["best"]]:
                self.assertEqual(score["count"], 20000)
                self.assertTrue(0 < float.fromhex(score["sum"]) < 1e9, score)
            f.nodes[0].start()


class Foreign(BestTest):
    """The second node of the file is, once both have finished, no daemon of ours."""

    def begin(self):
        self.f = self.tables(2)
        self.f.start()
        self.kept, models = self.assert_one_end(self.f)
        self.f.wait("all to have agreed", self.has_settled)
        self.f.nodes[1].end(signal.SIGKILL)
        self.listener = socket.create_server(("127.0.0.1", self.f.ports[1]))
        self.listener.settimeout(fleet.PATIENCE)
        self.addCleanup(self.listener.close)
        stamp, text = self.present()
        self.assertEqual(stamp >> 16, self.kept["best_round"])
        return stamp, text

    def has_settled(self):
        with open(os.path.join(self.f.nodes[0].directory, "best.json"), encoding="ascii") as file:
            return json.load(file)["settled"]

    def present(self):
        """The copy that n0 holds: its stamp and text."""
        asker = Peer(self.f.ports[0])
        self.addCleanup(asker.close)
        asker.send(PULL, "n1", "n0", 0, BEST)
        found, stamp = "", 0
        while True:
            kind, fields = asker.receive(BULLETIN, PULL)
            if kind == PULL:
                asker.close()
                return stamp, found
            stamp, found = fields[2], found + fields[6]

    def offer(self, text, stamp, **changes):
        """Answer the next question of n0 with this. Whether n0 has read all of it."""
        while True:
            sock, _ = self.listener.accept()
            asker = Peer(sock=sock)
            self.addCleanup(asker.close)
            kind, fields = asker.receive(PULL, peer.HELLO)
            if kind == PULL and fields[3] == BEST:
                break
            asker.close()
        for _ in range(fields[2]):
            asker.receive(BULLETIN)
        fields = {"kind": RESULT, "author": "n1", "stamp": stamp, "digest": peer.checksum(text.encode()), "bytes": len(text),
                  "first": 0, "text": text, **changes}
        asker.send(BULLETIN, *fields.values())
        try:
            asker.send(PULL, "n1", "n0", 0, BEST)
        except peer.Closed:
            pass
        asker.until_closed()

    def later(self, make):
        """The first text that make(values) makes of such values that it is later than the present copy, at the same stamp."""
        text = self.present()[1]
        head, values = text.rsplit(" ", 1)
        draw = random.Random(1)
        while True:
            other = make(head + " ", values[:-12] + "%04x" % draw.getrandbits(16) + values[-8:])
            if peer.checksum(other.encode()) > peer.checksum(text.encode()):
                return other

    def test_a_hostile_copy_is_refused(self):
        """Each is later than the present one, and but for what is wrong, of the score that all have agreed on."""
        stamp, text = self.begin()
        for number, (bad, told) in enumerate([
                (lambda head, values: head + values[:-8] + "7f800000", stamp),                # infinite
                (lambda head, values: head + values[:8] + "ffc00001" + values[16:], stamp),   # no number
                (lambda head, values: head + values[:-8], stamp),                             # a value is missing
                (lambda head, values: head + values + "00000000", stamp),
                (lambda head, values: head + values[:-1] + "x", stamp),
                (lambda head, values: head + values[:-1] + "F", stamp),
                (lambda head, values: head + values, stamp + (1 << 16)),                      # the stamp of another label
                (lambda head, values: "1 " + head + values, stamp), (lambda head, values: "2" + head[1:] + values, stamp),
                (lambda head, values: head.replace("0x", "0X") + values, stamp),
                (lambda head, values: "1 2" + head[3:] + values, stamp)]):                    # of another run
            with self.subTest(number=number):
                self.offer(self.later(bad), told)
                self.assertEqual(self.present(), (stamp, text))
        self.assertEqual(head_of(self.f.nodes[0].get("/v1/model")[1])[1], self.models(self.f)[0][1])
        good = self.later(lambda head, values: head + values)
        self.offer(good, stamp)  # nothing but that was wrong with them
        self.assertEqual(self.present(), (stamp, good))

    def test_a_copy_of_a_score_that_nobody_measured_is_refused(self):
        """All have agreed on the best one, so the offer of a better one is a lie."""
        stamp, text = self.begin()
        label = self.kept["best_round"]
        for told in label + 100, label:
            with self.subTest(label=told):
                self.offer(self.later(lambda _, values, told=told: "1 1 %d 220 0x1p-1 %s" % (told, values)), (told << 16) + 65535)
                self.assertEqual(self.present(), (stamp, text))
        self.assertEqual(self.f.nodes[0].status()["best_value"], self.kept["best_value"])
        self.assertEqual(head_of(self.f.nodes[0].get("/v1/model")[1])[1], self.models(self.f)[0][1])

    def test_of_equal_stamps_the_greater_digest_is_taken(self):
        stamp, text = self.begin()
        digest = peer.checksum(text.encode())
        draw = random.Random(1)
        lesser = greater = None
        while lesser is None or greater is None:
            other = text[:-4] + "%04x" % draw.getrandbits(16)
            if other != text and peer.checksum(other.encode()) > digest:
                greater = other
            elif other != text:
                lesser = other
        self.offer(lesser, stamp)
        self.assertEqual(self.present(), (stamp, text))
        self.offer(greater, stamp)
        self.assertEqual(self.present(), (stamp, greater))
        bits = greater.rsplit(" ", 1)[1]
        values = b"".join(struct.pack("<I", int(bits[i:i + 8], 16)) for i in range(0, len(bits), 8))
        self.f.wait("its file", lambda: head_of(self.f.nodes[0].get("/v1/model")[1])[1] == values)
        self.f.wait("the model", lambda: open(os.path.join(self.f.nodes[0].directory, "model.safetensors"), "rb").read().endswith(values))


if __name__ == "__main__":
    fleet.main()
