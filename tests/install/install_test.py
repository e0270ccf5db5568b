# SPDX-License-Identifier: Apache-2.0
# Goal: what `meson install` leaves is all that a trainer needs, whichever way it looks for Troupe.
# Method: installs into a scratch folder, builds the trainer beside this file in every way, and runs it.
# Usage: install_test.py ROOT BUILD
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
TRAINER = pathlib.Path(__file__).resolve().parent / "trainer"
FOLDERS = ["actors", "kernels", "messages", "simulation", "strategies", "tools/job", "tools/options", "tools/replay", "tools/report", "tools/run",
           "tools/system"]
FILES_OF_A_RUN = {"checkpoints", "config.toml", "evaluations.csv", "ledger.csv", "loss.svg", "metrics.csv", "replicas.csv", "steps.svg",
                  "timeline.json"}
# What projects ask of their own code, and a header that is no system header is taken for it.
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wold-style-cast", "-Woverloaded-virtual"]
# Nothing around the test may help to find what it looks for.
SURROUNDINGS = ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "DESTDIR"]


def run(*command, **environment):
    """What the command prints; an AssertionError with all it said, if it fails."""
    clean = {name: value for name, value in os.environ.items() if name not in SURROUNDINGS}
    done = subprocess.run(
        command, env=clean | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.folder / "installed")
        cls.pkg_config = next((cls.folder / "installed").rglob("troupe.pc")).parent
        cls.prefix = next(folder for folder in cls.pkg_config.parents if (folder / "include").exists())
        cls.libraries = {"PKG_CONFIG_PATH": str(cls.pkg_config), "LD_LIBRARY_PATH": str(cls.pkg_config.parent)}
        cls.trainer = shutil.copytree(TRAINER, cls.folder / "trainer")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def pc(self, *what):
        return run("pkg-config", *what, "troupe", **self.libraries).split()

    def assert_trains(self, trainer):
        self.assertEqual(run(trainer, **self.libraries), "after 10 steps: 2.997\n")

    def assert_is_a_job(self, trainer):
        folder = trainer.parent / "run"
        said = run(trainer, "--world", "virtual", "--run-dir", folder, **self.libraries)
        self.assertIn("after 40 steps: 3.000\n", said)
        left = {path.name for path in folder.iterdir()}
        self.assertLessEqual(FILES_OF_A_RUN, left)

    def test_every_header_and_schema_is_installed(self):
        public = set((ROOT / "tools/package/public_headers.txt").read_text().split())
        ours = {path for folder in FOLDERS for kind in ("hpp", "capnp") for path in (ROOT / folder).rglob(f"*.{kind}")}
        files = {str(path.relative_to(ROOT)) for path in ours if path.parent.name != "pch"}
        self.assertEqual(sorted(public - files), [], "tools/package/public_headers.txt names what is not there")
        schemas = {file for file in files if file.endswith(".capnp")}
        wanted = public | schemas | {f"{path}.h" for path in schemas} | {"messages/every_body.hpp", "troupe.hpp"}
        wanted |= {f"detail/{file}" for file in files - public - schemas}
        include = self.prefix / "include" / "troupe"
        installed = {str(path.relative_to(include)) for path in include.rglob("*.*")}
        self.assertEqual(sorted(wanted - installed), [], "a new file is found by: meson setup --reconfigure")
        self.assertEqual(installed, wanted)

    def test_headers_include_what_is_installed(self):
        include = self.prefix / "include" / "troupe"
        for path in include.rglob("*.hpp"):
            for file in re.findall(r'^# *include "(.*)"', path.read_text(), re.MULTILINE):
                self.assertTrue((include / file).exists() or (include / "detail" / file).exists(), f"{path.name} includes {file}")

    def test_examples_include_what_is_public(self):
        public = set((ROOT / "tools/package/public_headers.txt").read_text().split())
        for path in (ROOT / "examples").rglob("*.[ch]pp"):
            included = set(re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE))
            other = {file for file in included - public if not file.startswith("examples/")}
            self.assertEqual(other, set(), f"{path.name}: for what tools/package/public_headers.txt does not name")

    def test_public_headers_warn_of_nothing(self):
        public = (ROOT / "tools/package/public_headers.txt").read_text().split()
        files = ["troupe.hpp"] + [file for file in public if not file.startswith("strategies/torch/")]
        source = self.folder / "all_headers.cpp"
        source.write_text("".join(f'#include "{file}"\n' for file in files))
        said = run("g++", "-fsyntax-only", *WARNINGS, source, *self.pc("--cflags"))
        ours = [line for line in said.splitlines() if "/include/troupe/" in line and " warning: " in line]
        self.assertEqual(ours, [])

    def test_the_package_can_be_moved(self):
        prefix = self.pc("--variable=prefix")[0]
        hint = "an older build directory needs: meson configure -Dpkgconfig.relocatable=true"
        self.assertEqual(pathlib.Path(prefix).resolve(), self.prefix.resolve(), hint)

    def test_a_compiler_and_pkg_config_are_enough(self):
        built = self.folder / "by_hand"
        # Both ways to write an include name the same file.
        either = ["-include", "troupe/strategies/jobs/training.hpp", "-include", "troupe.hpp"]
        run("g++", *either, self.trainer / "main.cpp", "-o", built, *self.pc("--cflags", "--libs"))
        self.assert_trains(built)

    def test_a_schema_of_ones_own_finds_ours(self):
        folder, built = self.folder / "own_schema", self.folder / "own_actor"
        (folder / "examples").mkdir(parents=True)
        for name in ("custom_actor_trainer.cpp", "jury.capnp"):
            shutil.copy(ROOT / "examples" / name, folder / "examples")
        schema = folder / "examples" / "jury.capnp"
        ours = f"-I{self.pc('--variable=schemadir')[0]}"
        run("capnp", "compile", ours, f"-oc++:{folder}", f"--src-prefix={folder}", schema)
        sources = [folder / "examples" / "custom_actor_trainer.cpp", f"{schema}.c++"]
        run("g++", f"-I{folder}", *sources, "-o", built, *self.pc("--cflags", "--libs"))
        self.assertRegex(run(built, **self.libraries), r"^after 500 steps: y = 3.000 x \+ 1.000;")

    def test_cmake_finds_it(self):
        built = self.folder / "by_cmake"
        run("cmake", "-G", "Ninja", "-S", self.trainer, "-B", built, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", built)
        self.assert_trains(built / "trainer")
        self.assert_is_a_job(built / "job_trainer")

    def test_cmake_hears_what_is_missing_and_goes_on(self):
        project = self.folder / "optional"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(optional C CXX)\nfind_package(troupe QUIET)\n"
                                                'message("found ${troupe_FOUND}: ${troupe_NOT_FOUND_MESSAGE}")\n')
        said = run("cmake", "-G", "Ninja", "-S", project, "-B", project / "built", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   PKG_CONFIG_LIBDIR="/nowhere")
        self.assertRegex(said, r"found 0: [\s\S]*required by 'troupe', not found")

    def test_meson_finds_it(self):
        built = self.folder / "by_meson"
        run("meson", "setup", built, self.trainer, "-Dbuildtype=plain", **self.libraries)
        run("meson", "compile", "-C", built)
        self.assert_trains(built / "trainer")
        self.assert_is_a_job(built / "job_trainer")

    def test_as_a_subproject_it_is_the_library_alone(self):
        parent, built = shutil.copytree(TRAINER, self.folder / "parent"), self.folder / "with_subproject"
        (parent / "subprojects").mkdir()
        (parent / "subprojects" / "troupe").symlink_to(ROOT)
        run("meson", "setup", built, parent, "--force-fallback-for=troupe")
        targets = json.loads(run("meson", "introspect", built, "--targets"))
        self.assertIn("troupe", [target["name"] for target in targets])
        programs = [target["name"] for target in targets if target["type"] == "executable"]
        self.assertEqual(sorted(programs), ["job_trainer", "trainer"])

    def test_the_command_is_installed(self):
        self.assertIn("train", run(self.prefix / "bin" / "troupe", "--help", **self.libraries))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
