// SPDX-License-Identifier: Apache-2.0
// The settings check's answer.
#include "actors/training/settings_check.hpp"

#include "actors/training/agreement.hpp"
#include "messages/cluster_message.hpp"

#include <utility>

namespace troupe {

namespace {

using settings_check_pointer = observed_pointer<settings_check_actor, settings_check_state>;

// The chief's process hears of a refusal first: it is to know why the refused process leaves.
caf::result<msg<wire::JobBegins>> on_settings(settings_check_pointer self,
                                              const msg<wire::EnterJob>& request) {
  const auto& config = self->state.config;
  auto newcomer = read_enter_job(request.reader());
  auto member = config.members.find(newcomer.member);
  if (member == config.members.end()) return to_caf(unknown_member());
  auto refusal = check_agreement(member->second, newcomer.agreement, config.agreement);
  if (refusal)
    config.on_refusal(*refusal);
  else
    refusal = config.why_not();
  if (refusal) return to_caf(*refusal);
  return make_job_begins(0, {}, {});
}

} // namespace

settings_check_actor::behavior_type settings_check(settings_check_pointer self,
                                                   settings_check_config config) {
  self->state.config = std::move(config);
  return {
    [self](const msg<wire::EnterJob>& request) { return on_settings(self, request); },
  };
}

} // namespace troupe
