# SPDX-License-Identifier: Apache-2.0
"""What programs print that do the same in rounds: the seconds of each, and "processor SECONDS" for all."""

import statistics
from typing import NamedTuple


class Laps(NamedTuple):
    seconds: float  # of a round, by the clock: the median, without the first tenth
    processor: float  # seconds of a round of all processes; 0 if they have not said it


def laps_of(output):
    words = [line.split() for line in output.splitlines()]
    seconds = [float(line[0]) for line in words if len(line) == 1]
    processor = sum(float(line[1]) for line in words if line[:1] == ['processor'])
    return Laps(statistics.median(seconds[len(seconds) // 10:]), processor / len(seconds))


def medians(turns):
    return Laps(*(statistics.median(values) for values in zip(*turns)))
