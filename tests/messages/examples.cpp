// SPDX-License-Identifier: Apache-2.0
// The examples.
#include "tests/messages/examples.hpp"

#include "messages/body.hpp"
#include "messages/cluster_message.hpp"
#include "messages/collective_message.hpp"
#include "messages/coordinator_message.hpp"
#include "messages/link_message.hpp"
#include "messages/message_builder.hpp"
#include "messages/observing_message.hpp"
#include "messages/replication_message.hpp"
#include "messages/training_message.hpp"

#include <numeric>

namespace troupe {
namespace {

using std::chrono::nanoseconds;

origin example_origin(uint32_t replica) {
  return {.replica = replica,
          .examples = 32,
          .local_step = 7,
          .iteration = 9,
          .compute = nanoseconds(1'000'000),
          .waited = nanoseconds(2'000),
          .loss = 0.5};
}

template <class T>
void add(std::vector<message_example>& examples, const msg<T>& message) {
  examples.push_back({body_name(body_of<T>), flatten(frame(message).value())});
}

void add_replica_messages(std::vector<message_example>& examples) {
  auto value = make_array<float>({4, 5}, counting_to(20));
  add(examples, make_read_variable());
  add(examples, make_variable_snapshot(5, value));
  add(examples, make_push_gradient(example_origin(2), make_slices()));
  add(examples, make_push_reply(verdict::stale, 8, 9));
  add(examples, make_take_token(2, 7, 9));
  add(examples, make_token(8));
  add(examples, make_farewell(2, {errc::user_code, "division by zero", "step"}));
}

void add_chief_messages(std::vector<message_example>& examples) {
  auto accepted = arrival{example_origin(1), nanoseconds(5'000'000), 7};
  auto stale = arrival{example_origin(2), nanoseconds(6'000'000), 8};
  auto dense = make_array<float>({3}, {1, 2, 3});
  auto pushes = std::vector{make_push_gradient(example_origin(2), make_slices()),
                            make_push_gradient(example_origin(1), dense)};
  uint64_t steps[] = {8, 9};
  uint32_t waiting[] = {3, 1};
  add(examples, make_take_gradient(3));
  add(examples, make_taken_gradient(7, std::span(&accepted, 1), std::span(&stale, 1)));
  add(examples, numbered(make_apply_update(7, 2, pushes), {4, 9, 8}));
  add(examples, make_update_applied(
                  {6, 7, nanoseconds(9'000'000), nanoseconds(4'000), 0.25, 0.5, {0.75, 2}}));
  add(examples, make_set_step(100));
  add(examples, make_cancel_step(8));
  add(examples, make_put_tokens(8, 4));
  add(examples, make_read_queue_status());
  add(examples, make_queue_status(steps, waiting));
  add(examples, make_join_job(2));
  add(examples, make_close_tokens());
  add(examples, make_stop_job("interrupted"));
  add(examples, make_use_optimizer({"adam",
                                    {{"learning_rate", 0.001}, {"beta1", 0.9}},
                                    {"polynomial", {{"updates", 100}}},
                                    {"average", {{"decay", 0.99}}}},
                                   true));
  add(examples, make_optimizer_in_use(6, 2));
}

void add_accumulator_messages(std::vector<message_example>& examples) {
  add(examples, make_take_aggregate(3));
  add(examples, make_await_aggregate(7));
  add(examples, make_aggregate(7, 2, make_slices()));
  add(examples, make_cancel_takes(3, 7));
  add(examples, make_read_accumulator());
  add(examples, make_accumulator_status(7, 2, 1));
}

replica_progress example_progress() {
  return {.replica = 2,
          .computing = true,
          .local_step = 7,
          .iteration = 9,
          .computations = 10,
          .remaining = nanoseconds(4'000),
          .compute = nanoseconds(5'000),
          .kept = {{"position", make_array<int64_t>({2}, {3, 1})}}};
}

void add_cluster_messages(std::vector<message_example>& examples) {
  auto progress = example_progress();
  add(examples, make_enter_job({2, nanoseconds(5'000'000), 11, 4, "batch = 8"}));
  add(examples, make_job_begins(7, nanoseconds(6'000'000), std::span(&progress, 1)));
  add(examples, make_await_end(2));
  add(examples, make_job_ended({9, error{errc::stalled, "no token is left"}, "interrupted"}));
  add(examples, make_leave_job(2));
}

void add_collective_messages(std::vector<message_example>& examples) {
  collective_meaning meaning{.kind = collective_kind::reduce_scatter,
                             .algorithm = collective_algorithm::all_to_all,
                             .fixed_order = false,
                             .dtype = 5,
                             .contributions = 2,
                             .root = 1,
                             .name = "gradient of dense/kernel",
                             .extents = {3, 2}};
  add(examples, make_collective_part(meaning, {.call = 7,
                                               .rank = 2,
                                               .stage = collective_stage::partial,
                                               .strand = 1,
                                               .begin = 4,
                                               .values = {make_array<int64_t>({2}, {3, 1})}}));
  add(examples, make_collective_failed({9, 1, {errc::unavailable, "worker:2 is gone"}}));
}

void add_coordinator_messages(std::vector<message_example>& examples) {
  std::vector<closure_value> values{make_array<float>({3}, {1, 2, 3}), 0.5, int64_t{-2},
                                    std::string{"text"}, worker_resource{1, 2, 3}};
  add(examples, make_worker_ready(3));
  add(examples, make_run_closure(7, "step", values, std::array<uint32_t, 2>{2, 5}));
  add(examples, make_closure_done(7, values));
  add(examples, make_cancel_closure(7));
  add(examples, make_await_service_end(3));
  add(examples, make_service_ended());
}

void add_checkpoint_messages(std::vector<message_example>& examples) {
  variable_payload state{.version = 6,
                         .value = make_array<float>({3}, {1, 2, 3}),
                         .optimizer = "momentum",
                         .slots_since = 2,
                         .slots = {{"momentum", make_array<float>({3}, {4, 5, 6})}},
                         .average = named_payload{"a", make_array<float>({3}, {7, 8, 9})}};
  add(examples, make_read_state());
  add(examples, make_variable_state(state));
  add(examples, make_restore_state(state));
  add(examples, make_read_progress());
  add(examples, make_replica_progress(example_progress()));
  add(examples, make_read_average("average"));
  add(examples, make_release_update(0.5));
  add(examples, numbered(make_change_variable(1, make_slices(), 2), {4, 9, 8}));
}

void add_replication_messages(std::vector<message_example>& examples) {
  closed_step closed{.step = 7,
                     .accepted = {{example_origin(1), nanoseconds(5'000'000), 7}},
                     .applied = {6, 7, nanoseconds(9'000'000), nanoseconds(4'000), 0.25},
                     .released = applied_update{7, 7, nanoseconds(9'500'000), nanoseconds(2'000)},
                     .latest = {{1, 7}, {3, 5}}};
  variable_payload state{.version = 6, .value = make_array<float>({3}, {1, 2, 3})};
  made_change made[] = {{{4, 9, 8}, {}, applied_update{6, 7}},
                        {{5, 2, 1}, snapshot_payload{6, make_array<float>({}, {3})}, {}}};
  add(examples, make_mirror_state(state, closed, made));
  add(examples, make_follow_owner(3, true));
  add(examples, make_take_over(2));
  add(examples, make_took_over(2, closed));
  add(examples, make_client_known(5));
  add(examples, make_owners_lost("ps:1 is gone"));
}

void add_observing_messages(std::vector<message_example>& examples) {
  seen_message last{.when = nanoseconds(7'000), .kind = "TakeToken", .sender = 5, .step = 3};
  actor_report replica{.name = "replica 2",
                       .actor = 6,
                       .doing = 2,
                       .since = nanoseconds(8'000),
                       .mailbox_depth = 1,
                       .received = 10,
                       .handled = 9,
                       .errors = 1,
                       .timed = 2,
                       .timed_total = nanoseconds(600),
                       .messages = {last}};
  add(examples, make_read_task(1));
  add(examples, make_task_report({nanoseconds(9'000), 4096, 1.5, {replica}, 3}));
}

std::vector<message_example> make_examples() {
  std::vector<message_example> examples;
  add(examples, message_builder<wire::Unset>().finish());
  add(examples, make_abort({errc::malformed, "frame of 7 bytes"}));
  add_replica_messages(examples);
  add_chief_messages(examples);
  add_accumulator_messages(examples);
  add_checkpoint_messages(examples);
  add(examples, make_hello({"job 7", 4, 2, 1, nanoseconds(500'000'000), 1 << 20}));
  add(examples, make_find_actor("token queue"));
  add_cluster_messages(examples);
  add_collective_messages(examples);
  add_coordinator_messages(examples);
  add_replication_messages(examples);
  add(examples, make_pull_variable(9));
  add(examples, make_variable_changes({5, 10, make_slices(), true}));
  add(examples, make_offer_mirror(3, true, true));
  add(examples, make_repeat_changes(2));
  add(examples, make_owners_mirrored("held twice again: 'w'"));
  add(examples, make_count_missing(2, 7));
  add(examples, make_actor_made("trainer, made 3"));
  add_observing_messages(examples);
  return examples;
}

template <class... Bodies>
std::string print_one_of(const any_msg& message, body_list<Bodies...>) {
  std::string text;
  auto print_if = [&]<class T>(const expected<msg<T>>& body) {
    if (body) text = kj::str(body->reader()).cStr();
  };
  (print_if(message.as<Bodies>()), ...);
  return text;
}

} // namespace

const std::vector<message_example>& message_examples() {
  static const auto examples = make_examples();
  return examples;
}

std::vector<float> counting_to(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

indexed_slices make_slices() {
  return {make_array<int64_t>({2}, {3, 1}), make_array<float>({2, 10}, counting_to(20)),
          shape{4, 10}};
}

std::string print(const any_msg& message) {
  return print_one_of(message, every_body{});
}

received_bytes receive(std::span<const std::byte> frame, size_t offset) {
  auto words = (frame.size() + offset + 7) / 8;
  auto buffer = std::make_shared<std::vector<uint64_t>>(words + 1);
  auto bytes = std::as_writable_bytes(std::span(*buffer)).subspan(offset, frame.size());
  std::copy(frame.begin(), frame.end(), bytes.begin());
  return {bytes, std::move(buffer)};
}

} // namespace troupe
