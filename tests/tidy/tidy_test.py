#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: tidy.py finds each kind of violation, at its line, and leaves a clean tree alone.

Method: a tiny clean tree in a temporary folder; each test spoils it in one place and reads what is said.
"""

import tempfile
import unittest
from pathlib import Path

import tidy

SLASHES = "// SPDX-License-Identifier: Apache-2.0\n// This file, in one sentence.\n"
HASHES = "# SPDX-License-Identifier: Apache-2.0\n"
HEADER = SLASHES + "#pragma once\n"
CLEAN = {
    "messages/errors/errc.hpp": HEADER,
    "messages/tensor.capnp": HASHES,
    "messages/msg.hpp": HEADER + '#include "messages/tensor.capnp.h"\n#include <capnp/message.h>\n',
    "kernels/sum.hpp": HEADER + '#include "messages/errors/errc.hpp"\n',
    "kernels/sum_cpu.cpp": SLASHES + '#include "kernels/sum.hpp"\n#include <vector>\n',
    "kernels/sum_cuda.cu": SLASHES + '#include "kernels/sum.hpp"\n',
    "actors/chief.hpp": HEADER + '#include "kernels/sum.hpp"\n#include "messages/msg.hpp"\n#include <caf/actor.hpp>\n',
    "strategies/mirrored.hpp": HEADER + '#include "actors/chief.hpp"\n',
    "tools/troupe.cpp": SLASHES + '#include "strategies/mirrored.hpp"\n',
    "tests/actors/chief_test.cpp": SLASHES + '#include "actors/chief.hpp"\nauto forever = caf::infinite;\n',
    "actors/meson.build": HASHES,
    "README.md": "Troupe\n",
}


def said_of(files):
    """What tidy says of a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return tidy.violations(tidy.Tree(root, files))


