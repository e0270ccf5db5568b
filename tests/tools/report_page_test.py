# SPDX-License-Identifier: Apache-2.0
# Goal: the page of a run says what its files say, and a browser finds nothing to complain about.  Method: runs of the
# command, whose pages Chromium draws without a window; the numbers are added up here, from the ledger.
# Usage: report_page_test.py PATH/TO/troupe
import csv
import html.parser
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TROUPE = os.path.abspath(sys.argv.pop(1))
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
if BROWSER is None:
    print("no chromium: apt-get install chromium (90 MB) to test pages")
    sys.exit(77)
TEXT = "the quick brown fox jumps over the lazy dog; " * 60
SMALL = "--text text --batch 8 --context 4 --embedding 4 --hidden 16".split()
ONE_SLOW = "--replicas 4 --aggregate 3 --policy latest_token --slow 3=5 --world virtual".split()


class Elements(html.parser.HTMLParser):
    """The text below each element with an id, and the rows of its table."""

    VOID = {"meta", "link", "br", "img", "input", "hr"}

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.rows, self.styles = [], {}, {}, []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag in self.VOID:
            return
        self.styles.append(dict(attributes).get("style"))
        self.open.append((tag, dict(attributes).get("id")))
        inside = [name for _, name in self.open if name]
        for name in inside:
            self.text.setdefault(name, "")
            if tag == "tr":
                self.rows.setdefault(name, []).append([])
            if tag in ("td", "th"):
                self.rows[name][-1].append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tags = [tag for tag, _ in self.open]
        for _, name in self.open:
            if name:
                self.text[name] += data
                if {"td", "th"} & set(tags):
                    self.rows[name][-1][-1] += data


def plain(text):
    return float(text.replace(",", ""))


class ReportPage(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "text").write_text(TEXT)

    def troupe(self, *arguments, code=0):
        done = subprocess.run([TROUPE, *arguments], cwd=self.folder, text=True, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def browse(self, page, *options):
        """The page as the browser has it after its scripts, and what these had to say."""
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
                   f"--user-data-dir={self.folder}/browser", "--virtual-time-budget=3000", *options, "--dump-dom", page]
        shown = subprocess.run(command, text=True, capture_output=True, timeout=120)
        said = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(said, [])
        return Elements(shown.stdout)

    def ledger(self, run):
        """The lines of whole steps: a step with a line that was cut off is none."""
        text = (self.folder / run / "ledger.csv").read_text()
        lines = list(csv.DictReader(text.splitlines()))
        return lines if text.endswith("\n") else [line for line in lines if line["step"] != lines[-1]["step"]]

    def check_page(self, run, shown):
        """Everything that can be added up again from the ledger."""
        lines = self.ledger(run)
        verdicts = {verdict: [line for line in lines if line["verdict"] == verdict]
                    for verdict in ("accepted", "stale", "cancelled")}
        steps = int(lines[-1]["step"])
        self.assertEqual(shown.text["tile-steps"].split("Steps")[1].split("of")[0].split("in")[0], f"{steps:,}")
        self.assertIn(f"{len(verdicts['accepted']):,} accepted, {len(verdicts['stale']):,} late, "
                      f"{len(verdicts['cancelled']):,} cancelled", shown.text["tile-gradients"])
        for row in shown.rows["replicas"][1:]:
            own = [line for line in lines if line["replica"] == row[0].replace(",", "")]
            self.assertEqual([int(plain(cell)) for cell in row[2:5]],
                             [sum(line["verdict"] == verdict for line in own) for verdict in verdicts])
        data = json.loads(shown.text["run"])
        held_up = {}
        for line in verdicts["accepted"]:
            if line["waited_for"] not in ("", line["replica"]):  # one step may take two gradients of a replica
                held_up[line["waited_for"]] = held_up.get(line["waited_for"], 0) + float(line["waited_for_seconds"])
        waits = sum(map(sum, data["waits"]["cells"]))
        self.assertAlmostEqual(waits, sum(held_up.values()), delta=1e-3 * waits)
        for replica in data["replicas"]:
            self.assertAlmostEqual(replica["held_up"], held_up.get(str(replica["replica"]), 0),
                                   delta=1e-4 * (1 + replica["held_up"]))
        ends = [float(line["arrived_seconds"]) + float(line["idle_seconds"]) for line in verdicts["accepted"]]
        with open(self.folder / run / "metrics.csv", newline="") as metrics:
            first = next(csv.DictReader(metrics))
        mean = (max(ends) - float(first["seconds"]) + float(first["step_seconds"])) / steps
        self.assertAlmostEqual(data["step_seconds"]["mean"], mean, delta=1e-4 * mean)
        self.assertEqual(sum(map(sum, data["arrivals"]["cells"])), len(verdicts["accepted"]))
        return data

    def test_the_page_of_a_finished_run_says_what_its_files_say(self):
        self.troupe("train", *SMALL, *ONE_SLOW, "--steps", "300", "--evaluate-every", "100", "--run-dir", "run")
        page = self.folder / "run" / "report.html"
        shown = self.browse(page.as_uri())
        data = self.check_page("run", shown)
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
        shown = self.browse((self.folder / "run" / "report.html").as_uri())
        self.check_page("run", shown)
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
        for options in [["--window-size=400,800"], ["--window-size=2560,1400"]]:
            data = self.check_page("run", self.browse(page.as_uri(), *options))
        self.assertEqual(data["replica_count"], 1000)
        slow = [one for one in data["replicas"] if one["health"] == "slow"]
        self.assertEqual(len(slow), 5)

    def test_texts_of_files_stay_texts(self):
        name = "<img src=x onerror=alert(1)>"
        self.troupe("train", *SMALL, *ONE_SLOW, "--steps", "20", "--run-dir", name)
        with open(self.folder / name / "notices.csv", "a") as notices:
            notices.write('7,"</script><script>console.error(""no"")</script>, <b>lost</b>"\n')
        self.troupe("report", name)
        shown = self.browse((self.folder / name / "report.html").as_uri())
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
