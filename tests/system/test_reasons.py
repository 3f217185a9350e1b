# SPDX-License-Identifier: Apache-2.0
"""Two nodes that do not fit together: both say why, each from where it stands, in `peers` and in the log."""
import os
import re
import shutil
import subprocess

import fleet
import tls
from fleet import exponential
from tls import TlsTest

FOREVER = {"train.epochs": "1000000"}
SAME = "both nodes need the same file"


class Reasons(TlsTest):
    def says(self, f, index, peer, text):
        """What the node says of its link to that peer."""
        def said():
            return [link["last_error"] for link in tls.TlsFleet.peers(f.nodes[index])
                    if (link["name"], link["direction"]) == (peer, "out")]

        f.wait("n%d to say of %s: %s" % (index, peer, text), lambda: any(text in (error or "") for error in said()))

    def test_plain_links_against_tls_that_is_required(self):
        f = self.tls_fleet(2, tls=None, options=FOREVER)
        f.tls = "require"
        f.write_topology(1)
        f.start()
        self.says(f, 0, "n1", "the peer requires TLS (tls=require), and this node's topology file does not say so; " + SAME)
        self.says(f, 1, "n0", "the peer answers without TLS, so its topology file says neither tls=offer nor tls=require; "
                  + SAME)
        f.wait_log(1, "it speaks without TLS, which the topology file requires")
        f.wait_log(0, "a TLS client is calling, and by this node's topology file links are plain (tls=off); if it is a node, "
                   + SAME)
        self.assertIn("n1: the peer requires TLS", f.nodes[0].status()["last_error"])

    def test_an_edge_that_is_the_other_way_round_in_the_other_file(self):
        f = self.fleet(2, phases=[[(0, 1)]], options=FOREVER)
        f.phases = [[(1, 0)]]
        f.write_topology(1)
        f.start()
        for index, peer in ((0, "n1"), (1, "n0")):
            self.says(f, index, peer, "the peer's topology file has no edge from this node to it; " + SAME)
            f.wait_log(index, "this node's topology file has no edge from %s to n%d; %s" % (peer, index, SAME))

    def test_a_node_that_the_other_file_does_not_name(self):
        f = self.fleet(3, phases=exponential(3), options=FOREVER)
        f.rewire([1, 2], [[(1, 2), (2, 1)]])
        f.present, f.phases = [0, 1, 2], exponential(3)
        f.write_topology(0)
        f.start()
        self.says(f, 0, "n1", "the peer's topology file does not name this node; " + SAME)
        f.wait_log(1, "it is called n0, which this node's topology file does not name; " + SAME)

    def test_an_address_that_is_another_nodes(self):
        f = self.fleet(2, options=FOREVER)
        f.dial = {(0, 1): f.ports[0]}  # itself
        with open(os.path.join(f.directory, "n0.dot"), "w", encoding="ascii") as file:
            file.write('digraph p { n0 [address="127.0.0.1:%d"]; n1 [address="127.0.0.2:%d"]; n0 -> n1; n1 -> n0 }'
                       % (f.ports[0], f.ports[0]))
        f.write_configuration(0, FOREVER, {"network.listen": "0.0.0.0:%d" % f.ports[0]})
        f.start([0])
        self.says(f, 0, "n1", "another node answers at the address that the topology file gives the peer; correct the "
                  "address")
        f.wait_log(0, "n0 looks for node n1, and this is n0")

    def test_a_key_that_the_peer_does_not_take(self):
        f = self.tls_fleet(2, options=FOREVER)
        f.write_topology(0)
        former = f.keys[0]
        f.shown[0] = f.make_key(0, ".new")
        f.write_topology(1)
        f.start()
        self.says(f, 0, "n1", "the peer refused our key %s: give this node that key in the peer's topology file" % former)
        f.wait_log(1, "its key is %s, which the topology file gives to nobody" % former)

    def test_a_copied_machine_and_the_one_that_it_was_copied_from(self):
        """One name and one memory, twice: the second is told by the neighbour, which names both."""
        f = self.fleet(2, options={**FOREVER, "train.start": "now"})
        f.start()
        f.wait_round(0, 20)
        f.nodes[0].end()
        clone = os.path.join(f.directory, "clone")
        shutil.copytree(f.nodes[0].directory, clone)
        [port] = fleet.free_ports(1)
        with open(f.nodes[0].configuration, encoding="ascii") as file:
            text = file.read()
        for former, new in ((f.nodes[0].directory, clone), (":%d" % f.ports[0], ":%d" % port)):
            self.assertIn(former, text)
            text = text.replace(former, new)
        with open(clone + ".conf", "w", encoding="ascii") as file:
            file.write(text)
        f.nodes[0].start()
        f.wait("n0 to be back", lambda: f.nodes[1].peer("n0", "in")["state"] == "up")
        with open(clone + ".log", "wb") as log, \
                subprocess.Popen([fleet.SGPD, "-c", clone + ".conf"], stderr=log, stdin=subprocess.DEVNULL) as second:
            try:
                f.wait_log(1, "it greets as n0, which is here and is heard: two daemons are called n0 and have one memory")
                self.assertRegex(f.nodes[1].log(), r"a machine or a state directory was copied, give the copy a name of its "
                                                   r"own and an empty state directory")

                def heard():
                    with open(clone + ".log", encoding="utf-8") as file:
                        return re.search(r'event=down peer=n1 direction=out reason="another daemon is called n0, and n1 hears '
                                         r'it; stop one of the two: if a machine or a state directory was copied, give the '
                                         r'copy a name of its own and an empty state directory"', file.read())

                f.wait("the copy to hear why", heard)
            finally:
                second.kill()


class Hidden(TlsTest):
    def test_data_in_a_home_that_systemd_hides(self):
        """As ProtectHome=yes leaves it: another, empty directory, which nobody may enter, in its place."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("only root can make namespaces")
        f = self.fleet(2, own={0: {"data.train": "/home/no/such/rows.csv"}, 1: {"data.train": "link.csv"}})
        os.symlink("/home/no/such/rows.csv", os.path.join(f.directory, "link.csv"))
        for node in f.nodes:
            command = "mount -t tmpfs -o mode=000 tmpfs /home && exec %s -c %s" % (fleet.SGPD, node.configuration)
            run = subprocess.run(["unshare", "-m", "sh", "-c", command], check=False, capture_output=True, text=True,
                                 timeout=fleet.PATIENCE)
            self.assertEqual(run.returncode, 78, run.stderr)
            self.assertRegex(run.stderr, r"\[data\] train: /home\S*: this service does not see it, whoever may read it: its "
                                         r"unit hides home directories \(ProtectHome=\); keep it in /srv or /var/lib\n$")
            missing = subprocess.run([fleet.SGPD, "-c", node.configuration], check=False, capture_output=True, text=True,
                                     timeout=fleet.PATIENCE)
            self.assertNotIn("ProtectHome", missing.stderr)


if __name__ == "__main__":
    tls.main()
