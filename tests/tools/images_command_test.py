# SPDX-License-Identifier: Apache-2.0
# Goal: `troupe train --learn images` learns a data set, the same in every world, goes on where it stopped, and refuses what
# is no data set.  Method: runs the command on drawn digits.  Usage: images_command_test.py TROUPE DRAWN_IMAGES.PY
import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

DRAWN_IMAGES = os.path.abspath(sys.argv.pop(2))
TROUPE = os.path.abspath(sys.argv.pop(1))
TINY = ["--learn", "images", "--data", "set", "--filters", "4,4", "--dense", "8", "--batch", "8"]


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        subprocess.run([sys.executable, DRAWN_IMAGES, "set"], cwd=cls.folder, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def command(self, *words):
        return subprocess.run([TROUPE, *words], cwd=self.folder, text=True, capture_output=True, timeout=200)

    def trained(self, run, *options):
        result = self.command("train", *TINY, "--run-dir", run, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def column(self, run, name, table="metrics.csv"):
        with open(self.folder / run / table, newline="") as file:
            return [line[name] for line in csv.DictReader(file)]

    def refused(self, code, line, *options):
        result = self.command("train", *options)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (code, 1), result.stderr)
        self.assertIn(line, result.stderr)

    def test_the_drawn_digits_are_learnt(self):
        result = self.command("train", "--learn", "images", "--data", "set", "--steps", "200", "--world", "virtual",
                              "--evaluate-every", "100", "--run-dir", "learnt")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("image set set: 2000 images to train on, 500 held out\n", result.stderr)
        self.assertIn("model     convolutional network, filters 16,32, dense 64, images 16 x 16, classes 10: ",
                      result.stderr)
        self.assertIn("held-out images, share that is classified wrongly\n  this model   0.0", result.stdout)
        self.assertRegex(result.stdout, r"\n  always \d     0\.8\d\d\n")
        errors = [float(value) for value in self.column("learnt", "error_rate", "evaluations.csv")]
        self.assertEqual(len(errors), 2)
        self.assertLess(errors[-1], 0.05)

    def test_with_all_needed_threads_and_virtual_time_have_the_same_bits(self):
        alike = ["--steps", "10", "--strategy", "mirrored", "--replicas", "2"]
        for world in ("threads", "virtual"):
            self.trained(world, "--world", world, *alike)
        for table, name in (("metrics.csv", "loss"), ("evaluations.csv", "error_rate")):
            self.assertEqual(self.column("threads", name, table), self.column("virtual", name, table))

    def test_a_run_that_goes_on_ends_as_one_that_was_not_interrupted(self):
        alike = ["--world", "virtual", "--learning-rate-decay", "none", "--strategy", "mirrored"]
        self.trained("half", *alike, "--steps", "10")
        self.trained("whole", *alike, "--steps", "20")
        result = self.command("train", "--resume", "half", "--steps", "20", "--run-dir", "rest")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.column("whole", "loss")[10:], self.column("rest", "loss"))
        subprocess.run([sys.executable, DRAWN_IMAGES, "other", "2"], cwd=self.folder, check=True)
        self.refused(6, "--resume half: that run trained on another image set than other", "--resume", "half",
                     "--data", "other", "--steps", "20")
        self.refused(6, "--resume half: that run trained on no text; leave --learn as it was", "--resume", "half",
                     "--learn", "language", "--steps", "20")
        self.refused(6, "that run trains a convolutional network, filters 4,4, dense 8, images 16 x 16, classes 10, not "
                     "a convolutional network, filters 4, dense 8,", "--resume", "half", "--filters", "4", "--steps", "20")

    def test_it_trains_under_every_strategy_and_in_several_processes(self):
        for strategy in ("parameter_server", "multi_worker_mirrored"):
            self.trained(strategy, "--steps", "5", "--strategy", strategy)
            result = self.command("launch", "-n", "2", "--", TROUPE, "train", *TINY, "--steps", "5", "--strategy",
                                  strategy, "--replicas", "2", "--aggregate", "2", "--run-dir", "both-" + strategy)
            if strategy == "multi_worker_mirrored":
                self.assertEqual(result.returncode, 2, result.stderr)  # there an update takes all gradients
                result = self.command("launch", "-n", "2", "--", TROUPE, "train", *TINY, "--steps", "5", "--strategy",
                                      strategy, "--replicas", "2", "--run-dir", "both-" + strategy)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.column("both-" + strategy, "step"), ["1", "2", "3", "4", "5"])

    def test_a_folder_without_a_data_set_is_refused_in_one_line(self):
        images = ["--learn", "images"]
        self.refused(2, "--learn images needs a data set: name the folder of its files with --data DIR", *images)
        self.refused(2, "--data: cannot read nowhere/train-images-idx3-ubyte: No such file or directory; it is looked for in /",
                     *images, "--data", "nowhere")
        self.refused(2, "--text has no meaning where images are learnt: leave it out, or take --learn language", *TINY,
                     "--text", "set")
        self.refused(2, "--data has no meaning where a language is learnt: leave it out, or take --learn images", "--data", "set")
        self.refused(2, "--filters 1,1,1,1,1 --dense 64: image model: images of 16 x 16 cannot be halved by 5 "
                     "convolutions; list fewer of them", *images, "--data", "set", "--filters", "1,1,1,1,1")
        self.refused(2, "--filters 65536,65536 --dense 64: image model: filters 65536,65536, dense 64 and images of "
                     "16 x 16 make a variable of more than 2147483647 elements; choose smaller ones", *images, "--data",
                     "set", "--filters", "65536,65536")
        self.refused(2, "--filters must be", *images, "--data", "set", "--filters", "0")

    def test_a_run_of_images_writes_no_text(self):
        self.trained("silent", "--steps", "2")
        result = self.command("sample", "silent")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr, "troupe sample: silent/config.toml: this run learns images, and only language "
                         "models write text\n")


unittest.main()
