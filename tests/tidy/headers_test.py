#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: a chain of headers hides nothing: whatever stands before a header in it, that header includes itself."""

import json
import tempfile
import unittest
from pathlib import Path

import headers


class Chains(unittest.TestCase):
    TREE = {"a.hpp": [], "b.hpp": ["a.hpp"], "c.hpp": ["b.hpp"], "d.hpp": ["a.hpp"], "e.hpp": []}

    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for header, included in self.TREE.items():
                (root / header).write_text("".join(f'#include "{other}"\n' for other in included) + "#include <vector>\n")
            self.included = headers.closures(root, self.TREE)

    def test_include_closures_reach_through_others(self):
        self.assertEqual(self.included["c.hpp"], {"a.hpp", "b.hpp"})
        self.assertEqual(self.included["e.hpp"], set())

    def test_each_header_is_in_one_chain_after_headers_that_it_includes(self):
        found = headers.chains(self.TREE, self.included)
        self.assertEqual(sorted(header for chain in found for header in chain), sorted(self.TREE))
        for chain in found:
            for i, header in enumerate(chain):
                self.assertLessEqual(set(chain[:i]), self.included[header])
        self.assertEqual(sorted(found), [["a.hpp", "b.hpp", "c.hpp"], ["d.hpp"], ["e.hpp"]])


class Compilation(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "headers").mkdir()
        (self.build / "a.hpp").write_text("template <class T> T of(T t) { return t.missing(); }\ninline int a() { return 1; }\n")
        (self.build / "b.hpp").write_text('#include "a.hpp"\ninline int b() { return a(); }\n')

    def complaints(self, chain):
        return headers.complaints(chain, self.build, {Path("."): ["c++", "-I.", "-std=c++20"]})

    def test_a_header_that_needs_another_one_before_it_is_named(self):
        self.assertEqual(self.complaints(["a.hpp", "b.hpp"]), [])
        (self.build / "b.hpp").write_text("inline int b() { return a(); }\n")
        (name, said), = self.complaints(["b.hpp"])
        self.assertEqual(name, "b.hpp")
        self.assertIn("was not declared", said)

    def test_a_header_is_compiled_again_only_when_a_file_has_changed_that_it_includes(self):
        self.assertEqual(self.complaints(["b.hpp"]), [])
        made = self.build / "headers" / "b.hpp.cpp.d"
        before = made.stat().st_mtime_ns
        self.assertEqual(self.complaints(["b.hpp"]), [])
        self.assertEqual(made.stat().st_mtime_ns, before)
        (self.build / "a.hpp").write_text("inline int c() { return 1; }\n")
        self.assertEqual([name for name, _ in self.complaints(["b.hpp"])], ["b.hpp"])


class CompiledSources(unittest.TestCase):
    def test_sources_that_are_compiled_together_have_the_flags_of_their_unit_and_prove_no_header(self):
        with tempfile.TemporaryDirectory() as folder:
            root, build = Path(folder), Path(folder) / "build"
            build.mkdir()
            (build / "a-unity0.cpp").write_text(f"#include<{build}/../a/x.cpp>\n#include<{build}/../a/y.cpp>\n")
            (build / "compile_commands.json").write_text(json.dumps([
                {"file": "a-unity0.cpp", "command": "c++ -DUNIT -o a.o -c a-unity0.cpp"},
                {"file": "../b/z.cpp", "command": "c++ -o z.o -c ../b/z.cpp"},
                {"file": "../b/w.cpp", "command": "c++ -include pch.hpp -o w.o -c ../b/w.cpp"}]))
            sources = headers.compiled_sources(root, build)
        self.assertEqual(headers.flags_only(sources[Path("a/y.cpp")]), ["c++", "-DUNIT"])
        proved = [h for h in ("a/x.hpp", "a/y.hpp", "b/z.hpp", "b/w.hpp") if headers.proves_itself(h, sources)]
        self.assertEqual(proved, ["b/z.hpp"])

    def test_headers_of_tests_that_are_not_compiled_here_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("tests/torch/a.cpp", "tests/shared/only.hpp", "tests/net/b.cpp", "torch/c.cpp"):
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).touch()
            flags = {Path("tests/net"): ["c++"]}
            built = [h for h in ("tests/torch/a.hpp", "tests/shared/only.hpp", "tests/net/b.hpp", "torch/c.hpp")
                     if headers.is_built(h, Path(folder), flags)]
        self.assertEqual(built, ["tests/shared/only.hpp", "tests/net/b.hpp", "torch/c.hpp"])


if __name__ == "__main__":
    unittest.main()
