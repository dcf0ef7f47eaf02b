// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <system_error>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture_file.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/prediction/predictions.hpp"

namespace edl::train {
namespace detail {

/// Whether a name is that of a file of --wrong.
inline bool is_wrong(std::string const& name) {
  return name == "wrong.jsonl" ||
         (name.ends_with(".png") && name.find("-is-") != name.npos && name.find("-said-") != name.npos);
}

/// Features as a picture: the least value is black, and the largest is white.
inline std::string png_of(shape of, view<float> features) {
  auto const [least, largest] = std::ranges::minmax(features);
  float const scale = largest > least ? 255 / (largest - least) : 0;
  data::pixels made{.extents = of, .values = {}};
  for (float const x : features) made.values.push_back(std::uint8_t(std::lround((x - least) * scale)));
  return data::encode_png(made);
}

}  // namespace detail

EDL_INLINE hard_records::hard_records(job const& j, program const& p, data::source const& from)
    : job_(j), program_(p), from_(from) {
  if (j.wrong.empty()) return;
  bool const says = p.heads.size() == 1 &&
                    (p.heads[0].meaning == output_meaning::classes ||
                     (p.heads[0].meaning == output_meaning::probabilities && p.heads[0].size() == 1));
  if (!says)
    throw usage_error(
        "--wrong is for models that say a class: their loss is softmax cross-entropy, or sigmoid "
        "cross-entropy of one output");
  std::error_code code;
  std::vector<std::filesystem::path> old;
  for (auto const& entry : std::filesystem::directory_iterator(j.wrong, code))
    if (detail::is_wrong(entry.path().filename().native())) old.push_back(entry.path());
  for (auto const& path : old) std::filesystem::remove(path, code);
  if (code) throw error(fmt::format("--wrong={}: files of an earlier run: {}", j.wrong, code.message()));
  reader_ = from.open();
  lines_ = std::make_unique<durable_file>(j.wrong + "/wrong.jsonl");
}

EDL_INLINE hard_records::seen hard_records::see(data::batch const& b, int row, double loss,
                                                view<float> outputs) const {
  auto const i = std::size_t(row);
  seen s{.loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss,
         .record = b.first_place + b.records[i],
         .file = b.shard,
         .in_file = from_.number_in_file(b.shard_number, b.records[i])};
  if (program_.heads.size() != 1) return s;
  model_output const& o = program_.heads[0];
  if (o.meaning == output_meaning::classes) {
    likeliest_class const c(outputs);
    s.said = std::int64_t(c.number), s.probability = c.probability;
  } else if (o.meaning == output_meaning::probabilities && o.size() == 1) {
    float const one = probability_of(outputs[0]);
    s.said = outputs[0] > 0, s.probability = *s.said ? one : 1 - one;
  } else {
    return s;
  }
  s.label = b.class_size > 0
                ? std::int64_t(b.classes[i * b.class_size])
                : std::int64_t(b.targets[i * b.target_size] > 0.5f || o.meaning == output_meaning::classes
                                   ? std::lround(b.targets[i * b.target_size])
                                   : 0);
  return s;
}

EDL_INLINE void hard_records::look(worker::trainer& by, data::batch const& b) {
  auto const less_hard = [](seen const& a, seen const& c) {
    return a.loss != c.loss ? a.loss > c.loss : a.record < c.record;
  };
  by.inspect(b, [&](int row, double loss, view<float> outputs) {
    seen s = see(b, row, loss, outputs);
    if (lines_ && s.label != s.said && ++wrong_ <= most_wrong) write(b, row, s);
    if (job_.worst == 0) return;
    worst_.push_back(std::move(s));
    std::ranges::push_heap(worst_, less_hard);
    if (worst_.size() <= job_.worst) return;
    std::ranges::pop_heap(worst_, less_hard);
    worst_.pop_back();
  });
}

EDL_INLINE void hard_records::write(data::batch const& b, int row, seen const& what) {
  std::string line =
      fmt::format("{{\"record\":{},\"file\":{},\"label\":{},\"class\":{},\"probability\":{}", what.record,
                  nlohmann::json(printable(what.file)).dump(), *what.label, *what.said, what.probability);
  shape const of = program_.input;
  std::size_t const n = of.size();
  if (of.height > 1 && of.width > 1 && (of.channels == 1 || of.channels == 3) && n == b.feature_size) {
    std::string const name = fmt::format("{}-is-{}-said-{}.png", what.record, *what.label, *what.said);
    replace_file(job_.wrong + "/" + name,
                 detail::png_of(of, view<float>(b.features).subspan(std::size_t(row) * n, n)),
                 forced::nothing);
    line += fmt::format(",\"picture\":\"{}\"", name);
  } else {
    example record;
    reader_->read(b.shard_number, b.records[std::size_t(row)], record);
    line += ",\"features\":{";
    for (std::size_t f = 0; f < record.size(); ++f)
      line += fmt::format("{}{}:{}", f ? "," : "", nlohmann::json(printable(record.name(f))).dump(),
                          json_of(record, std::string(record.name(f))));
    line += "}";
  }
  lines_->write(line + "}\n");
}

EDL_INLINE void hard_records::sort() {
  std::ranges::sort(worst_, [](seen const& a, seen const& c) {
    return a.loss != c.loss ? a.loss > c.loss : a.record < c.record;
  });
}

EDL_INLINE std::string hard_records::as_json(seen const& s) {
  return fmt::format(
      R"({{"record":{},"file":{},"in_file":{},"loss":{}{}}})", s.record,
      nlohmann::json(printable(s.file)).dump(), s.in_file,
      std::isfinite(s.loss) ? fmt::format("{}", s.loss) : "null",
      s.said ? fmt::format(R"(,"label":{},"class":{},"probability":{})", *s.label, *s.said, s.probability)
             : "");
}

EDL_INLINE std::string hard_records::take_worst() {
  sort();
  std::string out = "[";
  for (seen const& s : worst_) out += (out.size() > 1 ? "," : "") + as_json(s);
  worst_.clear();
  return out + "]";
}

EDL_INLINE void hard_records::tell(std::ostream& to, logger const& log) {
  sort();
  bool const json = job_.format == result_format::json;
  std::vector<std::string> all;
  for (seen const& s : worst_)
    all.push_back(json ? as_json(s)
                       : fmt::format("loss {:.4f}, record {} of {}{}", s.loss, s.in_file, printable(s.file),
                                     s.said ? fmt::format(": label {}, said {} ({:.3f})", *s.label, *s.said,
                                                          s.probability)
                                            : ""));
  if (json && job_.worst > 0)
    fmt::print(to, "{{\"worst\":[{}]}}\n", fmt::join(all, ","));
  else
    for (std::string const& line : all) fmt::print(to, "{}\n", line);
  to.flush();
  if (!lines_) return;
  lines_->commit();
  lines_.reset();
  log.info(fmt::format(
      "{} of a wrong class; {} in {}/wrong.jsonl", counted(wrong_, "record is", "records are"),
      wrong_ > most_wrong ? fmt::format("the first {} are", most_wrong) : "they are", job_.wrong));
}

}  // namespace edl::train
