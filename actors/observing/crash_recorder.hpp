// SPDX-License-Identifier: Apache-2.0
// A flight record of a process that crashes.
#pragma once

#include <filesystem>

namespace troupe {

class observatory;

/// A process that dies of a signal cannot be asked any more. While a crash_recorder is there, the
/// handler of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT writes a flight record, and the signal
/// then does what it would have done: the exit status stays. Where several threads crash, the first
/// one's signal counts, and the others wait until its record is whole.
///
/// The record is written into PATH.crash and then renamed: the one that was there stays until then,
/// or for good if the disk refuses.
///
/// The handler has a stack of its own on the thread that makes the recorder. On another thread it
/// needs some of that thread's: one whose stack has overflowed leaves no record.
///
/// One at a time; a second one does nothing.
class crash_recorder {
public:
  /// @param observed Outlives the recorder. @param path The record's file; made only in a crash.
  crash_recorder(const observatory& observed, const std::filesystem::path& path);

  /// Does not return if a thread has crashed: the process ends when the record is written, or
  /// after 10 s.
  ~crash_recorder();
  crash_recorder(const crash_recorder&) = delete;
  crash_recorder& operator=(const crash_recorder&) = delete;

private:
  bool installed_ = false;
};

} // namespace troupe
