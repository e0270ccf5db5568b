# SPDX-License-Identifier: Apache-2.0
# Goal: the folder of programs for a machine with a GPU has all that they need. Method: collects it, asks the dynamic
# linker where it finds each library, and starts the programs where no GPU is to be seen.
# Usage: carry_test.py PROGRAM...
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

import collect

PROGRAMS = [pathlib.Path(argument).resolve() for argument in sys.argv[1:]]
SKIPPED = 77  # what Meson takes for skipped
BYTES_MAX = 64 << 20
# Nothing around the test may help to find a library, and no GPU may be there.
SURROUNDINGS = {"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": ""}


class Carry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name).resolve() / "carried"
        cls.collected = collect.collect(cls.folder, PROGRAMS)
        cls.programs = [cls.folder / program.name for program in PROGRAMS]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_every_library_is_found_in_the_folder_but_for_the_c_library(self):
        for program in self.programs:
            found = collect.libraries_of(program, SURROUNDINGS)
            self.assertEqual(found, {name: str(self.folder / "lib" / name) for name in found}, program.name)

    def test_programs_start_there_and_say_that_there_is_no_gpu(self):
        for program in self.programs:
            done = subprocess.run([program], env=SURROUNDINGS, cwd="/", capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, SKIPPED, f"{program.name}: {done.stdout}{done.stderr}")
            self.assertIn("skipped: ", done.stdout + done.stderr)

    def test_one_script_starts_them_all(self):
        done = subprocess.run([self.folder / "run"], env=SURROUNDINGS, cwd="/", capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, SKIPPED, done.stderr)
        for program in self.programs:
            self.assertIn(f"== {program.name}\n", done.stdout)

    def test_the_archive_is_small_enough_to_be_carried_and_holds_the_folder(self):
        archive = collect.archive_of(self.folder)
        self.assertLess(archive.stat().st_size, BYTES_MAX)
        with tarfile.open(archive) as opened:
            names = {member.name for member in opened if member.isfile()}
        ours = {str(path.relative_to(self.folder.parent)) for path in self.collected}
        self.assertEqual(names, ours | {f"{self.folder.name}/run"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
