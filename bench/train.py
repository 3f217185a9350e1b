#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rows a second of the built-in models in training, on one thread and on all cores, in turn with PyTorch
training the same model by the same rule, and with the matrix products of a step alone. On several threads PyTorch
is taken as fast as its faster run, on so many or on one: its two pools (OpenMP's, told to wait passively, and
OpenBLAS's) get in each other's way.
"""
import os

import figures
from contenders import MODELS, program, torch_python


def contenders(options, model, batch, threads, seconds):
    layers, widths = MODELS[model]
    torch = os.path.join(figures.ROOT, "bench/torch_learn.py")

    def pytorch(many):
        return figures.run("/usr/bin/python3", torch, widths, batch, many, seconds, OMP_NUM_THREADS=str(many),
                           OMP_WAIT_POLICY="PASSIVE")

    found = {
        "ours": lambda: figures.run(program(options, "learn"), layers, batch, threads, seconds, figures.DATA),
        "products": lambda: figures.run(program(options, "machine"), "model", widths, batch, threads, seconds)}
    if os.path.exists(figures.TORCH):
        found["torch"] = lambda: max((pytorch(many) for many in {1, threads}), key=lambda result: result["rows"])
    return found


def measure(options):
    if not os.path.exists(figures.DATA):
        raise figures.Skip("Fashion-MNIST is not installed: apt-get install dataset-fashion-mnist")
    if not os.path.exists(figures.TORCH):
        figures.attempt("train", lambda _: torch_python(), options)
    seconds = 0.5 if options.quick else 1
    cores = len(os.sched_getaffinity(0))
    for model in MODELS:
        for batch in (128,) if options.quick else (32, 128):
            for threads in sorted({1, cores}):
                results = figures.alternate(options.runs, contenders(options, model, batch, threads, seconds))
                rows = {key: [result["rows"] for result in values] for key, values in results.items()}
                case = f"{model}, batch {batch}, {threads} thread{'s' if threads > 1 else ''}"
                figures.tell("train", case, "rows/s", rows["ours"], "products alone", rows["products"])
                if "torch" in rows:
                    figures.tell("train", case, "rows/s", rows["ours"], "PyTorch", rows["torch"])


figures.main("train", measure, __doc__)
