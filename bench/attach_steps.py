#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One PyTorch script, data-parallel in two ways: attach_steps.py KIND SETTINGS, where KIND is sgp (package sgp, through
a daemon) or gloo (DistributedDataParallel), and SETTINGS a JSON object of

rank, nodes, batch, steps, hidden, meet (gloo: a folder to meet in; sgp: the daemon's socket), place (see places.py).

An MLP 784-hidden-hidden-10 on the rows of Fashion-MNIST that are this node's, SGD with Nesterov's momentum. Prints one JSON
object: `losses`, for each step the second of the machine's clock in which it ended, and the loss of its batch; and the
seconds `ready`, before it meets the others, `begin`, before its first step, and `end`, when it has left them.
"""
import gzip
import json
import os
import sys
import time

import places

DATA = "/usr/share/datasets/fashion-mnist"


def read(torch, name, head):
    with gzip.open(os.path.join(DATA, f"train-{name}.gz")) as file:
        return torch.frombuffer(bytearray(file.read()[head:]), dtype=torch.uint8)


def main():
    kind, settings = sys.argv[1], json.loads(sys.argv[2])
    places.take(settings["place"])
    import torch
    from torch_learn import batch_of, model_of
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = model_of([784, settings["hidden"], settings["hidden"], 10])
    part = slice(settings["rank"], None, settings["nodes"])
    rows = read(torch, "images-idx3-ubyte", 16).view(-1, 784)[part].contiguous()
    labels = read(torch, "labels-idx1-ubyte", 8).long()[part]
    torch.manual_seed(1 + settings["rank"])
    losses = []

    def step(network, optimizer):
        chosen = torch.randint(len(rows), (settings["batch"],))
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(network(batch_of(rows, chosen)), labels[chosen])
        loss.backward()
        optimizer.step()
        return loss

    def note(loss):
        losses.append((time.monotonic(), loss.item()))

    def optimizer_of(network):
        return torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, nesterov=True)

    if kind == "gloo":
        import torch.distributed as distributed
        ready = time.monotonic()
        distributed.init_process_group("gloo", init_method=f"file://{settings['meet']}/meet",
                                       rank=settings["rank"], world_size=settings["nodes"])
        network = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = optimizer_of(network)
        distributed.barrier()
        begin = time.monotonic()
        for _ in range(settings["steps"]):
            note(step(network, optimizer))
        distributed.barrier()
    else:
        import sgp
        optimizer = optimizer_of(model)
        ready = time.monotonic()
        with sgp.attach(model, optimizer, name=settings["meet"]) as node:
            begin = time.monotonic()
            for _ in range(settings["steps"]):
                loss = step(model, optimizer)
                turn = node.mix(rows=settings["batch"])
                note(loss)
                if turn.stop:
                    break
            else:
                node.stop("through")  # one that is slower need not come to as many
    print(json.dumps({"ready": ready, "begin": begin, "end": time.monotonic(), "losses": losses}), flush=True)


if __name__ == "__main__":
    main()
