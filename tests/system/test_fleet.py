# SPDX-License-Identifier: Apache-2.0
"""A healthy fleet: it finishes, agrees, conserves mass, and ends cleanly."""
import os
import signal
import socket
import time

import fleet
from fleet import FleetTest


class Healthy(FleetTest):
    def test_four_nodes_finish_agree_and_conserve_mass(self):
        f = self.fleet(4)
        f.start()
        f.wait_state("finished")
        statuses = f.quiet()
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - 4), 1e-9)
        self.assertEqual([s["weight_in_flight"] for s in statuses], [0, 0, 0, 0])
        self.assertEqual(len({s["round"] for s in statuses}), 1)
        for node in f.nodes:
            f.wait_log(node.index, "event=saved") # all jobs are done
            self.assertLessEqual(node.status()["disagreement"], 1e-6)
        for node in f.nodes:
            s = node.status()
            self.assertGreater(s["test_accuracy"], 0.85)
            self.assertEqual(s["samples"], 4 * 80)
        models = [fleet.read_model(node.get("/v1/model")[1]) for node in f.nodes]
        self.assertTrue(all(len(m) == len(models[0]) for m in models))

    def test_one_node_alone_trains(self):
        f = self.fleet(1, phases=[[]])
        f.start()
        [status] = f.wait_state("finished")
        self.assertEqual(status["weight"], 1)

    def test_three_nodes_of_an_irregular_graph(self):
        f = self.fleet(3, phases=[[(0, 1), (0, 2), (1, 2), (2, 0)]])
        f.start()
        statuses = f.wait_state("finished")
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - 3), 1e-9)
        self.assertGreater(max(s["weight"] for s in statuses), 1.01)

    def test_joining_waits_and_says_for_whom(self):
        f = self.fleet(2)
        f.start([0])
        f.wait_log(0, "event=waiting peer=n1 for=hello")
        self.assertEqual(f.nodes[0].status()["state"], "joining")
        f.start([1])
        f.wait_state("finished")

    def test_when_done_exit_ends_with_0_and_the_model(self):
        f = self.fleet(3, phases=fleet.exponential(3), options={"train.when_done": "exit"})
        f.start()
        for node in f.nodes:
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0, node.log())
            self.assertTrue(os.path.exists(os.path.join(node.directory, "model.safetensors")))
            self.assertFalse(os.path.exists(node.socket))

    def test_a_goal_stops_the_whole_fleet_early(self):
        f = self.fleet(4, options={"train.epochs": "100000", "train.stop_at_accuracy": "0.8"})
        f.start()
        statuses = f.wait_state("finished")
        self.assertLessEqual(abs(sum(s["weight"] for s in statuses) - 4), 1e-9)
        self.assertLess(max(s["epoch"] for s in statuses), 100000)

    def test_history_has_a_row_an_epoch(self):
        f = self.fleet(2)
        f.start()
        f.wait_state("finished")
        f.wait_log(0, "event=saved")
        with open(os.path.join(f.nodes[0].directory, "history.csv")) as file:
            lines = file.read().splitlines()
        self.assertTrue(lines[0].startswith("round,seconds,epoch,loss,test_loss,test_accuracy"))
        self.assertGreaterEqual(len(lines), 1 + 4)
        self.assertTrue(lines[-1].split(",")[5], "the last row has a test accuracy")


