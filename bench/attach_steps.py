#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One PyTorch script, data-parallel in two ways: attach_steps.py KIND SETTINGS, where KIND is sgp (package sgp, through
a daemon) or gloo (DistributedDataParallel), and SETTINGS a JSON object of

rank, nodes, batch, steps, warmup, meet (gloo: a folder to meet in; sgp: the daemon's socket), place (see places.py).

An MLP 784-512-512-10 on rows of Fashion-MNIST's size, SGD with Nesterov's momentum. Prints one JSON object: seconds
from the end of the warm-up to the end of the steps, and rows that this process trained on in them.
"""
import json
import sys
import time

import places


def main():
    kind, settings = sys.argv[1], json.loads(sys.argv[2])
    places.take(settings["place"])
    import torch
    from torch_learn import batch_of, model_of
    torch.set_num_threads(1)
    torch.manual_seed(1 + settings["rank"])
    rows, labels = torch.randint(256, (6000, 784), dtype=torch.uint8), torch.randint(10, (6000,))
    model = model_of([784, 512, 512, 10])
    loss_of = torch.nn.functional.cross_entropy

    def train(optimizer, network, after):
        begin = 0.0
        for step in range(settings["warmup"] + settings["steps"]):
            if step == settings["warmup"]:
                begin = time.monotonic()
            chosen = torch.randint(len(rows), (settings["batch"],))
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(network(batch_of(rows, chosen)), labels[chosen])
            loss.backward()
            optimizer.step()
            after(loss)
        return time.monotonic() - begin

    def optimizer_of(network):
        return torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, nesterov=True)

    if kind == "gloo":
        import torch.distributed as distributed
        distributed.init_process_group("gloo", init_method=f"file://{settings['meet']}/meet",
                                       rank=settings["rank"], world_size=settings["nodes"])
        network = torch.nn.parallel.DistributedDataParallel(model)
        seconds = train(optimizer_of(network), network, lambda loss: None)
        distributed.barrier()
    else:
        import sgp
        optimizer = optimizer_of(model)
        with sgp.attach(model, optimizer, name=settings["meet"]) as node:
            seconds = train(optimizer, model, lambda loss: node.mix(rows=settings["batch"]))
    print(json.dumps({"seconds": seconds, "rows": settings["steps"] * settings["batch"]}), flush=True)


if __name__ == "__main__":
    main()
