// SPDX-License-Identifier: Apache-2.0
// Gives every seed to its target, as the fuzzer does, without the fuzzer: what was found once stays found.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "targets.hpp"

namespace {

// What is being replayed, for the signal that ends it.
char now[512];

void tell(int signal) {
  char const* const why = signal == SIGALRM ? " has been parsed for 20 s\n" : " ends the process\n";
  for (char const* part : {"fuzz-seeds: ", static_cast<char const*>(now), why})
    if (::write(2, part, std::strlen(part)) < 0) break;
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) == "--help") {
    std::puts("usage: fuzz-seeds DIRECTORY [TARGET…]: gives the files of DIRECTORY/TARGET to each target");
    return argc < 2 ? 2 : 0;
  }
  for (int const s : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) ::signal(s, tell);
  std::vector<std::string_view> const wanted(argv + 2, argv + argc);
  std::size_t files = 0;
  bool good = true;
  for (auto const& [name, run] : fuzz_targets) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    std::vector<std::filesystem::path> seeds;
    std::error_code missing;
    for (auto const& entry :
         std::filesystem::directory_iterator(std::filesystem::path(argv[1]) / name, missing))
      seeds.push_back(entry.path());
    std::sort(seeds.begin(), seeds.end());
    if (seeds.empty()) {
      std::fprintf(stderr, "fuzz-seeds: %s/%s holds no seed: tools/fuzz --seeds makes some\n", argv[1], name);
      good = false;
    }
    for (auto const& path : seeds) {
      std::snprintf(now, sizeof now, "%s", path.c_str());
      std::ifstream in(path, std::ios::binary);
      std::string const bytes{std::istreambuf_iterator<char>(in), {}};
      ::alarm(20);
      run(reinterpret_cast<std::uint8_t const*>(bytes.data()), bytes.size());
      ::alarm(0);
      ++files;
    }
  }
  std::printf("%zu seeds\n", files);
  return good && files > 0 ? 0 : 1;
}
