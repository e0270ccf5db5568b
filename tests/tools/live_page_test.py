# SPDX-License-Identifier: Apache-2.0
# Goal: a browser that looks at a job sees what its files will say, and has nothing to complain about, however the job ends.
# Method: jobs of the command, looked at by Chromium without a window.  Usage: live_page_test.py PATH/TO/troupe
import http.client
import json
import re
import signal
import subprocess
import unittest

from job_processes import A_BACKUP, ALL_FOUR, FOR_EVER, PLAIN, SMALL, TROUPE, WATCHED, Job, Process, SideBySide, addresses
from run_pages import Browser, check_page

ONE_SLOW = "--policy latest_token --aggregate 3 --slow 3=5".split()
IS_LIVE = "run.is_live && run.progress.steps > 0"


class LivePage(Job):
    def browse(self, job, *size):
        browser = Browser(*size)
        self.addCleanup(browser.close)
        browser.visit(re.search(r"http\S+", job.says("^page"))[0])
        return browser

    def check(self, browser):
        """The page of a job that is over says what its files say, and what its report says."""
        browser.until("!run.is_live")
        shown, data = browser.shown(), json.loads(browser.value("JSON.stringify(run)"))
        check_page(self, self.folder / "run", shown, data)
        report = (self.folder / "run" / "report.html").read_text()
        self.assertEqual(json.loads(re.search(r'id="run">(.*)</script>', report)[1]), data)
        self.assertEqual(browser.complaints, [])
        return shown

    def test_a_job_that_was_looked_at_says_in_the_end_what_its_ledger_says(self):
        job = Process(self, "alone", [TROUPE, "train", *SMALL, *ONE_SLOW, *FOR_EVER, *WATCHED, "--run-dir", "run"], PLAIN)
        browser = self.browse(job)
        browser.until(IS_LIVE)
        first = browser.value("run.progress.step")
        browser.until(f"run.progress.step > {first}")
        self.assertEqual(browser.value("document.getElementById('state').textContent"), "running")
        browser.until("document.getElementById('replicas').textContent.includes('times as long as the others')")
        browser.until("document.getElementById('what_if').textContent.includes('wait for all replicas')")
        job.send(signal.SIGTERM)
        job.ends(128 + signal.SIGTERM)
        shown = self.check(browser)
        self.assertEqual(shown.text["state"], "ended before its last step")

    def test_a_worker_that_is_killed_is_named_on_the_page(self):
        job = self.start_all(addresses(ps=1, worker=4), *A_BACKUP, *FOR_EVER, *WATCHED)
        browser = self.browse(job["worker:0"])
        browser.until(IS_LIVE)
        job["worker:2"].send(signal.SIGKILL)
        browser.until("document.getElementById('notices').textContent.includes('lost replica 2')")
        browser.until("document.getElementById('tile-health').textContent.includes('3 live')")
        job["worker:0"].send(signal.SIGTERM)
        job["worker:0"].ends(128 + signal.SIGTERM)
        self.assertIn("lost replica 2", self.check(browser).text["notices"])

    def test_a_job_that_ends_for_lack_of_a_worker_says_why(self):
        job = self.start_all(addresses(ps=1, worker=2), *ALL_FOUR, "--epochs", "1000000", *WATCHED)
        browser = self.browse(job["worker:0"])
        browser.until(IS_LIVE)
        job["worker:1"].send(signal.SIGKILL)
        reason = job["worker:0"].ends(4, "worker:1")
        shown = self.check(browser)
        self.assertIn(reason, [row[1] for row in shown.rows["notices"]])
        self.assertEqual(shown.text["state"], "ended before its last step")

    def test_a_job_that_is_killed_does_not_answer_any_more_and_is_not_asked_again(self):
        job = Process(self, "alone", [TROUPE, "train", *SMALL, *ONE_SLOW, *FOR_EVER, *WATCHED, "--run-dir", "run"], PLAIN)
        browser = self.browse(job)
        browser.until(IS_LIVE)
        job.send(signal.SIGKILL)
        browser.until("document.getElementById('state').textContent === "
                      "'running when it was seen last: the job does not answer'")
        browser.resize(400, 800)
        browser.until("document.documentElement.scrollWidth <= 400")
        self.assertEqual(browser.value("news.readyState"), browser.value("EventSource.CLOSED"))
        self.assertEqual(browser.complaints, [])

    def test_beyond_loopback_a_token_is_needed(self):
        command = [TROUPE, "train", *SMALL, *ONE_SLOW, *FOR_EVER, *WATCHED, "--metrics-address", "0.0.0.0"]
        given = "a-token-of-ones-own"
        for environment in ({}, {"TROUPE_METRICS_TOKEN": given}):
            run = f"run-{len(environment)}"
            job = Process(self, run, [*command, "--run-dir", run], {**PLAIN, **environment})
            host, port, token = re.search(r"//(\S+):(\d+)/\?token=(\S+)$", job.says("^page")).groups()
            self.assertNotEqual(host, "0.0.0.0")  # no other machine could open it
            self.assertEqual(token == given, bool(environment))
            self.assertGreaterEqual(len(token), 16)
            self.assertNotIn(token, (self.folder / run / "config.toml").read_text())
            for path in ("/", "/events", "/metrics", "/actors"):
                for proof, headers, status in (("", {}, 401), ("?token=" + token[:-1], {}, 401), ("?token=" + token, {}, 200),
                                               ("", {"Authorization": f"Bearer {token}"}, 200)):
                    connection = http.client.HTTPConnection(host, int(port), timeout=100)
                    connection.request("GET", path + proof, headers=headers)
                    self.assertEqual(connection.getresponse().status, status, path + proof)
                    connection.close()
            top = [TROUPE, "top", "--once", f"{host}:{port}"]
            refused = subprocess.run(top, env=PLAIN, text=True, capture_output=True, timeout=100)
            self.assertEqual((refused.returncode, refused.stderr.count("\n")), (1, 1), refused.stderr)
            self.assertIn("TROUPE_METRICS_TOKEN", refused.stderr)
            looked = subprocess.run(top, env={**PLAIN, "TROUPE_METRICS_TOKEN": token}, text=True, capture_output=True, timeout=100)
            self.assertEqual((looked.returncode, looked.stderr), (0, ""))
            job.send(signal.SIGKILL)

    def test_what_is_no_token_is_refused_before_anything_is_written(self):
        for token in ("short", "a token with blanks in it", "x" * 129):
            refused = subprocess.run([TROUPE, "train", *SMALL, *WATCHED, "--run-dir", "run"], cwd=self.folder, text=True,
                                     env={**PLAIN, "TROUPE_METRICS_TOKEN": token}, capture_output=True, timeout=100)
            self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 1), refused.stderr)
            self.assertIn("TROUPE_METRICS_TOKEN must be", refused.stderr)
            self.assertNotIn(token, refused.stderr)
            self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
