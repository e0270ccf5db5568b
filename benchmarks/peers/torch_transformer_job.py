# SPDX-License-Identifier: Apache-2.0
"""The main job by PyTorch: the transformer of `troupe train`, trained by Adam, windows drawn from the same text.

torch_transformer_job.py BATCH STEPS [THREADS [LAYERS]]   prints the seconds of each step; where RANK and WORLD_SIZE are set,
    a process of DistributedDataParallel over Gloo
"""

import os
import sys
import time

import torch

from torch_transformer import BYTES, initial_parameters, mean_loss

TEXT = '/usr/share/common-licenses/GPL-3'
CONTEXT, HEADS, WIDTH = 64, 4, 128


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.variables = torch.nn.ParameterList(initial_parameters(CONTEXT, layers, WIDTH))

    def forward(self, contexts, following):
        return mean_loss(list(self.variables), HEADS, contexts, following)


def train(batch, steps, threads=1, layers=4):
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1 + int(os.environ.get('RANK', '0')))
    model = Model(layers)
    if 'RANK' in os.environ:
        torch.distributed.init_process_group('gloo')
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    text = torch.frombuffer(bytearray(open(TEXT, 'rb').read()), dtype=torch.uint8).to(torch.int64)
    within = torch.arange(CONTEXT)
    assert int(text.max()) < BYTES
    for _ in range(steps):
        begin = time.perf_counter()
        places = torch.randint(len(text) * 9 // 10 - CONTEXT, (batch, 1)) + within
        optimizer.zero_grad(set_to_none=True)
        model(text[places], text[places + 1].flatten()).backward()
        optimizer.step()
        if os.environ.get('RANK', '0') == '0':
            print(f'{time.perf_counter() - begin:.9f}', flush=True)
    if 'RANK' in os.environ:
        torch.distributed.destroy_process_group()


if __name__ == '__main__':
    train(*(int(argument) for argument in sys.argv[1:5]))
