# SPDX-License-Identifier: Apache-2.0
"""Where PyTorch is installed, if it is."""

import os
import subprocess
import sys


def interpreter_with_torch():
    for python in filter(None, (os.environ.get('TORCH_PYTHON'), sys.executable, '/usr/bin/python3')):
        if subprocess.run([python, '-c', 'import torch'], capture_output=True).returncode == 0:
            return python
    return None
