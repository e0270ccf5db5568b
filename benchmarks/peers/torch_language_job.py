# SPDX-License-Identifier: Apache-2.0
"""The main job by PyTorch: the language model of `troupe train`, trained by Adam, batches drawn from the same text.

torch_language_job.py BATCH STEPS THREADS   prints the seconds of each step; where RANK and WORLD_SIZE are set, a process of
    DistributedDataParallel over Gloo
"""

import os
import sys
import time

import torch
from torch.nn.functional import cross_entropy

from torch_language_step import BYTES, CONTEXT, LanguageModel

TEXT = '/usr/share/common-licenses/GPL-3'


def train(batch, steps, threads):
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1 + int(os.environ.get('RANK', '0')))
    model = LanguageModel()
    if 'RANK' in os.environ:
        torch.distributed.init_process_group('gloo')
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    text = torch.frombuffer(bytearray(open(TEXT, 'rb').read()), dtype=torch.uint8).to(torch.int64)
    back = torch.arange(-1, -CONTEXT - 1, -1)
    assert int(text.max()) < BYTES
    for _ in range(steps):
        begin = time.perf_counter()
        places = torch.randint(CONTEXT, len(text) * 9 // 10, (batch,))
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(model(text[places[:, None] + back]), text[places]).backward()
        optimizer.step()
        if os.environ.get('RANK', '0') == '0':
            print(f'{time.perf_counter() - begin:.9f}', flush=True)
    if 'RANK' in os.environ:
        torch.distributed.destroy_process_group()


if __name__ == '__main__':
    train(*(int(argument) for argument in sys.argv[1:4]))
