# SPDX-License-Identifier: Apache-2.0
# Goal: docs/straggler-lab.md shows what its commands print today.  Method: runs every command of the page in one folder,
# in order, and compares; a command without output in the page makes a few steps only, unless the page shows its pictures.
# These are drawn where gnuplot is, and compared if its version is the one that drew them.  With --write it prints the page
# and its pictures anew.
# Usage: lab_page_test.py PATH/TO/troupe PATH/TO/straggler-lab.md [--write]
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# What is another number each time, or says again what the command says.
VOLATILE = re.compile(r"^(simulated  --|\S+ events in .* s, .* virtual seconds$|plots in |not drawn: |for https://)")
COMMAND = re.compile(r"^    (\$ (troupe|awk)|troupe sim) ")
FEW_STEPS = "--steps 30"
# figures/lab-grid.svg and figures/lab-ring-grid.svg are the picture grid of the last command before them.
FIGURE = re.compile(r"^!\[.*\]\((figures/lab-(\S+)\.svg)\)$")
DRAWN_BY = re.compile(r"Produced by GNUPLOT [^<]*")


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
        self.figures = list(figures_below(lines, self.output))
        if not lines[first].startswith("    $ "):
            return
        for at in range(self.output, len(lines)):
            if COMMAND.match(lines[at]) or (lines[at] and not is_code(lines[at])):
                break
            if lines[at]:
                self.end = at + 1

    def has_output(self):
        return self.end > self.output


def figures_below(lines, at):
    """Pictures that the page shows before its next command: the path of each, and what its name ends with."""
    for line in lines[at:]:
        if COMMAND.match(line):
            return
        if figure := FIGURE.match(line):
            yield figure[1], figure[2]


def drawn(block, name, folder):
    """The picture of that name, or of the end of that name, which the command has left."""
    plots = folder / block.words[block.words.index("--plots") + 1]
    found = [plot for plot in plots.glob("*.svg") if f"-{name}".endswith(f"-{plot.stem}")]
    if not found:
        sys.exit(f"{block.shell}\ndraws no {name}.svg")
    return max(found, key=lambda plot: len(plot.stem)).read_text()


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
    is_short = ">" in block.words or block.has_output() or block.figures
    has_steps = block.words[:2] == ["troupe", "sim"] and not is_short
    shell = f"{block.shell} {FEW_STEPS if has_steps else ''}"
    environment = {**os.environ, "PATH": f"{os.path.dirname(troupe)}:{os.environ['PATH']}"}
    result = subprocess.run(shell, shell=True, cwd=folder, env=environment, text=True, capture_output=True, timeout=300)
    if result.returncode:
        sys.exit(f"{block.shell}\nends with {result.returncode}: {result.stderr}")
    lines = [line.rstrip() for line in result.stdout.splitlines() if not VOLATILE.match(line)]
    text = "\n".join(lines).strip("\n")
    return [f"    {line}" if line else "" for line in re.sub(r"\n\n\n+", "\n\n", text).split("\n")]


def renew(path, picture, is_written):
    """Writes the picture; or says in a line that it is another one now, if the same program drew both."""
    if is_written:
        path.write_text(picture)
        return []
    if not path.exists():
        return [f"{path} is not there; draw it with --write"]
    shown = path.read_text()
    are_of_one_program = DRAWN_BY.findall(shown) == DRAWN_BY.findall(picture)
    return [f"{path} is drawn otherwise now; print it anew with --write"] if are_of_one_program and shown != picture else []


def main():
    troupe, page = os.path.abspath(sys.argv[1]), Path(sys.argv[2])
    lines = page.read_text().split("\n")
    renewed, copied, stale = [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        leave_scenario(lines, Path(folder))
        for block in blocks_of(lines):
            output = printed(troupe, block, folder)
            for path, name in block.figures if shutil.which("gnuplot") else []:
                stale += renew(page.parent / path, drawn(block, name, Path(folder)), "--write" in sys.argv)
            if block.has_output():
                renewed += [*lines[copied : block.output], "", *output]
                copied = block.end
    renewed += lines[copied:]
    if "--write" in sys.argv:
        page.write_text("\n".join(renewed))
        return 0
    print(*difflib.unified_diff(lines, renewed, str(page), "printed now", lineterm=""), *stale, sep="\n")
    return int(lines != renewed or bool(stale))


if __name__ == "__main__":
    sys.exit(main())
