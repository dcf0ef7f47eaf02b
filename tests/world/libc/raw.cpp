// SPDX-License-Identifier: Apache-2.0
#include "world/libc/raw.hpp"

#include <sys/syscall.h>

namespace world::raw {

void say(std::string_view text) { call(SYS_write, 2, long(text.data()), long(text.size())); }

void die(std::string_view what, std::string_view of) {
  for (std::string_view part : {std::string_view("edl-world: "), what, of, std::string_view("\n")}) say(part);
  for (;;) call(SYS_exit_group, 70);
}

}  // namespace world::raw
