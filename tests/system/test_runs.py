# SPDX-License-Identifier: Apache-2.0
"""The round belongs to the model: another model is another run, and the files of the former one stay.

Real daemons: whole fleets that get other layers, single nodes that do, and fleets that are reset, by their sockets and
while they are stopped.
"""
import fcntl
import os
import subprocess
import sys

import fleet
from fleet import FleetTest

SGPCTL = os.path.abspath(sys.argv.pop(2)) if len(sys.argv) > 2 and os.path.exists(sys.argv[2]) else "sgpctl"
KEPT = ["checkpoint", "history.csv", "ledger", "model.safetensors", "run"]


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


class Runs(FleetTest):
    def finish(self, f, indices=None):
        f.wait_state("finished", indices)
        for node in f.nodes if indices is None else [f.nodes[i] for i in indices]:
            f.wait("the model of " + node.name,
                   lambda at=node: os.path.exists(os.path.join(at.directory, "model.safetensors")))

    def end(self, f):
        for node in f.nodes:
            self.assertEqual(node.end(), 0, node.log())

    def finished(self, **options):
        """A fleet of two that has finished its first run, and has stopped."""
        f = self.fleet(2, options={"train.epochs": "20", **options})
        f.start()
        self.finish(f)
        self.end(f)
        return f

    def configure(self, f, index, **options):
        f.write_configuration(index, {key.replace("_", ".", 1): value for key, value in options.items()}, {})

    def ctl(self, *arguments):
        return subprocess.run([SGPCTL, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=fleet.PATIENCE, check=False)

    def test_another_model_begins_at_round_0_and_the_former_one_is_kept(self):
        f = self.finished()
        before = [read(node.directory, "model.safetensors") for node in f.nodes]
        for i in range(2):
            self.configure(f, i, train_epochs="20", model_layers="dense 8 relu, dense 2")
        code, text = f.check()
        self.assertEqual(code, 0, text)
        self.assertIn("run        2, a new one: ", text)
        self.assertIn("other layers", text)
        f.start()
        self.finish(f)
        for node, model in zip(f.nodes, before):
            status = node.status()
            self.assertEqual(status["run"], 2)
            self.assertGreater(status["samples"], 0)
            self.assertGreater(status["test_accuracy"], 0.8)
            self.assertAlmostEqual(sum(n.status()["weight"] for n in f.nodes), 2, delta=1e-9)
            kept = os.path.join(node.directory, "run-1")
            self.assertLessEqual(set(KEPT), set(os.listdir(kept)))
            self.assertEqual(read(kept, "model.safetensors"), model)
            self.assertNotEqual(read(node.directory, "model.safetensors"), model)
            self.assertIn("event=run run=2 former=1", node.log())

    def test_a_finished_fleet_without_its_checkpoints_says_so_and_keeps_the_model(self):
        f = self.finished()
        before = [read(node.directory, "model.safetensors") for node in f.nodes]
        for node in f.nodes:
            node.lose_checkpoints()
        for _ in range(2):  # nothing that is written in between hides it
            f.start()
            f.wait_state("finished")
            for node, model in zip(f.nodes, before):
                f.wait_log(f.nodes.index(node), "event=untrained")
                status = node.status()
                self.assertEqual((status["samples"], status["lost_rounds"] > 0), (0, True), status)
                waited = self.ctl("-s", node.socket, "wait", "--for", "finished", "--timeout", "20")
                self.assertEqual(waited.returncode, 1, waited.stdout)
                self.assertRegex(waited.stdout, "it has lost the training .*; model.safetensors stays as it was")
                self.assertEqual(self.ctl("-s", node.socket, "status", "--check").returncode, 7)
            self.end(f)
            self.assertEqual([read(node.directory, "model.safetensors") for node in f.nodes], before)

    def test_more_rounds_and_another_rate_go_on_with_the_same_run(self):
        f = self.finished()
        for i in range(2):
            self.configure(f, i, train_epochs="40", optimizer_learning_rate="0.05")
        self.assertIn("run        1, goes on", f.check()[1])
        f.start()
        self.finish(f)
        self.assertEqual([node.status()["run"] for node in f.nodes], [1, 1])
        self.assertIn("parameters=exact", f.nodes[0].log())
        self.assertFalse(os.path.exists(os.path.join(f.nodes[0].directory, "run-1")))

    def test_one_node_with_another_model_is_refused_and_returns_to_its_run(self):
        """The others say which layers differ; with its former layers the node takes its run up again."""
        f = self.finished()
        self.configure(f, 1, train_epochs="20", model_layers="dense 8 relu, dense 2")
        f.start()
        f.wait_log(0, "have other layers")
        f.wait_log(1, "have other layers")
        self.assertEqual(f.nodes[1].status()["round"], 0)
        self.end(f)
        self.configure(f, 1, train_epochs="20")
        self.assertIn("run        1, again: the model has other layers", f.check(1)[1])
        f.start()
        self.finish(f)
        self.assertEqual([node.status()["run"] for node in f.nodes], [1, 1])
        self.assertIn("parameters=exact", f.nodes[1].log())
        self.assertFalse(os.path.exists(os.path.join(f.nodes[1].directory, "run-1")))
        self.assertAlmostEqual(sum(n.status()["weight"] for n in f.nodes), 2, delta=1e-9)

    def test_a_reset_by_the_socket_begins_the_next_run_on_all_nodes(self):
        """Between the two resets the nodes are in unlike runs: neither gives to the other, and both say why."""
        f = self.fleet(2, options={"train.epochs": "20"})
        f.start()
        self.finish(f)
        before = f.nodes[0].status()
        self.assertEqual(self.ctl("-s", f.nodes[0].socket, "reset").returncode, 2)  # it would ask
        result = self.ctl("-s", f.nodes[0].socket, "reset", "--yes")
        self.assertEqual(result.returncode, 0, result.stdout)
        for i in range(2):
            f.wait_log(i, "takes part in another run")
        f.wait("run 2", lambda: (f.nodes[0].status() or {}).get("run") == 2)
        self.assertEqual(f.nodes[0].status()["state"], "joining")
        self.assertEqual(f.nodes[1].status()["run"], 1)
        self.assertEqual(self.ctl("-s", f.nodes[1].socket, "reset", "--yes").returncode, 0)
        f.wait("both in run 2", lambda: all((n.status() or {}).get("run") == 2 for n in f.nodes))
        self.finish(f)
        for node in f.nodes:
            status = node.status()
            self.assertGreater(status["samples"], 0)
            self.assertEqual(status["weight_minted"], 0)
            self.assertNotEqual(status["incarnation"], before["incarnation"])
            self.assertLessEqual(set(KEPT), set(os.listdir(os.path.join(node.directory, "run-1"))))
            self.assertIsNone(node.process.poll())
        self.assertAlmostEqual(sum(n.status()["weight"] for n in f.nodes), 2, delta=1e-9)

    def test_the_state_directory_stays_locked_while_the_program_starts_again(self):
        f = self.fleet(1, phases=[[]])
        f.start()
        self.finish(f)
        directory = os.open(f.nodes[0].directory, os.O_RDONLY)
        self.addCleanup(os.close, directory)

        def unlocked():
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            fcntl.flock(directory, fcntl.LOCK_UN)
            return True

        self.assertFalse(unlocked())
        self.assertEqual(f.nodes[0].get("/v1/reset", "POST")[0], 200)
        gaps = 0

        def run_2():
            nonlocal gaps
            gaps += sum(unlocked() for _ in range(2000))
            return (f.nodes[0].status() or {}).get("run") == 2

        f.wait("run 2", run_2, interval=0)
        self.assertEqual(gaps, 0)
        self.assertEqual(f.nodes[0].end(), 0)
        self.assertTrue(unlocked())

    def test_a_reset_without_a_daemon_and_a_node_that_lost_its_disk(self):
        """The lost one knows no number, and takes that of its neighbour."""
        f = self.finished()
        for node in f.nodes:
            result = self.ctl("reset", "--state", node.directory, "--yes")
            self.assertEqual((result.returncode, "run-1" in result.stdout), (0, True), result.stdout)
        again = self.ctl("reset", "--state", f.nodes[0].directory, "--yes")
        self.assertIn("run-2.unbegun", again.stdout)
        for name in os.listdir(f.nodes[1].directory):
            if os.path.isfile(os.path.join(f.nodes[1].directory, name)):
                os.unlink(os.path.join(f.nodes[1].directory, name))
        f.start()
        self.finish(f)
        self.assertEqual([node.status()["run"] for node in f.nodes], [2, 2])
        self.assertTrue(all(node.status()["samples"] > 0 for node in f.nodes))

    def test_a_node_that_was_reset_too_often_joins_its_neighbours(self):
        f = self.finished()
        result = self.ctl("reset", "--state", f.nodes[1].directory, "--yes", "--join")
        self.assertEqual(result.returncode, 0, result.stdout)
        f.start()
        self.finish(f)
        self.assertEqual([node.status()["run"] for node in f.nodes], [1, 1])
        self.assertGreater(f.nodes[1].status()["test_accuracy"], 0.8)

    def test_a_ledger_without_a_run_is_refused_with_the_way_out(self):
        f = self.finished()
        os.unlink(os.path.join(f.nodes[0].directory, "run"))
        code, text = f.check()
        self.assertEqual(code, 6, text)
        self.assertIn("sgpctl reset", text)
        f.start([0])
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 1)
        self.assertEqual(self.ctl("reset", "--state", f.nodes[0].directory, "--yes").returncode, 0)
        self.assertIn("run        the first one", f.check()[1])


if __name__ == "__main__":
    fleet.main()
