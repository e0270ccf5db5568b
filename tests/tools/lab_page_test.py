# SPDX-License-Identifier: Apache-2.0
# Goal: docs/straggler-lab.md shows what its commands print today.  Method: runs every command of the page in one folder,
# in order, and compares; a command without output in the page makes a few steps only.  With --write it prints the page anew.
# Usage: lab_page_test.py PATH/TO/troupe PATH/TO/straggler-lab.md [--write]
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

# What is another number each time, or says again what the command says.
VOLATILE = re.compile(r"^(simulated  --|\S+ events in .* s, .* virtual seconds$|plots in |not drawn: |for https://)")
COMMAND = re.compile(r"^    (\$ (troupe|awk)|troupe sim) ")
FEW_STEPS = "--steps 30"


def is_code(line):
    return line.startswith("    ")


class Block:
    """A command of the page: lines [first, output) hold it, and [output, end) what it prints."""

    def __init__(self, lines, first):
        self.first = first
        self.output = first + 1
        while lines[self.output - 1].endswith("\\"):
            self.output += 1
        command = " ".join(line.strip().rstrip("\\") for line in lines[first : self.output])
        self.shell = command.removeprefix("$ ")
        self.words = shlex.split(self.shell)
        self.end = self.output
        if not lines[first].startswith("    $ "):
            return
        for at in range(self.output, len(lines)):
            if COMMAND.match(lines[at]) or (lines[at] and not is_code(lines[at])):
                break
            if lines[at]:
                self.end = at + 1

    def has_output(self):
        return self.end > self.output


def blocks_of(lines):
    at = 0
    while at < len(lines):
        if COMMAND.match(lines[at]):
            block = Block(lines, at)
            yield block
            at = block.end
        else:
            at += 1


def leave_scenario(lines, folder):
    """Saves the scenario file that the page prints under the name by which a command asks for it."""
    text = "\n".join(line[4:] if is_code(line) else line for line in lines)
    found = re.search(r"^replicas = .*?(?=^\|)", text, re.MULTILINE | re.DOTALL)
    (folder / "faults.toml").write_text(found[0] if found else "")


def printed(troupe, block, folder):
    """What the command prints, as the page shows it."""
    has_steps = block.words[:2] == ["troupe", "sim"] and ">" not in block.words and not block.has_output()
    shell = f"{block.shell} {FEW_STEPS if has_steps else ''}"
    environment = {**os.environ, "PATH": f"{os.path.dirname(troupe)}:{os.environ['PATH']}"}
    result = subprocess.run(shell, shell=True, cwd=folder, env=environment, text=True, capture_output=True, timeout=300)
    if result.returncode:
        sys.exit(f"{block.shell}\nends with {result.returncode}: {result.stderr}")
    lines = [line.rstrip() for line in result.stdout.splitlines() if not VOLATILE.match(line)]
    text = "\n".join(lines).strip("\n")
    return [f"    {line}" if line else "" for line in re.sub(r"\n\n\n+", "\n\n", text).split("\n")]


def main():
    troupe, page = os.path.abspath(sys.argv[1]), Path(sys.argv[2])
    lines = page.read_text().split("\n")
    renewed, copied = [], 0
    with tempfile.TemporaryDirectory() as folder:
        leave_scenario(lines, Path(folder))
        for block in blocks_of(lines):
            output = printed(troupe, block, folder)
            if block.has_output():
                renewed += [*lines[copied : block.output], "", *output]
                copied = block.end
    renewed += lines[copied:]
    if "--write" in sys.argv:
        page.write_text("\n".join(renewed))
        return 0
    print(*difflib.unified_diff(lines, renewed, str(page), "printed now", lineterm=""), sep="\n")
    return int(lines != renewed)


if __name__ == "__main__":
    sys.exit(main())
