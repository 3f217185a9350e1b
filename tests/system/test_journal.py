# SPDX-License-Identifier: Apache-2.0
"""What the journal and the status say of links: which error is of now and which is over, whose settings differ, who
was refused from where, two nodes under one name, and no more lines than anybody reads."""
import os
import re

import fleet
import peer
from fleet import FleetTest, Node
from trio import Trio


REASON = 'event=refused peer=n2 direction=in reason="the models have other layers ([model] layers and local must be the same)'


class Links(FleetTest):
    def test_an_error_is_over_when_the_link_is_up(self):
        f = self.fleet(2, options={"train.epochs": "100000", "train.start": "now"})
        f.start([0])
        node, address = f.nodes[0], f"127.0.0.1:{f.ports[1]}"
        f.wait("a failed dial", lambda: node.status() and node.peer("n1", "out")["last_error"])
        told = f"cannot connect to {address}: connection refused"
        shown = node.peer("n1", "out")
        self.assertEqual((shown["last_error"], shown.get("previous_error")), (told, None))
        f.wait_log(0, f'event=down peer=n1 direction=out reason="Connection refused" remote={address}')
        f.start([1])
        f.wait("the link", lambda: node.peer("n1", "out")["state"] == "up")
        shown = node.peer("n1", "out")
        self.assertEqual((shown["last_error"], shown.get("previous_error")), (None, told))

    def test_who_differs_is_in_the_status(self):
        f = self.fleet(2, options={"train.epochs": "100000"}, own={1: {"train.batch": "20"}})
        f.start()
        f.wait_round(0, 1)
        node = f.nodes[0]
        self.assertEqual(node.status().get("mismatch"), ["n1"])
        for direction in ("in", "out"):
            shown = node.peer("n1", direction)
            self.assertEqual((shown["mismatch"], shown["last_error"]), (True, None))

    def test_two_nodes_under_one_name_are_told_on_both_sides(self):
        f = self.fleet(2, options={"train.epochs": "100000", "log.level": "info"})
        f.start()
        f.wait_round(0, 5)
        other = Node(f, 1)
        other.directory, other.socket = other.directory + "-other", other.socket + "-other"
        other.log_path, other.configuration = other.log_path + "-other", other.configuration + "-other"
        f.nodes.append(other)
        [other.listen] = fleet.free_ports(1)
        with open(f.nodes[1].configuration, encoding="ascii") as file:
            text = file.read()
        for old, new in ((f.nodes[1].directory + "\n", other.directory + "\n"),
                         (f.nodes[1].socket, other.socket), (f":{f.ports[1]}", f":{other.listen}")):
            text = text.replace(old, new)
        with open(other.configuration, "w", encoding="ascii") as file:
            file.write(text.replace("n1.dot", f"{f.directory}/n1.dot"))
        os.mkdir(other.directory)
        other.start()
        f.wait_log(0, "event=namesake")
        self.assertRegex(f.nodes[0].log(), r"event=namesake peer=n1 direction=in remote=127\.0\.0\.1:\d+ "
                         r'other=127\.0\.0\.1:\d+ reason="two nodes call themselves n1; every node has a name of its own"')
        f.wait("word to one of the two", lambda: any(
            'reason="another daemon is called n1, and n0 hears it; stop one of the two: ' in node.log()
            for node in f.nodes[1:]))


class Lines(Trio):
    def test_who_is_refused_is_named_by_address(self):
        n2 = self.neighbour(parameters=5)
        port = n2.port
        n2.until_closed()
        self.fleet_.wait_log(0, f'{REASON}" remote=127.0.0.1:{port}')

    def test_lines_about_one_link_have_a_limit_and_are_counted(self):
        for _ in range(60):
            self.neighbour(parameters=5).until_closed()
        self.fleet_.wait_log(0, "event=link_lines peer=n2 direction=in dropped=")
        log = self.node.log()
        lines = log.count("event=refused peer=n2 direction=in")
        dropped = sum(map(int, re.findall(r"event=link_lines peer=n2 direction=in dropped=(\d+)", log)))
        self.assertLess(lines, 40)
        self.assertGreater(dropped, 0)
        self.fleet_.wait("every line to be told or counted", lambda: 60 <= (
            self.node.log().count("event=refused peer=n2 direction=in") + sum(
                map(int, re.findall(r"event=link_lines peer=n2 direction=in dropped=(\d+)", self.node.log())))))
        self.assert_goes_on()

    def test_a_neighbour_that_ends_with_ever_other_models_is_told_of_so_often(self):
        n2 = self.retire()
        n2.stop = self.node.status()["round"] + 20
        n2.send(peer.BEAT, 0, True, False, *[1.0] * 16)
        self.fleet_.wait_log(0, "event=disagrees peer=n2")
        self.fleet_.wait_state("finished", [0, 1])
        for k in range(60):
            n2.send(peer.BEAT, 0, True, False, *[float(2 + k)] * 16)
        self.fleet_.wait_log(0, "event=link_lines peer=n2 direction=in dropped=")
        self.assertLess(self.node.log().count("event=disagrees peer=n2"), 40)
        self.assert_alive(self.fleet_, [0, 1])


if __name__ == "__main__":
    fleet.main()
