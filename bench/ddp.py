#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DistributedDataParallel over gloo, to an accuracy: ddp.py SETTINGS, a JSON object of

nodes, batch (of each), epochs, seed, goal, rate, hidden, data, places (see places.py), hook (how PyTorch itself makes
gradients smaller: "none", "fp16", or "powersgd" and a rank, as in "powersgd 1").

An MLP 784-hidden-10 on Fashion-MNIST, SGD with Nesterov's momentum, a cosine over the epochs with one epoch of
warm-up: what the daemons beside it are told. The rows lie in memory as bytes; each rank has every nodes-th. Rank 0
judges the test rows at the end of every epoch, while the others wait. Prints one JSON object: the
test accuracy of each epoch, and the seconds from the first step to the end of it, judging included.
"""
import gzip
import json
import math
import sys
import tempfile
import time

import numpy
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

import places
from torch_learn import batch_of, model_of


def read(path, skip):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), dtype=numpy.uint8, offset=skip)


def table(data, part):
    rows = read(f"{data}/{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784).copy()
    labels = read(f"{data}/{part}-labels-idx1-ubyte.gz", 8).astype(numpy.int64)
    return torch.from_numpy(rows), torch.from_numpy(labels)


def rate_at(epoch, epochs, height):
    if epoch < 1:
        return height * epoch
    return height * 0.5 * (1 + math.cos(math.pi * (epoch - 1) / (epochs - 1)))


def hook(model, name):
    kind, _, rank = name.partition(" ")
    if kind == "fp16":
        model.register_comm_hook(None, fp16_compress_hook)
    elif kind == "powersgd":
        # As PyTorch ships it: the first 1,000 steps are plain. From the 10th on, rank 1 ends a point short.
        state = PowerSGDState(None, matrix_approximation_rank=int(rank))
        model.register_comm_hook(state, powerSGD_hook)


def node(rank, settings, tables, directory):
    nodes, batch, epochs = settings["nodes"], settings["batch"], settings["epochs"]
    places.take(settings["places"][rank])
    torch.set_num_threads(1)
    torch.manual_seed(settings["seed"])
    distributed.init_process_group("gloo", init_method=f"file://{directory}/meet", rank=rank, world_size=nodes)
    (train_rows, train_labels), (test_rows, test_labels) = tables
    test_rows = test_rows.float().div_(255)
    rows, labels = train_rows[rank::nodes].clone(), train_labels[rank::nodes].clone()
    plain = model_of([784, settings["hidden"], 10])
    model = torch.nn.parallel.DistributedDataParallel(plain)
    hook(model, settings["hook"])
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["rate"], momentum=0.9, nesterov=True,
                                weight_decay=1e-4)
    steps = math.ceil(len(rows) / batch)
    distributed.barrier()
    start, history = time.monotonic(), []
    for epoch in range(epochs):
        order = torch.randperm(len(rows))
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate_at(epoch + (step + 0.5) / steps, epochs, settings["rate"])
            chosen = order[step * batch:(step + 1) * batch]
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model(batch_of(rows, chosen)), labels[chosen]).backward()
            optimizer.step()
        accuracy = torch.zeros(1, dtype=torch.float64)
        if rank == 0:
            with torch.no_grad():
                accuracy[0] = int((plain(test_rows).argmax(1) == test_labels).sum()) / len(test_labels)
        distributed.broadcast(accuracy, 0)
        history.append([time.monotonic() - start, accuracy.item()])
        if accuracy.item() >= settings["goal"]:
            break
    if rank == 0:
        print(json.dumps({"history": history}), flush=True)


def main():
    settings = json.loads(sys.argv[1])
    tables = table(settings["data"], "train"), table(settings["data"], "t10k")
    with tempfile.TemporaryDirectory() as directory:
        multiprocessing.start_processes(node, (settings, tables, directory), settings["nodes"],
                                        start_method="fork")


if __name__ == "__main__":
    main()
