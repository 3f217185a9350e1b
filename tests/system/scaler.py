# SPDX-License-Identifier: Apache-2.0
"""A gradient scaler as torch.amp.GradScaler is, on any device. Gradients overflow at steps that a test names."""
import math

GROWTH_INTERVAL = 2  # steps without an overflow until the scale is doubled


class Scaler:
    def __init__(self, overflows=()):
        self.overflows, self.factor, self.number, self.good, self.found = set(overflows), 1024.0, 0, 0, False

    def scale(self, loss):
        return loss * self.factor

    def step(self, optimizer):
        """The optimiser's step with gradients as they are without the scale; none if one of them is not finite."""
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if self.number in self.overflows:
            gradients[-1].view(-1)[0] = math.inf
        self.found = not all(bool(gradient.isfinite().all()) for gradient in gradients)
        if not self.found:
            for gradient in gradients:
                gradient /= self.factor
            optimizer.step()

    def update(self):
        self.number += 1
        self.good = 0 if self.found else self.good + 1
        if self.found:
            self.factor /= 2
        elif self.good % GROWTH_INTERVAL == 0:
            self.factor *= 2

    def get_scale(self):
        return self.factor
