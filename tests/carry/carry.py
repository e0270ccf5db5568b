#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the programs that need a GPU to a machine that has one and nothing else of ours, and runs them there."""

import argparse
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77  # what Meson takes for skipped
ARCHIVE_BYTES_MAX = 50 << 20
CUDA = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
SANITIZER = shutil.which("compute-sanitizer", path=os.environ["PATH"] + f":{CUDA / 'bin'}") or "compute-sanitizer"


@dataclass(frozen=True)
class Run:
    name: str  # GROUP/PROGRAM
    command: list
    seconds: float  # after which it is ended
    is_sanitized: bool = False

    @property
    def group(self):
        return self.name.partition("/")[0]


def here(name):
    return str(HERE / name)


def sanitized(tool, program, *options):
    # Some tests ask for more memory than there is, and CUDA's error is what they expect: it is no finding.
    command = [SANITIZER, "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "86", *options]
    return Run(f"{tool}/{program}", [*command, here(program)], 200, is_sanitized=True)


def beside_pytorch(program, peer):
    return Run(f"bench/{program}", [sys.executable, here("gpu_peers.py"), here(program), here(peer)], 120)


def training(name, *options):
    command = [here("troupe"), "train", "--device", "gpu:0", "--text", here("LICENSE"), "--steps", "1000", *options]
    return Run(f"train/{name}", command, 60)


TESTS = ["cuda_tests", "gpu_actors_test", "gpu_graph_test", "gpu_training_test", "nccl_tests"]
# In this order: the checks that take longest come last, in case time runs out.
RUNS = [
    *(Run(f"tests/{test}", [here(test)], 100) for test in TESTS),
    training("parameter_server"),
    training("nccl", "--strategy", "multi_worker_mirrored", "--communication", "nccl"),
    beside_pytorch("gpu_update", "torch_fused_adam.py"),
    beside_pytorch("gpu_step", "torch_language_step.py"),
    Run("bench/gpu_job", [sys.executable, here("gpu_job.py"), here("troupe"), here("torch_gpu_job.py"), here("LICENSE")], 300),
    *(sanitized("memcheck", test) for test in TESTS),
    # Only our own kernels: those of cuBLAS are slow to check, and NCCL's are all that nccl_tests has.
    *(sanitized("racecheck", test, "--kernel-name", "kernel_substring=troupe") for test in TESTS if test != "nccl_tests"),
]
GROUPS = list(dict.fromkeys(run.group for run in RUNS))

GRACE_SECONDS = 5.0  # for a program that is told to end
GOOD = {"passed", "skipped"}
NO_GPU = "there is no GPU here"  # the command says so, with its status for options that are wrong
COUNTED = re.compile(r"SUMMARY: (\d+)")
# What a sanitizer has found, and where: two lines.
REPORTED = re.compile(r"^=+ ((?!COMPUTE-SANITIZER)[A-Z].*)\n=+ {5}(\S.*)$", re.MULTILINE)
# The line that says most, of a test, of a sanitizer and of a training run.
TELLING = re.compile(r"^(?:\[doctest\] (?=test cases)|=+ (?=[A-Z]+ SUMMARY)|(?=\d+ steps in))(.*)$", re.MULTILINE)


def gpu_count():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def vendor_folders():
    """Where cuBLAS and NCCL are: in the packages of this Python, as PyTorch's are, or in CUDA's folder. What else the
    dynamic linker finds by itself is not named."""
    folders = [folder for path in sys.path for folder in sorted(Path(path).glob("nvidia/*/lib"))]
    folders += [CUDA / "lib64", *sorted(CUDA.glob("targets/*/lib"))]
    wanted = ("libcublas.so.*", "libnccl.so.*")
    holding = [str(folder.resolve()) for folder in folders if any(list(folder.glob(name)) for name in wanted)]
    return list(dict.fromkeys(holding))


def missing(run):
    """What a run cannot begin without."""
    if run.is_sanitized and not gpu_count():
        return "no GPU here"
    program = run.command[0]
    if run.is_sanitized and not shutil.which(program):
        return f"no {program} here"
    lacking = [Path(path).name for path in run.command if Path(path).parent == HERE and not Path(path).exists()]
    return f"not in this folder: {', '.join(lacking)}" if lacking else None


def end(process):
    """Ends a program and all that it has started. It may say first where it is, as tests do."""
    for number, seconds in (signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, None):
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def judge(run, status, output):
    if status == SKIPPED or (status != 0 and not gpu_count() and NO_GPU in output):
        return "skipped"
    counts = COUNTED.findall(output)
    if run.is_sanitized and counts and int(counts[-1]) > 0:
        return "finding"
    return "passed" if status == 0 and (counts or not run.is_sanitized) else "failed"


def note_of(output):
    telling = TELLING.findall(output) or [line for line in output.splitlines() if line.strip()] or ["printed nothing"]
    return " ".join(telling[-1].split())


def first_report(output):
    found = REPORTED.search(output)
    return f": {found[1]} {found[2]}" if found else ""


def perform(run, seconds, log, environment):
    """@returns the verdict, a note, and what the program has printed."""
    lacking = missing(run)
    if lacking:
        return "skipped", lacking, ""
    if seconds <= 0:
        return "not reached", "no time was left", ""
    with log.open("ab") as to, tempfile.TemporaryDirectory() as scratch:
        to.write(f"\n== {run.name}: {' '.join(run.command)}\n".encode())
        to.flush()
        begin = to.tell()
        process = subprocess.Popen(run.command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=to,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(min(run.seconds, seconds))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end(process)
    output = log.read_bytes()[begin:].decode(errors="replace")
    if status is None:
        return "timeout", f"ended after {min(run.seconds, seconds):.0f} s; its limit is {run.seconds:.0f} s", output
    verdict = judge(run, status, output)
    return verdict, note_of(output) + (first_report(output) if verdict == "finding" else ""), output


def perform_all(runs, seconds, logs):
    """Writes a log for each group, and table.txt as it goes. @returns 0, 1 or 77, as --help says."""
    logs.mkdir(parents=True, exist_ok=True)
    folders = vendor_folders()
    found = f"GPUs: {gpu_count()}; cuBLAS and NCCL: {', '.join(folders) or 'only where the dynamic linker looks'}"
    print(found, flush=True)
    paths = [*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = os.environ | {"LD_LIBRARY_PATH": ":".join(paths), "PYTHONUNBUFFERED": "1"}
    deadline = time.monotonic() + seconds
    verdicts = []
    with (logs / "table.txt").open("w") as table:
        table.write(f"{found}\n")
        for run in runs:
            begin = time.monotonic()
            verdict, note, output = perform(run, deadline - begin, logs / f"{run.group}.log", environment)
            verdicts.append(verdict)
            table.write(f"{run.name:28} {verdict:12} {time.monotonic() - begin:6.1f} s  {note}\n")
            table.flush()
            print(f"-- {run.name}: {verdict}", flush=True)
            if run.group == "bench" or verdict not in GOOD:
                print(*output.splitlines()[-30:], sep="\n", flush=True)
    print(f"\n{(logs / 'table.txt').read_text()}logs: {logs}")
    if not GOOD.issuperset(verdicts):
        return 1
    return 0 if "passed" in verdicts else SKIPPED


ROOT = HERE.parent.parent  # of the source tree
CARRIED_FILES = [
    "LICENSE", "tests/carry/carry.py", "benchmarks/gpu_job.py", "benchmarks/gpu_peers.py", "benchmarks/torch_interpreter.py",
    "benchmarks/peers/torch_fused_adam.py", "benchmarks/peers/torch_gpu_job.py", "benchmarks/peers/torch_language_step.py",
    "benchmarks/peers/torch_transformer.py"
]
# The C library and its parts, which belong together; and what the kernel brings.
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux-[\w-]+|lib(c|m|dl|rt|pthread|resolv|util))\.so\.\d+")
NEEDED = re.compile(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
OF_THE_C_LIBRARY = re.compile(rb"\bGLIBC_(\d+)\.(\d+)")


def libraries_of(program, environment=None):
    """By the names that the dynamic linker knows them by: where each is, or "not found"."""
    listed = subprocess.run(["ldd", program], env=environment, check=True, capture_output=True, text=True).stdout
    found = {Path(name).name: path for name, path in NEEDED.findall(listed)}
    return {name: path for name, path in found.items() if not OF_THE_SYSTEM.fullmatch(name)}


def strip(path):
    """Takes the names of functions out of a program, which the dynamic linker does not need."""
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", path], check=True)


def oldest_c_library(paths):
    """The version of the C library that one of these files asks for."""
    versions = {(int(major), int(minor)) for path in paths for major, minor in OF_THE_C_LIBRARY.findall(path.read_bytes())}
    return ".".join(map(str, max(versions)))


def collect(folder, programs):
    """Makes the folder anew. @returns its programs and libraries."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    for name in CARRIED_FILES:
        shutil.copy(ROOT / name, folder)
    collected = []
    for program in programs:
        for name, path in libraries_of(program).items():
            if path == "not found":
                raise SystemExit(f"{program} needs {name}, which is not here either")
            if not (folder / "lib" / name).exists():
                collected.append(Path(shutil.copy(path, folder / "lib" / name)))
        collected.append(Path(shutil.copy(program, folder / program.name)))
        strip(collected[-1])
    return collected


def archive_of(folder):
    """The folder as one file beside it."""
    path = folder.with_name(folder.name + ".tar.xz")
    with tarfile.open(path, "w:xz", preset=2) as archive:
        archive.add(folder, arcname=folder.name)
    if path.stat().st_size > ARCHIVE_BYTES_MAX:
        raise SystemExit(f"{path}: {path.stat().st_size} bytes are too many to be carried; at most {ARCHIVE_BYTES_MAX}")
    return path


def pack(folder, programs):
    collected = collect(folder, programs)
    archive = archive_of(folder)
    print(f"{folder}: {', '.join(program.name for program in programs)}")
    print(f"{archive}: {archive.stat().st_size / 2**20:.1f} MiB")
    print(f"needs a driver of CUDA, Python 3.9 and glibc {oldest_c_library(collected)}, or later ones")
    return 0


def chosen(names):
    unknown = set(names) - set(GROUPS) - {run.name for run in RUNS}
    if unknown:
        print(f"no run is called {', '.join(sorted(unknown))}; groups are {', '.join(GROUPS)}", file=sys.stderr)
        raise SystemExit(2)
    return [run for run in RUNS if not names or run.group in names or run.name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="collect programs, their libraries and this script, also as FOLDER.tar.xz")
    packing.add_argument("folder", type=Path)
    packing.add_argument("programs", type=Path, nargs="+")
    running = commands.add_parser(
        "run", formatter_class=argparse.RawDescriptionHelpFormatter, help="run the programs beside this script",
        epilog="exit codes:\n  0   all have passed, or could not run here\n"
        "  1   one failed, did not end in time or was not reached, or a sanitizer has a finding\n"
        "  2   no run is called so\n"
        "  77  none could run here: all were skipped")
    running.add_argument("--seconds", type=float, default=570, help="for all of them together [%(default)s]")
    running.add_argument("--logs", type=Path, default=Path("logs"), help="folder for the logs and the table [%(default)s]")
    running.add_argument("names", nargs="*", metavar="NAME",
                         help=f"a group ({', '.join(GROUPS)}), or one of its runs: tests/cuda_tests [all]")
    options = parser.parse_args()
    if options.command == "pack":
        return pack(options.folder, options.programs)
    return perform_all(chosen(options.names), options.seconds, options.logs)


if __name__ == "__main__":
    sys.exit(main())
