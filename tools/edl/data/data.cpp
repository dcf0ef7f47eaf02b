// SPDX-License-Identifier: Apache-2.0
#include "data/data.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/columns.hpp"
#include "common/fields.hpp"
#include "common/paths.hpp"
#include "common/table.hpp"
#include "data/survey.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/compute/data/format/convert.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/features/pipeline.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "edl/job/config/flags.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

char const* name_of(data::compressor c) {
  return c == data::compressor::none ? "none" : c == data::compressor::snappy ? "snappy" : "gzip";
}

/// The file that a shard is, where it is one of its own.
std::optional<std::string> file_of(std::string const& path, std::string const& shard) {
  std::error_code failure;
  for (fs::path const& candidate : {fs::path(path) / shard, fs::path(path), fs::path(shard)})
    if (fs::is_regular_file(candidate, failure) && candidate.filename() == fs::path(shard).filename())
      return candidate.string();
  return std::nullopt;
}

bool is_recordio(std::string const& path) {
  char head[4] = {};
  std::ifstream in(path, std::ios::binary);
  return in.read(head, 4) && std::string_view(head, 4) == "\4\3\2\1";  // the magic number, little-endian
}

json describe_shard(bucket::readable const& path, data::shard const& s) {
  json j{{"name", s.name}, {"records", s.records}};
  auto const file = file_of(path.path(), s.name);
  if (!file) return j;
  std::error_code failure;
  j["bytes"] = fs::file_size(*file, failure);
  if (!is_recordio(*file)) return j;
  data::recordio_index const index = data::index_recordio(*file, true);
  j["chunks"] = index.chunks.size();
  j["layout"] = index.layout == data::recordio_layout::go ? "go" : "python";
  j["compressor"] = index.chunks.empty() ? "none" : name_of(index.chunks[0].with);
  return j;
}

/// Neighbouring records that cannot be read for one reason, as those of a chunk.
struct bad_run {
  std::uint64_t first = 0, last = 0;
  std::string message;  ///< of the first
  std::string reason;   ///< the same without the record's number

  std::string text() const {
    return first == last ? message
                         : fmt::format("{} (the same for all records from {} to {})", message, first, last);
  }
};

std::string without(std::string text, std::string const& part) {
  if (auto const at = text.find(part); at != text.npos) text.erase(at, part.size());
  return text;
}

std::uint64_t verify(data::source const& of, std::vector<std::string>& damage) {
  constexpr std::size_t most = 100;
  auto const in = of.open();
  example record;
  std::uint64_t good = 0, more = 0;
  std::size_t const before = damage.size();
  for (std::size_t s = 0; s < of.shards().size(); ++s) {
    bad_run now;
    auto const finish = [&] {
      if (now.message.empty()) return;
      if (damage.size() < before + most)
        damage.push_back(now.text());
      else
        more += now.last - now.first + 1;
      now = {};
    };
    for (std::uint64_t i = 0; i < of.shards()[s].records; ++i) try {
        in->read(s, i, record);
        ++good;
      } catch (data_error const& bad) {
        std::string const reason = without(bad.what(), fmt::format(": record {}", i));
        if (now.message.empty() || reason != now.reason || now.last + 1 != i) {
          finish();
          now = {i, i, bad.what(), reason};
        }
        now.last = i;
      }
    finish();
  }
  if (more > 0) damage.push_back(fmt::format("{} more records cannot be read", more));
  return good;
}

flag compressor_flag() {
  return {.name = "compressor",
          .fallback = "snappy",
          .help = "of the files' chunks",
          .choices = {"none", "snappy", "gzip"}};
}

data::convert_options read_options(command_line const& l) {
  data::convert_options o{.records_per_shard = std::uint64_t(l.number("records_per_shard"))};
  std::string const& c = l.text("compressor");
  o.recordio.with = c == "none"   ? data::compressor::none
                    : c == "gzip" ? data::compressor::gzip
                                  : data::compressor::snappy;
  std::string const& fraction = l.text("fraction");
  o.fraction = number_from<double>(fraction).value_or(0);
  if (!(o.fraction > 0 && o.fraction <= 1))
    throw usage_error(fmt::format("--fraction={}: expected more than 0, and at most 1", fraction));
  if (::isatty(2) == 1)
    o.progress = [](std::uint64_t done, std::uint64_t of) {
      fmt::print(stderr, "\r{}/{} records{}", done, of, done == of ? "\n" : "");
    };
  return o;
}

