// SPDX-License-Identifier: Apache-2.0
// Goal: lines come when they are due and say what is so. Method: samples with given times, texts
// compared.
#include "tests/doctest.hpp"
#include "tools/progress.hpp"

#include <limits>

namespace {

using namespace troupe;
using namespace std::chrono_literals;

progress_sample at(uint64_t step) {
  progress_sample sample;
  sample.step = step;
  sample.step_count = 2000;
  sample.loss = 2.345;
  sample.examples_per_second = 12'934.6;
  sample.live = 4;
  sample.needed = 3;
  sample.dropped = 17;
  return sample;
}

} // namespace

TEST_SUITE("tools/progress") {
  TEST_CASE("writes whole lines where no terminal is") {
    progress line{{.loss_unit = "bits/byte"}};
    CHECK(
      line.update(at(1), 100ms)
      == "  0 %  step     1/2,000  loss 2.35 bits/byte  12,935 examples/s  replicas 4/3 needed  "
         "17 dropped\n");
    CHECK(
      line.update(at(500), 40s)
      == " 25 %  step   500/2,000  loss 2.35 bits/byte  12,935 examples/s  replicas 4/3 needed  "
         "17 dropped  ETA 2 min 00 s\n");
    CHECK(
      line.update(at(2000), 160s)
      == "100 %  step 2,000/2,000  loss 2.35 bits/byte  12,935 examples/s  replicas 4/3 needed  "
         "17 dropped  took 2 min 40 s\n");
    CHECK(line.finish().empty());
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

  TEST_CASE("never lets a terminal wrap the line") {
    progress line{{.terminal = true, .width = 40}};
    CHECK(line.update(at(1), 0s).size() == std::string{"\r\x1b[K"}.size() + 39);
    progress nowhere{{.terminal = true, .width = 0}};
    CHECK(nowhere.update(at(1), 0s) == "\r\x1b[K");
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
    CHECK(line.update(sample, 1s)
          == "step 1,234  loss -  - examples/s  replicas 0/0 needed  0 dropped\n");
  }
}
