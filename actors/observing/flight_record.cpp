// SPDX-License-Identifier: Apache-2.0
// A flight record, written as a signal handler must: no allocation, no lock, no library function
// but write(2).
#include "actors/observing/flight_record.hpp"

#include "actors/recording/output_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace troupe {

namespace {

/// Text and numbers into a sink, in blocks.
class plain_writer {
public:
  explicit plain_writer(flight_sink sink) : sink_(sink) {}

  ~plain_writer() { flush(); }

  plain_writer(const plain_writer&) = delete;
  plain_writer& operator=(const plain_writer&) = delete;

  plain_writer& text(const char* letters) {
    for (; *letters != '\0'; ++letters)
      letter(*letters);
    return *this;
  }

  plain_writer& number(uint64_t value, size_t width = 0) {
    std::array<char, 20> digits;
    auto* at = digits.end();
    do
      *--at = static_cast<char>('0' + value % 10);
    while ((value /= 10) > 0);
    auto count = static_cast<size_t>(digits.end() - at);
    blanks(width - std::min(width, count));
    for (; at != digits.end(); ++at)
      letter(*at);
    return *this;
  }

  // Seconds with nine digits behind the point.
  plain_writer& time(job_time when, size_t width = 0) {
    constexpr uint64_t second = 1'000'000'000;
    auto nanoseconds = static_cast<uint64_t>(std::max<int64_t>(when.count(), 0));
    number(nanoseconds / second, width).letter('.');
    for (auto unit = second / 10; unit > 0; unit /= 10)
      letter(static_cast<char>('0' + nanoseconds / unit % 10));
    return *this;
  }

  plain_writer& blanks(size_t count) {
    for (; count > 0; --count)
      letter(' ');
    return *this;
  }

  plain_writer& padded(const char* letters, size_t width) {
    auto size = std::strlen(letters);
    return text(letters).blanks(width - std::min(width, size));
  }

private:
  plain_writer& letter(char letter) {
    if (used_ == block_.size()) flush();
    block_[used_++] = letter;
    return *this;
  }

  void flush() {
    sink_.write(sink_.where, block_.data(), used_);
    used_ = 0;
  }

  flight_sink sink_;
  size_t used_ = 0;
  std::array<char, 4096> block_;
};

void write_name(plain_writer& out, const observation& seen) {
  if (const auto* name = seen.name()) {
    out.text(name);
    return;
  }
  const auto* role = seen.role();
  out.text(role != nullptr ? role : "actor").text(" ").number(seen.actor());
}

/// Finds actors by id in a list; an actor's messages come from few others, so it remembers some.
class name_finder {
public:
  explicit name_finder(const observation* first) : first_(first) {}

  const observation* find(uint64_t actor) {
    auto& known = known_[actor % known_.size()];
    if (known != nullptr && known->actor() == actor) return known;
    for (const auto* seen = first_; seen != nullptr; seen = seen->next())
      if (seen->actor() == actor) return known = seen;
    return nullptr;
  }

private:
  const observation* first_;
  std::array<const observation*, 64> known_{};
};

void write_sender(plain_writer& out, uint64_t sender, name_finder& names) {
  if (sender == 0)
    out.text("nobody");
  else if (const auto* known = names.find(sender))
    write_name(out, *known);
  else
    out.text("actor ").number(sender);
}

void write_message(plain_writer& out, const sighting& seen, name_finder& names) {
  out.text("  ").time(seen.when, 8).text("  ");
  out.padded(seen.kind != nullptr ? seen.kind->name : "other", 18);
  if (seen.step == no_step)
    out.padded("         -", 10);
  else
    out.number(seen.step, 10);
  write_sender(out.text("  "), seen.sender, names);
  out.text("\n");
}

void write_actor(plain_writer& out, const observation& seen, name_finder& names) {
  write_name(out.text("\n"), seen);
  out.text(": ").text(to_string(seen.doing())).text(", ");
  out.number(seen.mailbox_depth()).text(" in the mailbox, ");
  out.number(seen.handled()).text(" handled, ").number(seen.errors()).text(" errors\n");
  std::array<sighting, observation::messages_kept> messages;
  auto count = seen.last_messages(messages);
  for (size_t i = 0; i < count; ++i)
    write_message(out, messages[i], names);
}

} // namespace

void write_flight_record(const observatory& observed, const char* reason, flight_sink sink) {
  plain_writer out{sink};
  out.text("troupe flight record: ").text(reason).text("\n");
  out.text("at ").time(observed.now()).text(" s since the job began\n\n");
  out.text("           seconds  message                  step  from\n");
  name_finder names{observed.first()};
  for (const auto* seen = observed.first(); seen != nullptr; seen = seen->next())
    write_actor(out, *seen, names);
}

std::string flight_record(const observatory& observed, const std::string& reason) {
  std::string text;
  auto append = [](void* where, const char* bytes, size_t count) {
    static_cast<std::string*>(where)->append(bytes, count);
  };
  write_flight_record(observed, reason.c_str(), {append, &text});
  return text;
}

expected<void> save_flight_record(const observatory& observed, const std::string& reason,
                                  const std::filesystem::path& path) {
  return replace_file(path, flight_record(observed, reason));
}

} // namespace troupe
