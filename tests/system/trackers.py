# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for MLflow and Weights & Biases, which Debian does not have, with the documented signatures of what docs/ATTACH.md calls.

They refuse what the libraries refuse: a metric outside a run, a value that is no number, a step that does not grow."""
import contextlib
import sys
import types


class Runs:
    """The steps of the figures of one run."""

    def __init__(self):
        self.open, self.last = False, -1

    def add(self, value, step):
        assert self.open, "there is no run"
        assert isinstance(value, float) and isinstance(step, int), (value, step)
        assert step >= self.last, (step, self.last)
        self.last = step

    @contextlib.contextmanager
    def run(self, given):
        self.open = True
        yield given
        assert self.last >= 0, "a run without a figure"
        self.open = False


def mlflow():
    module, runs = types.ModuleType("mlflow"), Runs()

    def set_experiment(experiment_name=None, experiment_id=None):
        assert (experiment_name is None) != (experiment_id is None)

    def start_run(run_id=None, experiment_id=None, run_name=None, nested=False):
        assert isinstance(run_name, str)
        return runs.run(None)

    def log_metric(key, value, step=None, synchronous=None):
        assert isinstance(key, str)
        runs.add(value, step)

    module.set_experiment, module.start_run, module.log_metric = set_experiment, start_run, log_metric
    return module


def wandb():
    module, runs = types.ModuleType("wandb"), Runs()

    class Run:
        def log(self, data, step=None, commit=None):
            for key, value in data.items():
                assert isinstance(key, str)
                runs.add(value, step)

    def init(entity=None, project=None, dir=None, id=None, name=None, notes=None, tags=None, config=None, group=None):
        assert all(isinstance(text, str) for text in (project, group, name))
        return runs.run(Run())

    module.init = init
    return module


def install():
    """Let this process import them, whether the libraries are there or not."""
    for make in (mlflow, wandb):
        sys.modules[make.__name__] = make()
