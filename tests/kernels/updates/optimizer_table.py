#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints optimizer_table.hpp: what other implementations of the optimizers compute, step by step.

Those that PyTorch has, as it has them, are run by it; the others are transcribed here from their papers, with numpy
and apart from the C++ code.  It needs Debian's python3-torch (1.13.1 made the table), which nothing else here does:

    python3 tests/kernels/updates/optimizer_table.py > tests/kernels/updates/optimizer_table.hpp
"""

import numpy as np
import torch

STEPS = 6
VALUE = [0.5, -1.25, 2.0, 0.0]


def gradient(step):
    """Gradients that binary fractions hold exactly, of both signs and of several sizes."""
    pattern = [[0.5, -0.25, 1.5, 0.125], [-1.0, 0.75, 0.0625, 0.25], [0.25, 0.25, -2.0, -0.5]]
    return [x * (1 + (step // 3) * 0.5) for x in pattern[step % 3]]


class Run:
    """One optimizer in one precision: the value after each step."""

    def __init__(self, kind):
        self.kind = kind

    def torch(self, make, before_step=lambda group, step: None):
        value = torch.tensor(VALUE, dtype=getattr(torch, self.kind), requires_grad=True)
        optimizer = make([value])
        seen = []
        for step in range(STEPS):
            before_step(optimizer.param_groups[0], step + 1)
            value.grad = torch.tensor(gradient(step), dtype=value.dtype)
            optimizer.step()
            seen.append(value.detach().numpy().copy())
        return seen

    def numpy(self, rule):
        """`rule` is a generator: sent (value, gradient), it yields the new value."""
        value = np.array(VALUE, self.kind)
        running = rule()
        next(running)
        seen = []
        for step in range(STEPS):
            value = running.send((value, np.array(gradient(step), self.kind))).astype(self.kind)
            next(running)
            seen.append(value.copy())
        return seen


# ---- by hand, from the papers ----


def lion(rate, beta1, beta2, decay):
    m = 0
    while True:
        value, g = yield
        c = beta1 * m + (1 - beta1) * g
        m = beta2 * m + (1 - beta2) * g
        yield value - rate * (np.sign(c) + decay * value)


def rmsprop(rate, rho, momentum, epsilon, centered):
    square = mean = velocity = 0
    while True:
        value, g = yield
        square = rho * square + (1 - rho) * g**2
        mean = rho * mean + (1 - rho) * g
        spread = square - mean**2 if centered else square
        velocity = momentum * velocity + rate * g / np.sqrt(spread + epsilon)
        yield value - velocity


def adamax(rate, beta1, beta2, epsilon):
    mean = largest = step = 0
    while True:
        value, g = yield
        step += 1
        mean = beta1 * mean + (1 - beta1) * g
        largest = np.maximum(beta2 * largest, np.abs(g))
        yield value - rate / (1 - beta1**step) * mean / (largest + epsilon)


def ftrl(rate, power, initial, l1, l2, shrinkage, beta):
    n, z = initial, 0
    while True:
        value, g = yield
        sigma = ((n + g**2) ** power - n**power) / rate
        z = z + g + 2 * shrinkage * value - sigma * value
        n = n + g**2
        yield np.where(np.abs(z) <= l1, 0, -(z - np.sign(z) * l1) / ((beta + n**power) / rate + 2 * l2))


def lars(rate, momentum, trust, decay, epsilon, nesterov):
    velocity = 0
    while True:
        value, g = yield
        w, length = np.linalg.norm(value), np.linalg.norm(g)
        local = trust * w / (length + decay * w + epsilon) if w > 0 and length > 0 else 1
        step = rate * local * (g + decay * value)
        velocity = momentum * velocity + step
        yield value - (momentum * velocity + step if nesterov else velocity)


def lamb(rate, beta1, beta2, epsilon, decay):
    m = v = step = 0
    while True:
        value, g = yield
        step += 1
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        r = (m / (1 - beta1**step)) / (np.sqrt(v / (1 - beta2**step)) + epsilon) + decay * value
        yield value - rate * np.linalg.norm(value) / np.linalg.norm(r) * r


# ---- the table: a C++ rule, and what should come of it ----


def epsilon_hat(epsilon, beta2):
    """Our epsilon is added to the uncorrected root, PyTorch's to the corrected one."""

    def set_epsilon(group, step):
        group["eps"] = epsilon / (1 - beta2**step) ** 0.5

    return set_epsilon


