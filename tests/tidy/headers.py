#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each header alone, so that whoever includes it needs to know nothing else.

A source that begins with its own header, and is compiled without a precompiled one before it, has already proved this.
Every other header is compiled here, with the flags of its folder's sources as the build directory records them; ccache
makes every run after the first one cheap.
"""

import argparse
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import tidy


def flags_only(entry):
    """The compiler and its flags, without input, output, dependency files, optimisation and precompiled headers."""
    kept, arguments = [], iter(shlex.split(entry["command"]))
    for argument in arguments:
        if argument in ("-o", "-MF", "-MQ", "-include"):
            next(arguments)
        elif argument not in ("-c", entry["file"]) and not argument.startswith(("-O", "-g", "-MD", "-fpch")):
            kept.append(argument)
    return kept


def compiled_sources(root, build):
    """Path of each source -> its entry in the build directory's compile commands."""
    sources = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(os.path.normpath(build / entry["file"]))
        if source.is_relative_to(root) and source.suffix == ".cpp":
            sources.setdefault(source.relative_to(root), entry)
    return sources


def proves_itself(header, sources):
    """Whether a source of the header's name, or a twin, is compiled with nothing before that header."""
    stem = header.removesuffix(".hpp")
    entries = [sources.get(Path(stem + suffix)) for suffix in (".cpp", "_cpu.cpp", "_reference.cpp")]
    return any(entry and " -include " not in entry["command"] for entry in entries)


def flags_for(header, flags):
    """Those of the nearest folder with sources: its own, its tests', its parent's, else the first there is."""
    for folder in Path(header).parents:
        for candidate in (folder, Path("tests") / folder):
            if candidate in flags:
                return flags[candidate]
    return next(iter(flags.values()))


def compile_alone(header, build, flags):
    """The compiler's complaints; empty if there are none."""
    source = build / "headers" / (header.replace("/", "_") + ".cpp")
    text = f'#include "{header}"\n'
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    command = [*flags_for(header, flags), "-O0", "-c", str(source), "-o", f"{source}.o"]
    done = subprocess.run(command, cwd=build, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


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
    doubtful = [header for header in headers if not proves_itself(header, sources)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda header: compile_alone(header, build, flags), doubtful))
    broken = [(header, text) for header, text in zip(doubtful, complaints) if text]
    for header, text in broken:
        print(f"{header} does not compile alone:\n{text}")
    print(f"{len(headers)} headers, {len(doubtful)} of them compiled here, {len(broken)} do not compile alone")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
