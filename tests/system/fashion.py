# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST as Debian installs it (dataset-fashion-mnist), for fleets of the system tests."""
import os
import unittest

FOLDER = "/usr/share/datasets/fashion-mnist"
ROWS = 60000


def options(**more):
    """The keys of a configuration that trains on it; those that a fleet sets for its CSV rows are unset."""
    if not os.path.isdir(FOLDER):
        raise unittest.SkipTest("not installed: dataset-fashion-mnist")
    return {
        "data.train": f"{FOLDER}/train-images-idx3-ubyte.gz",
        "data.labels": f"{FOLDER}/train-labels-idx1-ubyte.gz",
        "data.test": f"{FOLDER}/t10k-images-idx3-ubyte.gz",
        "data.test_labels": f"{FOLDER}/t10k-labels-idx1-ubyte.gz",
        "data.label": None, "data.classes": None, "data.holdout": None,
        "model.layers": "dense 32 relu, dense 10", "train.batch": "32", "optimizer.learning_rate": "0.05",
        "optimizer.schedule": "cosine", **more}
