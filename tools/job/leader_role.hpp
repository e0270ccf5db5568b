// SPDX-License-Identifier: Apache-2.0
// The process of a job that has the run's folder.
#pragma once

#include "tools/job/job_role.hpp"
#include "tools/job/job_service.hpp"
#include "tools/job/resumption.hpp"
#include "tools/run/progress_hook.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/run/run_folder_hook.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Leads a run: makes its folder, trains from its beginning on, with hooks that show and keep what
/// happens, and sums it up.
class leader_role final : public job_role {
public:
  explicit leader_role(job_process& process) : job_role(process) {}

  [[nodiscard]] std::optional<int> prepare() override;

  [[nodiscard]] bool has_trained() const override { return report_.has_value(); }

  [[nodiscard]] job_report train(troupe::strategy& strategy, const job_optimizer& optimizer,
                                 const step_function& step) override;
  [[nodiscard]] int conclude(const std::optional<error>& thrown) override;

private:
  [[nodiscard]] std::optional<int> prepare_run();
  [[nodiscard]] expected<run_directory> make_directory() const;
  void announce() const;
  [[nodiscard]] std::vector<std::shared_ptr<session_hook>> make_hooks();
  [[nodiscard]] double evaluate(std::span<const tensor> values);
  void keep_evaluation(uint64_t step, job_time when, double value);
  void evaluate_last_step(troupe::strategy& strategy, job_report& report);
  [[nodiscard]] int sum_up(const std::optional<error>& thrown);
  void print_evaluation() const;
  void write_page();
  void print_notice(const std::string& line) const;
  void keep_notice(std::string_view line) const;

  struct evaluation {
    uint64_t step = 0;
    double value = 0;
  };

  job_beginning beginning_;
  bool restores_ = false; ///< Training has been given the checkpoint of `beginning_`, and throws.
  std::optional<job_service> service_; ///< If the job is served.
  std::optional<run_directory> directory_;
  std::shared_ptr<progress_hook> progress_;
  std::shared_ptr<run_folder_hook> folder_; ///< Null before training.
  std::optional<job_report> report_;        ///< Once the job has trained.
  std::optional<evaluation> last_evaluation_;
  bool evaluation_failed_ = false; ///< The last evaluation has failed: its value is NaN.
  std::string last_page_; ///< The report's content, as `run_json`; empty: no report was written.
};

} // namespace troupe
