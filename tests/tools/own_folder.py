# SPDX-License-Identifier: Apache-2.0
# Tests that have a folder of their own, and what they find there.
import json
import pathlib
import struct
import tempfile
import unittest

TEXT = "the quick brown fox jumps over the lazy dog; " * 60


def checkpoint(path):
    """The tensors of a safetensors file, by name, and what it says of its job."""
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header, payload = json.loads(content[8 : 8 + length]), content[8 + length :]
    job = json.loads(header.pop("__metadata__")["troupe.job"])
    return {name: payload[slice(*entry["data_offsets"])] for name, entry in header.items()}, job


class FolderTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)


class TextTest(FolderTest):
    """Its folder holds a text to learn."""

    def setUp(self):
        super().setUp()
        (self.folder / "text").write_text(TEXT)
