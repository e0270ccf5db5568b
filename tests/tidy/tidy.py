#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a compiler does not: which folder may include which, sizes, and how a file begins.

Prints one line per violation, `file:line: what is wrong`, and fails if there is one.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# The floors of the house: a folder may include itself and what stands here.  Anything may include the ground.
FLOORS = {
    "messages": [],
    "kernels": [],
    "actors": ["messages", "kernels"],
    "strategies": ["actors", "messages", "kernels"],
    "simulation": ["strategies", "actors", "messages", "kernels"],
    "tools": ["simulation", "strategies", "actors", "messages", "kernels"],
    "examples": ["tools", "simulation", "strategies", "actors", "messages", "kernels"],
    "benchmarks": ["tools", "simulation", "strategies", "actors", "messages", "kernels"],
    "tests": ["tools", "simulation", "strategies", "actors", "messages", "kernels", "examples"],
}
# The rooms of a floor that has been sorted: what each of its folders may include of the others; "" is the floor itself. The
# folders in a room belong to it.
ROOMS = {
    "messages": {
        "errors": [],
        "checks": ["errors"],
        "": ["errors", "checks"],
    },
    "actors": {
        "recording": [],
        "interfaces": ["recording"],
        "checkpoint": ["recording", "interfaces"],
        "policies": ["recording"],
        "net": ["recording", "interfaces", "policies"],
        "observing": ["recording", "interfaces", "net"],
        "world": ["recording", "interfaces", "policies", "observing"],
        "groups": ["recording", "interfaces", "observing", "world"],
        "supervision": ["recording", "interfaces", "observing", "world"],
        "collective": ["recording", "interfaces", "net", "observing", "world"],
        "gpu": ["recording", "interfaces", "observing", "world"],
        "replication": ["recording", "interfaces", "policies", "net", "observing", "world"],
        "training": ["recording", "interfaces", "policies", "observing", "world", "replication"],
        "coordinator": ["recording", "interfaces", "observing", "world", "training"],
        "pch": ["interfaces"],
    },
    "kernels": {
        "tensor": [],
        "cuda": ["tensor"],
        "math": ["tensor", "cuda"],
        "updates": ["tensor", "cuda", "math"],
        "tape": ["tensor", "cuda", "math"],
    },
    "strategies": {
        "cluster": [],
        "data": [],
        "values": [],
        "reduce": ["values"],
        "contexts": ["data", "values", "reduce"],
        "variables": ["values", "reduce", "contexts"],
        "kinds": ["cluster", "reduce", "contexts"],
        "coordinator": ["data", "values", "contexts"],
        "optimizers": ["reduce", "contexts", "variables", "coordinator"],
        "jobs": ["values", "reduce", "contexts", "variables", "optimizers"],
        "torch": ["contexts", "optimizers", "jobs"],
    },
    "simulation": {
        "distributions": [],
        "network": ["distributions"],
        "faults": ["network"],
        "": ["distributions", "faults", "network"],
        "reports": ["distributions", "", "network"],
        "replay": ["distributions", ""],
        "fitting": ["distributions", ""],
    },
    "tools": {
        "system": [],
        "options": ["system"],
        "run": ["system", "options"],
        "replay": ["system", "options", "run"],
        "report": ["options", "run", "replay"],
        "job": ["system", "options", "run", "report"],
        "model": ["job"],
        "language": ["job", "model"],
        "images": ["job", "model"],
        "launch": ["system", "options"],
        "top": ["system", "options"],
        "flight": ["system", "options"],
        "sim": ["system", "options", "run", "replay", "model", "language"],
        "train": ["system", "options", "run", "job", "model", "images", "language"],
        "": ["system", "options", "flight", "launch", "report", "sim", "top", "train"],
        "package": ["job"],
    },
}
# How code fails and asserts, and what an array is: every floor may use these, which know nothing above them.
GROUND = ("messages/errors/", "kernels/tensor/tensor.hpp")
# Libraries that a floor must not know: messages have no actors, kernels are arithmetic, and so is device code anywhere.
FOREIGN = {"messages": ("caf/",), "kernels": ("caf/", "capnp/", "kj/")}
DEVICE_FOREIGN = ("caf/", "capnp/", "kj/")

