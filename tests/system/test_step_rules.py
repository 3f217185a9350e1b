# SPDX-License-Identifier: Apache-2.0
"""The step rules that PyTorch has, beside PyTorch's on the same gradients, over a restart in the middle.

usage: test_step_rules.py STEPPER, which is take_steps. Exit status 77 (skipped) without PyTorch.
"""
import array
import subprocess
import sys

try:
    import torch
except ImportError:
    print("not installed: python3-torch")
    sys.exit(77)

WEIGHTS, BIASES, STEPS = 60, 11, 200
CLOSE = 1e-6
WORDS = ("sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "lars", "lamb")  # numbered from 1


def ours(kind, rate, decay, clip_norm, clip_value, start, gradients):
    """The parameters after each step."""
    numbers = array.array("f", torch.cat([start.reshape(1, -1), gradients]).reshape(-1).tolist())
    arguments = [WORDS.index(kind) + 1, rate, decay, clip_norm, clip_value, WEIGHTS, BIASES, len(gradients)]
    output = subprocess.run([sys.argv[1], *map(str, arguments)], input=numbers.tobytes(), stdout=subprocess.PIPE,
                            check=True).stdout
    return torch.tensor(array.array("f", output).tolist()).reshape(len(gradients), -1)


def theirs(kind, rate, decay, clip_norm, clip_value, start, gradients):
    """The same in float64: in float32 PyTorch's AdamW multiplies by 1 - rate * decay, rounded, and is 3e-6 off after 200 steps."""
    weights, biases = (torch.nn.Parameter(part.clone().double()) for part in start.split([WEIGHTS, BIASES]))
    # PyTorch's AdamW decays what it is given: the groups say that biases are spared.
    groups = [{"params": [weights], "weight_decay": decay},
              {"params": [biases], "weight_decay": 0 if kind == "adamw" else decay}]
    optimizer = {
        "sgd": lambda: torch.optim.SGD(groups, lr=rate),
        "momentum": lambda: torch.optim.SGD(groups, lr=rate, momentum=0.9),
        "nesterov": lambda: torch.optim.SGD(groups, lr=rate, momentum=0.9, nesterov=True),
        "adam": lambda: torch.optim.Adam(groups, lr=rate),
        "adamw": lambda: torch.optim.AdamW(groups, lr=rate),
        "rmsprop": lambda: torch.optim.RMSprop(groups, lr=rate)}[kind]()
    for gradient in gradients:
        weights.grad, biases.grad = (part.double() for part in gradient.split([WEIGHTS, BIASES]))
        if clip_value:
            torch.nn.utils.clip_grad_value_([weights, biases], clip_value)
        if clip_norm:
            torch.nn.utils.clip_grad_norm_([weights, biases], clip_norm)
        optimizer.step()
        yield torch.cat([weights.detach(), biases.detach()])


def compare(kind, rate, decay, clip_norm, clip_value):
    torch.manual_seed(1)
    start = torch.randn(WEIGHTS + BIASES)
    gradients = torch.randn(STEPS, WEIGHTS + BIASES) * (1 + torch.arange(STEPS).reshape(-1, 1) % 11) / 20
    case = (kind, rate, decay, clip_norm, clip_value)
    worst = 0.0
    for a, b in zip(ours(*case, start, gradients), theirs(*case, start, gradients)):
        worst = max(worst, float((a - b).norm() / b.norm()))
    print(f"{kind}, decay {decay}, clipped to {clip_norm}, {clip_value}: {worst:.1e}")
    assert worst < CLOSE, (case, worst)


for rule, size in (("sgd", 0.05), ("momentum", 0.05), ("nesterov", 0.05), ("adam", 0.01), ("adamw", 0.01), ("rmsprop", 0.01)):
    for clips in ((0, 0), (1.5, 0), (0, 0.3)):
        compare(rule, size, 0.01, *clips)
