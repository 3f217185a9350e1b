#!/usr/bin/python3
"""PyTorch's DistributedDataParallel over gloo, to an accuracy: ddp.py NODES BATCH EPOCHS GOAL RATE DATA.

An MLP 784-128-10 on Fashion-MNIST, SGD with Nesterov's momentum, a cosine over EPOCHS with one epoch of
warm-up: what the daemons beside it are told. The rows lie in memory; each rank has every NODES-th. Rank 0
judges the test rows at the end of every epoch, while the others wait. Prints one JSON object: the
test accuracy of each epoch, and the seconds from the first step to the end of it, judging included.
"""
import gzip
import json
import math
import os
import sys
import tempfile
import time

import numpy
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

from torch_learn import model_of


def read(path, skip):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), dtype=numpy.uint8, offset=skip)


def table(data, part):
    rows = read(f"{data}/{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(numpy.float32) / 255
    labels = read(f"{data}/{part}-labels-idx1-ubyte.gz", 8).astype(numpy.int64)
    return torch.from_numpy(rows), torch.from_numpy(labels)


def rate_at(epoch, epochs, height):
    if epoch < 1:
        return height * epoch
    return height * 0.5 * (1 + math.cos(math.pi * (epoch - 1) / (epochs - 1)))


def node(rank, nodes, batch, epochs, goal, height, data, directory):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    distributed.init_process_group("gloo", init_method=f"file://{directory}/meet", rank=rank, world_size=nodes)
    rows, labels = (values[rank::nodes].clone() for values in table(data, "train"))
    test_rows, test_labels = table(data, "t10k")
    plain = model_of([784, 128, 10])
    model = torch.nn.parallel.DistributedDataParallel(plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=height, momentum=0.9, nesterov=True, weight_decay=1e-4)
    steps = math.ceil(len(rows) / batch)
    distributed.barrier()
    start, history = time.monotonic(), []
    for epoch in range(epochs):
        order = torch.randperm(len(rows))
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate_at(epoch + (step + 0.5) / steps, epochs, height)
            chosen = order[step * batch:(step + 1) * batch]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(rows[chosen]), labels[chosen]).backward()
            optimizer.step()
        accuracy = torch.zeros(1)
        if rank == 0:
            with torch.no_grad():
                accuracy[0] = (plain(test_rows).argmax(1) == test_labels).float().mean()
        distributed.broadcast(accuracy, 0)
        history.append([time.monotonic() - start, accuracy.item()])
        if accuracy.item() >= goal:
            break
    if rank == 0:
        print(json.dumps({"history": history}), flush=True)


def main():
    nodes, batch, epochs, goal = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    with tempfile.TemporaryDirectory() as directory:
        multiprocessing.start_processes(
            node, (nodes, batch, epochs, goal, float(sys.argv[5]), sys.argv[6], directory), nodes,
            start_method="fork")


if __name__ == "__main__":
    main()
