#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one C++ source of the page's texts: embed.py page.html style.css SCRIPT... OUTPUT."""

import sys
from pathlib import Path

page, style, *scripts, output = map(Path, sys.argv[1:])
script = "'use strict';\n" + "\n".join(one.read_text() for one in scripts)
text = page.read_text().replace("STYLE", style.read_text()).replace("SCRIPT", script)
assert text.count('"RUN"') == 1, "the run's place stands in page.html, and nowhere else"
pieces = [text[i : i + 8000] for i in range(0, len(text), 8000)]  # compilers need not take longer literals
literals = "\n".join(f'R"page({piece})page"' for piece in pieces)
Path(output).write_text(f'#include "tools/report/report.hpp"\n\nnamespace troupe {{\n\n'
                        f"constinit const std::string_view page_template =\n{literals};\n\n}} // namespace troupe\n")
