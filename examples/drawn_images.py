#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a small data set in MNIST's format: ten digits of 16 x 16 pixels, moved, smeared and noisy.

Usage: drawn_images.py FOLDER [SEED].  Writes MNIST's four files there, of 2000 images to train on and 500 held out; the
same for the same seed.  Learn them by: troupe train --learn images --data FOLDER
"""

import pathlib
import random
import struct
import sys

SIDE = 16
DIGITS = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""
GLYPHS = list(zip(*(row.split() for row in DIGITS.split("\n") if row)))


def draw(digit, chance):
    """Each dot of the digit is two pixels high and wide, and may be missing; a little of it gets to the pixels beside."""
    grey = [[chance.gauss(0, 20) for _ in range(SIDE)] for _ in range(SIDE)]
    down, right = chance.randint(0, 2), chance.randint(0, 4)
    for row, dots in enumerate(GLYPHS[digit]):
        for column, dot in enumerate(dots):
            if dot == "#" and chance.random() > 0.05:
                bright = chance.uniform(120, 255)
                for y in range(2 * row + down - 1, 2 * row + down + 3):
                    for x in range(2 * column + right - 1, 2 * column + right + 3):
                        is_inside = 2 * row + down <= y < 2 * row + down + 2 and 2 * column + right <= x < 2 * column + right + 2
                        if 0 <= y < SIDE and 0 <= x < SIDE:
                            grey[y][x] += bright if is_inside else bright / 6
    return bytes(min(255, max(0, int(value))) for line in grey for value in line)


def write(folder, name, count, chance):
    labels = [chance.randrange(10) for _ in range(count)]
    images = b"".join(draw(label, chance) for label in labels)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, count, SIDE, SIDE) + images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, count) + bytes(labels))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) == 3 else 1)
    write(folder, "train", 2000, chance)
    write(folder, "t10k", 500, chance)


main()
