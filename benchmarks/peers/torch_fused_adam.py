# SPDX-License-Identifier: Apache-2.0
"""The work of gpu_update by PyTorch: k gradients into their sum, then Adam in its fused form. Nothing is divided, since a loss can
be that before it is differentiated.

torch_fused_adam.py [BYTES]   of the variable, 2^30 if not given; prints k, the milliseconds with sums by `add`, and those with sums
    in one pass that `torch.compile` makes
"""

import statistics
import sys

import torch

WARM_UPS, REPETITIONS = 3, 20


def milliseconds_of(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(WARM_UPS + REPETITIONS):
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[WARM_UPS:])


def main():
    count = int(sys.argv[1] if len(sys.argv) > 1 else 2**30) // 4
    if not torch.cuda.is_available():
        print('skipped: no GPU here')
        sys.exit(77)
    print(f'{torch.cuda.get_device_name()}, {count} f32, PyTorch {torch.__version__}')
    gradients = [torch.randn(count, device='cuda') for _ in range(8)]
    variable = torch.nn.Parameter(torch.randn(count, device='cuda'))
    variable.grad = torch.empty_like(variable)
    optimizer = torch.optim.Adam([variable], fused=True)

    def add_up(addends):
        torch.add(addends[0], addends[1], out=variable.grad)
        for gradient in addends[2:]:
            variable.grad.add_(gradient)

    def add_up_at_once(addends, out):
        out.copy_(sum(addends))

    compiled = torch.compile(add_up_at_once)
    for k in 2, 4, 8:

        def step():
            add_up(gradients[:k])
            optimizer.step()

        def compiled_step():
            compiled(gradients[:k], variable.grad)
            optimizer.step()

        print(f'{k} {milliseconds_of(step):.3f} {milliseconds_of(compiled_step):.3f}')


if __name__ == '__main__':
    main()
