// SPDX-License-Identifier: Apache-2.0
#include "edl/app/audit.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "app/job.hpp"
#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/core/error.hpp"

namespace audit_test {

namespace {

using edl::contribution;
using edl::ledger;
using job::count;
using job::has;

edl::parameter_layout layout() { return {{{"w", {8}, true}}, 8}; }

/// A checkpoint of one epoch over a shard of 10 records, in tasks of 4 and minibatches of 2: each half of the
/// variables has its own history.
std::string checkpoint(job::scratch const& dir, ledger const& first, ledger const& second) {
  auto const l = layout();
  std::string const path = edl::checkpoint::checkpoint_path(dir / "c", 5);
  edl::checkpoint::begin_checkpoint(path);
  std::vector<float> const values(8);
  std::vector<edl::checkpoint::segment> const segments{{{0, 4}, 5, first}, {{4, 8}, 5, second}};
  edl::checkpoint::manifest m{.job = "j",
                              .version = 5,
                              .layout = edl::checkpoint::layout_digest(l),
                              .minibatch_size = 2,
                              .records_per_task = 4,
                              .epochs = 2,
                              .shards = {{"s", 10}}};
  m.files = {edl::checkpoint::write_part(path, l,
                                         {.version = 5,
                                          .elements = {0, 8},
                                          .variables = values,
                                          .slot_names = {},
                                          .slots = {},
                                          .segments = segments})};
  edl::checkpoint::commit_checkpoint(path, m);
  return dir / "c";
}

ledger whole(std::uint32_t short_of = 0) {
  ledger l;
  for (std::uint32_t task = 0; task < 3; ++task)
    for (std::uint32_t i = 0; i < (task < 2 ? 2u : 1u); ++i)
      l.apply({{{0, task}, i, task < 2 ? 2u : 1u},
               task == 1 && i == 0 ? 2 - short_of : 2,
               task == 1 && i == 0 ? short_of : 0});
  return l;
}

}  // namespace

TEST_CASE("an audit compares what is marked with what was applied, over all variables") {
  job::scratch const dir;
  auto const account = [&](ledger const& a, ledger const& b) {
    auto const found = edl::app::audit_checkpoint(checkpoint(dir, a, b));
    CHECK(found.version == 5);
    CHECK(found.epochs.size() == 2);
    CHECK(found.epochs.at(1).left == 10);
    CHECK(found.epochs.at(1).applied == 0);
    return found.epochs.at(0);
  };
  SUBCASE("whole") {
    auto const e = account(whole(), whole());
    CHECK((e.records == 10 && e.applied == 10 && e.left == 0 && e.lost == 0 && e.repeated == 0));
  }
  SUBCASE("damaged records are not lost ones") {
    auto const e = account(whole(1), whole(1));
    CHECK((e.applied == 9 && e.skipped == 1 && e.left == 0 && e.lost == 0 && e.repeated == 0));
  }
  SUBCASE("the variables that have least say what is left") {
    ledger some;
    some.apply({{{0, 0}, 0, 2}, 2});
    auto const e = account(whole(), some);
    CHECK((e.applied == 2 && e.left == 8 && e.lost == 0 && e.repeated == 0));
  }
  SUBCASE("marked and not applied") {
    ledger l = whole();
    l.set_tally(0, {4, 8});
    auto const e = account(whole(), l);
    CHECK((e.lost == 2 && e.repeated == 0));
  }
  SUBCASE("applied twice") {
    ledger l = whole();
    l.set_tally(0, {6, 12});
    auto const e = account(l, whole());
    CHECK((e.lost == 0 && e.repeated == 2 && e.applied == 12));
  }
}

TEST_CASE("an audit of what is none says so") {
  job::scratch const dir;
  CHECK_THROWS_AS(edl::app::audit_checkpoint(dir / "nothing"), edl::error);
  std::string const path = checkpoint(dir, whole(), whole()) + "/version-5";
  std::filesystem::resize_file(path + "/" + edl::checkpoint::read_manifest(path).files[0].name, 100);
  CHECK_THROWS_AS(edl::app::audit_checkpoint(path), edl::error);
}

TEST_CASE("equal epochs of many stand in one line") {
  edl::app::audit a{.path = "p", .job = "j"};
  for (std::uint32_t e = 0; e < 100'000; ++e) a.epochs[e] = {.records = 9, .left = 9};
  a.epochs[0] = {.records = 9, .applied = 9};
  a.epochs[7] = {.records = 9, .applied = 4, .left = 5};
  std::ostringstream out;
  write(out, a);
  std::string const text = out.str();
  CHECK(std::ranges::count(text, '\n') == 9);
  CHECK(has(text, "\n   1-6 "));
  CHECK(has(text, "\n8-99999 "));
}

TEST_CASE("`audit` on the command line: a table, and the exit code") {
  job::scratch const dir;
  job::run good({"audit", checkpoint(dir, whole(), whole())});
  CHECK(good.wait() == 0);
  CHECK(has(good.log(), "exact: every record that was applied counts once"));
  ledger twice = whole();
  twice.set_tally(0, {6, 12});
  job::run bad({"audit", checkpoint(dir, whole(), twice) + "/version-5"});
  CHECK(bad.wait() == 1);
  CHECK(has(bad.log(), "NOT EXACT"));
  job::run none({"audit", dir / "x"});
  CHECK(none.wait() == 1);
  CHECK(has(none.log(), "no valid checkpoint in"));
}

}  // namespace audit_test
