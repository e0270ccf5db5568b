# SPDX-License-Identifier: Apache-2.0
# Goal: what is carried to a machine with a GPU starts there, and carry.py says what came of it. Method: packs the programs
# and has carry.py start them where neither a GPU nor a library of ours is to be seen; then gives it commands that pass,
# hang, fail, or print what a sanitizer prints.
# Usage: carry_test.py PROGRAM...
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import carry

PROGRAMS = [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]
# Nothing around the test may help to find a library, and no GPU may be there.
SURROUNDINGS = {"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": ""}


class Packed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        carry.pack(pathlib.Path(cls.scratch.name) / "carried", PROGRAMS)
        there = pathlib.Path(cls.scratch.name).resolve() / "there"
        there.mkdir()
        subprocess.run(["tar", "xf", f"{cls.scratch.name}/carried.tar.xz", "-C", there], check=True)
        cls.folder = there / "carried"

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_every_library_is_found_in_the_folder_but_for_the_c_library(self):
        for program in PROGRAMS:
            found = carry.libraries_of(self.folder / program.name, SURROUNDINGS)
            self.assertEqual(found, {name: str(self.folder / "lib" / name) for name in found}, program.name)

    def test_all_runs_are_skipped_where_no_gpu_is(self):
        logs = self.folder / "logs"
        done = subprocess.run([self.folder / "carry.py", "run", "--logs", logs], env=SURROUNDINGS, cwd="/",
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, carry.SKIPPED, done.stdout + done.stderr)
        _, *rows = (line.split() for line in (logs / "table.txt").read_text().splitlines())
        self.assertEqual([row[0] for row in rows], [run.name for run in carry.RUNS])
        self.assertEqual({row[1] for row in rows}, {"skipped"})
        started = (logs / "tests.log").read_text() + (logs / "train.log").read_text()
        self.assertEqual(started.count("no GPU here"), started.count("\n== "), started)

    def test_every_program_is_run(self):
        run = " ".join(" ".join(run.command) for run in carry.RUNS)
        for program in PROGRAMS:
            self.assertIn(f"/{program.name}", run)

    def test_what_is_too_large_to_be_carried_is_refused(self):
        with mock.patch.object(carry, "ARCHIVE_BYTES_MAX", 1 << 20), self.assertRaises(SystemExit):
            carry.archive_of(self.folder)


class Judged(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.logs = pathlib.Path(scratch.name) / "logs"

    def perform(self, *runs, seconds=60):
        """@returns the exit code, and the rows of the table."""
        with contextlib.redirect_stdout(io.StringIO()):
            status = carry.perform_all(runs, seconds, self.logs)
        return status, (self.logs / "table.txt").read_text().splitlines()[1:]

    def sanitized(self, script):
        with mock.patch.object(carry, "gpu_count", return_value=1):
            return self.perform(carry.Run("memcheck/a", ["sh", "-c", script], 10, is_sanitized=True))

    def test_one_that_passes_makes_up_for_those_that_are_skipped(self):
        status, rows = self.perform(carry.Run("tests/a", ["sh", "-c", "exit 77"], 10), carry.Run("tests/b", ["true"], 10))
        self.assertEqual(status, 0)
        self.assertRegex(rows[0], r"^tests/a +skipped")
        self.assertRegex(rows[1], r"^tests/b +passed")

    def test_a_program_that_hangs_is_ended_at_its_limit_with_all_that_it_started(self):
        begin = time.monotonic()
        hangs = "trap '' TERM; sleep 987 & echo child $!; wait; wait"
        with mock.patch.object(carry, "GRACE_SECONDS", 0.2):
            status, rows = self.perform(carry.Run("tests/a", ["sh", "-c", hangs], 0.5), carry.Run("tests/b", ["true"], 10))
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(status, 1)
        self.assertRegex(rows[0], r"^tests/a +timeout")
        self.assertRegex(rows[1], r"^tests/b +passed")
        child = (self.logs / "tests.log").read_text().split("child ")[-1].split()[0]
        state = pathlib.Path(f"/proc/{child}/stat")
        self.assertTrue(not state.exists() or state.read_text().split()[2] == "Z")

    def test_what_no_time_is_left_for_is_not_reached(self):
        status, rows = self.perform(carry.Run("tests/a", ["sleep", "987"], 60), carry.Run("tests/b", ["true"], 10), seconds=0.3)
        self.assertEqual(status, 1)
        self.assertRegex(rows[0], r"^tests/a +timeout")
        self.assertRegex(rows[1], r"^tests/b +not reached")

    def test_a_failure_is_one_whatever_else_passes(self):
        status, rows = self.perform(carry.Run("tests/a", ["sh", "-c", "echo why; exit 3"], 10), carry.Run("tests/b", ["true"], 10))
        self.assertEqual(status, 1)
        self.assertRegex(rows[0], r"^tests/a +failed +[\d.]+ s  why$")

    def test_a_finding_is_a_failure_even_if_the_program_passes(self):
        status, rows = self.sanitized("echo '========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)'")
        self.assertEqual(status, 1)
        self.assertRegex(rows[0], r"^memcheck/a +finding .*1 hazard")

    def test_the_table_says_where_the_first_finding_is(self):
        said = ("========= COMPUTE-SANITIZER", "========= Error: Race reported between Write access at sum+0x1d0 in sums.cu:42",
                "=========     and Read access at sum+0x240 in sums.cu:45 [16 hazards]", "=========",
                "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)")
        _, rows = self.sanitized("; ".join(f"echo '{line}'" for line in said))
        self.assertRegex(rows[0], r"1 hazard .*: Error: Race .*sums\.cu:42 and Read access at .*sums\.cu:45 \[16 hazards\]$")

    def test_a_sanitizer_passes_if_it_counts_nothing_but_not_if_it_does_not_count(self):
        self.assertEqual(self.sanitized("echo '========= ERROR SUMMARY: 0 errors'")[0], 0)
        self.assertEqual(self.sanitized("echo '========= Device not supported'")[0], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