std::vector<flag> shard_flags() {
  return {{.name = "records_per_shard",
           .fallback = "4096",
           .help = "records in one file",
           .type = flag::value_type::whole,
           .least = 1,
           .most = 2147483647},
          compressor_flag(),
          {.name = "fraction", .fallback = "1", .help = "share of the records to take, from the first"}};
}

void write_records(std::string const& from, std::string const& to, data::convert_options const& o,
                   data::source_options const& as = {}) {
  auto const source = open_records(from, as);
  data::converted made;
  bucket::place(to, cache()).fill([&](std::string const& path) { made = data::convert(*source, path, o); });
  fmt::print("{} in {}: {}\n", counted(made.records, "record"), counted(made.files, "file"), printable(to));
  std::fflush(stdout);
}

/// How many records of the survey have each class.
json describe_classes(data::source const& of, survey const& seen) {
  json list = json::array();
  auto const labels = seen.features.find("label");
  for (std::size_t i = 0; i < of.classes().size(); ++i) {
    std::uint64_t records = 0;
    if (labels != seen.features.end())
      if (auto const it = labels->second.distinct.find(std::to_string(i));
          it != labels->second.distinct.end())
        records = it->second;
    list.push_back({{"label", i}, {"name", printable(of.classes()[i], 64)}, {"records", records}});
  }
  return list;
}

/// The first records as texts; `other` says why one cannot be read.
std::string first_records(data::source const& of, std::size_t most, std::string& other) {
  std::string text;
  auto const in = of.open();
  example record;
  for (std::size_t s = 0, shown = 0; s < of.shards().size(); ++s)
    for (std::uint64_t i = 0; i < of.shards()[s].records && shown < most; ++i, ++shown) try {
        in->read(s, i, record);
        text +=
            fmt::format("record {} of {}\n{}\n", i, printable(of.shards()[s].name, 128), describe(record));
      } catch (data_error const& none) {
        if (other.empty()) other = none.what();
      }
  return text;
}

/// What a pipeline makes of the first records: a row for each column of each record.
json first_columns(data::source const& of, features::pipeline const& by, std::size_t most) {
  struct values {
    std::vector<float> all;
    float& operator()(std::size_t i) { return all.at(i); }
  };
  struct {
    std::vector<std::int64_t> all;
    void add(std::int64_t id) { all.push_back(id); }
  } list;
  json shown = json::array();
  auto const in = of.open();
  example record;
  for (std::size_t s = 0; s < of.shards().size(); ++s)
    for (std::uint64_t i = 0; i < of.shards()[s].records && shown.size() < most; ++i) {
      in->read(s, i, record);
      values numbers{std::vector<float>(by.numbers())}, ids{std::vector<float>(by.ids())};
      list.all.clear();
      try {
        by.write_numbers(record, numbers);
        by.write_ids(record, ids);
        by.add_ids(record, list);
      } catch (data_error const& bad) {
        throw data_error(fmt::format("{}: record {}: {}", of.shards()[s].name, i, bad.what()));
      }
      shown.push_back({{"record", i}, {"numbers", numbers.all}, {"ids", ids.all}, {"list", list.all}});
    }
  return shown;
}

void write_sheet(data::source const& of, std::string const& path) {
  constexpr std::size_t most = 100;
  contact_sheet const sheet = make_contact_sheet(of, most);
  write_file(path, [&](std::string const& file) { replace_file(file, data::encode_png(sheet.picture)); });
  std::string by;
  for (std::size_t i = 0; i < sheet.labels.size(); ++i) {
    if (i > 0 && sheet.labels[i] == sheet.labels[i - 1]) continue;
    auto const label = sheet.labels[i];
    bool const named = label >= 0 && std::size_t(label) < of.classes().size();
    by += fmt::format("{}{} from picture {}", by.empty() ? "; by label: " : ", ",
                      named ? printable(of.classes()[std::size_t(label)], 64) : fmt::format("{}", label),
                      i + 1);
  }
  fmt::print(stderr, "edl: {}: {}, {} in a row{}\n", path, counted(sheet.pictures, "picture"), sheet.columns,
             by);
}

}  // namespace

