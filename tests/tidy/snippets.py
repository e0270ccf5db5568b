#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds code in the documentation that nobody compiles.

Every block of C++ in a page must stand in an example, a test or a header of one, line by line; only its indentation may differ.
"""

import argparse
import re
import sys
from pathlib import Path

import tidy

BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def compiled_code(root, paths):
    """Examples and tests, with nothing before the first letter of each line."""
    code = [p for p in paths if tidy.floor_of(p) in ("examples", "tests") and Path(p).suffix in (".cpp", ".hpp")]
    return [flattened((root / path).read_text()) for path in code]


def flattened(text):
    return "\n".join(line.strip() for line in text.strip().splitlines())


def stray_blocks(root, paths):
    """Yields (page, line number) of each block that is in no compiled file."""
    sources = compiled_code(root, paths)
    for path in (p for p in paths if Path(p).suffix == ".md"):
        text = (root / path).read_text()
        for block in BLOCK.finditer(text):
            if not any(flattened(block[1]) in source for source in sources):
                yield path, text.count("\n", 0, block.start()) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    root = parser.parse_args().root.resolve()
    found = list(stray_blocks(root, tidy.project_files(root)))
    for path, line in found:
        print(f"{path}:{line}: this code is in no example and no test")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
