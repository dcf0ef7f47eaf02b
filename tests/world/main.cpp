// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <mutex>
#include <condition_variable>
#include <future>
#include "world/program.hpp"
#include "world/world.hpp"

namespace {
void hello() {
  std::mutex m; std::condition_variable c; int n = 0;
  std::vector<std::jthread> all;
  for (int i = 0; i < 3; ++i) all.emplace_back([&, i] { for (int k = 0; k < 3; ++k) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); std::lock_guard const l(m); ++n; std::fprintf(stderr, "thread %d has counted %d at %lld\n", i, n, (long long)world::now().count()); c.notify_all(); } });
  std::unique_lock l(m); c.wait(l, [&] { return n == 9; });
  l.unlock();
  all.clear();
  auto f = std::async(std::launch::async, [] { return 42; });
  std::fprintf(stderr, "future %d\n", f.get());
}
}
int main(int argc, char** argv) {
  world::prepare(argc, argv);
  world::history_options o;
  for (int i = 1; i < argc; ++i) { if (!std::strncmp(argv[i], "--seed=", 7)) o.seed = std::strtoull(argv[i] + 7, nullptr, 10); if (!std::strncmp(argv[i], "--trace=", 8)) o.trace = argv[i] + 8; }
  auto const r = world::run(o, [] {
    world::on_line([](world::line const& l) { std::string t = std::to_string(l.when.count()) + " " + world::name_of(l.from) + ": " + std::string(l.text) + "\n"; world::print(t); });
    hello();
  });
  world::print(r);
  std::_Exit(r.failure.empty() ? 0 : 1);
}