FORBIDDEN = [
    ("#include <caf/all.hpp>", "it costs seconds in every file, include what is used"),
    ("#pragma omp", "its threads and oneTBB's would fight over the cores"),
    ("caf::infinite", "a peer may be gone: give the wait a deadline, or say behind // on this line who keeps one"),
]
TESTS_MAY = {"caf::infinite"}
WITH_A_REASON = {"caf::infinite"}

HEADER_LINES_MAX = 600
SOURCE_LINES_MAX = 600
TEST_LINES_MAX = 900
# Beyond these a reader begins to scroll: reported by --notes, never an error.
HEADER_LINES_GOOD = 250
SOURCE_LINES_GOOD = 400
TEST_LINES_GOOD = 600

HEADERS = {".hpp", ".cuh"}
SOURCES = {".cpp", ".cu"}
COMMENTS = {".hpp": "//", ".cuh": "//", ".cpp": "//", ".cu": "//", ".capnp": "#", ".py": "#", ".sh": "#"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
TEXTS = set(COMMENTS) | {".build", ".md", ".toml", ".wrap", ".yml"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
# Words for people. A few of the second kind are right: of those that are left, none is to be added.
PERSONS = re.compile(r"\b(?:no|some|every|any)body\b|\b(?:whoever|whom)\b", re.IGNORECASE)
WHO = re.compile(r"\bwho(?:se)?\b", re.IGNORECASE)
WHO_MAX = 50
# Beginnings of sentences that hide their subject, and where sentences begin.
RIDDLE = re.compile(r"(?:What|Of|Those|Likewise|Who(?:se)?)\b")
SENTENCE = re.compile(r"(?:^|(?<=[.!?])\s+)(?:@\w+(?: \w+)? )?")
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")
TODO = re.compile(r"\bTODO\b(\((\w+)\))?")
TODO_KINDS = {"soon", "perf", "test", "cleanup"}


class Tree:
    """The files of a project, read once; knows what each one includes."""

    def __init__(self, root, paths):
        self.root = root
        self.lines = {}
        self.types = None
        for path in sorted(paths):
            self.lines[path] = (root / path).read_bytes().decode("utf-8", "replace").split("\n")

    def includes(self, path):
        """Yields (line number, quoted?, what) for each include of `path`."""
        for number, line in enumerate(self.lines.get(path, []), 1):
            if match := INCLUDE.match(line):
                yield number, match[1] == '"', match[2]

    def definitions(self):
        """The files that define each type, by its full name."""
        if self.types is None:
            self.types = {}
            for path in filter(is_code, self.lines):
                for name in dict.fromkeys(name for name, _ in types_of("\n".join(self.lines[path]))):
                    self.types.setdefault(name, []).append(path)
        return self.types

    def has(self, include):
        """Whether a quoted include names a file of the tree, or one that capnp or a script beside it makes."""
        makers = include, include.removesuffix(".h"), include.removesuffix(".hpp") + ".py"
        return any(path in self.lines for path in makers)

    def reachable(self, path):
        """Every file that `path` includes, directly or through others of the tree, and the foreign ones."""
        seen, todo = set(), [path]
        while todo:
            for _, _, include in self.includes(todo.pop()):
                if include not in seen:
                    seen.add(include)
                    todo.append(include)
        return seen


def floor_of(path):
    return path.split("/")[0] if "/" in path else ""


def room_of(path):
    """The folder of a floor that a file lies in: tools/sim/plots/plot.cpp in sim, tools/main.cpp in ""."""
    return path.split("/")[1] if path.count("/") > 1 else ""


def is_code(path):
    return Path(path).suffix in HEADERS | SOURCES


def check_arrows(tree, path):
    """An include may only point down, and says from the root where it points."""
    floor = floor_of(path)
    if floor not in FLOORS:
        return
    for number, quoted, include in tree.includes(path):
        target = floor_of(include)
        if not quoted:
            if target in FLOORS and tree.has(include):
                yield number, f'<{include}> is ours: write "{include}"'
            if include.startswith(FOREIGN.get(floor, ())):
                yield number, f"{floor}/ must not know <{include}>"
        elif not tree.has(include):
            yield number, f'"{include}" is no file of this project, seen from its root'
        elif target not in (floor, *FLOORS[floor]) and not include.startswith(GROUND):
            yield number, f'{floor}/ must not include "{include}": an include only points down'
        elif target == floor and floor in ROOMS and not include.endswith(".capnp.h"):  # schemas know each other only
            room, other = room_of(path), room_of(include)
            if other != room and other not in ROOMS[floor].get(room, []):
                yield number, f'{floor}/{room} must not include "{include}": ROOMS in tests/tidy/tidy.py says what it may'


def check_device_code(tree, path):
    """A compiler for devices chokes on actors and schemas, so they must not come in through a third header either."""
    if Path(path).suffix in {".cu", ".cuh"}:
        for include in sorted(tree.reachable(path)):
            if include.endswith(".capnp.h") or include.startswith(DEVICE_FOREIGN):
                yield 1, f"device code must not see {include}, not even through another header"


def check_forbidden(tree, path):
    for number, line in enumerate(tree.lines[path] if is_code(path) else (), 1):
        for pattern, reason in FORBIDDEN:
            excused = (pattern in TESTS_MAY and floor_of(path) == "tests") or (
                pattern in WITH_A_REASON and "//" in line
            )
            if pattern in line and not excused:
                yield number, f"{pattern}: {reason}"


def check_own_header(tree, path):
    """A source proves that its header stands alone by including it first.

    Not so a .cu file: clang-format sorts its own header among the others.  headers.py compiles all that are left.
    """
    if Path(path).suffix != ".cpp":
        return
    stem = path.rsplit(".", 1)[0]
    stems = [stem, re.sub(r"_(cpu|cuda|reference)$", "", stem)]
    own = next((s + ".hpp" for s in stems if s + ".hpp" in tree.lines), None)
    first = next(tree.includes(path), None)
    if own and first and first[2] != own:
        yield first[0], f'include the own header "{own}" first'


def check_beginning(tree, path):
    """The licence, then one sentence that says what the file is, then `#pragma once` in a header."""
    lines = tree.lines[path]
    suffix = Path(path).suffix
    name = Path(path).name
    is_script = lines[0].startswith("#!")
    comment = "#" if is_script or name == "meson.build" else COMMENTS.get(suffix)
    if comment is None:
        return
    first = 1 if is_script else 0
    if lines[first : first + 1] != [f"{comment} {LICENCE}"]:
        yield first + 1, f"begin with '{comment} {LICENCE}'"
    elif is_code(path) and not lines[first + 1].startswith(f"{comment} "):
        yield first + 2, "say in one sentence what the file is, below the licence"
    # GCC warns of the pragma in a header that it precompiles: those have a guard.
    if suffix in HEADERS and Path(path).parent.name != "pch":
        code = [l for l in lines if l.strip() and not l.startswith("//")]
        if code[:1] != ["#pragma once"]:
            yield 1, "a header's first line of code is '#pragma once'"


def line_limits(path):
    """The most lines `path` may have, and the most that still read well."""
    if floor_of(path) == "tests":
        return TEST_LINES_MAX, TEST_LINES_GOOD
    if Path(path).suffix in HEADERS:
        return HEADER_LINES_MAX, HEADER_LINES_GOOD
    return SOURCE_LINES_MAX, SOURCE_LINES_GOOD


def check_size(tree, path):
    if is_code(path):
        count, (most, _) = len(tree.lines[path]) - 1, line_limits(path)
        if count > most:
            yield most + 1, f"{count} lines: {most} are the most, split the file by what it answers"


def check_text(tree, path):
    lines = tree.lines[path]
    if lines[-1] != "":
        yield len(lines), "end the last line"
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield number, "tab: indent with spaces"
        if line != line.rstrip():
            yield number, "blank at the end of the line"
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            yield number, "the mark of a conflict: settle it"
        for match in TODO.finditer(line) if is_code(path) else ():
            if match[2] not in TODO_KINDS:
                kinds = ", ".join(sorted(TODO_KINDS))
                yield number, f"{match[0]}: do it, or say which kind it is ({kinds})"


NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|R\"(\w*)\(.*?\)\1\"|\"(?:[^\"\\\n]|\\.)*\"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'",
    re.DOTALL | re.MULTILINE)
SCOPE = re.compile(
    r"(?P<close>\})|\bnamespace\s*(?P<space>[\w:]*)\s*\{"
    r"|\b(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*"
    r"(?P<type>\w+)(?:\s+final)?\s*(?::(?!:)[^;{}()]*)?\{|(?P<open>\{)")


def types_of(text):
    """Yields (full name, line) of each type that a file defines for all: not nested, not anonymous, no specialization."""
    text = NOISE.sub(lambda match: "\n" * match[0].count("\n"), text)
    scopes = []  # the name of a namespace, "" for an anonymous one, None for anything else
    for match in SCOPE.finditer(text):
        if match["close"]:
            if scopes:
                scopes.pop()
            continue
        if match["type"] and all(scopes):
            yield "::".join([*scopes, match["type"]]), text.count("\n", 0, match.start()) + 1
        scopes.append(match["space"])


def check_twins(tree, path):
    """One name is one type: of two, one's destructor may be called for the other."""
    if not is_code(path):
        return
    for name, number in types_of("\n".join(tree.lines[path])):
        others = [other for other in tree.definitions().get(name, ()) if other != path and may_meet(path, other)]
        if others:
            yield number, f"{name} is another type in {others[0]}: rename one of them"


def may_meet(one, other):
    """Whether two files may be part of one program: sources of tests and examples belong to those of their folder."""
    programs = ("benchmarks", "examples", "tests")
    are_apart = all(floor_of(path) in programs and Path(path).suffix in SOURCES for path in (one, other))
    return not are_apart or Path(one).parent == Path(other).parent


def comments(tree, path):
    """Yields (line number, text) for the comments of C++ and of schemas, without what they quote."""
    mark = {".capnp": "#"}.get(Path(path).suffix, "//")
    if not (is_code(path) or mark == "#"):
        return
    for number, line in enumerate(tree.lines[path], 1):
        _, found, text = line.partition(mark)
        if found:
            yield number, QUOTED.sub("", text)


def check_words(tree, path):
    """A part of the program is no person: a comment names it."""
    for number, text in comments(tree, path):
        if word := PERSONS.search(text):
            yield number, f"'{word[0]}' is for people: name the part of the program"


def check_sentences(tree, path):
    """A sentence of a comment begins with its subject."""
    before, last = "", 0
    for number, text in comments(tree, path):
        text = text.lstrip("/!<").strip()
        if text == LICENCE:
            continue
        follows = number == last + 1 and before and before[-1] not in ".!?:"
        for start in SENTENCE.finditer(text):
            word = RIDDLE.match(text, start.end())
            if word and not (follows and start.start() == 0 == start.end()):
                yield number, f"a sentence begins with '{word[0]}': name its subject first"
        before, last = text, number


def too_many_who(tree):
    """How often comments say "who" and "whose" may only fall."""
    count = sum(len(WHO.findall(text)) for path in tree.lines for _, text in comments(tree, path))
    if count > WHO_MAX:
        yield f"comments say 'who' and 'whose' {count} times, {WHO_MAX} are allowed: begin with the subject"


CHECKS = [
    check_arrows,
    check_device_code,
    check_forbidden,
    check_own_header,
    check_beginning,
    check_size,
    check_text,
    check_twins,
    check_words,
    check_sentences,
]


def violations(tree):
    """All of them, as lines ready to print, ordered by file and line."""
    found = []
    for path in tree.lines:
        for check in CHECKS:
            found += [(path, number, text) for number, text in check(tree, path)]
    return [f"{path}:{number}: {text}" for path, number, text in sorted(found)] + list(too_many_who(tree))


def notes(tree):
    """Files that are allowed, but longer than reads well."""
    for path, lines in tree.lines.items():
        if is_code(path) and len(lines) - 1 > line_limits(path)[1]:
            yield f"{path}: {len(lines) - 1} lines, {line_limits(path)[1]} read better"


def project_files(root):
    """What git would commit: tracked files and new ones, never build output."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # a release archive, or a machine without git
        listed = [str(p.relative_to(root)) for f in FLOORS for p in (root / f).rglob("*")]
    return [p for p in listed if Path(p).suffix in TEXTS and (root / p).is_file()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, help="the project's root")
    parser.add_argument("--notes", action="store_true", help="also list files that are long, but allowed")
    arguments = parser.parse_args()
    tree = Tree(arguments.root, project_files(arguments.root))
    found = violations(tree)
    print(*found, *(notes(tree) if arguments.notes else []), sep="\n")
    print(f"{len(tree.lines)} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
