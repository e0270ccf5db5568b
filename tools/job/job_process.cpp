// SPDX-License-Identifier: Apache-2.0
// The objects that the options of a job ask for in each of its processes.
#include "tools/job/job_process.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/throw_failure.hpp"
#include "tools/job/job_cluster.hpp"
#include "tools/job/job_strategy.hpp"
#include "tools/job/option_agreement.hpp"
#include "tools/job/pace.hpp"
#include "tools/system/standard_streams.hpp"

#include <cstdio>
#include <fmt/format.h>

namespace troupe {

expected<void> job_process::find_cluster() {
  if (cluster_) return {};
  return troupe::find_cluster(request_.command, request_.options)
    .map([this](resolved_cluster found) { cluster_ = std::move(found); });
}

void job_process::be_alone() {
  cluster_ = resolved_cluster::alone();
}

expected<void> job_process::prepare() {
  if (auto found = find_cluster(); !found) return found;
  auto devices = find_devices(request_.options, *cluster_);
  if (!devices) return tl::unexpected<error>(devices.error());
  devices_ = std::move(*devices);
  agreement_ = (subject_.agreement.empty() ? "" : subject_.agreement + '\n')
               + agreement_of(request_.described, request_.options, subject_.own_options);
  return {};
}

bool job_process::is_chief() const {
  if (!cluster_)
    throw_failure(errc::failed_precondition,
                  "job: is_chief() before the cluster was found: call it in the function given to "
                  "run, or after find_cluster()");
  return cluster_->is_chief();
}

world& job_process::world() {
  if (world_) return *world_;
  const auto& options = request_.options;
  world_options settings{.seed = options.seed};
  auto is_virtual = options.world == world_kind::virtual_time && !cluster_->is_evaluator();
  world_ = std::make_unique<troupe::world>(is_virtual ? troupe::world::virtual_time(settings)
                                                      : troupe::world::threads(settings));
  return *world_;
}

server& job_process::server() {
  if (server_) return *server_;
  const auto& options = request_.options;
  auto settings = request_.command.server;
  settings.replicas = static_cast<uint32_t>(options.replicas);
  settings.workers_meet = replicas_meet(options.strategy);
  settings.replicate_owners = static_cast<uint32_t>(options.replicate_owners);
  settings.on_warning = [this](const std::string& line) { warn(line); };
  settings.stop = signals_->token();
  // An evaluator takes no part in the training, so it is a cluster of its own.
  server_ = std::make_unique<troupe::server>(
    world(), cluster_->is_evaluator() ? resolved_cluster::alone() : *cluster_, std::move(settings));
  server_->compare_settings(agreement_on_meeting(options.strategy, agreement_));
  return *server_;
}

strategy& job_process::strategy() {
  if (strategy_) return *strategy_;
  strategy_ = make_strategy(world(), server(), request_.options, devices_);
  check_agreement(*strategy_);
  return *strategy_;
}

void job_process::check_agreement(troupe::strategy& strategy) {
  if (!cluster_->is_evaluator()) check_same_options(strategy, agreement_);
}

void job_process::check_other(troupe::strategy& strategy) {
  if (&strategy != strategy_.get()) check_agreement(strategy);
}

// Other processes need not wait for summary, report and plots.
void job_process::leave_cluster() {
  signals_->on_user_signal({});
  strategy_.reset();
  server_.reset();
  world_.reset();
}

uint64_t job_process::steps() const {
  return subject_.steps != 0 ? subject_.steps
                             : request_.options.steps.value_or(job_defaults::steps);
}

void job_process::announce_cluster() const {
  if (cluster_->is_alone()) return;
  print_if_possible(stderr, "cluster   {} of {} tasks, says {}\n", to_string(cluster_->self()),
                    cluster_->tasks.size(), cluster_->source);
}

void job_process::warn(const std::string& line) const {
  auto warning = fmt::format("{}: {}", request_.program, line);
  if (print_warning_)
    print_warning_(warning);
  else
    print_if_possible(stderr, "{}\n", warning);
}

training_options job_process::common_training_options() {
  const auto& options = request_.options;
  training_options training;
  training.steps = steps();
  training.agreement = agreement_;
  training.deadline = to_job_time(options.deadline_seconds);
  training.observe_period = to_job_time(options.observe_period_seconds);
  training.min_replicas = static_cast<uint32_t>(options.min_replicas);
  training.rejoin_timeout = to_job_time(options.rejoin_timeout_seconds);
  training.stops_on_loss = options.on_loss == loss_reaction::stop;
  training.check_replicas_every = options.check_replicas;
  training.pace = pace_of(options);
  training.on_warning = [this](const std::string& line) { warn(line); };
  training.on_failure = [](const error&) {}; // `early_end` names the failure
  training.stop = signals_->token();
  return training;
}

} // namespace troupe
