// SPDX-License-Identifier: Apache-2.0
// The functions that led to the throw of an exception.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace troupe {

/// The functions of a program that led to a throw, the innermost first: "read_record
/// (readers.cpp:61) < reader"; files and lines where the program has debug information. Functions
/// of Troupe, CAF and the standard library are left out. For people; at most some 1,000 bytes.
///
/// Empty, if it is not known: the build has no libbacktrace, the exception was made without a
/// throw, or some 60 others were thrown since. Thread: any. Cost: the first call reads the
/// program's symbols, which takes milliseconds, or some tenths of a second with much debug
/// information.
[[nodiscard]] std::string throw_site_of(const std::exception_ptr& thrown);

/// A function or a type as C++ writes it, for the name that the compiler gave it
/// (`typeid(x).name()`); that name again, if it is none of the compiler's.
[[nodiscard]] std::string demangled(const char* name);

/// A function's name without its parameters, and what else only a compiler needs: "reader" for
/// "(anonymous namespace)::reader(int)::{lambda(int const&)#1}::operator()(int const&) const".
[[nodiscard]] std::string short_function_name(std::string_view function);

} // namespace troupe