class TidyTest(unittest.TestCase):
    def refuses(self, path, text, where, *words):
        """`path` with this text is refused once, at `where`, in these words."""
        said = said_of({**CLEAN, path: text})
        self.assertEqual(len(said), 1, said)
        self.assertTrue(said[0].startswith(f"{where}: "), said)
        for word in words:
            self.assertIn(word, said[0])

    def test_refuses_sentences_without_a_subject(self):
        for word in ("What", "Of", "Those", "Likewise", "Whose"):
            self.refuses("actors/token.hpp", HEADER + f"// {word} waits\n", "actors/token.hpp:4", word)
        self.refuses("actors/token.hpp", HEADER + "int x; ///< A count. Of tokens.\n", "actors/token.hpp:4", "Of")
        self.refuses("actors/token.hpp", HEADER + "/// @param x Of tokens.\n", "actors/token.hpp:4", "Of")
        self.refuses("messages/one.capnp", HASHES + "# Those of a job.\n", "messages/one.capnp:2", "Those")
        self.assertEqual(said_of({**CLEAN, "actors/token.cpp": SLASHES + "// A line that says\n// What it means to it.\n"}), [])

    def test_leaves_a_clean_tree_alone(self):
        self.assertEqual(said_of(CLEAN), [])

    def test_refuses_words_for_people_in_comments(self):
        for word in ("nobody", "Whoever", "whom", "everybody"):
            self.refuses("actors/token.hpp", HEADER + f"// {word} waits\n", "actors/token.hpp:4", word)
        self.refuses("messages/one.capnp", HASHES + f"# for anybody\n", "messages/one.capnp:2", "anybody")
        self.assertEqual(said_of({**CLEAN, "actors/token.cpp": SLASHES + 'auto line = "nobody";\n'}), [])
        many = "// who asks, and whose it is\n" * (tidy.WHO_MAX // 2)
        self.assertEqual(said_of({**CLEAN, "actors/token.cpp": SLASHES + many}), [])
        self.assertIn("begin with the subject", said_of({**CLEAN, "actors/token.cpp": SLASHES + many + "// who\n"})[0])

    def test_refuses_a_second_type_of_a_name(self):
        first = 'namespace troupe {\n/// A { in a comment, "and a quote.\nclass part final : public base {\n  struct inner {};\n};\n}\n'
        second = "namespace troupe::test {\nstruct part {};\n}\nnamespace troupe {\nstruct part {\n  class inner {};\n};\n}\n"
        said = said_of({**CLEAN, "kernels/one.hpp": HEADER + first, "actors/other.hpp": HEADER + second})
        self.assertEqual(len(said), 2, said)
        self.assertTrue(said[0].startswith("actors/other.hpp:8: troupe::part is another type in kernels/one.hpp"), said)
        self.assertTrue(said[1].startswith("kernels/one.hpp:6: "), said)
        source = SLASHES + "namespace troupe {\nenum class part : int { a };\n}\n"
        self.assertEqual(len(said_of({**CLEAN, "kernels/one.hpp": HEADER + first, "actors/one.cpp": source})), 2)

    def test_lets_types_have_a_name_where_they_never_meet(self):
        hidden = "namespace troupe {\nnamespace {\nstruct part {};\n}\n}\n"
        named = "namespace troupe {\nstruct part;\ntemplate <> struct part<int> {};\nenum class part f();\nstruct part {};\n}\n"
        self.assertEqual(said_of({**CLEAN, "kernels/a.cpp": SLASHES + hidden, "kernels/b.cpp": SLASHES + named}), [])
        self.assertEqual(said_of({**CLEAN, "examples/a.cpp": SLASHES + named, "tests/b.cpp": SLASHES + named}), [])
        self.assertEqual(len(said_of({**CLEAN, "tests/a.cpp": SLASHES + named, "tests/b.cpp": SLASHES + named})), 2)

    def test_refuses_an_include_that_points_up(self):
        text = HEADER + '#include "strategies/mirrored.hpp"\n'
        self.refuses("actors/token.hpp", text, "actors/token.hpp:4", "only points down")

    def test_refuses_an_include_of_a_room_that_is_not_below(self):
        there = {**CLEAN, "tools/train/job.hpp": HEADER, "tools/system/terminal.hpp": HEADER, "tools/help.hpp": HEADER}
        for include in ("tools/train/job.hpp", "tools/help.hpp"):
            said = said_of({**there, "tools/system/terminal.hpp": HEADER + f'#include "{include}"\n'})
            self.assertEqual(len(said), 1, said)
            self.assertIn(f'tools/system/terminal.hpp:4: tools/system must not include "{include}"', said[0])
        below = HEADER + '#include "tools/system/terminal.hpp"\n'
        self.assertEqual(said_of({**there, "tools/train/job.hpp": below, "tools/train/parts/one.hpp": below}), [])

    def test_refuses_that_the_grounds_see_each_other(self):
        text = HEADER + '#include "kernels/sum.hpp"\n'
        self.refuses("messages/wire.hpp", text, "messages/wire.hpp:4", "messages/ must not include")
        text = HEADER + '#include "messages/msg.hpp"\n'
        self.refuses("kernels/mean.hpp", text, "kernels/mean.hpp:4", "kernels/ must not include")

    def test_refuses_actors_on_the_ground(self):
        text = HEADER + "#include <caf/actor.hpp>\n"
        self.refuses("messages/wire.hpp", text, "messages/wire.hpp:4", "<caf/actor.hpp>")
        self.refuses("kernels/mean.hpp", text, "kernels/mean.hpp:4", "<caf/actor.hpp>")

    def test_refuses_schemas_in_kernels(self):
        text = HEADER + "#include <kj/array.h>\n"
        self.refuses("kernels/mean.hpp", text, "kernels/mean.hpp:4", "<kj/array.h>")

    def test_refuses_actors_in_device_code_even_at_second_hand(self):
        text = SLASHES + '#include "actors/token.hpp"\n'
        files = {**CLEAN, "actors/gpu.cu": text, "actors/token.hpp": HEADER + "#include <caf/actor.hpp>\n"}
        said = said_of(files)
        self.assertEqual(len(said), 1, said)
        self.assertTrue(said[0].startswith("actors/gpu.cu:1: "), said)
        self.assertIn("caf/actor.hpp", said[0])

    def test_refuses_an_include_that_does_not_start_at_the_root(self):
        self.refuses("kernels/mean.hpp", HEADER + '#include "sum.hpp"\n', "kernels/mean.hpp:4", "root")

    def test_refuses_our_own_headers_in_angle_brackets(self):
        text = HEADER + "#include <kernels/sum.hpp>\n"
        self.refuses("kernels/mean.hpp", text, "kernels/mean.hpp:4", 'write "kernels/sum.hpp"')

    def test_refuses_a_source_that_does_not_begin_with_its_own_header(self):
        text = SLASHES + '#include <vector>\n#include "kernels/sum.hpp"\n'
        self.refuses("kernels/sum.cpp", text, "kernels/sum.cpp:3", "own header")
        self.refuses("kernels/sum_cpu.cpp", text, "kernels/sum_cpu.cpp:3", "own header")

    def test_refuses_the_header_that_includes_all_of_caf(self):
        text = SLASHES + "#include <caf/all.hpp>\n"
        self.refuses("actors/token.cpp", text, "actors/token.cpp:3", "seconds")

    def test_refuses_a_wait_without_deadline_outside_tests(self):
        wait = SLASHES + "\nauto t = caf::infinite;"
        self.refuses("actors/token.cpp", wait + "\n", "actors/token.cpp:4", "deadline")
        self.assertEqual(said_of({**CLEAN, "actors/token.cpp": wait + " // the watch keeps it\n"}), [])

    def test_refuses_openmp(self):
        self.refuses("kernels/mean.cpp", SLASHES + "#pragma omp simd\n", "kernels/mean.cpp:3", "oneTBB")

    def test_refuses_a_missing_licence(self):
        self.refuses("kernels/mean.cpp", "// The mean.\n", "kernels/mean.cpp:1", "SPDX")
        self.refuses("kernels/meson.build", "\n", "kernels/meson.build:1", "SPDX")
        self.refuses("messages/wire.capnp", "@0xd0b6e2f4a3c19587;\n", "messages/wire.capnp:1", "SPDX")
        self.refuses("tests/run.sh", "#!/bin/sh\nset -e\n", "tests/run.sh:2", "SPDX")

    def test_refuses_a_file_that_does_not_say_what_it_is(self):
        text = "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n"
        self.refuses("kernels/mean.hpp", text, "kernels/mean.hpp:2", "sentence")

    def test_refuses_a_header_without_pragma_once(self):
        self.refuses("kernels/mean.hpp", SLASHES + "int x;\n", "kernels/mean.hpp:1", "#pragma once")
        guarded = SLASHES + "#ifndef GUARD\n#define GUARD\n#endif\n"
        self.assertEqual(said_of({**CLEAN, "tests/pch/caf.hpp": guarded}), [])

    def test_refuses_files_over_the_limit_and_allows_those_at_it(self):
        for path, begin, most in [
            ("kernels/mean.hpp", HEADER, tidy.HEADER_LINES_MAX),
            ("kernels/mean.cpp", SLASHES, tidy.SOURCE_LINES_MAX),
            ("tests/kernels/mean_test.cpp", SLASHES, tidy.TEST_LINES_MAX),
        ]:
            at_limit = begin + "\n" * (most - begin.count("\n"))
            self.assertEqual(said_of({**CLEAN, path: at_limit}), [])
            self.refuses(path, at_limit + "\n", f"{path}:{most + 1}", f"{most + 1} lines")

    def test_refuses_work_that_had_to_be_done_now(self):
        for todo in ["TODO(now)", "TODO"]:
            self.refuses("kernels/mean.cpp", SLASHES + f"// {todo}: overflow\n", "kernels/mean.cpp:3", todo)
        self.assertEqual(said_of({**CLEAN, "kernels/mean.cpp": SLASHES + "// TODO(perf): fuse\n"}), [])

    def test_refuses_tabs_blanks_and_an_open_end(self):
        self.refuses("kernels/mean.cpp", SLASHES + "\tint x;\n", "kernels/mean.cpp:3", "tab")
        self.refuses("kernels/mean.cpp", SLASHES + "int x; \n", "kernels/mean.cpp:3", "blank")
        self.refuses("kernels/mean.cpp", SLASHES + "int x;\r\n", "kernels/mean.cpp:3", "blank")
        self.refuses("docs/x.md", "Words", "docs/x.md:1", "end")


if __name__ == "__main__":
    unittest.main()
