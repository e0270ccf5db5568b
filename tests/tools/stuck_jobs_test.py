#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a trainer that cannot go on says why on standard error, and its process ends with the exit code for that.

Method: a program of its own for each way to go wrong; its lines and its exit code.
"""

import subprocess
import sys


def outcome_of(way):
    """Exit code and lines of standard error. A process that never ends is killed after a minute, and fails the test."""
    ended = subprocess.run([sys.argv[1], way], capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stderr.splitlines()


def expect(is_so, way, outcome):
    if not is_so:
        sys.exit(f"{way}: unexpected outcome {outcome}")


def main():
    code, lines = outcome = outcome_of("misshapen")
    expect(code == 1, "misshapen", outcome)
    expect(any("training failed" in line and "[3]" in line for line in lines), "misshapen", outcome)

    for way in ("endless", "slow"):
        code, lines = outcome = outcome_of(way)
        expect(code == 5, way, outcome)
        expect(any("training failed" in line and "replica 1" in line for line in lines), way, outcome)
        expect(any(line.startswith("replica 1 still computes") for line in lines), way, outcome)

    expect(outcome_of("well") == (0, []), "well", outcome)


if __name__ == "__main__":
    main()
