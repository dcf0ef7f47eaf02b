// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// The real kernel, for the simulated one.
namespace world::raw {

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

/// Ends the OS process: the simulation itself is wrong.
[[noreturn]] void die(std::string_view what, std::string_view of = {});

/// To the real standard error.
void say(std::string_view text);

}  // namespace world::raw
