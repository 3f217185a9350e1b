#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rows a second of the built-in models in training, on one thread and on all cores.

The baselines, in turn, are PyTorch with the same model and rule, and the matrix products of a step alone.
Convolutional networks run on one thread, and seconds are processor time.
On several threads PyTorch's figure is its faster run, on as many threads or on one.
Its two pools (OpenMP's, set to wait passively, and OpenBLAS's) disturb each other.
The last rows are of a processor that OpenBLAS takes for a Prescott, as it does with processors newer than itself.
The kernels that the daemon then chooses run beside those, and beside PyTorch with the chosen ones.
A value of OPENBLAS_CORETYPE in the environment is ignored.
"""
import os

import figures
from contenders import IMAGES, MODELS, program, torch_python

UNSET = ("env", "-u", "OPENBLAS_CORETYPE", "-u", "OPENBLAS_L2_SIZE")  # as on a machine where nobody has chosen
UNKNOWN = "MLP 784-512-512-10"


def ours(options, model, batch, threads, seconds, *chosen):
    return figures.run(*UNSET, *chosen, program(options, "learn"), MODELS[model][0], batch, threads, seconds, figures.DATA)


def pytorch(model, batch, threads, seconds, *chosen):
    return figures.run(*UNSET, *chosen, "/usr/bin/python3", os.path.join(figures.ROOT, "bench/torch_learn.py"),
                       MODELS[model][1], batch, threads, seconds, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="PASSIVE")


def contenders(options, model, batch, threads, seconds):
    found = {
        "ours": lambda: ours(options, model, batch, threads, seconds),
        "products": lambda: figures.run(*UNSET, program(options, "machine"), "model", MODELS[model][1], batch, threads,
                                        seconds)}
    if os.path.exists(figures.TORCH):
        found["torch"] = lambda: max((pytorch(model, batch, many, seconds) for many in {1, threads}),
                                     key=lambda result: result["rows"])
    return found


def measure_unknown(options, seconds):
    """With the kernels that OpenBLAS has for a processor that it does not know, and with those that are chosen instead."""
    model, batch = UNKNOWN, 128
    chosen = "OPENBLAS_CORETYPE=" + ours(options, model, batch, 1, seconds)["kernels"]
    found = {
        "ours": lambda: ours(options, model, batch, 1, seconds, chosen),
        "Prescott's kernels": lambda: ours(options, model, batch, 1, seconds, "OPENBLAS_CORETYPE=Prescott")}
    if os.path.exists(figures.TORCH):
        found["PyTorch, the same kernels"] = lambda: pytorch(model, batch, 1, seconds, chosen)
        found["PyTorch, Prescott's kernels"] = lambda: pytorch(model, batch, 1, seconds, "OPENBLAS_CORETYPE=Prescott")
    results = figures.alternate(options.runs, found)
    rows = {key: [result["rows"] for result in values] for key, values in results.items()}
    for baseline in list(found)[1:]:
        figures.tell("train", f"{model}, batch {batch}, 1 thread, kernels chosen", "rows/s", rows["ours"], baseline,
                     rows[baseline])


def measure_images(options, seconds):
    """Convolutional networks on one thread, by processor time, so that it matters less what else runs."""
    for name, layers in IMAGES.items():
        found = {"ours": lambda layers=layers: figures.run(*UNSET, program(options, "learn"), layers, 32, 1, seconds, figures.DATA)}
        if os.path.exists(figures.TORCH):
            found["torch"] = lambda layers=layers: figures.run(
                *UNSET, "/usr/bin/python3", os.path.join(figures.ROOT, "bench/torch_layers.py"), layers, 32, 1, seconds,
                OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
        results = figures.alternate(options.runs, found)
        rows = {key: [result["rows_by_cpu"] for result in values] for key, values in results.items()}
        against = ("PyTorch", rows["torch"]) if "torch" in rows else ()
        figures.tell("train", f"{name}, batch 32, 1 thread", "rows/cpu-s", rows["ours"], *against)


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
    measure_images(options, 2 * seconds)
    measure_unknown(options, seconds)


figures.main("train", measure, __doc__)
