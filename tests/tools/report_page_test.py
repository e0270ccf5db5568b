# SPDX-License-Identifier: Apache-2.0
# Goal: the page of a run says what its files say, and a browser finds nothing to complain about.  Method: runs of the
# command, whose pages Chromium draws without a window; the numbers are added up here, from the ledger.
# Usage: report_page_test.py PATH/TO/troupe
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from own_folder import TextTest
from run_pages import Browser, check_page

TROUPE = os.path.abspath(sys.argv.pop(1))
SMALL = "--text text --batch 8 --context 4 --embedding 4 --hidden 16".split()
ONE_SLOW = "--replicas 4 --aggregate 3 --policy latest_token --slow 3=5 --world virtual".split()


class ReportPage(TextTest):
    def troupe(self, *arguments, code=0):
        done = subprocess.run([TROUPE, *arguments], cwd=self.folder, text=True, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def browse(self, page, *size):
        """The page as the browser has it after its scripts, which have nothing to complain about; and what it draws."""
        browser = Browser(*size)
        self.addCleanup(browser.close)
        browser.visit(page.as_uri())
        self.assertEqual(browser.complaints, [])
        return browser.shown(), json.loads(browser.value("JSON.stringify(run)"))

    def check_page(self, run, page, *size):
        shown, data = self.browse(page, *size)
        check_page(self, self.folder / run, shown, data)
        return shown, data

    def test_the_page_of_a_finished_run_says_what_its_files_say(self):
        self.troupe("train", *SMALL, *ONE_SLOW, "--steps", "300", "--evaluate-every", "100", "--run-dir", "run")
        page = self.folder / "run" / "report.html"
        shown, data = self.check_page("run", page)
        self.assertEqual(shown.text["name"], "run")
        self.assertEqual(shown.text["state"], "finished")
        self.assertIn("of 300", shown.text["tile-steps"])
        self.assertIn("replica 3 takes 5.0 times as long as the others", shown.text["tile-health"])
        self.assertEqual(shown.rows["replicas"][4][1], "takes 5.0 times as long as the others")
        with open(self.folder / "run" / "evaluations.csv", newline="") as lines:
            last = list(csv.DictReader(lines))[-1]
        self.assertAlmostEqual(data["evaluations"]["last"], float(last["bits_per_byte"]), delta=1e-3)
        changes = {row[0]: row for row in shown.rows["what_if"][1:]}
        self.assertLessEqual({"as it was", "wait for all replicas", "repair replica 3", "policy cancel"}, set(changes))
        told = json.loads(self.troupe("sim", "replay", "run", "--aggregate", "4", "--json", "-").stdout)
        answer = next(one for one in data["what_if"]["answers"] if one["option"] == "--aggregate 4")
        self.assertAlmostEqual(answer["mean"], told["changed"]["mean"], delta=1e-3 * answer["mean"])

    def test_a_run_that_was_killed_has_a_page_too(self):
        command = [TROUPE, "train", *SMALL, "--steps", "100000000", "--run-dir", "run"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(job.kill)
        ledger = self.folder / "run" / "ledger.csv"
        while job.poll() is None and not (ledger.exists() and ledger.stat().st_size > 200_000):
            time.sleep(0.05)
        job.send_signal(signal.SIGKILL)
        job.wait(60)
        told = self.troupe("report", "run").stdout
        self.assertRegex(told, r"^run/report.html: [0-9,]+ steps, \d+ KB; open it in a browser\n$")
        shown, _ = self.check_page("run", self.folder / "run" / "report.html")
        self.assertEqual(shown.text["state"], "not finished: it was killed, or still runs")
        self.assertTrue(any(re.fullmatch(r"width: 0\.\d+%;", style or "") for style in shown.styles), "the bar of its progress")

    def test_a_simulated_run_of_a_thousand_replicas_fits_on_a_page(self):
        (self.folder / "run").mkdir()
        self.troupe("sim", "--replicas", "1000", "--aggregate", "960", "--policy", "cancel", "--compute",
                    "lognormal(1, 0.1) slow=5/1000*2.4", "--steps", "200", "--ledger", "run/ledger.csv", "--steps-csv",
                    "run/metrics.csv")
        self.troupe("report", "run", "--output", "page.html")
        page = self.folder / "page.html"
        self.assertLess(page.stat().st_size, 1_000_000)
        for size in [(400, 800), (2560, 1400)]:
            _, data = self.check_page("run", page, *size)
        self.assertEqual(data["replica_count"], 1000)
        slow = [one for one in data["replicas"] if one["health"] == "slow"]
        self.assertEqual(len(slow), 5)

    def test_a_run_that_took_no_time_has_axes_in_seconds(self):
        (self.folder / "run").mkdir()
        self.troupe("sim", "--replicas", "4", "--aggregate", "3", "--compute", "0", "--steps", "20", "--ledger", "run/ledger.csv",
                    "--steps-csv", "run/metrics.csv")
        self.troupe("report", "run", "--output", "page.html")
        shown, _ = self.check_page("run", self.folder / "page.html")
        self.assertIn("0.5 s", shown.text["times"])
        self.assertNotIn(" ns", shown.text["times"])

    def test_texts_of_files_stay_texts(self):
        name = "<img src=x onerror=alert(1)>"
        self.troupe("train", *SMALL, *ONE_SLOW, "--steps", "20", "--run-dir", name)
        with open(self.folder / name / "notices.csv", "a") as notices:
            notices.write('7,"</script><script>console.error(""no"")</script>, <b>lost</b>"\n')
        self.troupe("report", name)
        shown, _ = self.browse(self.folder / name / "report.html")
        self.assertEqual(shown.text["name"], name)
        self.assertEqual(shown.rows["notices"][1], ["7", '</script><script>console.error("no")</script>, <b>lost</b>'])

    def test_what_is_no_run_is_refused_in_one_line(self):
        (self.folder / "empty").mkdir()
        for arguments, culprit in [([], "troupe report runs/NAME"), (["nowhere"], "nowhere/ledger.csv"),
                                   (["empty"], "empty/ledger.csv"), (["text"], "text/ledger.csv"),
                                   (["a", "b"], "'b'"), (["--pdf", "a"], "--pdf")]:
            refused = self.troupe("report", *arguments, code=2)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
            self.assertIn(culprit, refused.stderr)
        self.assertIn("Exit codes", self.troupe("report", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
