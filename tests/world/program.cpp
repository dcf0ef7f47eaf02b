// SPDX-License-Identifier: Apache-2.0
#include "world/program.hpp"

#include <malloc.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "world/libc/raw.hpp"

namespace world {

void own_random_numbers();

void prepare(int, char** argv) {
  int const persona = ::personality(0xffffffff);
  if (!(persona & ADDR_NO_RANDOMIZE) || ::getenv("PATH")) {
    ::personality(unsigned(persona | ADDR_NO_RANDOMIZE));
    char zone[] = "TZ=UTC0", arenas[] = "MALLOC_ARENA_MAX=1";
    char* const environment[] = {zone, arenas, nullptr};
    ::execve("/proc/self/exe", argv, environment);
    raw::die("cannot begin anew without random addresses");
  }
  cpu_set_t all, one;  // threads that pass a baton are quick on one processor
  ::sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int i = 0, skip = int(::getpid()) % CPU_COUNT(&all); i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &all) && skip-- == 0) CPU_SET(i, &one);
  ::sched_setaffinity(0, sizeof one, &one);
  ::mallopt(M_ARENA_MAX, 1);
  own_random_numbers();
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

void print(std::string_view text) { raw::call(SYS_write, 1, long(text.data()), long(text.size())); }

void print(history_result const& of) {
  double const real = double(of.real_time.count()) / 1e9, virtual_time = double(of.virtual_time.count()) / 1e9;
  char text[512];
  int const n = std::snprintf(text, sizeof text,
                "history %016llx: %.3f s of virtual time in %.3f s (%.0f times as fast), %llu events and %llu switches "
                "(%.0f in a second)\n",
                static_cast<unsigned long long>(of.hash), virtual_time, real, virtual_time / real,
                static_cast<unsigned long long>(of.events), static_cast<unsigned long long>(of.switches),
                double(of.events + of.switches) / real);
  print({text, std::size_t(n)});
  if (!of.failure.empty()) print("failed: " + of.failure + "\n");
}

}  // namespace world
