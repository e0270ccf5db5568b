# SPDX-License-Identifier: Apache-2.0
# Goal: what a peer that reads slowly makes a node keep is bounded, in the memory that the process has: twice the window
# and one message in either direction.
# Method: two real processes with a small window, many times of which is sent; each tells its VmHWM.
# Usage: memory_test.py PATH/TO/memory_of_nodes
import os
import random
import re
import signal
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
WINDOW_MB, MESSAGE_MAX_MB = 16, 4
BOUND_MB = 2 * WINDOW_MB + MESSAGE_MAX_MB
# What is no message: buffers of the allocator's, stacks of threads, replies.
BESIDE_MB = 12
TIMEOUT = 120  # seconds, on a machine that does much else


class Memory(unittest.TestCase):
    def start(self, *words):
        process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def begin(self, for_each_ms, count, unanswered_max):
        port = random.randrange(20000, 32000)
        reader = self.start("reader", port, WINDOW_MB, for_each_ms)
        sender = self.start("sender", port, WINDOW_MB, count, unanswered_max)
        for process in (reader, sender):
            self.assertEqual(process.stdout.readline(), "met\n")
        return reader, sender

    def end(self, process):
        """How many megabytes it had more than when both had met, how many messages it counted, and what it said."""
        said, _ = process.communicate(timeout=TIMEOUT)
        met, most, messages, why = re.search(r"([0-9.]+) MB when .* ([0-9.]+) MB at most, (\d+) messages; (.*)",
                                             said).groups()
        return float(most) - float(met), int(messages), why

    def assert_bounded(self, megabytes):
        self.assertLess(megabytes, BOUND_MB + BESIDE_MB)

    def test_a_sender_without_end_gives_up_a_slow_reader_in_bounded_memory(self):
        reader, sender = self.begin(50, 10_000, 0)
        more, sent, why = self.end(sender)
        self.assertIn("it reads too slowly", why)
        self.assertGreater(sent, WINDOW_MB)
        self.assert_bounded(more)
        more, _, why = self.end(reader)
        self.assertIn("it reads too slowly", why)
        self.assert_bounded(more)

    def test_a_sender_that_waits_for_answers_waits_for_a_slow_reader(self):
        reader, sender = self.begin(2, 10 * BOUND_MB, WINDOW_MB + MESSAGE_MAX_MB - 1)
        more, sent, why = self.end(sender)
        self.assertEqual((sent, why), (10 * BOUND_MB, "all were answered"))
        self.assert_bounded(more)
        more, read, _ = self.end(reader)
        self.assertEqual(read, 10 * BOUND_MB)
        self.assert_bounded(more)

    def test_a_peer_that_reads_nothing_is_given_up_in_bounded_memory(self):
        reader, sender = self.begin(0, 1_000_000, 0)
        reader.send_signal(signal.SIGSTOP)
        more, _, why = self.end(sender)
        self.assertRegex(why, "it reads too slowly|nothing was heard of it")
        self.assert_bounded(more)
        reader.send_signal(signal.SIGCONT)
        more, _, _ = self.end(reader)
        self.assert_bounded(more)


if __name__ == "__main__":
    unittest.main()
