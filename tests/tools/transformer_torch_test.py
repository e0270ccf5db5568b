# SPDX-License-Identifier: Apache-2.0
# Goal: the transformer learns as PyTorch's does. Method: the same variables, windows and Adam; every loss of 50 steps.
# Usage: transformer_torch_test.py COURSE_PROGRAM TEXT TORCH_TRANSFORMER   TORCH_PYTHON in the environment: an interpreter
# that has PyTorch; without one, the test is skipped.
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
LEARNING_RATE, SQUARE_DECAY, EPSILON = 0.001, 0.999, 1e-8
ALLOWED = 1e-4


def losses(path, module):
    import torch
    sys.path.insert(0, str(pathlib.Path(module).parent))
    from torch_transformer import mean_loss

    content = path.read_bytes()
    header = json.loads(content[:content.index(b"\n")])
    at = content.index(b"\n") + 1

    def take(extents, dtype):
        nonlocal at
        taken = torch.empty(extents, dtype=dtype)
        end = at + taken.numel() * taken.element_size()
        taken = torch.frombuffer(bytearray(content[at:end]), dtype=dtype).reshape(extents)
        at = end
        return taken

    parameters = [torch.nn.Parameter(take(extents, torch.float32)) for extents in header["extents"]]
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, betas=(0.9, SQUARE_DECAY))
    windows, context = header["windows"], header["context"]
    for step in range(1, header["steps"] + 1):
        contexts, following = take([windows, context], torch.int64), take([windows * context], torch.int64)
        loss = mean_loss(parameters, header["heads"], contexts, following)
        optimizer.zero_grad()
        loss.backward()
        # Ours is added to the root before it is corrected for the beginning at 0, PyTorch's to the corrected one.
        optimizer.param_groups[0]["eps"] = EPSILON / (1 - SQUARE_DECAY**step) ** 0.5
        optimizer.step()
        yield loss.item(), take([1], torch.float64).item()
    assert at == len(content)


def use_an_interpreter_with_torch():
    for python in (sys.executable, os.environ.get("TORCH_PYTHON", sys.executable), "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            if python != sys.executable:
                os.execv(python, [python, *sys.argv])
            return
    print("skipped: no PyTorch here; TORCH_PYTHON may name an interpreter that has it")
    sys.exit(SKIPPED)


def main():
    program, text, module = sys.argv[1:4]
    use_an_interpreter_with_torch()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "course"
        subprocess.run([program, text, path], check=True)
        pairs = list(losses(path, module))
    worst = max(abs(theirs - ours) for theirs, ours in pairs)
    print(f"{len(pairs)} steps, loss from {pairs[0][1]:.4f} to {pairs[-1][1]:.4f}; largest difference {worst:.1e}")
    if len(pairs) != 50 or worst > ALLOWED or not pairs[-1][1] < pairs[0][1] - 1:
        sys.exit(f"more than {ALLOWED} apart, or nothing learned: {pairs}")


if __name__ == "__main__":
    main()