def cases(run):
    optim = torch.optim
    yield "sgd{.learning_rate = 0.125}", run.torch(lambda p: optim.SGD(p, 0.125))
    yield (
        "sgd{.learning_rate = 0.125, .weight_decay = 0.01}",
        run.torch(lambda p: optim.SGD(p, 0.125, weight_decay=0.01)),
    )
    yield "momentum{.learning_rate = 0.1, .decay = 0.9}", run.torch(lambda p: optim.SGD(p, 0.1, momentum=0.9))
    yield (
        "momentum{.learning_rate = 0.1, .decay = 0.8, .nesterov = true, .weight_decay = 0.02}",
        run.torch(lambda p: optim.SGD(p, 0.1, momentum=0.8, nesterov=True, weight_decay=0.02)),
    )
    yield "lion{.learning_rate = 0.05}", run.numpy(lambda: lion(0.05, 0.9, 0.99, 0))
    yield (
        "lion{.learning_rate = 0.05, .beta1 = 0.5, .beta2 = 0.75, .decoupled_weight_decay = 0.1}",
        run.numpy(lambda: lion(0.05, 0.5, 0.75, 0.1)),
    )
    yield (
        "adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0.1, .epsilon = 1e-7}",
        run.torch(lambda p: optim.Adagrad(p, 0.1, initial_accumulator_value=0.1, eps=1e-7)),
    )
    yield (
        "adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0, .epsilon = 1e-2}",
        run.torch(lambda p: optim.Adagrad(p, 0.1, eps=1e-2)),
    )
    yield (
        "rmsprop{.learning_rate = 0.01, .rho = 0.9, .momentum = 0.5, .epsilon = 0}",
        run.torch(lambda p: optim.RMSprop(p, 0.01, alpha=0.9, momentum=0.5, eps=0)),
    )
    yield (
        "rmsprop{.learning_rate = 0.01, .rho = 0.9, .momentum = 0.5, .epsilon = 0.01}",
        run.numpy(lambda: rmsprop(0.01, 0.9, 0.5, 0.01, False)),
    )
    yield (
        "centered_rmsprop{.learning_rate = 0.01, .rho = 0.9, .momentum = 0.5, .epsilon = 0}",
        run.torch(lambda p: optim.RMSprop(p, 0.01, alpha=0.9, momentum=0.5, eps=0, centered=True)),
    )
    yield (
        "centered_rmsprop{.learning_rate = 0.01, .rho = 0.9, .momentum = 0, .epsilon = 0.01}",
        run.numpy(lambda: rmsprop(0.01, 0.9, 0, 0.01, True)),
    )
    yield (
        "adadelta{.learning_rate = 1, .rho = 0.9, .epsilon = 1e-3}",
        run.torch(lambda p: optim.Adadelta(p, 1, rho=0.9, eps=1e-3)),
    )
    yield (
        "adam{.learning_rate = 0.05, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-3}",
        run.torch(lambda p: optim.Adam(p, 0.05, (0.9, 0.99)), epsilon_hat(1e-3, 0.99)),
    )
    yield (
        "adamw{.learning_rate = 0.05, .beta2 = 0.99, .epsilon = 1e-3, .decoupled_weight_decay = 0.1}",
        run.torch(lambda p: optim.AdamW(p, 0.05, (0.9, 0.99), weight_decay=0.1), epsilon_hat(1e-3, 0.99)),
    )
    yield (
        "amsgrad{.learning_rate = 0.05, .beta2 = 0.5, .epsilon = 1e-3}",
        run.torch(lambda p: optim.Adam(p, 0.05, (0.9, 0.5), amsgrad=True), epsilon_hat(1e-3, 0.5)),
    )
    yield (
        "amsgrad{.learning_rate = 0.05, .beta2 = 0.9, .epsilon = 1e-3, .decoupled_weight_decay = 0.1}",
        run.torch(lambda p: optim.AdamW(p, 0.05, (0.9, 0.9), weight_decay=0.1, amsgrad=True), epsilon_hat(1e-3, 0.9)),
    )
    yield (
        "adamax{.learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 0}",
        run.torch(lambda p: optim.Adamax(p, 0.05, (0.8, 0.9), eps=0)),
    )
    yield (
        "adamax{.learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 0.01}",
        run.numpy(lambda: adamax(0.05, 0.8, 0.9, 0.01)),
    )
    yield (
        "nadam{.learning_rate = 0.05, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-3}",
        # PyTorch 1.13.1 multiplies the product by one momentum too many, unless it works on all tensors at once.
        run.torch(lambda p: optim.NAdam(p, 0.05, (0.9, 0.99), eps=1e-3, momentum_decay=0.004, foreach=True)),
    )
    yield "ftrl{.learning_rate = 0.1}", run.numpy(lambda: ftrl(0.1, 0.5, 0.1, 0, 0, 0, 0))
    yield (
        "ftrl{.learning_rate = 0.1, .l1 = 0.5, .l2 = 0.1, .l2_shrinkage = 0.05, .beta = 0.2}",
        run.numpy(lambda: ftrl(0.1, 0.5, 0.1, 0.5, 0.1, 0.05, 0.2)),
    )
    yield (
        "ftrl{.learning_rate = 0.1, .learning_rate_power = -0.25, .initial_accumulator_value = 1, .l1 = 0.1}",
        run.numpy(lambda: ftrl(0.1, 0.25, 1, 0.1, 0, 0, 0)),
    )
    yield (
        "lars{.learning_rate = 2, .trust_coefficient = 0.02, .weight_decay = 0.1, .epsilon = 1e-3}",
        run.numpy(lambda: lars(2, 0.9, 0.02, 0.1, 1e-3, False)),
    )
    yield (
        "lars{.learning_rate = 2, .decay = 0.5, .trust_coefficient = 0.02, .nesterov = true}",
        run.numpy(lambda: lars(2, 0.5, 0.02, 0.0001, 0, True)),
    )
    yield (
        "lamb{.learning_rate = 0.05, .beta2 = 0.99, .weight_decay = 0.1}",
        run.numpy(lambda: lamb(0.05, 0.9, 0.99, 1e-6, 0.1)),
    )


