#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rows a second of a model in training by PyTorch: torch_learn.py WIDTHS BATCH THREADS SECONDS [PRECISION].

WIDTHS is 784,512,10: inputs, then each layer's outputs, ReLU between them. PRECISION is float32 (the default), or bf16:
forward under torch.autocast. Cross-entropy, SGD with
Nesterov's momentum and weight decay; the rows lie in memory as bytes, as ours do, and each batch is
gathered by index, which is faster than from floats and than any DataLoader. Prints one JSON object: rows a second, and
rows a second of processor time (all threads).
"""
import json
import sys
import time

import torch

ROWS = 60000


def model_of(widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def batch_of(rows, chosen):
    """These rows of a table of bytes, as floats from 0 to 1."""
    return rows.index_select(0, chosen).float().div_(255)


def paces(model, rows, labels, batch, seconds, half):
    """Rows a second of a model in training, and rows a second of processor time (all threads)."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
    order = torch.randperm(len(rows))
    place = 0

    def steps(count):
        nonlocal place
        for _ in range(count):
            chosen = order[place:place + batch]
            place = (place + batch) % (len(rows) - batch)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                loss = torch.nn.functional.cross_entropy(model(batch_of(rows, chosen)), labels[chosen])
            loss.backward()
            optimizer.step()

    steps(30)
    start, cpu, done = time.monotonic(), time.process_time(), 0
    while time.monotonic() - start < seconds:
        steps(10)
        done += 10 * batch
    return {"rows": done / (time.monotonic() - start), "rows_by_cpu": done / (time.process_time() - cpu)}


def main(make_model, shape, classes):
    """Print the paces of make_model() on random rows of a shape, with the batch, threads, seconds and precision of the
    command line."""
    batch, threads, seconds = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    half = sys.argv[5:6] == ["bf16"]
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    rows, labels = torch.randint(256, (ROWS, *shape), dtype=torch.uint8), torch.randint(classes, (ROWS,))
    print(json.dumps(paces(make_model(), rows, labels, batch, seconds, half)))


if __name__ == "__main__":
    WIDTHS = [int(width) for width in sys.argv[1].split(",")]
    main(lambda: model_of(WIDTHS), WIDTHS[:1], WIDTHS[-1])
