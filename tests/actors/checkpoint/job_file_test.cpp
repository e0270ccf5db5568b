// SPDX-License-Identifier: Apache-2.0
// Goal: a job comes out of a checkpoint file as it went in, and a file that holds none says so.
// Method: there and back, then one thing at a time missing or wrong.
#include "actors/checkpoint/job_file.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"

namespace job_file_test {

using namespace troupe;

namespace {

tensor filled(float value) {
  return make_tensor({2}, {value, value + 1});
}

job_snapshot example() {
  job_snapshot job{.step = 12, .time = job_time{345}, .seed = UINT64_MAX, .tokens = {10, 11, 11}};
  variable_snapshot weights{"weights", {}};
  weights.state.version = 12;
  weights.state.value = filled(1);
  weights.state.optimizer = "adam";
  weights.state.slots_since = 2;
  weights.state.slots = {{"m", filled(3)}, {"v", filled(5)}};
  weights.state.average = named_payload{"average", filled(7)};
  job.variables.push_back(std::move(weights));
  job.replicas.push_back({.replica = 3,
                          .computing = true,
                          .local_step = 11,
                          .iteration = 14,
                          .computations = 15,
                          .remaining = job_time{678},
                          .compute = job_time{901},
                          .kept = {{"position", filled(9)}}});
  job.backups = {{"arrivals", filled(11)}, {"steps", filled(13)}};
  return job;
}

float first_of(const tensor& payload) {
  return payload.values<float>()[0];
}

error error_of(const safetensors_content& content) {
  auto read = to_snapshot(content);
  REQUIRE_FALSE(read);
  return read.error();
}

} // namespace

TEST_SUITE("actors/checkpoint/job_file") {
  TEST_CASE("everything comes back, under the names that other tools look for") {
    auto content = to_content(example(), {{"note", "mine"}});
    auto names = mapped(content.tensors, &named_tensor::name);
    CHECK(names
          == std::vector<std::string>{"weights", "weights/m", "weights/v", "weights/average",
                                      "replica_3/position", "backups/arrivals", "backups/steps",
                                      "global_step"});
    CHECK(content.tensors.back().value.values<int64_t>()[0] == 12);
    CHECK(content.metadata.at("note") == "mine");

    auto job = to_snapshot(content).value();
    CHECK(job.step == 12);
    CHECK(job.time == job_time{345});
    CHECK(job.seed == UINT64_MAX);
    CHECK(job.tokens == std::vector<uint64_t>{10, 11, 11});
    REQUIRE(job.variables.size() == 1);
    const auto& state = job.variables[0].state;
    CHECK(job.variables[0].name == "weights");
    CHECK(state.version == 12);
    CHECK(state.optimizer == "adam");
    CHECK(state.slots_since == 2);
    CHECK(first_of(state.value) == 1);
    REQUIRE(state.slots.size() == 2);
    CHECK(state.slots[1].name == "v");
    CHECK(first_of(state.slots[1].value) == 5);
    REQUIRE(state.average);
    CHECK(state.average->name == "average");
    CHECK(first_of(state.average->value) == 7);
    REQUIRE(job.replicas.size() == 1);
    const auto& replica = job.replicas[0];
    CHECK(replica.replica == 3);
    CHECK(replica.computing);
    CHECK(replica.local_step == 11);
    CHECK(replica.iteration == 14);
    CHECK(replica.computations == 15);
    CHECK(replica.remaining == job_time{678});
    CHECK(replica.compute == job_time{901});
    REQUIRE(replica.kept.size() == 1);
    CHECK(replica.kept[0].name == "position");
    CHECK(first_of(replica.kept[0].value) == 9);
    REQUIRE(job.backups.size() == 2);
    CHECK(job.backups[1].name == "steps");
    CHECK(first_of(job.backups[1].value) == 13);
  }

  TEST_CASE("a file from before there were estimates for backups is read without any") {
    auto content = to_content(example());
    auto& text = content.metadata.at("troupe.job");
    auto cut = [&text](const std::string& part) {
      auto at = text.find(part);
      REQUIRE(at != std::string::npos);
      text.erase(at, part.size());
    };
    cut(R"("backups":["arrivals","steps"],)");
    cut(R"("compute_ns":901,)");
    auto job = to_snapshot(content).value();
    CHECK(job.step == 12);
    CHECK(job.backups.empty());
    CHECK(job.replicas[0].compute == job_time{0});
  }

  TEST_CASE("a name that a variable has is left to it") {
    auto job = example();
    for (const char* name : {"weights/m", "global_step", "replica_3/position"})
      job.variables.push_back({name, {.value = filled(100)}});
    auto content = to_content(job);
    auto names = mapped(content.tensors, &named_tensor::name);
    CHECK(names
          == std::vector<std::string>{"weights", "weights/m#2", "weights/v", "weights/average",
                                      "weights/m", "global_step", "replica_3/position",
                                      "replica_3/position#2", "backups/arrivals", "backups/steps",
                                      "global_step#2"});
    auto again = to_snapshot(content).value();
    CHECK(first_of(again.variables[0].state.slots[0].value)
          == first_of(job.variables[0].state.slots[0].value));
    CHECK(first_of(again.variables[1].state.value) == 100);
    CHECK(first_of(again.replicas[0].kept[0].value) == 9);
    CHECK(again.step == 12);
  }

  TEST_CASE("tensors of another tool are no job") {
    safetensors_content content;
    content.tensors.push_back({"weights", zeros({2})});
    CHECK(error_of(content).message == "it holds tensors, but no job of Troupe's");
  }

  TEST_CASE("a tensor that is missing is named") {
    auto content = to_content(example());
    std::erase_if(content.tensors, [](const auto& one) { return one.name == "weights/v"; });
    CHECK(error_of(content).message == "tensor 'weights/v' is missing");
  }

  TEST_CASE("a text that is no job is refused, whatever it is") {
    auto content = to_content(example());
    auto& text = content.metadata.at("troupe.job");
    auto whole = text;
    for (size_t length = 0; length < whole.size(); ++length) {
      text = whole.substr(0, length);
      CHECK(error_of(content).code == errc::malformed);
    }
    for (const char* nonsense :
         {"[]", "7", "{}", R"({"format":"one"})", R"({"format":1,"step":-2})"}) {
      text = nonsense;
      CHECK(error_of(content).code == errc::malformed);
    }
  }

  TEST_CASE("a number that no job has is refused, with the name of its field") {
    const auto whole = to_content(example());
    auto refusal = [&](const std::string& part, const std::string& other) {
      auto content = whole;
      auto& text = content.metadata.at("troupe.job");
      auto at = text.find(part);
      REQUIRE(at != std::string::npos);
      text.replace(at, part.size(), other);
      auto refused = error_of(content);
      CHECK(refused.code == errc::malformed);
      return refused.message;
    };
    const std::string begin = "its metadata 'troupe.job': ";
    const std::string need = "must be a whole number from 0 to ";
    const std::string count = need + "9223372036854775807";
    const std::string time = need + "4611686018427387903";
    CHECK(refusal(R"("step":12,)", R"("step":-1,)") == begin + "step is -1, but " + count);
    CHECK(refusal(R"("step":12,)", R"("step":1e300,)") == begin + "step is 1e+300, but " + count);
    CHECK(refusal(R"("step":12,)", R"("step":18446744073709551615,)")
          == begin + "step is 18446744073709551615, but " + count);
    CHECK(refusal(R"("step":12,)", R"("step":"12",)") == begin + "step " + count);
    CHECK(refusal(R"("step":12,)", "") == begin + "step is missing");
    CHECK(refusal(R"("time_ns":345,)", R"("time_ns":-5,)") == begin + "time_ns is -5, but " + time);
    CHECK(refusal(R"("time_ns":345,)", R"("time_ns":9223372036854775807,)")
          == begin + "time_ns is 9223372036854775807, but " + time);
    CHECK(refusal("[10,11,11]", "[10,-1]") == begin + "tokens[1] is -1, but " + need + "12");
    CHECK(refusal(R"("replica":3})", R"("replica":4294967296})")
          == begin + "replicas[0].replica is 4294967296, but " + need + "4294967295");
    CHECK(refusal(R"("computing":true)", R"("computing":1)")
          == begin + "replicas[0].computing is 1, but must be true or false");
    CHECK(refusal(R"(["position"])", "[7]")
          == begin + "replicas[0].kept[0] is 7, but must be a text");
    CHECK(refusal(R"("slots":["m","v"])", R"("slots":{})")
          == begin + "variables[0].slots must be a list");
    CHECK(refusal("{", "") == "its metadata 'troupe.job' is no JSON object");
  }

  TEST_CASE("a token and a replica may be at the file's step, but at no later one") {
    auto job = example();
    job.tokens[2] = job.replicas[0].local_step = job.step;
    auto read = to_snapshot(to_content(job)).value();
    CHECK(read.tokens == job.tokens);
    CHECK(read.replicas[0].local_step == job.step);
    const std::string begin = "its metadata 'troupe.job': ";
    const std::string end = " is 13, but must be a whole number from 0 to 12";
    ++job.replicas[0].local_step;
    CHECK(error_of(to_content(job))
          == error{errc::malformed, begin + "replicas[0].local_step" + end});
    ++job.tokens[2];
    CHECK(error_of(to_content(job)) == error{errc::malformed, begin + "tokens[2]" + end});
  }

  TEST_CASE("two replicas of one index are refused") {
    auto job = example();
    job.replicas.push_back({.replica = 3});
    CHECK(error_of(to_content(job))
          == error{errc::malformed, "its metadata 'troupe.job': replicas[1].replica is 3, but must "
                                    "be the index of one replica only"});
  }

  TEST_CASE("a global_step that is not the step is refused, and one may be missing") {
    auto content = to_content(example());
    auto& global_step = content.tensors.back();
    global_step.value = tensor{dtype::i64, shape{}};
    global_step.value.mutable_values<int64_t>()[0] = 7;
    CHECK(error_of(content)
          == error{errc::malformed,
                   "tensor 'global_step' is 7, but the metadata 'troupe.job' says step 12"});
    global_step.value = zeros({1});
    CHECK(error_of(content)
          == error{errc::malformed, "tensor 'global_step' is f32 [1], but must be i64 []"});
    content.tensors.pop_back();
    CHECK(to_snapshot(content).value().step == 12);
  }

  TEST_CASE("a later format is refused by its number") {
    auto content = to_content(example());
    content.metadata.at("troupe.job") = R"({"format":2})";
    CHECK(error_of(content).message == "it has format 2, this version of Troupe reads format 1");
  }
}

} // namespace job_file_test
