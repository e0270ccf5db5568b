#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each header alone, so that whoever includes it needs to know nothing else.

A source that begins with its own header, and is compiled without a precompiled one before it, has already proved this.
Every other header is compiled here, with the flags of its folder's sources as the build directory records them; and again
only when a file that it includes has changed. What a header includes may stand before it without helping it, so one
compilation serves a chain of headers, each of which is included by the next one; if it fails, each is compiled alone.
For the same reason a header may find one of SHARED precompiled, if it includes that. Each compilation stops behind the last
header: to instantiate the templates that only function bodies need would take a third of the time, and is what sources do.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import tidy

# Headers that many others include: most of the time goes into them. A header finds the first of them that it includes.
SHARED = ("strategies/contexts/strategy.hpp", "actors/interfaces/interfaces.hpp", "messages/msg.hpp", "kernels/tensor/tensor.hpp",
          "messages/errors/errc.hpp")


# The last line of each source, at which the compiler stops.
END = "the headers compile"


def flags_only(entry):
    """The compiler and its flags, without input, output, dependency files, precompiled headers and what is about code alone."""
    kept, arguments = [], iter(shlex.split(entry["command"]))
    for argument in arguments:
        if argument in ("-o", "-MF", "-MQ", "-include"):
            next(arguments)
        elif argument not in ("-c", "-pthread", entry["file"]) and not argument.startswith(("-O", "-g", "-f", "-MD", "-Winvalid-pch")):
            kept.append(argument)
    return kept


def compiled_sources(root, build):
    """Path of each source -> its entry in the build directory's compile commands, `first` if nothing stands before it."""
    sources = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = Path(os.path.normpath(build / entry["file"]))
        parts = re.findall(r"^#include<(.+)>$", file.read_text(), re.M) if re.search(r"-unity\d+\.cpp$", file.name) else []
        first = not parts and " -include " not in entry["command"]
        for source in (Path(os.path.normpath(path)) for path in parts or [file]):
            if source.is_relative_to(root) and source.suffix == ".cpp":
                sources.setdefault(source.relative_to(root), {**entry, "first": first})
    return sources


def proves_itself(header, sources):
    """Whether a source of the header's name, or a twin, is compiled with nothing before that header."""
    stem = header.removesuffix(".hpp")
    entries = [sources.get(Path(stem + suffix)) for suffix in (".cpp", "_cpu.cpp", "_reference.cpp")]
    return any(entry and entry["first"] for entry in entries)


def flags_for(header, flags):
    """Those of the nearest folder with sources: its own, its tests', its parent's, else the first there is."""
    for folder in Path(header).parents:
        for candidate in (folder, Path("tests") / folder):
            if candidate in flags:
                return flags[candidate]
    return next(iter(flags.values()))


def is_built(header, root, flags):
    """False for a folder of tests whose sources are not compiled here: a library that they need is not there."""
    folder = Path(header).parent
    return folder.parts[0] != "tests" or folder in flags or not list((root / folder).glob("*.cpp"))


def closures(root, headers):
    """Header -> all headers of the project that it includes, directly or through others."""
    texts = {header: (root / header).read_text() for header in headers}
    included = {header: set(re.findall(r'^#include "([^"]+)"', text, re.M)) & texts.keys() for header, text in texts.items()}
    grown = True
    while grown:
        grown = False
        for header, seen in included.items():
            further = set().union(*(included[other] for other in seen)) - seen
            included[header], grown = seen | further, grown or bool(further)
    return included


def chains(headers, included):
    """Lists of headers, each header in one: those before it are among those that it includes."""
    found = []
    for header in sorted(headers, key=lambda h: (len(included[h]), h)):
        fitting = [chain for chain in found if chain[-1] in included[header]]
        if fitting:
            max(fitting, key=lambda chain: len(included[chain[-1]])).append(header)
        else:
            found.append([header])
    return found


def write(file, text):
    """Leaves the file as it is if that is its text, so that it is no newer than what was made of it."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def is_newer_than_all(made, build):
    """Whether a list of dependencies, as a compiler writes it, is newer than each file in it."""
    if not made.exists():
        return False
    files = [build / file for file in shlex.split(made.read_text().partition(":")[2].replace("\\\n", " "))]
    return all(file.exists() and file.stat().st_mtime <= made.stat().st_mtime for file in files)


def compiled(source, text, command, build):
    """What the compiler says of a source before END; nothing if it compiles, or did when its files were as they are now."""
    made = Path(f"{source}.d")
    write(source, f"// {shlex.join(command)}\n{text}")
    if is_newer_than_all(made, build):
        return ""
    done = subprocess.run([*command, "-H", "-Wfatal-errors", str(source)], cwd=build, capture_output=True, text=True)
    included = re.compile(r"^(?:\.+|[!x]) (.+)\n", re.M)
    if done.returncode != 0 and not re.search(f"static.assert.* failed.*{END}", done.stderr):
        return included.sub("", done.stderr) or f"the compiler ended with {done.returncode}"
    made.write_text(f"{source}: {shlex.join([str(source), *included.findall(done.stderr)])}\n")
    return ""


def first_shared(header, included):
    """The one of SHARED that a header finds precompiled; none if it includes none of them."""
    return next((shared for shared in SHARED if shared in included[header]), None)


def stand_in(shared, build):
    """A file that includes a shared header, beside which its precompiled form lies."""
    return build / "headers" / f"{shared.replace('/', '_')}.shared.hpp"


def precompile(shared, build, flags):
    file = stand_in(shared, build)
    command = [*flags_for(shared, flags), "-O0", "-o", f"{file}.gch", "-x", "c++-header"]
    compiled(file, f'#include "{shared}"\n', command, build)  # if it fails, or does not fit, the text stands in for it


def complaints(chain, build, flags, shared=None):
    """Pairs of a header and what the compiler says of it; none if all headers of the chain compile."""
    source = build / "headers" / (chain[-1].replace("/", "_") + ".cpp")
    before = ["-include", str(stand_in(shared, build))] if shared else []
    command = [*flags_for(chain[-1], flags), *before, "-O0", "-fsyntax-only"]
    said = compiled(source, "".join(f'#include "{header}"\n' for header in chain) + f'static_assert(false, "{END}");\n', command, build)
    if not said:
        return []
    if len(chain) == 1:
        return [(chain[0], said)]
    return [pair for header in chain for pair in complaints([header], build, flags, shared)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("build", type=Path)
    arguments = parser.parse_args()
    root, build = arguments.root.resolve(), arguments.build.resolve()
    (build / "headers").mkdir(exist_ok=True)
    headers = [p for p in tidy.project_files(root) if Path(p).suffix == ".hpp"]
    sources = compiled_sources(root, build)
    flags = {}
    for source, entry in sources.items():
        flags.setdefault(source.parent, flags_only(entry))
    doubtful = [header for header in headers if not proves_itself(header, sources) and is_built(header, root, flags)]
    included = closures(root, headers)
    groups = {}
    for header in doubtful:
        groups.setdefault(first_shared(header, included), []).append(header)
    to_compile = [(chain, shared) for shared, group in groups.items() for chain in chains(group, included)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda shared: precompile(shared, build, flags), filter(None, groups)))
        found = pool.map(lambda work: complaints(work[0], build, flags, work[1]), to_compile)
        broken = [pair for pairs in found for pair in pairs]
    for header, text in broken:
        print(f"{header} does not compile alone:\n{text}")
    print(f"{len(headers)} headers, {len(doubtful)} of them compiled here in {len(to_compile)} chains, {len(broken)} do not compile alone")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
