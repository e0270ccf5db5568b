// SPDX-License-Identifier: Apache-2.0
// Goal: lines come when they are due and say what is so. Method: samples and records with given
// times, texts compared.
#include "tests/actors/recording/sample_records.hpp"
#include "tests/doctest.hpp"
#include "tests/taken_output.hpp"
#include "tools/run/progress.hpp"
#include "tools/run/progress_hook.hpp"

#include <fmt/format.h>
#include <limits>

namespace progress_test {

namespace {

using namespace troupe;
using namespace std::chrono_literals;

progress_sample at(uint64_t step) {
  progress_sample sample;
  sample.step = step;
  sample.step_count = 2000;
  sample.loss = 2.345;
  sample.examples = 1000 * step;
  sample.examples_per_second = 12'934.6;
  sample.live = 4;
  sample.needed = 3;
  sample.dropped = 17;
  return sample;
}

} // namespace

TEST_SUITE("tools/run/progress") {
  TEST_CASE("writes whole lines where no terminal is") {
    progress line{{.loss_unit = "bits/byte"}};
    CHECK(line.update(at(1), 100ms)
          == "step     1/2,000  loss 2.35 bits/byte  12,935 examples/s  live 4/3  17 dropped\n");
    CHECK(line.update(at(501), 40100ms)
          == "step   501/2,000  loss 2.35 bits/byte  12,500 examples/s  live 4/3  17 dropped  "
             "2:00 left\n");
    CHECK(line.update(at(2000), 160s)
          == "step 2,000/2,000  loss 2.35 bits/byte  12,502 examples/s  live 4/3  17 dropped  "
             "2:40 in all\n");
    CHECK(line.finish().empty());
  }

  TEST_CASE("tells the speed of the last seconds, not that of one step") {
    const auto has = [](const std::string& text, std::string_view speed) {
      return text.find(fmt::format("  {} examples/s", speed)) != std::string::npos;
    };
    progress line{{}};
    CHECK(has(line.update(at(1), 1s), "12,935"));
    CHECK(line.update(at(2), 2s).empty());
    CHECK(has(line.update(at(3), 6s), "400"));
    CHECK(has(line.update(at(1999), 11s), "399,200"));
    CHECK(has(line.update(at(2000), 12s), "332,833"));
    progress rewritten{{.terminal = true, .width = 200}};
    CHECK(has(rewritten.update(at(1), 0s), "12,935"));
    CHECK(has(rewritten.update(at(11), 1s), "10,000"));
    CHECK(has(rewritten.update(at(31), 3s), "10,000"));
    CHECK(has(rewritten.update(at(32), 5s), "6,200"));
    CHECK(has(rewritten.update(at(33), 6s), "667"));
  }

  TEST_CASE("says nothing of losses that are not reported, and shows one that is lost") {
    auto sample = at(1);
    sample.loss = std::numeric_limits<double>::quiet_NaN();
    CHECK(progress{{}}.update(sample, 1s).find("loss -  12,935 examples/s") != std::string::npos);
    sample.examples_per_second = 0;
    CHECK(progress{{}}.update(sample, 1s) == "step     1/2,000  live 4/3  17 dropped\n");
  }

  TEST_CASE("writes a plain line per tenth of a quick run") {
    progress line{{}};
    int lines = 0;
    for (uint64_t step = 1; step <= 2000; ++step)
      lines += !line.update(at(step), step * 1ms).empty();
    CHECK(lines == 11);
  }

  TEST_CASE("writes a plain line every five seconds of a slow run") {
    progress line{{}};
    CHECK_FALSE(line.update(at(1), 0s).empty());
    CHECK(line.update(at(2), 4999ms).empty());
    CHECK_FALSE(line.update(at(3), 5s).empty());
    CHECK(line.update(at(4), 6s).empty());
    CHECK_FALSE(line.update(at(5), 10s).empty());
  }

  TEST_CASE("rewrites one line on a terminal, ten times a second at most") {
    progress line{{.terminal = true, .width = 200}};
    const auto first = line.update(at(1), 0s);
    CHECK(first.find("\r\x1b[K") == 0);
    CHECK(first.find('\n') == std::string::npos);
    CHECK(line.update(at(2), 99ms).empty());
    CHECK_FALSE(line.update(at(3), 100ms).empty());
    CHECK_FALSE(line.update(at(2000), 101ms).empty());
    CHECK(line.update(at(2000), 102ms).empty());
    CHECK(line.finish() == "\n");
    CHECK(line.finish().empty());
  }

  TEST_CASE("leaves out what a narrow terminal has no room for") {
    const auto shown = [](size_t width) {
      progress line{{.terminal = true, .width = width, .loss_unit = "bits/byte"}};
      CHECK_FALSE(line.update(at(1), 0s).empty());
      return line.update(at(501), 40s).substr(4);
    };
    CHECK(shown(90)
          == "step   501/2,000  loss 2.35 bits/byte  12,500 examples/s  live 4/3  17 dropped  2:00 "
             "left");
    CHECK(shown(80)
          == "step   501/2,000  loss 2.35 bits/byte  12,500 examples/s  live 4/3  17 dropped");
    CHECK(shown(60) == "step   501/2,000  loss 2.35 bits/byte  live 4/3  17 dropped");
    CHECK(shown(50) == "step   501/2,000  loss 2.35 bits/byte  live 4/3");
    CHECK(shown(40) == "step   501/2,000  loss 2.35 bits/byte");
    CHECK(shown(10) == "step   50");
    CHECK(shown(0).empty());
  }

  TEST_CASE("puts a message above the line") {
    progress line{{.terminal = true, .width = 200}};
    CHECK(line.message("replica 2 left") == "replica 2 left\n");
    const auto shown = line.update(at(1), 0s).substr(4);
    CHECK(line.message("replica 2 left") == "\r\x1b[Kreplica 2 left\n" + shown);
    progress plain{{}};
    CHECK_FALSE(plain.update(at(1), 0s).empty());
    CHECK(plain.message("replica 2 left") == "replica 2 left\n");
  }

  TEST_CASE("does without a known end, a loss, a rate") {
    progress line{{}};
    progress_sample sample;
    sample.step = 1234;
    CHECK(line.update(sample, 1s) == "step 1,234  loss -  - examples/s  live 0/0  0 dropped\n");
  }

  TEST_CASE("a gradient that came though its replica was told to stop is dropped once") {
    test::taken_output output;
    progress_hook hook;
    const session_control no_control{[](const std::string&) {}};
    auto step = test::step_with_a_straggler(); // with a stale gradient
    step.cancelled = {test::gradient(1, 7, 1450ms), test::gradient(2, 7, 1450ms)};
    hook.after_step(no_control, step);
    step.ended += 5s;
    step.stale = {test::gradient(1, 7, 1600ms)};
    step.cancelled.clear();
    hook.after_step(no_control, step);
    const auto said = output.said();
    CHECK(said.substr(0, said.find('\n')).ends_with("live 4/3  3 dropped"));
    CHECK(said.ends_with("live 4/3  3 dropped\n"));
  }
}

} // namespace progress_test
