# SPDX-License-Identifier: Apache-2.0
"""Programs of one fleet that bring unlike models: attach says what differs, and a wait for other nodes says for whom, and ends."""
import logging
import os
import socket
import threading
import unittest

import fleet
import peer
from attached import ATTACHED, AttachTest, nn, sgp, torch
from raw_program import Program

PAIR = [[(0, 1), (1, 0)]]
RING = [[(0, 1), (1, 2), (2, 0)]]
SHAPE = 4  # the reason of a GOODBYE


def layers(*widths, bias=True):
    torch.manual_seed(1)
    return nn.Sequential(*(nn.Linear(a, b, bias=bias) for a, b in zip(widths, widths[1:])))


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Layouts(AttachTest):
    def attach(self, f, i, model, timeout=15, **options):
        return sgp.attach(model, name=self.path(f, i), timeout=timeout, **options)

    def refused(self, f, models, **options):
        """Each node attaches with its model: the errors, in the order of nodes."""
        def act(i):
            try:
                node = self.attach(f, i, models[i], **options)
            except (sgp.Error, TimeoutError) as error:
                return [error]  # each() raises one that is returned
            node.detach()
            return [None]
        errors = [error for error, in self.each(len(models), act)]
        for error in errors:
            self.assertIsInstance(error, sgp.LayoutMismatch, self.logs())
        return errors

    def test_unequal_layers_are_named_on_both_sides(self):
        f = self.daemons(2, PAIR)
        first, second = self.refused(f, [layers(6, 16, 2), layers(6, 17, 2)])
        self.assertEqual((first.tensor, first.here, first.there, first.peer),
                         ("0.weight", "0.weight [16, 6]", "0.weight [17, 6]", "n1"))
        self.assertEqual((second.tensor, second.here, second.there, second.peer),
                         (first.tensor, first.there, first.here, "n0"))
        for i, (error, peer) in enumerate(((first, "n1"), (second, "n0"))):
            f.wait_log(i, "tensor 0 is %s here and %s at %s" % (error.here, error.there, peer))

    def test_another_name_and_a_tensor_more(self):
        """The last of many is found, too; a model that is a beginning of the other lacks the tensor that follows."""
        many = [1] * 40
        f = self.daemons(2, PAIR)
        first, second = self.refused(f, [layers(*many), layers(*many, 1)])
        self.assertEqual((first.tensor, first.here, first.there), ("39.weight", "nothing", "39.weight [1, 1]"))
        self.assertEqual((second.tensor, second.here, second.there), ("39.weight", "39.weight [1, 1]", "nothing"))

    def test_unlike_local_parameters(self):
        f = self.daemons(2, PAIR)

        def act(i):
            with self.assertRaises(sgp.LayoutMismatch) as told:
                self.attach(f, i, layers(6, 4, 2), local=["1"] if i == 0 else ())
            return told.exception.tensor, told.exception.here, told.exception.there
        self.assertEqual(self.each(2, act), [("1.weight", "nothing", "1.weight [2, 4]"), ("1.weight", "1.weight [2, 4]", "nothing")])

    def test_unequal_frozen_parameters(self):
        def half_frozen(value):
            model = layers(6, 4, 2)
            model[0].requires_grad_(False)
            model[0].bias.fill_(value)
            return model
        f = self.daemons(2, PAIR)
        errors = self.refused(f, [half_frozen(0.0), half_frozen(0.5)])
        for i, error in enumerate(errors):
            self.assertIn("frozen parameters", str(error))
            self.assertEqual((error.tensor, error.peer), (None, "n%d" % (1 - i)))
            self.assertNotEqual(error.here, error.there)
        self.assertEqual((errors[0].here, errors[0].there), (errors[1].there, errors[1].here))

    def test_a_ring_names_it_to_whoever_has_an_edge_with_it(self):
        """n2 is the only one with another model; no edge leads back to whoever it refuses."""
        f = self.daemons(3, RING)
        errors = self.refused(f, [layers(6, 2), layers(6, 2), layers(6, 3)])
        self.assertEqual([error.peer for error in errors[:2]], ["n2", "n2"])
        self.assertIn(errors[2].peer, ("n0", "n1"))

    def test_the_right_model_may_attach_next(self):
        """Nothing was trained: the mended program needs no reset."""
        f = self.daemons(2, PAIR)
        self.refused(f, [layers(6, 2), layers(6, 3)])

        def act(i):
            with self.attach(f, i, layers(6, 2), timeout=fleet.PATIENCE) as node:
                node.mix()
            return node.round
        self.assertEqual(self.each(2, act)[0] >= 1, True)

    def test_a_fleet_that_trains_is_not_disturbed(self):
        """Two train; the third comes with another model, and it alone is told."""
        f = self.daemons(3, [[(0, 1), (1, 0), (1, 2), (2, 1)]], options={"train.start": 1})
        trains, over = [threading.Event(), threading.Event()], threading.Event()

        def act(i):
            if i == 2:
                for train in trains:
                    self.assertTrue(train.wait(fleet.PATIENCE))
                try:
                    with self.assertRaises(sgp.LayoutMismatch) as told:
                        self.attach(f, 2, layers(6, 3))
                finally:
                    over.set()
                return told.exception.peer
            with self.attach(f, i, layers(6, 2), timeout=fleet.PATIENCE) as node:
                node.mix()
                trains[i].set()
                while not over.is_set():  # the other may need a share of the next round for its first
                    node.mix()
            return node.round > 1
        self.assertEqual(self.each(3, act), [True, True, "n1"])
        f.wait_log(1, "event=refused peer=n2")
        self.assertIn("n2: another model than n2 trains: tensor 0 is 0.weight [2, 6] here and 0.weight [3, 6] at n2",
                      f.nodes[1].status()["last_error"])

    # ---- waiting

    def test_timeout_bounds_the_wait_for_the_fleet(self):
        f = self.daemons(2, PAIR)
        with self.assertRaisesRegex(TimeoutError, r"n0: waited 0.5 s for n1\b"):
            self.attach(f, 0, layers(6, 2), timeout=0.5)

    def test_after_a_while_attach_says_for_whom_it_waits(self):
        f = self.daemons(2, PAIR)
        with self.assertLogs("sgp", logging.WARNING) as told, self.assertRaises(TimeoutError):
            self.attach(f, 0, layers(6, 2), timeout=6)
        self.assertRegex(told.output[0], r"n0: waits for n1\b")


