# SPDX-License-Identifier: Apache-2.0
# Pages of runs in Chromium, for the tests that look at them: what a browser makes of a page, and what the files say.
import csv
import fcntl
import html.parser
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
if PROGRAM is None:
    print("no chromium: apt-get install chromium (90 MB) to test pages")
    sys.exit(77)
ANSWER_SECONDS = 100  # for what takes a moment, on a machine that does much else


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


class Browser:
    """Chromium without a window and with one page.  It is told what to do by a pipe, in the Chrome DevTools Protocol."""

    def __init__(self, width=1200, height=900, theme="light"):
        commands, self.commands = self.high_pipe()
        self.answers, answers = self.high_pipe()

        def pipes_as_the_browser_expects_them():
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # helpers of the browser end after it
        command = [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                   f"--user-data-dir={self.scratch.name}", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=pipes_as_the_browser_expects_them, pass_fds=(3, 4),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.number, self.read, self.session, self.complaints = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    @staticmethod
    def high_pipe():
        """A pipe at numbers that the browser's own do not collide with."""
        low = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
        for end in low:
            os.close(end)
        return high

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(ANSWER_SECONDS)
        os.close(self.commands)
        os.close(self.answers)
        self.scratch.cleanup()

    def message(self):
        """The next one.  What the page had to complain about is kept."""
        while b"\0" not in self.read:
            assert select.select([self.answers], [], [], ANSWER_SECONDS)[0], "the browser says nothing"
            more = os.read(self.answers, 1 << 20)
            assert more, "the browser has ended"
            self.read += more
        text, self.read = self.read.split(b"\0", 1)
        said = json.loads(text)
        if said.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.complaints.append(said["params"])
        return said

    def call(self, method, **parameters):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        text = json.dumps(asked).encode() + b"\0"
        while text:
            text = text[os.write(self.commands, text):]
        while True:
            said = self.message()
            if said.get("id") == self.number:
                assert "error" not in said, said
                return said["result"]

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def visit(self, address):
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def shown(self):
        """The page as its scripts have made it."""
        return Elements(self.value("document.documentElement.outerHTML"))

    def until(self, expression):
        """Waits until an expression is true on the page."""
        end = time.monotonic() + ANSWER_SECONDS
        while not self.value(expression):
            assert time.monotonic() < end, f"never came to {expression}:\n{self.value('document.body.innerText')}"
            time.sleep(0.05)


def plain(text):
    return float(text.replace(",", ""))


def ledger_of(run):
    """The lines of whole steps: a step with a line that was cut off is none."""
    text = (run / "ledger.csv").read_text()
    lines = list(csv.DictReader(text.splitlines()))
    return lines if text.endswith("\n") else [line for line in lines if line["step"] != lines[-1]["step"]]


def check_page(test, run, shown, data):
    """Everything that can be added up again from the ledger in a folder.  `data` is what the page draws."""
    lines = ledger_of(run)
    verdicts = {verdict: [line for line in lines if line["verdict"] == verdict]
                for verdict in ("accepted", "stale", "cancelled")}
    steps = int(lines[-1]["step"])
    test.assertEqual(shown.text["tile-steps"].split("Steps")[1].split("of")[0].split("in")[0], f"{steps:,}")
    test.assertIn(f"{len(verdicts['accepted']):,} accepted, {len(verdicts['stale']):,} late, "
                  f"{len(verdicts['cancelled']):,} cancelled", shown.text["tile-gradients"])
    for row in shown.rows["replicas"][1:]:
        own = [line for line in lines if line["replica"] == row[0].replace(",", "")]
        test.assertEqual([int(plain(cell)) for cell in row[2:5]],
                         [sum(line["verdict"] == verdict for line in own) for verdict in verdicts])
    held_up = {}
    for line in verdicts["accepted"]:
        if line["waited_for"] not in ("", line["replica"]):  # one step may take two gradients of a replica
            held_up[line["waited_for"]] = held_up.get(line["waited_for"], 0) + float(line["waited_for_seconds"])
    waits = sum(map(sum, data["waits"]["cells"]))
    test.assertAlmostEqual(waits, sum(held_up.values()), delta=1e-3 * waits)
    for replica in data["replicas"]:
        test.assertAlmostEqual(replica["held_up"], held_up.get(str(replica["replica"]), 0),
                               delta=1e-4 * (1 + replica["held_up"]))
    ends = [float(line["arrived_seconds"]) + float(line["idle_seconds"]) for line in verdicts["accepted"]]
    with open(run / "metrics.csv", newline="") as metrics:
        first = next(csv.DictReader(metrics))
    mean = (max(ends) - float(first["seconds"]) + float(first["step_seconds"])) / steps
    test.assertAlmostEqual(data["step_seconds"]["mean"], mean, delta=1e-4 * mean)
    test.assertEqual(sum(map(sum, data["arrivals"]["cells"])), len(verdicts["accepted"]))
