# SPDX-License-Identifier: Apache-2.0
"""The schedules that PyTorch has, beside PyTorch's: test_schedules.py SGPCTL. Exit status 77 (skipped) without PyTorch."""
import json
import os
import subprocess
import sys
import tempfile

try:
    import torch
    from torch.optim import lr_scheduler
except ImportError:
    print("not installed: python3-torch")
    sys.exit(77)

EPOCHS, RATE, CLOSE = 90, 0.1, 1e-6
CASES = {
    "cosine": ("", lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)),
    "linear": ("final_fraction = 0.25", lambda optimizer: lr_scheduler.LinearLR(optimizer, 1, 0.25, EPOCHS)),
    "step": ("milestones = 30 60 80\nfactor = 0.2", lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [30, 60, 80], 0.2)),
    "cyclic": ("period_epochs = 20\nlow_fraction = 0.1", lambda optimizer: lr_scheduler.CyclicLR(
        optimizer, RATE * 0.1, RATE, step_size_up=10, cycle_momentum=False)),
    # Its phases end at steps 40, 80 and 90: pct_start counts the steps of all, the first one included.
    "one-cycle": ("period_epochs = 80\nlow_fraction = 0.1\nfinal_fraction = 0.001", lambda optimizer: lr_scheduler.OneCycleLR(
        optimizer, RATE, total_steps=EPOCHS + 1, pct_start=41 / (EPOCHS + 1), anneal_strategy="linear", three_phase=True,
        div_factor=10, final_div_factor=100, cycle_momentum=False)),
}


def ours(folder, word, keys):
    """The rate at each whole epoch."""
    path = os.path.join(folder, f"{word}.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("[node]\nname = n0\n[topology]\nfile = fleet.dot\n[network]\nlisten = 127.0.0.1:7311\n[model]\nlayers = dense 10\n"
                   f"[train]\nepochs = {EPOCHS}\nbatch = 32\n[optimizer]\nlearning_rate = {RATE}\nschedule = {word}\n{keys}\n")
    answer = subprocess.run([sys.argv[1], "--json", "config", "schedule", "--points", str(EPOCHS + 1), path],
                            stdout=subprocess.PIPE, check=True).stdout
    # corners of a schedule are points, too
    points = {round(point["epoch"], 9): point["rate"] for point in json.loads(answer)["points"]}
    return [points[epoch] for epoch in range(EPOCHS + 1)]


def theirs(make):
    """PyTorch's, with a step for each epoch."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    schedule = make(optimizer)
    for _ in range(EPOCHS):
        yield optimizer.param_groups[0]["lr"]
        optimizer.step()
        schedule.step()
    yield optimizer.param_groups[0]["lr"]


with tempfile.TemporaryDirectory() as place:
    for name, (settings, maker) in CASES.items():
        worst = max(abs(a - b) / RATE for a, b in zip(ours(place, name, settings), theirs(maker)))
        print(f"{name}: {worst:.1e}")
        assert worst < CLOSE, (name, worst)
