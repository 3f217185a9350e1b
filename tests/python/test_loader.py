#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Samplers and loaders as PyTorch knows them: beside its DistributedSampler, with workers, with data of every form."""
import faulthandler
import unittest

import numpy

import common
import fake_daemon
import sgp
from fake_daemon import FakeDaemon

try:
    import torch
    from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, TensorDataset
except ImportError:
    torch = None
    Dataset = IterableDataset = object


class Squares(Dataset):
    """Item i is i squared."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index * index


class Stream(IterableDataset):
    """0, 1, 2, ..., from the epoch's number on; among workers it divides its items itself, as PyTorch asks for."""

    def __init__(self, count):
        self.count, self.epoch = count, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return iter(range(self.epoch + first, self.epoch + self.count, step))


class Sized(Stream):
    def __len__(self):
        return self.count


@unittest.skipIf(torch is None, "not installed: python3-torch")
class LoaderTest(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(common.PATIENCE, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def node(self, index=0, size=1, **options):
        """A node that has not been given a model: a fake daemon says who it is."""
        daemon = FakeDaemon(index=index, size=size, **options)
        self.addCleanup(daemon.close)
        return sgp.join(name=daemon.path)

    def rows(self, loader):
        return torch.cat(list(loader)).tolist()

    # ---- beside DistributedSampler

    def test_without_shuffle_as_distributed_sampler(self):
        """The same rows in the same order, for each node, also where the rows cannot be divided evenly."""
        for count, size in ((12, 4), (14, 4), (7, 7), (13, 3)):
            data = Squares(count)
            for index in range(size):
                own = self.node(index, size).sampler(data, shuffle=False)
                reference = DistributedSampler(data, size, index, shuffle=False, drop_last=True)
                self.assertEqual((list(own), len(own)), (list(reference), len(reference)), (count, size, index))
                self.assertEqual(list(own), list(reference))  # once more

    def test_with_shuffle_each_epoch_has_an_order_of_its_own(self):
        """As of DistributedSampler: set_epoch() decides the order, all nodes have other rows, and every epoch is whole."""
        data = Squares(22)
        own = [self.node(index, 3).sampler(data) for index in range(3)]
        reference = [DistributedSampler(data, 3, index, drop_last=True) for index in range(3)]
        for samplers in (own, reference):
            epochs = []
            for epoch in (0, 1, 0):
                for sampler in samplers:
                    sampler.set_epoch(epoch)
                epochs.append([list(sampler) for sampler in samplers])
                dealt = sum(epochs[-1], [])
                self.assertEqual([len(rows) for rows in epochs[-1]], [7, 7, 7])
                self.assertEqual(len(set(dealt)), 21)
            self.assertEqual(epochs[0], epochs[2])
            self.assertNotEqual(epochs[0], epochs[1])

    def test_a_data_loader_of_ones_own(self):
        """The same batches from either, with workers that read ahead, in each of two epochs."""
        data = TensorDataset(torch.arange(30))
        own = DataLoader(data, 4, sampler=self.node(1, 3).sampler(data, shuffle=False), num_workers=2)
        reference = DataLoader(data, 4, sampler=DistributedSampler(data, 3, 1, shuffle=False, drop_last=True))
        for _ in range(2):
            self.assertEqual([batch[0].tolist() for batch in own], [batch[0].tolist() for batch in reference])

    # ---- loaders

    def test_items(self):
        loader = self.node(1, 3).loader(Squares(10), 2, shuffle=False)
        self.assertEqual([batch.tolist() for batch in loader], [[1, 16], [49]])
        self.assertEqual(len(loader), 2)
        self.assertIsInstance(loader, DataLoader)

    def test_options_are_those_of_data_loader(self):
        loader = self.node(0, 2).loader(Squares(10), batch_size=2, shuffle=False, drop_last=True, num_workers=2,
                                        persistent_workers=True, prefetch_factor=3)
        for _ in range(2):
            self.assertEqual([batch.tolist() for batch in loader], [[0, 4], [16, 36]])
        self.assertEqual(len(loader), 2)

    def test_an_option_that_says_which_rows_come(self):
        for name in ("sampler", "batch_sampler"):
            with self.assertRaisesRegex(sgp.Error, f"so {name} must be left out"):
                self.node().loader(Squares(10), 2, **{name: [1, 2]})
        with self.assertRaisesRegex(sgp.Error, "batch_size is 0; at least 1"):
            self.node().loader(torch.arange(4), 0)

    def test_a_loader_in_the_place_of_its_data_set(self):
        """Its batches were divided among the nodes, and made to batches once more."""
        data = DataLoader(Squares(8), batch_size=2)
        for deal in (lambda node: node.shard(data, batch_size=2), lambda node: node.loader(data, 2), lambda node: node.sampler(data)):
            with self.assertRaisesRegex(sgp.Error, r"this is a DataLoader.*give its data set .loader\.dataset."):
                deal(self.node())

    def test_epochs(self):
        """Each iter() is another epoch, a break does no harm, and set_epoch() says which is next; also through the sampler."""
        for data in (Squares(16), torch.arange(16)):
            loader = self.node(0, 2).loader(data, 2)
            first, second = self.rows(loader), self.rows(loader)
            self.assertNotEqual(first, second)
            self.assertEqual(sorted(first), sorted(second))
            next(iter(loader))
            loader.set_epoch(1)
            self.assertEqual(self.rows(loader), second)
            loader.sampler.set_epoch(0)
            self.assertEqual(self.rows(loader), first)

    def test_arrays_of_every_form(self):
        x, y = torch.arange(14.0).view(7, 2), torch.arange(7)
        node = self.node(1, 3)
        for data in ({"x": x, "y": y}, {"x": x.numpy(), "y": y.numpy()}):
            loader = node.loader(data, 2, shuffle=False)
            batch, = list(loader)
            self.assertEqual(batch["y"].tolist(), [1, 4])
            torch.testing.assert_close(batch["x"], x[[1, 4]])
            self.assertEqual(len(loader), 1)
        (rows, numbers), = node.loader((x, y), 2, shuffle=False)
        torch.testing.assert_close(rows, x[[1, 4]])
        self.assertEqual(numbers.tolist(), [1, 4])
        self.assertEqual([batch.tolist() for batch in node.loader(y, 1, shuffle=False)], [[1], [4]])
        self.assertEqual(len(node.loader(y, 2, drop_last=True, num_workers=1)), 1)

    def test_a_shard_of_a_dictionary(self):
        data = {"x": numpy.arange(6), "y": numpy.arange(6) * 2}
        batch, = self.node(1, 2).shard(data, batch_size=3, shuffle=False)
        self.assertEqual((batch["x"].tolist(), batch["y"].tolist()), ([1, 3, 5], [2, 6, 10]))
        with self.assertRaisesRegex(sgp.Error, "5, 6 rows; they must be as many"):
            self.node().shard({"x": numpy.arange(6), "y": numpy.arange(5)}, batch_size=3)

    def test_rows_of_arrays_for_a_collate_function(self):
        loader = self.node(1, 2).loader((torch.arange(6), torch.arange(6)), 2, shuffle=False,
                                        collate_fn=lambda rows: [int(row[0] + row[1]) for row in rows])
        self.assertEqual(list(loader), [[2, 6], [10]])

    # ---- iterable data sets

    def test_streams(self):
        """Of each 3 items in turn one each; the last ones are nobody's, as of a sampler."""
        for data in (Stream(11), (i for i in range(11))):
            self.assertEqual(self.rows(self.node(1, 3).loader(data, 2)), [1, 4, 7])
        for index in range(3):
            sampler = self.node(index, 3).sampler(range(11), shuffle=False)
            self.assertEqual(self.rows(self.node(index, 3).loader(Stream(11), 2)), list(sampler))
        self.assertEqual([batch.tolist() for batch in self.node(1, 3).shard(Stream(11), batch_size=2)], [[1, 4], [7]])

    def test_streams_with_workers(self):
        """Each worker's items are dealt: together the nodes have each once."""
        rows = [self.rows(self.node(index, 2).loader(Stream(12), 1, num_workers=2)) for index in range(2)]
        self.assertEqual([len(own) for own in rows], [6, 6])
        self.assertEqual(sorted(sum(rows, [])), list(range(12)))

    def test_the_epoch_of_a_stream(self):
        loader = self.node(0, 2).loader(Stream(4), 2)
        self.assertEqual(self.rows(loader), [0, 2])
        loader.set_epoch(10)
        self.assertEqual(self.rows(loader), [10, 12])

    def test_the_length_of_a_stream(self):
        self.assertEqual(len(self.node(0, 3).loader(Sized(11), 2)), 2)
        with self.assertRaises(TypeError):  # as of PyTorch
            len(self.node(0, 3).loader(Stream(11), 2))

    def test_a_stream_travels_to_a_worker_that_is_spawned(self):
        loader = self.node(1, 2).loader(Stream(6), 1, num_workers=1, multiprocessing_context="spawn")
        self.assertEqual(self.rows(loader), [1, 3, 5])

    # ---- what happens meanwhile

    def model(self):
        return {"weight": numpy.ones(3, numpy.float32)}

    def test_a_reload_deals_anew(self):
        """One node more after the first step: rows that were handed out do not come again, and the others are dealt among 3."""
        for data, values in ((torch.arange(24), range(24)), (Squares(24), [i * i for i in range(24)])):
            node = self.node(0, 2, acts={1: fake_daemon.one_more}).attach(self.model())
            loader = node.loader(data, 2, shuffle=False)
            epoch = iter(loader)
            first = next(epoch)
            node.mix(rows=2)
            self.assertEqual(node.size, 3)
            rest = torch.cat(list(epoch))
            self.assertEqual(set(rest.tolist()), set(values[::3]) - set(first.tolist()))
            self.assertEqual(len(torch.cat(list(loader))), 8)
            node.detach()

    def test_a_reload_deals_a_stream_anew(self):
        node = self.node(0, 2, acts={1: fake_daemon.one_more}).attach(self.model())
        epoch = iter(node.loader(Stream(12), 1))
        self.assertEqual(next(epoch).tolist(), [0])
        node.mix(rows=1)
        self.assertEqual(torch.cat(list(epoch)).tolist(), [2, 5, 8])
        node.detach()

    def test_it_ends_with_training(self):
        """Whatever workers have read ahead."""
        for data in (Squares(100), Stream(100), torch.arange(100)):
            for workers in (0, 2):
                with self.node(0, 2, rounds=3).attach(self.model()) as node:
                    steps = 0
                    for batch in node.loader(data, 1, num_workers=workers):
                        node.mix(rows=len(batch))
                        steps += 1
                    self.assertEqual(steps, 3, (data, workers))


if __name__ == "__main__":
    common.main()