class Ending(FleetTest):
    def test_sigterm_in_mid_training_writes_the_model_and_ends_with_0(self):
        f = self.fleet(4, options={"train.epochs": "100000"})
        f.start()
        f.wait_round(0, 5)
        for node in f.nodes:
            node.kill(signal.SIGTERM)
        for node in f.nodes:
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0, node.log())
            self.assertIn("event=end status=0", node.log())
            self.assertTrue(os.path.exists(os.path.join(node.directory, "model.safetensors")))

    def test_sigterm_while_joining(self):
        f = self.fleet(2)
        f.start([0])
        f.wait("a status", f.nodes[0].status)
        self.assertEqual(f.nodes[0].end(), 0)

    def test_sigint_and_a_second_signal_end_at_once(self):
        f = self.fleet(2, options={"train.epochs": "100000"})
        f.start()
        f.wait_round(0, 5)
        f.nodes[0].kill(signal.SIGINT)
        status = f.nodes[0].end()
        self.assertEqual(status, int("the model was not saved" in f.nodes[0].log()))


    def stop_before_answer(self, f):
        """Whether n1 was stopped at a moment at which n0 has given it something; else it goes on."""
        f.nodes[1].kill(signal.SIGSTOP)
        if any(f.nodes[0].status()["weight_in_flight"] > 0 for _ in range(100)):
            return True
        f.nodes[1].kill(signal.SIGCONT)
        return False

    def test_a_signal_after_an_order_to_stop_is_the_first_signal(self):
        """n0 waits for the acknowledgement of one that stands still: there is time for a signal."""
        f = self.fleet(2, options={"train.epochs": "100000"})
        f.start()
        f.wait_round(0, 5)
        f.wait("something in flight to one that stands still", lambda: self.stop_before_answer(f))
        self.assertIn(f.nodes[0].get("/v1/stop", "POST")[0], (200, 202))
        self.assertEqual(f.nodes[0].end(), 0, f.nodes[0].log())
        self.assertNotIn("at_once=1", f.nodes[0].log())
        self.assertIn("event=signal", f.nodes[0].log())
        self.assertIn("event=saved", f.nodes[0].log())
        f.nodes[1].kill(signal.SIGKILL)


class Orders(FleetTest):
    def test_pause_holds_and_resume_goes_on(self):
        f = self.fleet(4, options={"train.epochs": "100000"})
        f.start()
        f.wait_round(0, 10)
        for node in f.nodes:
            self.assertIn(node.get("/v1/pause", "POST")[0], (200, 202))
        before = [s["round"] for s in f.wait_state("paused")]
        for node in f.nodes:
            self.assertIn(node.get("/v1/resume", "POST")[0], (200, 202))
        f.wait_round(0, before[0] + 20)
        for node in f.nodes:
            self.assertIn(node.get("/v1/stop", "POST")[0], (200, 202))
            self.assertEqual(node.process.wait(fleet.PATIENCE), 0)


class Service(FleetTest):
    def test_ready_before_the_neighbours_and_status_names_whom_it_waits_for(self):
        f = self.fleet(2)
        path = os.path.join(f.directory, "notify")
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(path)
        manager.settimeout(fleet.PATIENCE)
        os.environ.update(NOTIFY_SOCKET=path, WATCHDOG_USEC="400000")
        try:
            f.start([0])
        finally:
            del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
        told = []

        def hear(text):
            end = time.monotonic() + fleet.PATIENCE  # the watchdog's word comes all the time
            while not any(text in line for line in told):
                self.assertLess(time.monotonic(), end, "never told %r:\n%s" % (text, "\n".join(told)))
                told.append(manager.recv(4096).decode())

        hear("READY=1")
        hear("STATUS=joining")
        hear("waits for n1 (hello: cannot connect to 127.0.0.1:%d: connection refused)" % f.ports[1])
        hear("WATCHDOG=1")
        f.start([1])
        hear("STATUS=finished")
        f.nodes[0].kill(signal.SIGTERM)
        hear("STOPPING=1")
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 0)


class Refusing(FleetTest):
    def test_an_address_of_another_machine_is_said_plainly(self):
        f = self.fleet(2, own={0: {"network.listen": "192.0.2.1:7311"}})
        f.start([0])
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 1)
        self.assertIn("cannot listen on 192.0.2.1:7311", f.nodes[0].log())
        self.assertIn("this machine has lo 127.0.0.1", f.nodes[0].log())

    def test_a_configuration_error_ends_with_78(self):
        f = self.fleet(2, own={0: {"train.epoks": "3"}})
        f.start([0])
        self.assertEqual(f.nodes[0].process.wait(fleet.PATIENCE), 78)
        self.assertIn("epoks", f.nodes[0].log())


if __name__ == "__main__":
    fleet.main()
