#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: kernels whose speed is that of memory move 16 bytes by one instruction, and divide in 32 bits where they can.
Method: nvcc's intermediate code of each, in which accesses are as wide as in the machine's.

    wide_accesses_test.py ROOT NVCC ARGUMENT...
"""

import re
import subprocess
import sys

# Each file with the kernels in it that move packets.
FILES = {
    'math/activations_cuda.cu': 'map_kernel',
    'math/cast_cuda.cu': 'map_kernel',
    'math/elementwise_cuda.cu': 'map_kernel',
    'math/bias_cuda.cu': 'matrix_kernel',
    'math/embedding_cuda.cu': 'matrix_kernel',
    'math/softmax_cross_entropy_cuda.cu': 'matrix_kernel',
}


def kernels_of(code):
    """The bodies of all kernels, by their mangled names."""
    return {name: body for name, body in re.findall(r'\.entry (\w+)\((.*?)\n\}', code, re.DOTALL)}


def accesses(body, kind):
    """The counts of wide and of other accesses."""
    found = re.findall(kind + r'\.global(\S*)', body)
    wide = sum('.v' in width for width in found)
    return wide, len(found) - wide


def complaints(name, body):
    """What is wrong with a kernel that moves packets."""
    loads, stores = accesses(body, 'ld'), accesses(body, 'st')
    if 'map_kernel' in name:  # packets, and then what is left, element by element
        if loads[0] != loads[1] or stores != (1, 1):
            yield f'wide and other loads {loads}, stores {stores}: as many of both are expected'
        return
    if stores != (1, 0) or loads[0] == 0:
        yield f'wide and other loads {loads}, stores {stores}: one wide store and a wide load are expected'
    if re.search(r'matrix_kernelILm\d+Ej', name) and re.search(r'\b(div|rem)\.u64', body):
        yield 'a division of 64 bits'


def main():
    root, nvcc, *arguments = sys.argv[1:]
    failed = False
    for file, kernel in FILES.items():
        made = subprocess.run([nvcc, *arguments, '--ptx', f'{root}/kernels/{file}', '-o', '-'], check=True,
                              capture_output=True, text=True)
        looked_at = 0
        for name, body in kernels_of(made.stdout).items():
            if not re.search(kernel + r'ILm(?!1E)\d+E', name):
                continue  # another one, or one that moves single elements
            looked_at += 1
            for complaint in complaints(name, body):
                print(f'{file}: {name}: {complaint}')
                failed = True
        print(f'{file}: {looked_at} kernels move packets')
        failed = failed or looked_at == 0
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
