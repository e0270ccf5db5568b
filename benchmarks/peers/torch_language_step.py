# SPDX-License-Identifier: Apache-2.0
"""The work of gpu_step by PyTorch: the same model, from variables and batch in the host's memory to gradients there.

torch_language_step.py   prints the batch and the milliseconds of each case
"""

import statistics
import sys
import time

import torch

WARM_UPS, REPETITIONS = 3, 20
CONTEXT, EMBEDDING, HIDDEN, BYTES = 5, 32, 512, 256


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(BYTES, EMBEDDING)
        self.layers = torch.nn.Sequential(
            torch.nn.Dropout(0.4), torch.nn.Linear(CONTEXT * EMBEDDING, HIDDEN), torch.nn.GELU(), torch.nn.Dropout(0.6),
            torch.nn.Linear(HIDDEN, BYTES))

    def forward(self, contexts):
        return self.layers(self.embedding(contexts).flatten(1))


def main():
    if not torch.cuda.is_available():
        print('skipped: no GPU here')
        sys.exit(77)
    torch.manual_seed(1)
    model = LanguageModel().cuda()
    parameters = list(model.parameters())
    variables = [parameter.detach().cpu().pin_memory() for parameter in parameters]
    gradients = [torch.empty_like(variable).pin_memory() for variable in variables]
    print(f'{torch.cuda.get_device_name()}, PyTorch {torch.__version__}')
    for batch in 64, 256, 1024, 4096:
        contexts = torch.randint(BYTES, (batch, CONTEXT)).pin_memory()
        labels = torch.randint(BYTES, (batch,)).pin_memory()
        times = []
        for _ in range(WARM_UPS + REPETITIONS):
            begin = time.perf_counter()
            with torch.no_grad():
                for parameter, variable in zip(parameters, variables):
                    parameter.copy_(variable, non_blocking=True)
            model.zero_grad(set_to_none=True)
            there = contexts.to('cuda', non_blocking=True), labels.to('cuda', non_blocking=True)
            torch.nn.functional.cross_entropy(model(there[0]), there[1]).backward()
            for gradient, parameter in zip(gradients, parameters):
                gradient.copy_(parameter.grad, non_blocking=True)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        print(f'{batch} {statistics.median(times[WARM_UPS:]) * 1e3:.3f}')


if __name__ == '__main__':
    main()
