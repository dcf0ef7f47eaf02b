// SPDX-License-Identifier: Apache-2.0
// GPUs that sum among themselves: members are threads of the test, each with a GPU of its own.
#include "edl/compute/device/communicator.hpp"

#include <chrono>
#include <thread>

#include "cuda/gpus.hpp"
#include "edl/compute/device/device_buffer.hpp"
#include "job/collective/members.hpp"

namespace communicator_test {

using members::side_by_side;

namespace {

using backend = std::shared_ptr<edl::accelerator>;
using floats = std::vector<float>;

/// False: not soon.
template <class Done>
bool soon(Done done, std::chrono::milliseconds within = std::chrono::seconds(30)) {
  auto const until = std::chrono::steady_clock::now() + within;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

floats numbers(std::size_t n, int rank) {
  floats v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = float(i % 13) + float(rank) * 100;
  return v;
}

}  // namespace

TEST_CASE(
    "members sum their weighted values behind the work before, and who brings nothing gets the sum, too") {
  constexpr int size = 3;
  auto const gpus = gpus_or_skip(size);
  if (gpus.empty()) return;
  std::vector<std::size_t> const lengths{1, 1000, 70'001};
  std::vector<std::vector<edl::device_buffer<float>>> memory(size);
  for (int r = 0; r < size; ++r)
    for (std::size_t const n : lengths) memory[std::size_t(r)].emplace_back(gpus[std::size_t(r)], n);
  auto const where = gpus[0]->draw_meeting();
  std::vector<std::unique_ptr<edl::communicator>> links(size);
  std::vector<std::vector<floats>> got(size);
  side_by_side(size, [&](int r) {
    backend const& gpu = gpus[std::size_t(r)];
    gpu->use();
    auto& link = links[std::size_t(r)] = gpu->join(where, size, r);
    REQUIRE(soon([&] { return link->ready(); }));
    for (int times = 0; times < 3; ++times) {
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        auto const v = numbers(lengths[i], r);
        gpu->upload(std::as_bytes(std::span(v)), memory[std::size_t(r)][i].span().data());
        gpu->mark(int(i));
      }
      for (std::size_t i = lengths.size(); i-- > 0;) {
        REQUIRE(soon([&] { return link->ready(); }));
        link->sum(memory[std::size_t(r)][i].span(), r == 1 ? 0.0f : float(r + 2), int(i));
      }
      REQUIRE(soon([&] { return link->done(); }));
    }
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      floats v(lengths[i]);
      gpu->download(memory[std::size_t(r)][i].span().data(), std::as_writable_bytes(std::span(v)));
      gpu->synchronize();
      got[std::size_t(r)].push_back(v);
    }
  });
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    floats expected = numbers(lengths[i], 0);
    floats const last = numbers(lengths[i], 2);
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] = 2 * expected[k] + 4 * last[k];
    for (auto const& member : got) CHECK(member[i] == expected);
  }
}

TEST_CASE(
    "a member that does not come, or leaves, holds up nobody who gives up, and the next meeting is a new "
    "one") {
  auto const gpus = gpus_or_skip(2);
  if (gpus.empty()) return;
  edl::device_buffer<float> first(gpus[0], 5000), second(gpus[1], 5000);
  {
    auto const alone = gpus[0]->join(gpus[0]->draw_meeting(), 2, 0);
    for (int i = 0; i < 20; ++i) CHECK_FALSE(alone->ready());
  }
  auto const meet = [&](auto&& work) {
    auto const where = gpus[0]->draw_meeting();
    side_by_side(2, [&](int r) {
      backend const& gpu = gpus[std::size_t(r)];
      gpu->use();
      auto link = gpu->join(where, 2, r);
      REQUIRE(soon([&] { return link->ready(); }));
      work(r, *gpu, link, (r == 0 ? first : second).span());
    });
  };
  meet([&](int r, edl::accelerator& gpu, std::unique_ptr<edl::communicator>& link, std::span<float> values) {
    if (r == 1) return;
    gpu.mark(0);
    link->sum(values, 1, 0);
    for (int i = 0; i < 20; ++i) CHECK_FALSE(link->done());
    link.reset();
  });
  std::vector<float> got(2);
  meet([&](int r, edl::accelerator& gpu, std::unique_ptr<edl::communicator>& link, std::span<float> values) {
    floats const v(values.size(), float(r + 1));
    gpu.upload(std::as_bytes(std::span(v)), values.data());
    gpu.mark(0);
    link->sum(values, 1, 0);
    REQUIRE(soon([&] { return link->done(); }));
    gpu.download(values.data(), std::as_writable_bytes(std::span(got).subspan(std::size_t(r), 1)));
    gpu.synchronize();
  });
  CHECK(got == floats{3, 3});
}

TEST_CASE("marks cut what is recorded, and lie where they were put") {
  auto const gpu = gpu_or_skip();
  if (!gpu) return;
  edl::device_buffer<float> a(gpu, 100), b(gpu, 100), c(gpu, 100);
  floats const ones(100, 1), half(100, 0.5f);
  gpu->upload(std::as_bytes(std::span(ones)), a.span().data());
  gpu->upload(std::as_bytes(std::span(half)), b.span().data());
  for (std::uint64_t step = 1; step <= 4; ++step) {  // as it comes, recorded, replayed
    gpu->replay(7, step, [&] {
      gpu->mark(0);
      gpu->add_divided(b.span(), 2, a.span());
      gpu->mark(1);
      gpu->mark(2);
      gpu->subtract(a.span(), b.span(), c.span());
      gpu->mark(3);
    });
    gpu->await(3);
    floats sum(100), difference(100);
    gpu->download(a.span().data(), std::as_writable_bytes(std::span(sum)));
    gpu->download(c.span().data(), std::as_writable_bytes(std::span(difference)));
    gpu->synchronize();
    CHECK(sum == floats(100, 1 + 0.25f * float(step)));
    CHECK(difference == floats(100, 0.5f + 0.25f * float(step)));
  }
  gpu->divide(c.span(), 3);
  floats third(100);
  gpu->download(c.span().data(), std::as_writable_bytes(std::span(third)));
  gpu->synchronize();
  CHECK(third == floats(100, 0.5f));
}

TEST_CASE("who wants a GPU for itself gets one that nobody has, as long as there is one") {
  if (gpus_or_skip(2).empty()) return;
  auto const open = [] { return edl::open_cuda({.index = 0, .alone = true}); };
  auto const first = open();
  auto second = open();
  auto const taken = second->identity().uuid;
  CHECK(first->identity().uuid != taken);
  second.reset();
  CHECK(open()->identity().uuid == taken);
}

}  // namespace communicator_test
