# SPDX-License-Identifier: Apache-2.0
"""The same all-reduce by PyTorch over the Gloo that it brings, one process for each rank.

torch_all_reduce.py BYTES ROUNDS   rank 0 prints the seconds of each round, each rank the processor's seconds of all; RANK,
WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment, as torchrun sets them
"""

import sys
import time

import torch
import torch.distributed as dist


def measure(size, rounds):
    torch.set_num_threads(1)
    dist.init_process_group('gloo')
    own = torch.ones(size // 4)
    dist.all_reduce(own)
    used = time.process_time()
    for _ in range(rounds):
        begin = time.perf_counter()
        dist.all_reduce(own)
        if dist.get_rank() == 0:
            print(f'{time.perf_counter() - begin:.9f}')
    print(f'processor {time.process_time() - used:.9f}')
    dist.destroy_process_group()


measure(*(int(argument) for argument in sys.argv[1:3]))
