# SPDX-License-Identifier: Apache-2.0
"""The same step by PyTorch's DistributedDataParallel over Gloo, one thread for each process.

torch_data_parallel_step.py BATCH STEPS   prints the seconds of each step; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the
environment, as torchrun sets them
"""

import sys
import time

import torch
import torch.distributed as dist

WIDTHS = [1024, 3072, 3072, 3072, 1024]


def train(batch, steps):
    torch.set_num_threads(1)
    dist.init_process_group('gloo')
    torch.manual_seed(1)
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs = torch.rand(batch, WIDTHS[0])
    labels = torch.arange(batch) % 1024
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f'{time.perf_counter() - begin:.9f}', flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    train(*(int(argument) for argument in sys.argv[1:3]))
