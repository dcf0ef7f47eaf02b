// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/health/gradient_checks.hpp"

#include <doctest/doctest.h>

#include <string>
#include <tuple>

namespace gradient_checks_test {

using namespace edl::master;
using edl::checked_minibatch;
using workers_of = std::vector<std::uint32_t>;

namespace {

struct bench {
  membership workers;
  gradient_checks it;

  explicit bench(std::uint32_t n, bool copies = false) : it(copies) {
    for (std::uint32_t id = 0; id < n; ++id) join(id);
  }
  void join(std::uint32_t id, std::string const& kind = "a processor") {
    workers.join(id, 1, {}, time_point{}, kind);
    it.joined(id, 0);
  }
  void trained(std::uint32_t worker, std::uint64_t version, std::uint64_t gradient,
               std::uint64_t weights = 5) {
    it.trained(worker, {0, worker}, {0, 0, 512}, {{3, version, weights, gradient}}, workers);
  }
  // The worker asks for a check, and answers. False: there is none for it.
  bool checks(std::uint32_t worker, std::uint64_t gradient, std::uint64_t weights = 5) {
    auto const order = it.lease(worker, workers);
    if (!order) return false;
    CHECK(order->minibatch == 3);
    CHECK((order->lease & gradient_checks::lease_bit));
    CHECK(it.answered(order->lease, worker, checked_minibatch{3, 0, weights, gradient}));
    return true;
  }
};

}  // namespace

TEST_CASE("a minibatch is computed again once, by another worker of the same kind of processor") {
  bench b(2);
  b.join(2, "another processor");
  CHECK_FALSE(b.it.lease(1, b.workers));
  b.trained(0, 100, 7);
  CHECK_FALSE(b.it.lease(0, b.workers));
  CHECK_FALSE(b.it.lease(2, b.workers));
  auto const order = b.it.lease(1, b.workers);
  REQUIRE(order);
  CHECK(order->of == 0);
  CHECK_FALSE(b.it.lease(1, b.workers));
  CHECK_FALSE(b.it.answered(order->lease, 0, checked_minibatch{3, 0, 5, 7}));
  CHECK(b.it.answered(order->lease, 1, checked_minibatch{3, 0, 5, 7}));
  CHECK_FALSE(b.it.take_verdict());
  CHECK_FALSE(b.it.lease(1, b.workers));
  CHECK(b.it.done() == 1);
}

TEST_CASE("of three workers that differ the one that is alone computes wrongly") {
  for (std::uint32_t wrong : {0u, 1u}) {
    CAPTURE(wrong);
    bench b(3);
    b.trained(wrong, 50, 7);
    CHECK(b.checks(2, 7));  // right so far
    b.trained(0, 100, wrong == 0 ? 8 : 7);
    CHECK(b.checks(1, wrong == 1 ? 8 : 7));
    CHECK_FALSE(b.it.take_verdict());
    CHECK_FALSE(b.checks(0, 0));
    CHECK_FALSE(b.checks(1, 0));
    CHECK(b.checks(2, 7));
    auto const v = b.it.take_verdict();
    REQUIRE(v);
    CHECK(v->culprits == workers_of{wrong});
    CHECK(v->good_at == 50);
    CHECK(v->text.find("workers 0 and 1 differ in minibatch 3 of task 0 (version 100)") == 0);
    CHECK_FALSE(b.checks(2, 7));
  }
}

TEST_CASE("of two workers the one that does not repeat itself is wrong; where both do, nobody is blamed") {
  bench b(2);
  b.trained(0, 100, 8);
  CHECK(b.checks(1, 7));
  CHECK_FALSE(b.checks(1, 7));
  CHECK(b.checks(0, 7));
  auto v = b.it.take_verdict();
  REQUIRE(v);
  CHECK(v->culprits == workers_of{0});
  CHECK(v->good_at == 0);
  b.trained(0, 100, 8);
  CHECK(b.checks(1, 7));
  CHECK(b.checks(0, 8));
  CHECK_FALSE(b.it.take_verdict());
  CHECK(b.checks(1, 8));
  v = b.it.take_verdict();
  REQUIRE(v);
  CHECK(v->culprits == workers_of{1});
  b.trained(0, 100, 8);
  CHECK(b.checks(1, 7));
  CHECK(b.checks(0, 8));
  CHECK(b.checks(1, 7));
  v = b.it.take_verdict();
  REQUIRE(v);
  CHECK(v->culprits.empty());
  CHECK_FALSE(v->good_at);
}

TEST_CASE("sums that three workers have in three ways repeat nowhere, and blame nobody") {
  bench b(3);
  b.trained(0, 100, 7);
  CHECK(b.checks(1, 8));
  CHECK(b.checks(2, 9));
  auto const v = b.it.take_verdict();
  REQUIRE(v);
  CHECK(v->culprits.empty());
  CHECK(v->text.find("are not reproducible") != std::string::npos);
}

TEST_CASE("a check that cannot be made, or whose worker is gone, is no fault of anybody") {
  bench b(3);
  b.trained(0, 100, 7);
  auto order = b.it.lease(1, b.workers);
  REQUIRE(order);
  b.it.gone(1);
  b.workers.lose(1, 1);
  CHECK_FALSE(b.it.answered(order->lease, 1, checked_minibatch{3, 0, 5, 8}));
  order = b.it.lease(2, b.workers);
  REQUIRE(order);
  CHECK(b.it.answered(order->lease, 2, std::nullopt));
  CHECK_FALSE(b.it.take_verdict());
  CHECK_FALSE(b.it.lease(2, b.workers));
  b.trained(0, 200, 7);
  b.it.clear();
  CHECK_FALSE(b.it.lease(2, b.workers));
}

TEST_CASE("who has left after an answer that differed is not judged, nor is who comes under its id") {
  for (bool const comes_back : {false, true}) {
    CAPTURE(comes_back);
    bench b(3);
    b.trained(0, 100, 7);
    CHECK(b.checks(1, 8));
    b.it.gone(1);
    b.workers.lose(1, 1);
    if (comes_back) {
      b.workers.join(1, 2, {}, time_point{}, "a processor");
      b.it.joined(1, 90);
    }
    CHECK(b.checks(2, 7));
    CHECK_FALSE(b.it.take_verdict());
    CHECK_FALSE(b.it.lease(0, b.workers));  // it is settled
    CHECK_FALSE(b.it.lease(1, b.workers));
    // So worker 0 is known to be right up to there.
    b.trained(0, 200, 8);
    CHECK(b.checks(2, 7));
    CHECK(b.checks(comes_back ? 1 : 0, 7));
    auto const v = b.it.take_verdict();
    REQUIRE(v);
    CHECK(v->culprits == workers_of{0});
    CHECK(v->good_at == 100);
  }
}

TEST_CASE("copies of the model that are to be equal: the one that is not is named, of two neither") {
  bench b(3, true);
  b.trained(0, 100, 0, 5), b.trained(1, 100, 0, 5), b.trained(2, 100, 0, 5);
  CHECK_FALSE(b.it.take_verdict());
  b.trained(2, 200, 0, 6), b.trained(0, 200, 0, 5);
  CHECK_FALSE(b.it.take_verdict());
  b.trained(1, 200, 0, 5);
  auto v = b.it.take_verdict();
  REQUIRE(v);
  CHECK(v->culprits == workers_of{2});
  CHECK(v->good_at == 100);
  bench two(2, true);
  two.trained(0, 100, 0, 5);
  CHECK_FALSE(two.it.take_verdict());
  two.trained(1, 100, 0, 6);
  v = two.it.take_verdict();
  REQUIRE(v);
  CHECK(v->culprits.empty());
  CHECK(v->good_at == 0);
}

TEST_CASE("what a job has gone back behind is not known to be good") {
  bench b(3);
  b.trained(0, 100, 7);
  CHECK(b.checks(1, 7));
  b.it.go_back_to(60);
  b.trained(0, 120, 8);
  CHECK(b.checks(1, 7));
  CHECK(b.checks(2, 7));
  auto const v = b.it.take_verdict();
  REQUIRE(v);
  CHECK(v->good_at == 60);
}

TEST_CASE("a successor knows what was found to be right, as far as there is a checkpoint of it") {
  bench b(3);
  b.it.written(40);
  b.trained(0, 50, 7);
  CHECK(b.checks(1, 7));
  CHECK(b.it.known_good().workers == std::map<std::uint32_t, std::uint64_t>{{0, 40}, {1, 0}, {2, 0}});
  auto const changes = b.it.changes();
  b.trained(0, 60, 7);
  CHECK(b.checks(1, 7));
  CHECK(b.it.changes() == changes);
  b.it.written(55);
  CHECK(b.it.changes() > changes);
  CHECK(b.it.known_good().workers.at(0) == 55);
  // Who was here before is in doubt since then, a newcomer since the newest; of who is not known nothing is.
  for (auto const& [wrong, before, good] : {std::tuple{0u, true, 55u}, std::tuple{1u, true, 0u},
                                            std::tuple{5u, false, 55u}, std::tuple{6u, true, 0u}}) {
    CAPTURE(wrong);
    bench next(0);
    next.it.resume(b.it.known_good());
    for (std::uint32_t const id : {wrong, 7u, 8u}) {
      next.join(id);
      next.it.joined(id, 0, id == wrong && before);
    }
    next.trained(wrong, 100, 8);
    CHECK(next.checks(7, 7));
    CHECK(next.checks(8, 7));
    auto const v = next.it.take_verdict();
    REQUIRE(v);
    CHECK(v->culprits == workers_of{wrong});
    CHECK(v->good_at == good);
  }
}

TEST_CASE("a successor knows to which version all copies were equal") {
  bench b(2, true);
  b.trained(0, 100, 0, 5), b.trained(1, 100, 0, 5);
  b.it.written(90);
  CHECK(b.it.known_good().copies == 90);
  bench next(2, true);
  next.it.resume(b.it.known_good());
  next.trained(0, 200, 0, 5), next.trained(1, 200, 0, 6);
  auto const v = next.it.take_verdict();
  REQUIRE(v);
  CHECK(v->good_at == 90);
}

}  // namespace gradient_checks_test
