// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace buffer_test {

using edl::ps::buffer;
using edl::ps::copy_on_write;

TEST_CASE("an array lives as long as its last handle") {
  buffer none;
  CHECK(none.values().empty());
  CHECK_FALSE(none.sole());
  buffer a(100);
  CHECK(a.sole());
  CHECK(reinterpret_cast<std::uintptr_t>(a.values().data()) % 64 == 0);
  CHECK(a.values().size() == 100);
  CHECK(a.values()[99] == 0);
  {
    buffer b = a;
    CHECK_FALSE(a.sole());
    CHECK(b.values().data() == a.values().data());
    buffer c = std::move(b);
    CHECK(b.values().empty());
    CHECK_FALSE(a.sole());
  }
  CHECK(a.sole());
  a.writable()[3] = 7;
  buffer d = a;
  a = buffer(0);
  CHECK(d.sole());
  CHECK(d.values()[3] == 7);
  d = *&d;
  CHECK(d.values()[3] == 7);
}

TEST_CASE("nobody reads: writing stays where it is") {
  copy_on_write state(10);
  auto* const at = state.write().data();
  for (int i = 0; i < 5; ++i) CHECK(state.write().data() == at);
  CHECK(state.buffers() == 1);
}

TEST_CASE("who holds a state keeps it, and arrays are used again") {
  copy_on_write state(10);
  state.write()[0] = 1;
  auto one = state.hold();
  auto* const first = state.read().data();
  state.write()[0] = 2;
  CHECK(state.read().data() != first);
  CHECK(state.read()[0] == 2);
  CHECK(one.values()[0] == 1);
  auto two = state.hold(), again = state.hold();
  state.write()[0] = 3;
  CHECK(state.buffers() == 3);
  state.write()[0] = 4;
  CHECK(state.buffers() == 3);
  CHECK(two.values()[0] == 2);
  one = {};
  auto three = state.hold();
  state.write()[0] = 5;
  CHECK(state.read().data() == first);  // the array of the first state
  CHECK(state.buffers() == 3);
}

TEST_CASE("arrays that nobody needs any more are given back") {
  for (std::size_t spares : {0u, 1u, 2u}) {
    copy_on_write state(10, spares);
    std::vector<buffer> held;
    for (int i = 0; i < 20; ++i) {
      held.push_back(state.hold());
      state.write()[0] = float(i);
    }
    CHECK(state.buffers() == 21);
    held.clear();
    auto const one = state.hold();
    state.write()[0] = -1;
    CHECK(state.buffers() <= 2 + spares);
    CHECK(one.values()[0] == 19);
  }
}

TEST_CASE("handles are read and dropped on other threads while the state is written") {
  struct entry {
    float value;
    buffer held;
  };
  std::mutex mutex;
  std::condition_variable ready;
  std::deque<entry> queue;
  bool done = false;
  std::atomic<int> wrong{0}, seen{0};
  auto const read = [&] {
    for (;;) {
      std::unique_lock lock(mutex);
      ready.wait(lock, [&] { return done || !queue.empty(); });
      if (queue.empty()) return;
      entry const e = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      auto const values = e.held.values();
      wrong += int(std::count_if(values.begin(), values.end(), [&](float v) { return v != e.value; }));
      ++seen;
    }
  };
  std::thread a(read), b(read);
  {
    copy_on_write state(512);
    for (int i = 1; i <= 2000; ++i) {
      for (float& v : state.write()) v = float(i);
      if (i % 3 == 0) continue;
      std::lock_guard const lock(mutex);
      queue.push_back({float(i), state.hold()});
      ready.notify_one();
    }
    std::lock_guard const lock(mutex);
    done = true;
    ready.notify_all();
  }  // the state may end before its readers
  a.join();
  b.join();
  CHECK(wrong == 0);
  CHECK(seen == 1334);
}

}  // namespace buffer_test