HEADER = """// SPDX-License-Identifier: Apache-2.0
// Updates of some gradients by PyTorch and by transcribed papers; printed by optimizer_table.py.
#pragma once

#include "kernels/updates/update_rules.hpp"

#include <array>

namespace troupe::test {

inline constexpr size_t table_steps = %d;
inline constexpr size_t table_elements = %d;

template <class T>
using table_elements_of = std::array<T, table_elements>;

template <class T>
struct table_case {
  update_rule rule;
  std::array<table_elements_of<T>, table_steps> values; ///< After each step.
};

// clang-format off
"""


def braces(rows):
    return "{{" + ", ".join("{" + ", ".join(repr(float(x)) for x in row) + "}" for row in rows) + "}}"


def main():
    torch.set_default_dtype(torch.float64)  # of the scalars that PyTorch's NAdam keeps
    print(HEADER % (STEPS, len(VALUE)), end="")
    print(f"inline constexpr std::array<double, table_elements> table_start = {{{', '.join(map(str, VALUE))}}};")
    print("inline constexpr std::array<std::array<double, table_elements>, table_steps> table_gradients =")
    print(f"  {braces(gradient(step) for step in range(STEPS))};")
    for kind, element in (("float32", "float"), ("float64", "double")):
        print(f"\ninline const table_case<{element}> table_of_{element}[] = {{")
        for rule, values in cases(Run(kind)):
            rows = [[np.float64(x) for x in row] for row in values]
            print(f"  {{rules::{rule},\n   {braces(rows)}}},")
        print("};")
    print("// clang-format on\n\n} // namespace troupe::test")


if __name__ == "__main__":
    main()
