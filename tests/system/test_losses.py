# SPDX-License-Identifier: Apache-2.0
"""The losses beside PyTorch's in float64, on the same outputs: the loss and its gradient.

usage: test_losses.py COMPUTE, which is compute_loss. Exit status 77 (skipped) without PyTorch.
"""
import array
import struct
import subprocess
import sys

try:
    import torch
except ImportError:
    print("not installed: python3-torch")
    sys.exit(77)

ROWS, COLUMNS = 40, 7
CLOSE = 1e-6
GREAT = 1e4
nn = torch.nn


def ours(name, smoothing, delta, weights, outputs, truth):
    labelled = truth.dtype == torch.int64
    data = array.array("f", ([] if weights is None else weights.tolist()) + outputs.reshape(-1).tolist()).tobytes()
    data += array.array("I" if labelled else "f", truth.reshape(-1).tolist()).tobytes()
    arguments = [name, smoothing, delta, int(labelled), int(weights is not None), ROWS, COLUMNS]
    output = subprocess.run([sys.argv[1], *map(str, arguments)], input=data, stdout=subprocess.PIPE, check=True).stdout
    return struct.unpack("d", output[:8])[0] / ROWS, torch.tensor(array.array("f", output[8:]).tolist()).reshape(ROWS, COLUMNS)


def theirs(module, outputs, truth, divisor):
    """`module` sums; the mean is over rows, weighted or not, and over columns where each has a loss of its own."""
    z = outputs.double().requires_grad_()
    loss = module(z, truth if truth.dtype == torch.int64 else truth.double()) / divisor
    loss.backward()
    return float(loss), z.grad


def compare(case, name, module, divisor, outputs, truth, smoothing=0, delta=1, weights=None):
    loss, gradient = ours(name, smoothing, delta, weights, outputs, truth)
    their_loss, their_gradient = theirs(module, outputs, truth, divisor)
    off = abs(loss - their_loss) / (1 + abs(their_loss))
    worst = float((gradient - their_gradient).abs().max())
    print(f"{case}: loss {off:.1e}, gradient {worst:.1e}")
    assert off < CLOSE and worst < CLOSE, (case, loss, their_loss, worst)


torch.manual_seed(1)
labels = torch.randint(COLUMNS, (ROWS,))
values = torch.randn(ROWS, COLUMNS)
bits = torch.randint(2, (ROWS, COLUMNS)).float()
heavy = torch.tensor([1, 2.5, 0.25, 1, 7, 0.5, 3])
for size in (1, 5, GREAT):
    z = torch.randn(ROWS, COLUMNS) * size
    for smooth in (0, 0.1, 0.5):
        for w in (None, heavy):
            torch_loss = nn.CrossEntropyLoss(weight=None if w is None else w.double(), label_smoothing=smooth, reduction="sum")
            compare(f"cross-entropy, {smooth}, {w is not None}, {size}", "cross-entropy", torch_loss, ROWS, z, labels,
                    smoothing=smooth, weights=w)
    for bound in (0.2, 1, 30):
        compare(f"huber, {bound}, {size}", "huber", nn.HuberLoss(reduction="sum", delta=bound), ROWS * COLUMNS, z, values, delta=bound)
    for w in (None, heavy):
        torch_loss = nn.BCEWithLogitsLoss(pos_weight=None if w is None else w.double(), reduction="sum")
        compare(f"binary-cross-entropy, {w is not None}, {size}", "binary-cross-entropy", torch_loss, ROWS * COLUMNS, z, bits, weights=w)
    compare(f"mse, {size}", "mse", nn.MSELoss(reduction="sum"), ROWS * COLUMNS, z, values) if size < GREAT else None