std::vector<flag> source_flags() {
  return {{.name = "format",
           .fallback = "auto",
           .help = "format of a file without the usual extension: UCI's census income, Criteo's click logs, "
                   "libFM's rows",
           .choices = {"auto", "census", "criteo", "libfm"}},
          missing_flag()};
}

data::source_options source_options_of(command_line const& l) {
  std::string const& name = l.text("format");
  return {.as = name == "census"   ? data::format::census
                : name == "criteo" ? data::format::criteo
                : name == "libfm"  ? data::format::libfm
                                   : data::format::automatic,
          .missing = data::read_missing_words(l.text("missing"))};
}

std::vector<flag> inspect_flags() {
  std::vector<flag> all{
      {.name = "verify", .fallback = "false", .help = "read every record", .type = flag::value_type::truth},
      {.name = "sample",
       .fallback = "10000",
       .help = "number of records, evenly spread, to compute the features' ranges, missing and distinct "
               "values from",
       .type = flag::value_type::whole,
       .least = 1,
       .most = 1'000'000'000},
      {.name = "first",
       .fallback = "2",
       .help = "records to show",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 1000},
      {.name = "columns",
       .help =
           "file with the steps of a table's columns (EDL_COLUMNS); shows the result for the first records"},
      {.name = "to",
       .help = "PNG file to write, or s3://BUCKET/KEY, with pictures of the records side by side"},
      output_flag()};
  std::ranges::move(source_flags(), std::back_inserter(all));
  return all;
}

int inspect(words const& line) {
  command_line const l("data inspect", inspect_flags(), line, 1, 1, "the path of the records");
  std::string const& path = l.arguments()[0];
  auto options = source_options_of(l);
  options.skip_damaged = true;
  auto const source = open_records(path, options);
  std::vector<std::string> damage(source->damage().begin(), source->damage().end());
  json all{{"path", path}, {"records", data::records(*source)}};
  all["shards"] = json::array();
  bool const listed = path.find(',') != path.npos;  // then no shard is found by its name
  bucket::readable const where(listed ? "" : path, cache());
  for (data::shard const& s : source->shards()) all["shards"].push_back(describe_shard(where, s));
  survey const seen = survey_records(*source, std::uint64_t(l.number("sample")));
  all["sample"] = seen.records;
  all["features"] = describe(seen);
  if (!source->classes().empty()) all["classes"] = describe_classes(*source, seen);
  all["notes"] = data::all_notes(*source);
  std::string other;  // what else the records are
  std::string shown = first_records(*source, std::size_t(l.number("first")), other);
  if (!l.text("columns").empty()) {
    bucket::readable const columns(l.text("columns"), cache());
    auto const conversion = columns.use([&] { return features::pipeline::from_file(columns.path()); });
    all["columns"] = {
        {"numbers", conversion.numbers()}, {"ids", conversion.ids()}, {"vocabulary", conversion.size()}};
    all["columns"]["records"] = first_columns(*source, conversion, std::size_t(l.number("first")));
  }
  if (!l.text("to").empty()) write_sheet(*source, l.text("to"));
  if (l.truth("verify")) all["readable"] = verify(*source, damage);
  for (std::string& what : damage) what = printable(what);  // names of files may be any bytes
  all["damage"] = damage;
  if (l.text("output") != "table") {
    fmt::print("{}", to_text(all, l.text("output")));
    return damage.empty() ? done : failed;
  }
  std::vector<words> rows{{"SHARD", "RECORDS", "BYTES", "CHUNKS", "COMPRESSOR", "LAYOUT"}};
  for (json const& s : all["shards"])
    rows.push_back({text_at(s, "/name"), text_at(s, "/records"), text_at(s, "/bytes", "-"),
                    text_at(s, "/chunks", "-"), text_at(s, "/compressor", "-"), text_at(s, "/layout", "-")});
  fmt::print("{}\n", to_table(rows));
  rows = {{"FEATURE", "KIND", "VALUES", "MISSING", "MIN", "MAX", "NOT FINITE", "DISTINCT"}};
  for (json const& f : all["features"]) {
    auto const of = [&](char const* key) { return f.contains(key) ? number_text(f[key]) : std::string("-"); };
    std::string const values = text_at(f, "/values");
    rows.push_back({text_at(f, "/name"), text_at(f, "/kind"),
                    f.contains("most_values") ? values + " to " + text_at(f, "/most_values") : values,
                    text_at(f, "/missing"), of("min"), of("max"), text_at(f, "/not_finite", "-"),
                    text_at(f, "/distinct", "-")});
  }
  fmt::print("{}\n", to_table(rows));
  if (all.contains("classes")) {
    rows = {{"LABEL", "CLASS", "RECORDS"}};
    for (json const& c : all["classes"])
      rows.push_back({text_at(c, "/label"), text_at(c, "/name"), text_at(c, "/records")});
    fmt::print("{}\n", to_table(rows));
  }
  if (all.contains("columns")) {
    json const& c = all["columns"];
    for (json const& r : c["records"])
      shown += fmt::format("record {} becomes numbers {} ids {} list {}\n", r["record"].dump(),
                           r["numbers"].dump(), r["ids"].dump(), r["list"].dump());
    shown += fmt::format(
        "{} and {}, of a vocabulary of {}: {}\n\n", counted(c["numbers"].get<std::uint64_t>(), "number"),
        counted(c["ids"].get<std::uint64_t>(), "id"), c["vocabulary"].dump(), l.text("columns"));
  }
  fmt::print("{}{} in {}", shown, counted(all.at("records").get<std::uint64_t>(), "record"),
             counted(all["shards"].size(), "shard"));
  if (seen.records + seen.unreadable < data::records(*source))
    fmt::print(", the features of {} of them", seen.records);
  fmt::print("{}\n",
             all.contains("readable") ? fmt::format(", {} of them read", text_at(all, "/readable")) : "");
  std::fflush(stdout);
  if (!other.empty()) say("the features are not known: " + other);
  for (std::string const& what : data::all_notes(*source)) say(what);
  for (std::string const& what : damage) say("damaged: " + what);
  return damage.empty() ? done : failed;
}

std::vector<flag> convert_flags() {
  std::vector<flag> all{
      {.name = "from",
       .help = "records to read, in any format that jobs read: RecordIO, tables, pictures, …"},
      {.name = "to",
       .help = "directory to write into, which appears when it is complete, or s3://BUCKET/PREFIX"}};
  std::ranges::move(source_flags(), std::back_inserter(all));
  std::ranges::move(shard_flags(), std::back_inserter(all));
  return all;
}

int convert(words const& line) {
  command_line const l("data convert", convert_flags(), line);
  for (char const* needed : {"from", "to"})
    if (l.text(needed).empty()) throw usage_error(fmt::format("data convert: --{} is needed", needed));
  write_records(l.text("from"), l.text("to"), read_options(l), source_options_of(l));
  return done;
}

std::vector<flag> make_flags() {
  std::vector<flag> all{
      {.name = "dataset",
       .fallback = "digits",
       .help = "digits: drawn ones, which need no files; mnist, cifar10: the published files",
       .choices = {"digits", "mnist", "cifar10"}},
      {.name = "from", .help = "directory with the published files, or s3://BUCKET/PREFIX"}};
  auto const more = shard_flags();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

int make(words const& line) {
  command_line const l("data make", make_flags(), line, 1, 1, "the directory to write into");
  std::string const &set = l.text("dataset"), &from = l.text("from");
  if (set == "digits" && !from.empty())
    throw usage_error("--from: digits are drawn; give --dataset=mnist or cifar10");
  if (set != "digits" && from.empty())
    throw usage_error(fmt::format("--from is needed: the directory with the published files of {}", set));
  auto const o = read_options(l);
  bucket::readable const files(from, cache());
  for (char const* part : {"train", "test"})
    write_records(
        set == "digits" ? fmt::format("synthetic:{}", part) : fmt::format("{}/{}", files.path(), part),
        fmt::format("{}/{}/{}", l.arguments()[0], set, part), o);
  return done;
}

}  // namespace edl::tool
