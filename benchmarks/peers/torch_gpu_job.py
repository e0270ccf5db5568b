# SPDX-License-Identifier: Apache-2.0
"""The work of gpu_job by PyTorch: every step is a replay of CUDA graphs. Batches are drawn on the host and copied, losses stay on
the device, and the host waits for nothing.

torch_gpu_job.py TEXT REPLICAS BATCH STEPS WAY PRECISION [LAYERS WIDTH HEADS CONTEXT]   prints the milliseconds of a step: of a GPT
    of these sizes, else of the perceptron
WAY: whole, one graph for the examples of all replicas; or streams, a graph and a stream for each replica, and one for Adam
PRECISION of products: full, tf32, or bf16 (autocast)
"""

import sys
import time
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

import torch_language_step
from torch_transformer import initial_parameters, mean_loss

WARM_UPS = 3


class Perceptron:
    def __init__(self):
        self.model = torch_language_step.LanguageModel().cuda()
        self.parameters = list(self.model.parameters())
        self.context = torch_language_step.CONTEXT

    def draw(self, text, batch):
        places = torch.randint(self.context, len(text), (batch,))
        return text[places[:, None] - 1 - torch.arange(self.context)], text[places]

    def loss(self, contexts, following):
        return cross_entropy(self.model(contexts), following)


class Transformer:
    def __init__(self, layers, width, heads, context):
        self.parameters = [p.detach().cuda().requires_grad_() for p in initial_parameters(context, layers, width)]
        self.heads, self.context = heads, context

    def draw(self, text, batch):
        places = torch.randint(len(text) - self.context, (batch, 1)) + torch.arange(self.context)
        return text[places], text[places + 1].flatten()

    def loss(self, contexts, following):
        return mean_loss(self.parameters, self.heads, contexts, following)


class Replica:
    """A batch in a place of its own, and the graph of what is computed of it."""

    autocasts = False

    def __init__(self, model, text, batch, work):
        self.model, self.text, self.size = model, text, batch
        self.batch = [values.cuda() for values in model.draw(text, batch)]
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            for _ in range(WARM_UPS):
                work(self)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.gradients = work(self)

    def step(self):
        for there, values in zip(self.batch, self.model.draw(self.text, self.size)):
            there.copy_(values.pin_memory(), non_blocking=True)
        self.graph.replay()

    def differentiate(self):
        with torch.autocast('cuda', torch.bfloat16, enabled=self.autocasts):
            loss = self.model.loss(*self.batch)
        return torch.autograd.grad(loss, self.model.parameters)


def whole_step(model, text, replicas, batch):
    optimizer = torch.optim.Adam(model.parameters, lr=0.001, fused=True, capturable=True)

    def work(replica):
        for parameter, gradient in zip(model.parameters, replica.differentiate()):
            parameter.grad = gradient
        optimizer.step()

    one = Replica(model, text, replicas * batch, work)

    def step():
        with torch.cuda.stream(one.stream):
            one.step()

    return step


def step_by_streams(model, text, replicas, batch):
    optimizer = torch.optim.Adam(model.parameters, lr=0.001, fused=True, capturable=True)
    all_replicas = [Replica(model, text, batch, Replica.differentiate) for _ in range(replicas)]

    def update(_):
        sums = [gradient.clone() for gradient in all_replicas[0].gradients]
        for replica in all_replicas[1:]:
            torch._foreach_add_(sums, replica.gradients)
        torch._foreach_div_(sums, replicas)
        for parameter, gradient in zip(model.parameters, sums):
            parameter.grad = gradient
        optimizer.step()

    last = Replica(model, text, 1, update)
    updated = torch.cuda.Event()
    updated.record(last.stream)

    def step():
        for replica in all_replicas:
            with torch.cuda.stream(replica.stream):
                replica.stream.wait_event(updated)
                replica.step()
                last.stream.wait_event(replica.stream.record_event())
        with torch.cuda.stream(last.stream):
            last.graph.replay()
            updated.record(last.stream)

    return step


def main():
    path, replicas, batch, steps, way, precision, *sizes = sys.argv[1:]
    if not torch.cuda.is_available():
        print('skipped: no GPU here')
        sys.exit(77)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = precision == 'tf32'
    Replica.autocasts = precision == 'bf16'
    text = torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=torch.uint8).to(torch.int64)
    model = Transformer(*map(int, sizes)) if sizes else Perceptron()
    make = {'whole': whole_step, 'streams': step_by_streams}[way]
    step = make(model, text, int(replicas), int(batch))
    for _ in range(int(steps) // 5):
        step()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(int(steps)):
        step()
    torch.cuda.synchronize()
    print(f'{(time.perf_counter() - begin) / int(steps) * 1e3:.4f}')


if __name__ == '__main__':
    main()
