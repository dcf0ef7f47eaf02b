// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/observe/event_file.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <span>

#include "app/job.hpp"
#include "base/bucket/unkind_store.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/job/train/observe/history_log.hpp"

namespace event_file_test {

namespace {

// A reader from the formats' descriptions: tensorflow/core/lib/io/record_writer.h, and the encoding of
// protocol buffers. It shares nothing with the writer.

std::uint32_t crc32c(std::string_view bytes) {  // Castagnoli's polynomial, bit by bit
  std::uint32_t crc = ~0u;
  for (char const c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

template <class T>
T take(std::string_view& from) {
  T value;
  REQUIRE(from.size() >= sizeof value);
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

std::vector<std::string> records(std::string_view file) {
  std::vector<std::string> all;
  while (!file.empty()) {
    std::string_view const head = file.substr(0, 8);
    auto const size = take<std::uint64_t>(file);
    CHECK(take<std::uint32_t>(file) == masked(crc32c(head)));
    REQUIRE(file.size() >= size);
    all.emplace_back(file.substr(0, size));
    file.remove_prefix(size);
    CHECK(take<std::uint32_t>(file) == masked(crc32c(all.back())));
  }
  return all;
}

struct field {
  unsigned number = 0, type = 0;
  std::uint64_t bits = 0;
  std::string bytes;
};

std::uint64_t varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto const byte = take<unsigned char>(from);
    value |= std::uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<field> fields(std::string_view from) {
  std::vector<field> all;
  while (!from.empty()) {
    std::uint64_t const key = varint(from);
    field f{.number = unsigned(key >> 3), .type = unsigned(key & 7), .bits = 0, .bytes = {}};
    if (f.type == 0) f.bits = varint(from);
    if (f.type == 1) f.bits = take<std::uint64_t>(from);
    if (f.type == 5) f.bits = take<std::uint32_t>(from);
    if (f.type == 2) {
      std::uint64_t const size = varint(from);
      REQUIRE(from.size() >= size);
      f.bytes = from.substr(0, size);
      from.remove_prefix(size);
    }
    all.push_back(std::move(f));
  }
  return all;
}

/// "step tag=value tag=value", the version, or "step start 1".
std::string told(std::string const& record) {
  std::string text;
  for (field const& f : fields(record)) {
    if (f.number == 1) CHECK(std::bit_cast<double>(f.bits) == 1.5);
    if (f.number == 2) text += std::to_string(f.bits);
    if (f.number == 3) text += f.bytes;
    if (f.number == 7) text += " start " + std::to_string(fields(f.bytes).at(0).bits);
    if (f.number != 5) continue;
    for (field const& value : fields(f.bytes)) {
      CHECK(value.number == 1);
      auto const parts = fields(value.bytes);
      REQUIRE(parts.size() == 2);
      CHECK(parts[0].number == 1);
      CHECK(parts[1].number == 2);
      CHECK(parts[1].type == 5);
      text += " " + parts[0].bytes + "=" + std::to_string(std::bit_cast<float>(std::uint32_t(parts[1].bits)));
    }
  }
  return text;
}

double number(field const& f) { return std::bit_cast<double>(f.bits); }

std::vector<double> packed(std::string_view bytes) {
  std::vector<double> all;
  while (!bytes.empty()) all.push_back(take<double>(bytes));
  return all;
}

/// The values of a record's summary: tag, and the fields of what it holds under this number.
std::vector<std::pair<std::string, std::vector<field>>> values(std::string const& record, unsigned kind) {
  std::vector<std::pair<std::string, std::vector<field>>> all;
  for (field const& f : fields(record)) {
    if (f.number != 5) continue;
    for (field const& value : fields(f.bytes)) {
      auto const parts = fields(value.bytes);
      if (parts.size() == 2 && parts[0].number == 1 && parts[1].number == kind)
        all.emplace_back(parts[0].bytes, fields(parts[1].bytes));
    }
  }
  return all;
}

std::vector<std::string> event_records(std::string const& directory) {
  std::vector<std::string> all;
  for (auto const& one : std::filesystem::directory_iterator(directory))
    for (std::string& r : records(job::slurp(one.path().string()))) all.push_back(std::move(r));
  return all;
}

}  // namespace

TEST_CASE("an event file is one by its specification") {
  auto const all = records(edl::train::event_file_version(1.5) + edl::train::event_of_start(1.5, 21) +
                           edl::train::event_of_scalars(1.5, 300, {{"a", 0.25}, {"b/c", -3}}));
  REQUIRE(all.size() == 3);
  CHECK(told(all[0]) == "brain.Event:2");
  CHECK(told(all[1]) == "21 start 1");
  CHECK(told(all[2]) == "300 a=0.250000 b/c=-3.000000");
  CHECK(edl::train::event_file_name(1764181474.4, "host", 0) == "events.out.tfevents.1764181474.host");
  CHECK(edl::train::event_file_name(1764181474.4, "host", 2) == "events.out.tfevents.1764181474.host.2");
}

TEST_CASE("the history's scalars go into event files, without a --checkpoint_dir, too") {
  job::scratch const dir;
  edl::master::coordinator const c({.training = {{"a", 6400}}}, {});
  edl::master::job_progress p;
  std::string const events = dir / "logs/run";
  using edl::time_point;
  {
    edl::train::history_log log({.path = "",
                                 .events = events,
                                 .steps = 2,
                                 .rate = [](std::uint64_t) { return 0.5; },
                                 .clock = [] { return 1.5; }},
                                edl::logger(edl::severity::critical));
    log.look(c, p, time_point());
    p.version = 2, p.workers = 3, p.trained = {8, 2, 128};
    log.look(c, p, time_point(std::chrono::seconds(2)));
    log.evaluated(c, 2, {{"accuracy", 0.75}}, 512);
    log.close(c, p, time_point(std::chrono::seconds(2)));
  }
  std::vector<std::string> files;
  for (auto const& one : std::filesystem::directory_iterator(events)) files.push_back(one.path());
  REQUIRE(files.size() == 1);
  CHECK(job::has(files[0], "/events.out.tfevents.2."));
  auto const all = records(job::slurp(files[0]));
  REQUIRE(all.size() == 4);
  CHECK(told(all[1]) == "1 start 1");
  CHECK(told(all[2]) ==
        "2 training/loss=4.000000 training/learning_rate=0.500000 training/records_per_s=64.000000 "
        "training/workers=3.000000");
  CHECK(told(all[3]) == "2 validation/accuracy=0.750000");
}

TEST_CASE("event files in a bucket are objects with a version each, in the order of their names") {
  job::scratch const dir;
  test::unkind_store store;
  edl::master::coordinator const c({.training = {{"a", 6400}}}, {});
  edl::master::job_progress p;
  {
    edl::train::history_log log(
        {.path = "",
         .events = "s3://box/logs/",
         .steps = 2,
         .rate = [](std::uint64_t) { return 0.5; },
         .clock = [] { return 1.5; },
         .like = edl::bucket::place("", {.directory = dir / "cache", .store = store.options()})},
        edl::logger(edl::severity::critical));
    log.look(c, p, edl::time_point());
    p.version = 2, p.workers = 3, p.trained = {8, 2, 128};
    log.look(c, p, edl::time_point(std::chrono::seconds(2)));
    log.pictures({{"large", {1, 1, 1, std::string(2 << 20, 'x')}}});  // has an object of its own
    log.evaluated(c, 2, {{"accuracy", 0.75}}, 512);
    log.close(c, p, edl::time_point(std::chrono::seconds(2)));
  }
  std::vector<std::string> all;
  for (auto const& [key, text] : store.objects) {
    CHECK(key.starts_with("logs/events.out.tfevents.2."));
    auto part = records(text);
    CHECK(told(part.at(0)) == "brain.Event:2");
    for (std::string const& r : std::span(part).subspan(1))
      if (values(r, 4).empty()) all.push_back(told(r));
  }
  CHECK(store.objects.size() >= 2);
  REQUIRE(all.size() == 3);
  CHECK(all[0] == "1 start 1");
  CHECK(all[1].starts_with("2 training/loss=4"));
  CHECK(all[2] == "2 validation/accuracy=0.750000");
}

TEST_CASE(
    "a job that goes back leaves readers the same picture in a directory and in a bucket, at any time") {
  using edl::master::role;
  job::scratch const dir;
  std::vector<std::string> written;
  test::unkind_store store([&](test::request const& r, test::wire&) {
    if (r.method == "PUT" && r.target.find("tfevents") != r.target.npos) written.push_back(r.target);
    return false;
  });
  std::vector<std::string> pictures;
  for (std::string const& events : {dir / "logs", std::string("s3://box/logs")}) {
    edl::time_point const now{};
    edl::master::coordinator c({.training = {{"a", 6400}}, .num_servers = 1}, now);
    edl::master::job_progress p;
    {
      edl::train::history_log log(
          {.path = "",
           .events = events,
           .steps = 10,
           .rate = [](std::uint64_t) { return 0.5; },
           .clock = [] { return 1.5; },
           .like = edl::bucket::place("", {.directory = dir / "cache", .store = store.options()})},
          edl::logger(edl::severity::critical));
      auto const serve = [&](std::uint64_t incarnation) {
        c.join({.role = role::server, .id = 0, .incarnation = incarnation}, now);
        c.server_configured(0, incarnation, c.generation(), "", now);
        log.look(c, p, now);
      };
      auto const train = [&](std::uint64_t step, double loss) {
        p.version = step, p.trained.minibatches += 1, p.trained.loss += loss;
        log.look(c, p, now);
        log.evaluated(c, step, {{"accuracy", loss}}, 512);
        log.tensors(step, {});
      };
      serve(1);
      for (std::uint64_t step : {10, 20, 30, 40}) train(step, 1);
      for (std::uint64_t incarnation : {2, 3}) {
        c.left(role::server, 0, incarnation - 1, now);
        c.restore_point_found(c.generation(), edl::master::restore_point{.directory = "d", .version = 20},
                              now);
        p.version = 20;
        serve(incarnation);
        train(30, double(incarnation));
        log.pictures({{"large", {1, 1, 1, std::string(2 << 20, 'x')}}});  // is not kept back in a bucket
      }
      log.close(c, p, now);
    }
    std::map<std::string, std::string> files;  // by name, as readers take them
    for (auto const& one : std::filesystem::recursive_directory_iterator(dir / "logs"))
      if (events[0] != 's') files[one.path()] = job::slurp(one.path().string());
    if (events[0] == 's') files = store.objects;
    // TensorBoard: a start takes away what is of its step and later ones.
    std::multimap<std::uint64_t, std::string> seen;
    for (auto const& [name, text] : files)
      for (std::string const& r : records(text)) {
        if (!values(r, 4).empty() || values(r, 2).empty()) {
          if (std::string const t = values(r, 4).empty() ? told(r) : ""; t.ends_with(" start 1"))
            seen.erase(seen.lower_bound(std::stoull(t)), seen.end());
          continue;
        }
        std::string const t = told(r);
        seen.emplace(std::stoull(t), t.substr(0, t.find(" training/learning_rate")));
      }
    std::string& picture = pictures.emplace_back();
    for (auto const& [step, text] : seen) picture += text + "\n";
  }
  CHECK(pictures[0] ==
        "10 training/loss=1.000000\n10 validation/accuracy=1.000000\n20 training/loss=1.000000\n"
        "20 validation/accuracy=1.000000\n30 training/loss=3.000000\n30 validation/accuracy=3.000000\n");
  CHECK(pictures[1] == pictures[0]);
  CHECK(written.size() >= 3);
  CHECK(std::ranges::is_sorted(written));  // a reader that is through with one reads none before it
}

TEST_CASE("a histogram has TensorFlow's default buckets, of which empty ones in a row are one") {
  std::vector<float> const some{0, 0, 1.5f, -2, 1.5f, INFINITY, NAN, 1e-20f};
  auto const all = records(edl::train::event_of_histograms(1.5, 7, {{"a/b", some}, {"none", {}}}));
  REQUIRE(all.size() == 1);
  auto const found = values(all[0], 5);
  REQUIRE(found.size() == 2);
  CHECK(found[0].first == "a/b");
  auto const& h = found[0].second;
  REQUIRE(h.size() == 7);
  for (unsigned i = 0; i < 7; ++i) CHECK(h[i].number == i + 1);
  CHECK(number(h[0]) == -2);
  CHECK(number(h[1]) == 1.5);
  CHECK(number(h[2]) == 6);
  CHECK(number(h[3]) == doctest::Approx(1));
  CHECK(number(h[4]) == doctest::Approx(8.5));
  auto const limits = packed(h[5].bytes), counts = packed(h[6].bytes);
  REQUIRE(limits.size() == counts.size());
  CHECK(limits.back() == std::numeric_limits<double>::max());
  // Each value lies below the limit of its bucket, and not below that of the one before.
  double sum = 0;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (i > 0) CHECK(limits[i] > limits[i - 1]);
    if (i > 0) CHECK_FALSE((counts[i] == 0 && counts[i - 1] == 0));
    double inside = 0;
    for (double const v : some) inside += std::isfinite(v) && v < limits[i] && (i == 0 || v >= limits[i - 1]);
    CHECK(counts[i] == inside);
    sum += counts[i];
  }
  CHECK(sum == 6);
  // The limits are 1e-12 · 1.1^k: the bucket of 1.5 is at most 1.1 times as wide.
  auto const of = std::ranges::upper_bound(limits, 1.5);
  CHECK(*of / of[-1] == doctest::Approx(1.1));
  CHECK(std::ranges::count(limits, 1e-12) == 1);
  CHECK(packed(found[1].second[6].bytes) == std::vector<double>{0});
}

TEST_CASE("values of all sizes lie in their buckets") {
  std::vector<float> all{-0.0f,        0.0f,          FLT_MAX, -FLT_MAX, FLT_MIN,
                         FLT_TRUE_MIN, -FLT_TRUE_MIN, 1e-12f,  -1e-12f};
  for (float x = 1e-14f; x < 1e22f; x *= 1.0137f) all.push_back(x), all.push_back(-x);
  auto const h = values(records(edl::train::event_of_histograms(1.5, 7, {{"a", all}})).at(0), 5).at(0).second;
  auto const limits = packed(h.at(5).bytes), counts = packed(h.at(6).bytes);
  std::vector<double> inside(limits.size());
  for (double const v : all)
    inside.at(std::size_t(std::ranges::upper_bound(limits, v) - limits.begin())) += 1;
  CHECK(inside == counts);
}

TEST_CASE("a picture is its PNG with its size") {
  auto const all =
      records(edl::train::event_of_pictures(1.5, 0, {{"validation/record-0", {28, 20, 3, "\x89PNG"}}}));
  auto const found = values(all.at(0), 4);
  REQUIRE(found.size() == 1);
  CHECK(found[0].first == "validation/record-0");
  auto const& p = found[0].second;
  REQUIRE(p.size() == 4);
  CHECK(p[0].bits == 28);
  CHECK(p[1].bits == 20);
  CHECK(p[2].bits == 3);
  CHECK(p[3].bytes == "\x89PNG");
}

TEST_CASE("a job writes histograms of its variables and gradients as often as it is asked to") {
  job::scratch const dir;
  std::string const logs = "--tensorboard_log_dir=" + (dir / "logs");
  job::run j({"train", "--training_data=" + job::data().training,
              "--validation_data=" + job::data().validation, "--minibatch_size=32", "--num_epochs=1", logs,
              "--tensorboard_histograms=20", "--history_steps=20"});
  INFO(j.log());
  REQUIRE(j.wait() == 0);
  std::map<std::string, int> tags;
  std::vector<std::uint64_t> steps;
  for (std::string const& r : event_records(dir / "logs")) {
    for (auto const& [tag, h] : values(r, 5)) {
      ++tags[tag];
      CHECK(number(h.at(0)) <= number(h.at(1)));
      CHECK(number(h.at(2)) > 0);
    }
    if (!values(r, 5).empty())
      for (field const& f : fields(r))
        if (f.number == 2) steps.push_back(f.bits);
  }
  CHECK(steps == std::vector<std::uint64_t>{20, 40, 60});
  std::size_t weights = 0, gradients = 0;
  for (auto const& [tag, n] : tags) {
    if (tag.starts_with("variables/")) CHECK(n == 3), ++weights;
    if (tag.starts_with("gradients/")) CHECK(n == 3), ++gradients;
  }
  CHECK(weights >= gradients);
  CHECK(gradients > 0);
}

TEST_CASE("histograms and pictures that a job cannot write are errors at its start") {
  job::scratch const dir;
  for (auto const& [flags, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--tensorboard_histograms=20"}, "--tensorboard_histograms needs --tensorboard_log_dir"},
           {{"--tensorboard_pictures=2", "--tensorboard_log_dir=t", "--num_workers=2"},
            "--tensorboard_pictures works in a job of one process"},
           {{"--tensorboard_pictures=2", "--tensorboard_log_dir=" + (dir / "logs")},
            "--tensorboard_pictures: the network takes no pictures"}}) {
    std::vector<std::string> line{"train", "--training_data=" + job::data().training};
    line.insert(line.end(), flags.begin(), flags.end());
    job::run j(line);
    CHECK(j.wait() == 1);
    CHECK(job::has(j.log(), why));
  }
}

}  // namespace event_file_test
