// SPDX-License-Identifier: Apache-2.0
// The messages of processes about their job, built and read.
#include "messages/cluster_message.hpp"

#include "messages/mapped.hpp"
#include "messages/message_builder.hpp"
#include "messages/nanoseconds.hpp"
#include "messages/training_message.hpp"

namespace troupe {

msg<wire::EnterJob> make_enter_job(const entrance& entering) {
  message_builder<wire::EnterJob> message;
  message.body.setMember(entering.member);
  message.body.setClockNanoseconds(to_count(entering.clock));
  message.body.setSeed(entering.seed);
  message.body.setReplicas(entering.replicas);
  message.body.setAgreement(std::string{cut_text(entering.agreement)});
  return std::move(message).finish();
}

msg<wire::JobBegins> make_job_begins(uint64_t first_step, std::chrono::nanoseconds clock,
                                     std::span<const replica_progress> replicas, uint32_t life) {
  message_builder<wire::JobBegins> message;
  message.body.setFirstStep(first_step);
  message.body.setClockNanoseconds(to_count(clock));
  auto written = message.body.initReplicas(static_cast<capnp::uint>(replicas.size()));
  for (capnp::uint i = 0; i < written.size(); ++i)
    write_progress(*message.storage, written[i], replicas[i]);
  message.body.setLife(life);
  return std::move(message).finish();
}

msg<wire::AwaitEnd> make_await_end(uint32_t member) {
  message_builder<wire::AwaitEnd> message;
  message.body.setMember(member);
  return std::move(message).finish();
}

msg<wire::JobEnded> make_job_ended(const job_ending& ending) {
  message_builder<wire::JobEnded> message;
  message.body.setStep(ending.step);
  if (ending.failure) {
    message.body.setCode(static_cast<wire::Errc>(ending.failure->code));
    write_reason(message.body, ending.failure->message);
  }
  message.body.setIsStopped(ending.stopped.has_value());
  if (ending.stopped) message.body.setStopReason(std::string{cut_text(*ending.stopped)});
  return std::move(message).finish();
}

msg<wire::LeaveJob> make_leave_job(uint32_t member) {
  message_builder<wire::LeaveJob> message;
  message.body.setMember(member);
  return std::move(message).finish();
}

entrance read_enter_job(wire::EnterJob::Reader from) {
  return {.member = from.getMember(),
          .clock = to_length(from.getClockNanoseconds()),
          .seed = from.getSeed(),
          .replicas = from.getReplicas(),
          .agreement = from.getAgreement()};
}

std::vector<replica_progress> read_replicas(const msg<wire::JobBegins>& from) {
  return mapped(from.reader().getReplicas(),
                [&](auto replica) { return read_progress(replica, from.owner()); });
}

job_ending read_job_ended(wire::JobEnded::Reader from) {
  job_ending ending{.step = from.getStep()};
  if (auto failed = read_error(from.getCode(), from.getReason()); failed.code != errc::none)
    ending.failure = std::move(failed);
  if (from.getIsStopped()) ending.stopped = read_line(from.getStopReason());
  return ending;
}

} // namespace troupe
