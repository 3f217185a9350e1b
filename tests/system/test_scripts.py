# SPDX-License-Identifier: Apache-2.0
"""Training scripts as people write them, through the package sgp and real daemons: what must be right, or else be told."""
import json
import os
import signal
import threading
import unittest
import warnings

import fleet
from attached import AttachTest, flat, loss_of, network, nn, rows, sgp, step, torch

PAIR = [[(0, 1), (1, 0)]]
TRIO = [[(i, (i + 1) % 3) for i in range(3)]]
LINE = [[(0, 1), (1, 0)], [(1, 2), (2, 1)], [(2, 3), (3, 2)]]  # in each round two of four, and weights that differ


@unittest.skipIf(torch is None, "not installed: python3-torch")
class Scripts(AttachTest):
    def attach(self, f, i, *arguments, **options):
        return sgp.attach(*arguments, name=self.path(f, i), timeout=fleet.PATIENCE, **options)

    def warned(self, act):
        """What `act` returns, and the texts of the warnings meanwhile, sorted."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            result = act()
        return result, sorted(str(warning.message) for warning in told if warning.category is sgp.TrainingWarning)

    # ---- batches of one's own

    def own_batches(self, seed_of, rate_of=lambda i: 0.1, batch=8, steps=30, phases=PAIR, n=2):
        """n nodes draw their batches from all rows, each by such a seed: their statuses before the end, what they warned
        of, and the models."""
        f = self.daemons(n, phases)
        trained = threading.Barrier(n + 1)

        def act(i):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=rate_of(i))
            x, y = rows()
            with self.attach(f, i, model, optimizer) as node:
                draw = torch.Generator().manual_seed(seed_of(node))
                for _ in range(steps):
                    which = torch.randint(len(x), (batch,), generator=draw)
                    node.mix(loss=step(model, optimizer, x[which], y[which]), rows=batch)
                for _ in range(2):
                    trained.wait(fleet.PATIENCE)
            return model
        looked = []

        def look():
            trained.wait(fleet.PATIENCE)
            looked.extend(node.status() for node in f.nodes)
            trained.wait(fleet.PATIENCE)
        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        models, told = self.warned(lambda: self.each(n, act))
        watcher.join(fleet.PATIENCE)
        self.own_fleet = f
        return looked, told, models

    def test_equal_seeds_are_told(self):
        """Both train on the same rows: to the bit the fleet is one process, which nobody wants and everybody is told."""
        statuses, told, models = self.own_batches(lambda node: 1)
        self.assertTrue((flat(models[0]) == flat(models[1])).all(), "else this shows nothing")
        self.assertEqual([status["same_updates"] for status in statuses], [["n1"], ["n0"]])
        self.assertEqual(len(told), 2)
        for name, text in zip(("n0", "n1"), told):
            self.assertRegex(text, "^the updates of %s were another node's.*node.seed" % name)
        for node in self.own_fleet.nodes:
            self.assertEqual(node.log().count("event=same_updates"), 1)

    def test_the_seed_of_the_node_draws_other_rows(self):
        statuses, told, _ = self.own_batches(lambda node: node.seed)
        self.assertEqual([status["same_updates"] for status in statuses], [[], []])
        self.assertEqual(told, [])

    def test_equal_seeds_of_a_ring_are_told(self):
        statuses, told, _ = self.own_batches(lambda node: 1, phases=TRIO, n=3)
        self.assertEqual([status["same_updates"] for status in statuses], [["n2"], ["n0"], ["n1"]])
        self.assertEqual(len(told), 3)

    def test_what_is_no_update_or_one_row_is_not_compared(self):
        for options in ({"rate_of": lambda i: 0.0}, {"batch": 1}):
            statuses, told, _ = self.own_batches(lambda node: 1, **options)
            self.assertEqual([status["same_updates"] for status in statuses], [[], []])
            self.assertEqual(told, [])

    def test_learning_rates_that_differ_are_shown(self):
        statuses, _, _ = self.own_batches(lambda node: node.seed, rate_of=lambda i: (0.1, 0.4)[i])
        self.assertEqual([status["mismatch"] for status in statuses], [["n1"], ["n0"]])
        peers = [node.json("/v1/peers") for node in self.own_fleet.nodes]
        self.assertEqual([[p["learning_rate"] for p in own if p["direction"] == "in"] for own in peers], [[0.4], [0.1]])
        self.assertIn('reason="its learning rate is 0.4, and ours is 0.1"', self.own_fleet.nodes[0].log())
        statuses, _, _ = self.own_batches(lambda node: node.seed)
        self.assertEqual([status["mismatch"] for status in statuses], [[], []])

    # ---- decisions

    def test_a_schedule_by_validation_loss_is_one_schedule(self):
        """Each node has rows of its own to validate on; all lower their rates at the same epochs, and see the same bits."""
        f = self.daemons(4, LINE)

        def act(i):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=0)
            x, y = rows()
            held = torch.Generator().manual_seed(i)
            means, own, rates = [], [], []
            with self.attach(f, i, model, optimizer) as node:
                for _ in range(12):
                    for a, b in node.shard((x, y), batch_size=16):
                        node.mix(loss=step(model, optimizer, a, b), rows=len(a))
                    which = torch.randint(len(x), (4,), generator=held)
                    own.append(loss_of(model, x[which], y[which]))
                    means.append(node.mean(own[-1], timeout=fleet.PATIENCE))
                    scheduler.step(means[-1])
                    rates.append(optimizer.param_groups[0]["lr"])
            return means, own, rates
        results = self.each(4, act)
        means, _, rates = results[0]
        for other in results[1:]:
            self.assertEqual((other[0], other[2]), (means, rates))
        self.assertLess(rates[-1], 0.4, "else this shows nothing")
        self.assertEqual(len({tuple(own) for _, own, _ in results}), 4)
        expected = [sum(own[k] for _, own, _ in results) / 4 for k in range(12)]
        self.assertEqual(means, expected)

    def test_any_and_all_and_several_numbers(self):
        f = self.daemons(3, TRIO)

        def act(i):
            with self.attach(f, i, network()) as node:
                node.mix()
                answers = [node.any(i == 1), node.any(False), node.all(True), node.all(i != 1), node.mean([i, 1.0, -i / 3])]
                node.mix()
                return answers + [node.mean(10 ** i)]
        results = self.each(3, act)
        self.assertEqual(results[0], [True, False, True, False, [1.0, 1.0, (0 - 1 / 3 - 2 / 3) / 3], 37.0])
        self.assertEqual(results, [results[0]] * 3)

    def test_a_decision_waits_for_all_and_says_for_whom(self):
        f = self.daemons(3, TRIO)
        late, both = threading.Event(), threading.Barrier(2)

        def act(i):
            with self.attach(f, i, network()) as node:
                node.mix()
                if i == 2:
                    late.wait(fleet.PATIENCE)
                    return None, node.mean(i)
                both.wait(fleet.PATIENCE)
                with self.assertRaisesRegex(TimeoutError, "waited 0.5 s for (n0, |n1, )?n2, who") as told:
                    node.mean(i, timeout=0.5)
                both.wait(fleet.PATIENCE)  # n2 does not come before both have given up
                late.set()
                return str(told.exception), node.mean(100 + i)  # the number that was given first counts
        self.assertEqual([answer for _, answer in self.each(3, act)], [1.0] * 3)

    def test_a_member_that_dies_amid_a_decision_and_one_that_is_struck(self):
        """n1 comes back with another program, whose first word is for the call that the others wait in. n2 never comes, and
        is struck from the file: the two decide without it, and go on."""
        f = self.daemons(3, TRIO)
        ready = threading.Barrier(3)

        def wait_in_a_call(node, value):
            with self.assertRaisesRegex(TimeoutError, "for (n0, |n1, )?n2, who"):
                node.mean(value, timeout=0.3)

        def act(i):
            node = self.attach(f, i, network())
            node.mix()
            self.assertEqual(node.mean(float(i)), 1.0)
            ready.wait(fleet.PATIENCE)
            if i == 2:
                node.detach()
                return None
            wait_in_a_call(node, 10.0 + i)
            if i == 1:
                node.detach()
                f.nodes[1].kill(signal.SIGKILL)
                f.nodes[1].process.wait()
                f.nodes[1].start()
                node = self.attach(f, 1, network())
                wait_in_a_call(node, 99.0)  # what was agreed before it came back is no answer to it
                f.rewire((0, 1), PAIR)
                for k in (0, 1):
                    f.wait("n%d to reload" % k, lambda: f.nodes[k].get("/v1/reload", "POST")[0] == 200)
            answers = [node.mean(99.0), node.mean(i)]
            node.finish(timeout=fleet.PATIENCE)
            return answers
        first, second, _ = self.each(3, act)
        self.assertEqual(first, second)
        self.assertEqual(first, [(10.0 + 11.0) / 2, 0.5])  # n1's first word had reached n0, and came back from there

    def test_unlike_calls_are_an_error_on_all_nodes(self):
        f = self.daemons(2, PAIR)

        def act(i):
            node = self.attach(f, i, network())
            with self.assertRaisesRegex(sgp.Error, "n1 is at any.. with 1 numbers where this|n0 is at mean.. with 1 numbers"):
                node.mean(1.0) if i == 0 else node.any(True)
            answer = node.mean(float(i))
            node.finish(timeout=fleet.PATIENCE)
            return answer
        self.assertEqual(self.each(2, act), [0.5, 0.5])

    def test_nodes_that_no_edge_joins_cannot_decide(self):
        f = self.daemons(2, [[]])
        with self.attach(f, 0, network()) as node:
            node.mix()
            with self.assertRaisesRegex(sgp.Refused, "no edges of the topology file join n0 and n1"):
                node.mean(1.0)
            node.mix()
    # ---- again

    def train(self, f, i, steps, file=None, **options):
        """So many steps, and the file after the eighth; the node is left as a program leaves it that is killed."""
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x, y = rows()
        node = self.attach(f, i, model, optimizer, **options)
        try:
            for k in range(steps):
                which = slice(8 * k % 64, 8 * k % 64 + 8)
                node.mix(loss=step(model, optimizer, x[which], y[which]), rows=8)
                if k == 7 and file is not None:
                    node.save(file, optimizer=optimizer)
                    saved = node.round
                    f.wait_log(i, "event=checkpoint round=%d" % saved)
        finally:
            node.detach()
        return node.round

    def after_a_power_cut(self, lost):
        """A fleet that is killed behind its saved files, with the checkpoint of the beginning if `lost`: what load() says,
        and the rounds of the parameters."""
        f = self.own_fleet = self.daemons(2, PAIR)
        files = [os.path.join(node.directory, "script") for node in f.nodes]

        self.each(2, lambda i: self.train(f, i, 2))
        early = []
        for node in f.nodes:
            node.get("/v1/checkpoint", "POST")
            f.wait("a checkpoint", lambda at=node: at.log().count("event=checkpoint") >= 2)
            with open(os.path.join(node.directory, "checkpoint"), "rb") as file:
                early.append(file.read())
        self.each(2, lambda i: self.train(f, i, 12, files[i]))
        for node, bytes_ in zip(f.nodes, early):
            node.end(signal.SIGKILL)
            if lost:  # what a disk had not written
                os.unlink(os.path.join(node.directory, "checkpoint.1"))
                with open(os.path.join(node.directory, "checkpoint"), "wb") as file:
                    file.write(bytes_)
        f.start()

        def second(i):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            node = self.attach(f, i, model, optimizer)
            try:
                self.assertTrue(node.resumed)
                try:
                    return node.load(files[i], optimizer=optimizer), node.parameters_round
                except sgp.Error as error:
                    return str(error), node.parameters_round
            finally:
                node.detach()
        return self.each(2, second)

    def test_after_a_power_cut_script_and_parameters_are_of_one_round(self):
        """save() has the daemon write a checkpoint of the same round."""
        for told, of in self.after_a_power_cut(lost=False):
            self.assertEqual((told, of >= 8), (True, True))
        for node in self.own_fleet.nodes:
            self.assertIn("event=older ", node.log())

    def test_parameters_of_an_earlier_round_than_the_script_are_refused(self):
        """The model would go back, and the script forward, and nothing would say so."""
        for told, of in self.after_a_power_cut(lost=True):
            self.assertRegex(str(told), r"is of round \d+, and the parameters are of round %d: " % of)

    def test_a_second_run_of_a_finished_program_is_told_the_ways_out(self):
        """It did nothing, and ended with 0. With fresh=True it is another run, from round 0."""
        f = self.daemons(2, PAIR)

        def act(i, **options):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            x, y = rows()
            try:
                with self.attach(f, i, model, optimizer, **options) as node:
                    began = node.round
                    for _ in range(10):
                        node.mix(loss=step(model, optimizer, x[:8], y[:8]), rows=8)
                return began, node.resumed
            except sgp.AlreadyFinished as error:
                return str(error)
        self.assertEqual(self.each(2, act), [(0, False), (0, False)])
        for i, told in enumerate(self.each(2, act)):
            self.assertIn("fresh=True", told)
            self.assertIn("sgpctl reset n%d" % i, told)
        self.assertEqual(self.each(2, lambda i: act(i, fresh=True)), [(0, False), (0, False)])
        for node in f.nodes:
            self.assertEqual(node.status()["run"], 2)
            self.assertTrue(os.path.exists(os.path.join(node.directory, "run-1", "model.safetensors")))

    # ---- rows

    READS_AHEAD = """if True:
        import json, sys, torch, sgp
        model = torch.nn.Linear(6, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = []
        with sgp.attach(model, optimizer, name=sys.argv[1], timeout=60) as node:
            data = torch.utils.data.TensorDataset(torch.randn(96, 6), torch.randn(96, 2), torch.arange(96))
            loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=node.sampler(data), num_workers=1)
            next(iter(loader))  # a look at the data
            for epoch in range(3):
                own = []
                for number, (x, y, which) in enumerate(loader):
                    if epoch == 1 and number == 2:
                        break
                    optimizer.zero_grad()
                    loss = (model(x) - y).pow(2).mean()
                    loss.backward()
                    optimizer.step()
                    node.mix(loss=loss, rows=len(x))
                    own += which.tolist()
                seen.append(own)
        print(json.dumps(seen))
    """

    def test_a_break_in_an_epoch_shortens_no_other(self):
        """Workers read ahead, the loop leaves early, and the next epoch has every row of the node once."""
        f = self.daemons(2, PAIR)
        programs = [self.start(self.READS_AHEAD, self.path(f, i)) for i in range(2)]
        for i, program in enumerate(programs):
            said, complained = program.communicate(timeout=2 * fleet.PATIENCE)
            self.assertEqual(program.returncode, 0, complained)
            first, left, last = json.loads(said)
            self.assertEqual([sorted(first), len(left), sorted(last)], [list(range(i, 96, 2)), 16, list(range(i, 96, 2))])
        self.assertEqual([status["samples"] for status in f.quiet()], [48 + 16 + 48] * 2)

    def test_a_third_node_takes_rows_of_its_own(self):
        """The file is reloaded in the middle of an epoch. From then on no row is trained on by two nodes."""
        f = self.daemons(3, PAIR, present=(0, 1))
        together = threading.Barrier(3)

        def train(i, epochs, reload=False):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            x, y = rows(60)
            passes = []
            with self.attach(f, i, model, optimizer) as node:
                sampler = node.sampler(x)
                for epoch in range(epochs):
                    passes.append([])
                    for row in sampler:
                        if reload and node.size == 2 and len(passes[-1]) == 10:
                            together.wait(fleet.PATIENCE)
                        node.mix(loss=step(model, optimizer, x[[row]], y[[row]]), rows=1)
                        passes[-1].append(row)
                sizes = node.index, node.size, len(sampler)
            return sizes, passes

        def act(i):
            if i < 2:
                return train(i, 2, reload=True)
            f.wait("both to be in their epoch", lambda: together.n_waiting == 2)
            f.rewire(range(3), TRIO)
            for node in f.nodes[:2]:
                self.assertEqual(node.get("/v1/reload", "POST")[0], 200, node.log())
            f.nodes[2].start()
            together.wait(fleet.PATIENCE)
            return train(2, 2)
        results = self.each(3, act)
        self.assertEqual([sizes for sizes, _ in results], [(i, 3, 20) for i in range(3)])
        for i in range(2):
            first, second = results[i][1]
            self.assertEqual(sorted(second), list(range(i, 60, 3)))
            self.assertTrue(all(row % 3 == i for row in first[11:]), first)  # one was handed out before
            self.assertEqual(len(first), len(set(first)))
            self.assertLessEqual(set(range(i, 60, 3)), set(first))
        self.assertEqual([sorted(rows) for rows in results[2][1]], [list(range(2, 60, 3))] * 2)

    # ---- ends

    def test_a_peer_that_was_stopped_is_no_agreement(self):
        f = self.daemons(2, PAIR)
        gone = threading.Barrier(2)

        def act(i):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            x, y = rows()
            node = self.attach(f, i, model, optimizer)
            for number in range(40):
                if number == 10:
                    gone.wait(fleet.PATIENCE)
                    if i == 1:
                        node.detach()
                        f.nodes[1].end(signal.SIGTERM)
                        return flat(model), None
                node.mix(loss=step(model, optimizer, x[i::2], y[i::2]), rows=len(x) // 2)
            return flat(model), node.finish(timeout=fleet.PATIENCE)
        ((mine, finished), (its, _)), told = self.warned(lambda: self.each(2, act))
        self.assertGreater(float((mine - its).norm() / mine.norm()), 0.1, "else this shows nothing")
        self.assertTrue(finished.disagrees)
        self.assertEqual(finished.peers, ("n1",))
        self.assertEqual(told, ["n1 has not ended with this model"])

    def test_ends_that_agree_are_no_warning(self):
        f = self.daemons(2, PAIR)

        def act(i):
            node = self.attach(f, i, network())
            for _ in range(5):
                node.mix()
            return node.finish(timeout=fleet.PATIENCE)
        ends, told = self.warned(lambda: self.each(2, act))
        self.assertEqual([(finished.disagrees, finished.peers) for finished in ends], [(False, ())] * 2)
        self.assertEqual(told, [])

    def test_detached_inside_the_block(self):
        f = self.daemons(1, [[]])
        with self.attach(f, 0, network()) as node:
            node.mix()
            node.detach()
        f.wait_state("paused")

    # ---- models

    def alone(self, model, train):
        """What `train(model, node, x, y)` makes of all rows in one process."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with sgp.attach(model, required=False) as node:
                train(model, node, *rows())
        return model

    def pair(self, make, train):
        """The same by two nodes, each on the rows of its own; the models."""
        f = self.daemons(2, PAIR)
        made = [make() for _ in range(2)]  # one after the other: PyTorch's random numbers belong to the process

        def act(i):
            model = made[i]
            with self.attach(f, i, model) as node:
                x, y = rows()
                train(model, node, x[i::2], y[i::2])
            return model
        models = self.each(2, act)
        torch.testing.assert_close(flat(models[0]), flat(models[1]), rtol=0, atol=1e-4)
        return models[0]

    def test_tied_weights_train_as_in_one_process(self):
        def make():
            model = network()
            model.insert(2, nn.Linear(16, 16))
            model.insert(3, nn.Linear(16, 16))
            torch.manual_seed(3)
            nn.init.orthogonal_(model[2].weight)
            nn.init.zeros_(model[2].bias)
            nn.init.zeros_(model[3].bias)
            model[3].weight = model[2].weight
            return model

        def train(model, node, x, y):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            for _ in range(50):
                node.mix(loss=step(model, optimizer, x, y), rows=len(x))
            self.assertIs(model[3].weight, model[2].weight)
        one, two = self.alone(make(), train), self.pair(make, train)
        self.assertIs(two[3].weight, two[2].weight)
        torch.testing.assert_close(flat(two), flat(one), rtol=1e-3, atol=1e-4)

    def test_lbfgs_with_a_closure(self):
        def train(model, node, x, y):
            optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)

            def closure():
                optimizer.zero_grad()
                loss = (model(x) - y).pow(2).mean()
                loss.backward()
                return loss
            for _ in range(30):
                node.mix(loss=optimizer.step(closure), rows=len(x))
        begin = loss_of(network(), *rows())
        one, two = self.alone(network(), train), self.pair(network, train)
        self.assertLess(loss_of(two, *rows()), 0.1 * begin)
        self.assertLess(loss_of(two, *rows()), 2 * loss_of(one, *rows()))

    def test_a_gan_of_two_optimizers(self):
        """Generator and discriminator are one model to the fleet, and two to their script."""
        def make():
            torch.manual_seed(4)
            return nn.ModuleDict({"generator": nn.Linear(2, 2), "judge": nn.Linear(2, 1)})

        def train(model, node, x, y):
            draw = torch.Generator().manual_seed(node.index)
            real = y + torch.tensor([2.0, -1.0])
            makes = torch.optim.SGD(model["generator"].parameters(), lr=0.1)
            judges = torch.optim.SGD(model["judge"].parameters(), lr=0.1, weight_decay=0.5)
            for _ in range(300):
                fake = model["generator"](torch.randn(len(real), 2, generator=draw))
                judged = (nn.functional.softplus(-model["judge"](real)) + nn.functional.softplus(model["judge"](fake.detach())))
                judges.zero_grad()
                judged.mean().backward()
                judges.step()
                loss = nn.functional.softplus(-model["judge"](fake)).mean()
                makes.zero_grad()
                loss.backward()
                makes.step()
                node.mix(loss=loss, rows=len(real))
        two = self.pair(make, train)
        wanted = rows()[1].mean(0) + torch.tensor([2.0, -1.0])
        torch.testing.assert_close(two["generator"].bias.detach(), wanted, rtol=0, atol=0.1)


fleet.main()
