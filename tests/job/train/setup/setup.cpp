// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/setup/setup.hpp"

#include <cmath>

#include "app/job.hpp"
#include "edl/app/arguments.hpp"
#include "job/train/files.hpp"

namespace setup_test {

using job::has;
using job::lines, job::with;

TEST_CASE("one gradient for a step: none is too old, unless a tolerance is given; N are for N workers") {
  auto const old_by = [](lines const& flags, std::uint64_t behind) {
    auto const j = edl::app::parse("tiny", with({"train", "--training_data=d", "--num_workers=4"}, flags))
                       .run.value()
                       .job;
    auto const when = edl::train::policy_of(j);
    CHECK(when->group() == std::uint32_t(j.training.grads_to_wait));
    return when->stale(1000, 1000 - behind);
  };
  for (lines const& one : {lines{}, lines{"--grads_to_wait=1"}}) CHECK_FALSE(old_by(one, 900));
  CHECK(old_by({"--grads_to_wait=1", "--sync_version_tolerance=3"}, 4));
  CHECK_FALSE(old_by({"--grads_to_wait=1", "--sync_version_tolerance=3"}, 3));
  CHECK(old_by({"--grads_to_wait=4"}, 1));
  CHECK_FALSE(old_by({"--grads_to_wait=4"}, 0));
}

TEST_CASE("flags that decide what is trained are compared between processes, those that a role reads") {
  auto const shared = [](lines const& line, bool reads_records) {
    return edl::train::shared_flags(edl::app::parse("tiny", line).run.value().job, reads_records);
  };
  lines const train{"train", "--training_data=d", "--seed=7", "--minibatch_size=3", "--shuffle=false"};
  CHECK(shared(train, true) == lines{"--seed=7", "--shuffle=false", "--minibatch_size=3"});
  CHECK(shared(train, false) == lines{"--seed=7"});
  // What these give for a record depends on none of them.
  CHECK(shared({"evaluate", "--validation_data=d", "--checkpoint_dir_for_init=c"}, true).empty());
}

// Sanitizers reserve more addresses than any limit that makes sense here.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("memory that is not to be had is told in bytes, with the way out") {
  job::run j({"-c", R"(ulimit -v 4000000; exec "$0" "$@")", EDL_TINY, "train",
              "--training_data=" + job::data().training, "--minibatch_size=1000000"},
             {.env = {{"TINY_WIDE", "1"}}, .program = "/bin/sh"});
  CHECK(j.wait() == 1);
  CAPTURE(j.log());
  auto const at = j.log().find("--minibatch_size=1000000 needs ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(j.log().substr(at + 31)) > 4e9);
  CHECK(has(j.log(), "one record needs "));
  CHECK(has(j.log(), "lower --minibatch_size"));
}
#endif

TEST_CASE("a precision of GPUs that a processor does not have is told once") {
  for (job::lines const& how : {job::lines{}, job::lines{"--num_workers=2", "--num_ps_pods=1"}}) {
    job::run j(job::train(job::with({"--precision=tf32"}, how)));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    bool const gpu = job::has(j.log(), "computes on ") && !job::has(j.log(), "computes on the processor");
    CHECK(job::count(j.log(), "--precision=tf32 does nothing: it is for GPUs") == (gpu ? 0 : 1));
    job::run exact(job::train(how));
    CHECK(exact.wait() == 0);
    CHECK_FALSE(job::has(exact.log(), "tf32"));
  }
}

TEST_CASE("metrics that are no numbers are told, and what they do not decide") {
  edl::train::program p;
  p.metrics = [](edl::view<double> totals) {
    return std::vector<std::pair<std::string, double>>{{"loss", totals[0]}, {"auc", totals[1]}};
  };
  edl::job j;
  double const nan = std::nan("");
  CHECK(edl::train::odd_metrics(j, p, {.evaluated = {7}, .totals = {1, 2}, .records = 40}).empty());
  CHECK(edl::train::odd_metrics(j, p, {.evaluated = {7}, .totals = {1, nan}, .records = 40}) ==
        "version 7, evaluated on 40 records: auc is nan");
  j.evaluation.save_best = edl::monitor{"auc", true};
  CHECK(edl::train::odd_metrics(j, p, {.evaluated = {7}, .totals = {nan, nan}, .records = 1}) ==
        "version 7, evaluated on 1 record: loss is nan, auc is nan; --save_best, --early_stopping and "
        "reduce_on_plateau count it as no progress");
}

}  // namespace setup_test
