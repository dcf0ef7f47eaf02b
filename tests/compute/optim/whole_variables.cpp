// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/whole_variables.hpp"

#include <doctest/doctest.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "edl/core/error.hpp"

namespace whole_variables_test {

using names = std::vector<std::string>;

namespace {

edl::parameter_layout const layout{
    .variables = {{"a", {4}, 0}, {"b", {10}, 4}, {"c", {6}, 14}, {"d", {5}, 20}},
    .parameters = 20,
    .state = 5};

names within(edl::whole_variables const& of, edl::element_range range) {
  names all;
  std::mutex lock;
  of.each(range, [&](edl::variable const& v) {
    std::lock_guard const guard(lock);
    all.push_back(v.name);
  });
  return all;
}

void on_two_threads(std::function<void(int)> const& work) {
  std::thread other([&] { work(1); });
  work(0);
  other.join();
}

}  // namespace

TEST_CASE("variables that are trained and lie in a range, whole") {
  edl::whole_variables const all(layout);
  CHECK(std::vector<std::size_t>(all.borders().begin(), all.borders().end()) ==
        std::vector<std::size_t>{0, 4, 14, 20, 25});
  CHECK(within(all, {0, 20}) == names{"a", "b", "c"});
  CHECK(within(all, {4, 14}) == names{"b"});
  CHECK(within(all, {4, 4}).empty());
  for (edl::element_range const cut : {edl::element_range{0, 5}, {1, 4}, {5, 14}, {4, 19}, {15, 16}})
    CHECK_THROWS_WITH_AS(within(all, cut), doctest::Contains("cut a variable"), edl::error);
}

TEST_CASE("threads take the largest first, each variable once, and an error comes back") {
  edl::whole_variables all(layout);
  all.share([](std::function<void(int)> const& work) { work(0); });
  CHECK(within(all, {0, 20}) == names{"b", "c", "a"});
  all.share(on_two_threads);
  auto seen = within(all, {0, 20});
  std::ranges::sort(seen);
  CHECK(seen == names{"a", "b", "c"});
  CHECK_THROWS_AS(all.each({0, 20}, [](edl::variable const&) { throw std::runtime_error("no memory"); }),
                  std::runtime_error);
}

}  // namespace whole_variables_test
