# SPDX-License-Identifier: Apache-2.0
"""A benchmark on a GPU beside the same work by PyTorch, in the same run: one table.

gpu_peers.py OURS PEER_SCRIPT [ARGUMENT...]   the arguments go to both
Each prints a line for each case, which begins with its number and the milliseconds that it took; the peer, in as many columns as
it has ways.
"""

import subprocess
import sys

from torch_interpreter import interpreter_with_torch

SKIPPED = 77


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True)


def milliseconds_by_case(lines):
    cases = [line.split() for line in lines]
    return {fields[0]: [float(field) for field in fields[1:]] for fields in cases if fields and fields[0].isdigit()}


def main():
    ours, script, *arguments = sys.argv[1:]
    own = run(ours, *arguments)
    python = interpreter_with_torch()
    peer = run(python, script, *arguments) if python and own.returncode == 0 else None
    theirs = milliseconds_by_case(peer.stdout.splitlines()) if peer else {}
    for line in own.stdout.splitlines():
        case = line.split()[0] if line.split() else ''
        if case in theirs:
            mine = float(line.split()[1])
            line += '   PyTorch' + ';'.join(f'{one:8.3f} ms, {one / mine:5.2f} times ours' for one in theirs[case])
        print(line)
    if own.returncode != 0:
        sys.exit(own.returncode)
    if peer and peer.returncode not in (0, SKIPPED):
        sys.exit(f'{script} ended with {peer.returncode}')
    if theirs:
        print('beside ' + peer.stdout.splitlines()[0])
    else:
        print('no PyTorch that sees a GPU (python3-torch): only our own work is measured')


main()
