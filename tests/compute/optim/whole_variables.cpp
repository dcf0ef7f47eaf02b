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

namespace fixed_elements_test {

using edl::element_range, edl::fixed_elements;
using ranges = std::vector<element_range>;

static edl::parameter_layout network() {
  return {.variables = {{"conv2d/kernel", {9, 4}, 0},
                        {"conv2d/bias", {4}, 36},
                        {"conv2d_1/kernel", {5}, 40},
                        {"dense/kernel", {10}, 45},
                        {"batch_norm/mean", {5}, 55}},
          .parameters = 55,
          .state = 5,
          .tables = {}};
}

TEST_CASE("names and patterns become ranges in order, and neighbours become one") {
  CHECK(fixed_elements(network(), "").empty());
  CHECK(fixed_elements(network(), "conv2d/bias") == ranges{{36, 40}});
  CHECK(fixed_elements(network(), "conv2d*") == ranges{{0, 45}});
  CHECK(fixed_elements(network(), "dense/*,conv2d/*") == ranges{{0, 40}, {45, 55}});
  CHECK(fixed_elements(network(), "*/bias,conv2d/b?as") == ranges{{36, 40}});
}

TEST_CASE("a pattern that matches nothing that is trained is refused, and so is one that leaves nothing") {
  auto const refused = [](std::string const& patterns, char const* why) {
    CAPTURE(patterns);
    CHECK_THROWS_WITH_AS(fixed_elements(network(), patterns), why, edl::error);
  };
  refused("conv2d/kernl",
          "--freeze=conv2d/kernl: 'conv2d/kernl' matches no variable that is trained; did you "
          "mean conv2d/kernel?");
  refused(
      "dense/*,batch_norm/mean*",
      "--freeze=dense/*,batch_norm/mean*: 'batch_norm/mean*' matches no variable that is trained; these are "
      "conv2d/kernel, conv2d/bias, conv2d_1/kernel, dense/kernel");
  CHECK_THROWS_AS(fixed_elements(network(), "dense/*,"), edl::error);
  refused("*", "--freeze=*: nothing would be trained, because every variable matches");
}

TEST_CASE("what lies outside of fixed ranges, wherever the range ends") {
  ranges const fixed{{10, 20}, {30, 40}};
  auto const outside = [&](element_range all) {
    ranges parts;
    edl::for_each_outside(fixed, all, [&](element_range r) { parts.push_back(r); });
    return parts;
  };
  CHECK(outside({0, 50}) == ranges{{0, 10}, {20, 30}, {40, 50}});
  CHECK(outside({12, 18}).empty());
  CHECK(outside({15, 35}) == ranges{{20, 30}});
  CHECK(outside({5, 15}) == ranges{{5, 10}});
  CHECK(outside({20, 30}) == ranges{{20, 30}});
  CHECK(outside({7, 7}).empty());
}

}  // namespace fixed_elements_test
