#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects programs and the shared libraries that they need in one folder, and in an archive of it, for a machine that
has none of them.

The programs are linked to look for libraries in lib/ beside them. What is not collected is the C library, which has to
be as new there as here, and what a program loads when it runs: a driver, cuBLAS, NCCL.
"""

import argparse
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

# The C library and its parts, which belong together; and what the kernel brings.
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux-[\w-]+|lib(c|m|dl|rt|pthread|resolv|util))\.so\.\d+")
NEEDED = re.compile(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
BESIDE_IT = b"$ORIGIN/lib"
LOOKED_IN = re.compile(rb"\0([^\0]+:" + re.escape(BESIDE_IT) + rb")\0")
OF_THE_C_LIBRARY = re.compile(rb"\bGLIBC_(\d+)\.(\d+)")

# Starts all programs. Its status is that of the first that failed; 77 if there is no GPU.
RUN = """#!/bin/sh
cd "$(dirname "$0")" || exit 1
status=0
for program in {programs}; do
  echo "== $program"
  "./$program"
  ended=$?
  case $status in 0 | 77) [ $ended -eq 0 ] || status=$ended ;; esac
done
exit $status
"""


def libraries_of(program, environment=None):
    """By the names that the dynamic linker knows them by: where each is, or "not found"."""
    listed = subprocess.run(["ldd", program], env=environment, check=True, capture_output=True, text=True).stdout
    found = {Path(name).name: path for name, path in NEEDED.findall(listed)}
    return {name: path for name, path in found.items() if not OF_THE_SYSTEM.fullmatch(name)}


def strip(path):
    """Takes the names of functions out of a program, which the dynamic linker does not need."""
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", path], check=True)


def look_beside_it_only(path):
    """Has a program look for libraries in lib/ alone, not first in a folder of this machine: Meson may add one."""
    content = path.read_bytes()
    for folders in LOOKED_IN.findall(content):
        content = content.replace(folders, BESIDE_IT.ljust(len(folders), b"\0"))
    path.write_bytes(content)


def oldest_c_library(paths):
    """The version of the C library that one of these files asks for."""
    versions = {(int(major), int(minor)) for path in paths for major, minor in OF_THE_C_LIBRARY.findall(path.read_bytes())}
    return ".".join(map(str, max(versions)))


def archive_of(folder):
    """The folder as one file beside it."""
    path = folder.with_name(folder.name + ".tar.gz")
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        archive.add(folder, arcname=folder.name)
    return path


def collect(folder, programs):
    """Makes the folder anew. @returns Its programs and libraries."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    collected = []
    for program in programs:
        for name, path in libraries_of(program).items():
            if path == "not found":
                raise SystemExit(f"{program} needs {name}, which is not here either")
            if not (folder / "lib" / name).exists():
                collected.append(Path(shutil.copy(path, folder / "lib" / name)))
        collected.append(Path(shutil.copy(program, folder / program.name)))
        strip(collected[-1])
        look_beside_it_only(collected[-1])
    (folder / "run").write_text(RUN.format(programs=" ".join(program.name for program in programs)))
    (folder / "run").chmod(0o755)
    return collected


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("programs", type=Path, nargs="+")
    options = parser.parse_args()
    collected = collect(options.folder, options.programs)
    archive = archive_of(options.folder)
    print(f"{options.folder}: {', '.join(program.name for program in options.programs)}")
    print(f"{archive}: {archive.stat().st_size / 2**20:.0f} MiB")
    print(f"needs a driver of CUDA, and glibc {oldest_c_library(collected)} or later")


if __name__ == "__main__":
    main()
