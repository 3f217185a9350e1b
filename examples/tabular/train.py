#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A table, and a model of one hidden layer in numpy alone, as one node of a fleet, or alone where no daemon is."""
import argparse
import os
import sys

import numpy

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))  # where not installed
import sgp

FEATURES, HIDDEN, ROWS = 8, 32, 8000


def table():
    """Friedman's benchmark (1991): features (n, 8) in [0, 1], of which five matter, and a number (n) of deviation 1 or so;
    the last 1,000 rows are held out."""
    draw = numpy.random.default_rng(1)
    x = draw.random((ROWS + 1000, FEATURES), numpy.float32)
    y = 10 * numpy.sin(numpy.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y = (y + draw.standard_normal(len(y)) - 14.4) / 5
    return x - 0.5, y.astype(numpy.float32)


def forward(model, x):
    hidden = numpy.tanh(x @ model["hidden.weight"] + model["hidden.bias"])
    return hidden, hidden @ model["output.weight"] + model["output.bias"]


def gradients(model, x, y):
    """Of half the mean squared error, and that."""
    hidden, output = forward(model, x)
    error = (output - y) / len(y)
    back = numpy.outer(error, model["output.weight"]) * (1 - hidden ** 2)
    loss = float(((output - y) ** 2).mean()) / 2
    return {"hidden.weight": x.T @ back, "hidden.bias": back.sum(0), "output.weight": hidden.T @ error,
            "output.bias": error.sum()}, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=20, help="rows of a step, of this node (20)")
    options = parser.parse_args()
    draw = numpy.random.default_rng(2)
    model = {"hidden.weight": draw.standard_normal((FEATURES, HIDDEN)).astype(numpy.float32),
             "hidden.bias": numpy.zeros(HIDDEN, numpy.float32),
             "output.weight": (draw.standard_normal(HIDDEN) / 6).astype(numpy.float32),
             "output.bias": numpy.zeros((), numpy.float32)}
    momentum = {name: numpy.zeros_like(array) for name, array in model.items()}
    x, y = table()

    def unexplained():
        return float(((forward(model, x[ROWS:])[1] - y[ROWS:]) ** 2).mean() / y[ROWS:].var())

    with sgp.attach(model, required=False, timeout=60, on_predict=lambda rows: forward(model, rows)[1],
                    on_evaluate=lambda: {"test_loss": unexplained(), "rows": len(y) - ROWS}) as node:
        for epoch in range(options.epochs):
            rate = 0.1 * (1 - epoch / options.epochs)
            for rows, targets in node.shard((x[:ROWS], y[:ROWS]), batch_size=options.batch):
                changes, loss = gradients(model, rows, targets)
                for name, array in model.items():
                    momentum[name] = 0.9 * momentum[name] + changes[name]
                    array -= rate * momentum[name]  # in place: the arrays stay the fleet's
                node.mix(loss=loss, rows=len(targets))
        name = node.name
    print(f"{name}: explained variance {1 - unexplained():.4f}", flush=True)


main()
