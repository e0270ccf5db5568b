#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the layout of every C++ file, or with --fix mends it."""

import argparse
import subprocess
import sys
from pathlib import Path

import tidy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("clang_format")
    parser.add_argument("--fix", action="store_true")
    arguments = parser.parse_args()
    files = [p for p in tidy.project_files(arguments.root) if tidy.is_code(p)]
    what = ["-i"] if arguments.fix else ["--dry-run", "--Werror", "--ferror-limit=1"]
    done = subprocess.run([arguments.clang_format, *what, *files], cwd=arguments.root, capture_output=True, text=True)
    wrong = [line for line in done.stderr.splitlines() if "error:" in line]
    print(*wrong, sep="\n")
    if done.returncode:
        print(f"{len(wrong)} of {len(files)} files are laid out otherwise: ./dev format")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
