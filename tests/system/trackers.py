# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for MLflow, Weights & Biases and Opacus, which Debian does not have, with the documented signatures of what
docs/ATTACH.md calls.

They refuse what the libraries refuse: a metric outside a run, a value that is no number, a step that does not grow, an optimizer of
another model."""
import contextlib
import sys
import types

try:
    import torch
except ImportError:
    torch = None


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


def opacus():
    """It clips the gradient of a batch as a whole, so it protects no row: Opacus' own work is not tested here."""
    module = types.ModuleType("opacus")

    class Wrapped(torch.nn.Module):
        def __init__(self, plain):
            super().__init__()
            self._module = plain

        def forward(self, *arguments):
            return self._module(*arguments)

    class DPOptimizer:
        def __init__(self, optimizer, max_grad_norm):
            self.original_optimizer, self.max_grad_norm, self.noise_multiplier = optimizer, max_grad_norm, 0.5
            self.param_groups, self.state = optimizer.param_groups, optimizer.state

        def zero_grad(self, set_to_none=False):
            self.original_optimizer.zero_grad(set_to_none=set_to_none)

        def step(self, closure=None):
            parameters = [p for group in self.param_groups for p in group["params"]]
            torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
            for p in parameters:
                p.grad += self.noise_multiplier * self.max_grad_norm / 32 * torch.randn(p.shape)
            return self.original_optimizer.step(closure)

    class Poisson:
        def __init__(self, loader):
            self.dataset, self.steps = loader.dataset, len(loader)

        def __len__(self):
            return self.steps

        def __iter__(self):
            for _ in range(self.steps):
                taken = torch.nonzero(torch.rand(len(self.dataset)) < 1 / self.steps).flatten().tolist()
                yield [torch.stack(part) for part in zip(*(self.dataset[i] for i in taken or [0]))]

    class PrivacyEngine:
        def __init__(self, *, accountant="prv", secure_mode=False):
            self.accountant = types.SimpleNamespace(state_dict=dict, load_state_dict=dict)

        def make_private_with_epsilon(self, *, module, optimizer, data_loader, target_epsilon, target_delta, epochs, max_grad_norm,
                                      batch_first=True, loss_reduction="mean", poisson_sampling=True, clipping="flat",
                                      noise_generator=None, grad_sample_mode="hooks", **options):
            assert {p for group in optimizer.param_groups for p in group["params"]} <= set(module.parameters())
            assert target_epsilon > 0 and 0 < target_delta < 1 and epochs > 0 and isinstance(data_loader.sampler, torch.utils.data.SequentialSampler)
            return Wrapped(module), DPOptimizer(optimizer, max_grad_norm), Poisson(data_loader)

    module.PrivacyEngine = PrivacyEngine
    return module


def install():
    """Let this process import them, whether the libraries are there or not."""
    for make in (mlflow, wandb, opacus):
        sys.modules[make.__name__] = make()