class Beside(fleet.FleetTest):
    """A program is attached to n0. The test plays n1, and greets n0 with the program's shape and with another one; n2 never comes."""

    def setUp(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(fleet.PATIENCE)
        self.f = self.fleet(3, phases=[[(0, 1), (1, 0), (0, 2), (2, 0)]], dial={(0, 1): listener.getsockname()[1]},
                            options={**ATTACHED, "train.start": "now"}, own={0: {"control.attach": "n0.attach"}})
        self.f.start([0])
        self.addCleanup(Program(os.path.join(self.f.directory, "n0.attach"), [1.0, 2.0]).close)
        self.node = self.f.nodes[0]
        self.parameters, self.fingerprint = peer.overhear(listener)

    def greet(self, other=False):
        n1 = peer.Peer(self.node.listen)
        self.addCleanup(n1.close)
        n1.hello("n1", "n0", self.parameters, [self.fingerprint[0] ^ other, *self.fingerprint[1:]])
        return n1

    def greeted(self):
        n1 = self.greet()
        n1.receive(peer.WELCOME)
        return n1

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.node.process.pid))

    def test_beside_a_connection_another_shape_is_refused_at_once(self):
        n1 = self.greeted()
        before = self.descriptors()
        for _ in range(20):
            kind, fields = self.greet(other=True).receive(peer.LAYOUT, peer.GOODBYE)
            self.assertEqual((kind, fields[0]), (peer.GOODBYE, SHAPE))
            n1.send(peer.BEAT)

        def are_closed():
            n1.send(peer.BEAT)  # else it is absent soon
            return self.descriptors() <= before
        self.f.wait("the connections to be closed", are_closed)
        self.assertEqual(self.node.peer("n1", "in")["state"], "up")

    def strike(self, other, index, before):
        """The file names n1 no more. Its other connection says all the same that its model differs."""
        self.f.rewire([0, 2], [[(0, 2), (2, 0)]])
        self.assertEqual(self.node.get("/v1/reload", "POST")[0], 200, self.f.logs())
        try:
            other.send(peer.LAYOUT, index, before, "of another model")
        except peer.Closed:
            pass
        other.until_closed()
        self.assert_alive(self.f, [0])
        self.assertNotIn("event=unlike", self.node.log())

    def test_whom_a_file_strikes_while_its_layout_is_asked_for(self):
        other = self.greet(other=True)
        _, [index, before, _] = other.receive(peer.LAYOUT)
        self.strike(other, index, before)

    def test_the_same_beside_a_connection(self):
        first = self.greet(other=True)
        _, [index, before, _] = first.receive(peer.LAYOUT)
        first.close()
        self.greeted()
        other = self.greet(other=True)
        other.receive(peer.LAYOUT, peer.GOODBYE)
        self.strike(other, index, before)


fleet.main()
