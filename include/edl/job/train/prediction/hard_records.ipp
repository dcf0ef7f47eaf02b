// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <system_error>
#include <utility>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/storage_call.hpp"
#include "edl/job/train/prediction/hard_records.hpp"
#include "edl/job/train/prediction/predictions.hpp"

namespace edl::train {
namespace detail {

inline bool says_class(program const& p) {
  return p.heads.size() == 1 &&
         (p.heads[0].meaning == output_meaning::classes ||
          (p.heads[0].meaning == output_meaning::probabilities && p.heads[0].size() == 1));
}

inline bool in_parts(job const& j) { return j.strategy != strategy::local; }

inline void remove_file(std::string const& path) {
  storage_call("cannot remove " + path, [&](auto& code) { return std::filesystem::remove(path, code); });
}

}  // namespace detail

EDL_INLINE std::string png_of(shape of, view<float> features) {
  auto const [least, largest] = std::ranges::minmax(features);
  float const scale = largest > least ? 255 / (largest - least) : 0;
  data::pixels made{.extents = of, .values = {}};
  for (float const x : features) made.values.push_back(std::uint8_t(std::lround((x - least) * scale)));
  return data::encode_png(made);
}

EDL_INLINE void hard_records::check(job const& j, program const& p) {
  // In a job of several processes the directory may only hold the parts of --worst.
  if (j.evaluation.wrong.empty() || detail::says_class(p) || (detail::in_parts(j) && j.evaluation.worst > 0))
    return;
  throw usage_error(
      "--wrong works for models that predict a class: with the loss softmax cross-entropy, or sigmoid "
      "cross-entropy of one output");
}

EDL_INLINE hard_records::hard_records(job const& j, program const& p, data::source const& from)
    : job_(j), program_(p), from_(from) {
  check(j, p);
  if (j.evaluation.wrong.empty() || !detail::says_class(p)) return;
  reader_ = from.open();
  if (!detail::in_parts(j)) lines_ = std::make_unique<durable_file>(j.evaluation.wrong + "/wrong.jsonl");
}

namespace detail {

/// The name of a class, if the model has names.
inline std::string class_name(program const& p, std::int64_t of) {
  return of >= 0 && std::size_t(of) < p.class_names.size() ? p.class_names[std::size_t(of)] : std::string();
}

inline std::string with_name(std::int64_t of, std::string const& name) {
  return name.empty() ? std::to_string(of) : fmt::format("{} ({})", of, printable(name, 64));
}

inline std::string names_json(std::string const& label, std::string const& said) {
  return label.empty() && said.empty()
             ? std::string()
             : fmt::format(",\"label_name\":{},\"class_name\":{}", nlohmann::json(printable(label)).dump(),
                           nlohmann::json(printable(said)).dump());
}

}  // namespace detail

EDL_INLINE hard_records::seen hard_records::see(data::batch const& b, int row, double loss,
                                                view<float> outputs) const {
  auto const i = std::size_t(row);
  seen s{.loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss,
         .record = b.first_place + b.records[i],
         .file = from_.own_file(b.shard_number, b.records[i])};
  if (s.file.empty()) {
    s.file = b.shard, s.in_file = from_.number_in_file(b.shard_number, b.records[i]);
    s.line = from_.line_in_file(b.shard_number, b.records[i]);
  }
  if (program_.heads.size() != 1) return s;
  model_output const& o = program_.heads[0];
  if (o.meaning == output_meaning::classes) {
    likeliest_class const c(outputs);
    s.said = std::int64_t(c.number), s.probability = c.probability;
  } else if (o.meaning == output_meaning::probabilities && o.size() == 1) {
    s.said = outputs[0] > 0, s.probability = probability_of(outputs[0]);  // of class 1, as in predictions
  } else {
    if (o.size() == 1 && b.target_size == 1) s.number = b.targets[i], s.predicted = outputs[0];
    return s;
  }
  s.label = b.class_size > 0
                ? std::int64_t(b.classes[i * b.class_size])
                : std::int64_t(b.targets[i * b.target_size] > 0.5f || o.meaning == output_meaning::classes
                                   ? std::lround(b.targets[i * b.target_size])
                                   : 0);
  s.label_name = detail::class_name(program_, *s.label), s.said_name = detail::class_name(program_, *s.said);
  return s;
}

EDL_INLINE void hard_records::found::keep(seen s, std::uint64_t most) {
  if (most == 0) return;
  worst.push_back(std::move(s));
  std::ranges::push_heap(worst, seen::harder);
  if (worst.size() <= most) return;
  std::ranges::pop_heap(worst, seen::harder);
  worst.pop_back();
}

EDL_INLINE void hard_records::look(worker::trainer& by, data::batch const& b) {
  found& to = detail::in_parts(job_) ? by_task_[b.identity.key.task] : all_;
  if (detail::in_parts(job_) && b.identity.key.index == 0) to = {};  // drops an earlier attempt
  by.inspect(b, [&](int row, double loss, view<float> outputs) {
    seen s = see(b, row, loss, outputs);
    if (to.records++ == 0) to.first = s.record;
    if (reader_ && s.label != s.said && ++to.wrong <= most_wrong) {
      std::string line = write(b, row, s);
      if (lines_)
        lines_->write(line);
      else
        to.lines.push_back(std::move(line));
    }
    to.keep(std::move(s), job_.evaluation.worst);
  });
}

EDL_INLINE std::string hard_records::end_task(task_key const& task) {
  auto const it = by_task_.find(task);
  if (it == by_task_.end()) return {};
  found& of = it->second;
  if (job_.command == command::train) {
    std::string told = of.take_worst();
    by_task_.erase(it);
    return told;
  }
  std::string text = fmt::format("{{\"records\":{},\"wrong\":{}}}\n", of.records,
                                 reader_ ? std::to_string(of.wrong) : "null");
  for (seen const& s : of.worst) text += fmt::format("{{\"worst\":{}}}\n", s.json());
  for (std::string const& line : of.lines) text += line;
  replace_file(fmt::format("{}/part-{:012}.jsonl", job_.evaluation.wrong, of.first), text);
  by_task_.erase(it);
  return {};
}

EDL_INLINE std::string hard_records::write(data::batch const& b, int row, seen const& what) {
  std::string line =
      fmt::format("{{\"record\":{},\"file\":{},\"label\":{},\"class\":{},\"probability\":{}", what.record,
                  nlohmann::json(printable(what.file)).dump(), *what.label, *what.said, what.probability);
  line += detail::names_json(what.label_name, what.said_name);
  shape const of = program_.input;
  std::size_t const n = of.size();
  if (of.height > 1 && of.width > 1 && (of.channels == 1 || of.channels == 3) && n == b.feature_size) {
    std::string const name = fmt::format("{}-is-{}-said-{}.png", what.record, *what.label, *what.said);
    replace_file(job_.evaluation.wrong + "/" + name,
                 png_of(of, view<float>(b.features).subspan(std::size_t(row) * n, n)), forced::nothing);
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
  return line + "}\n";
}

EDL_INLINE std::string hard_records::seen::json() const {
  auto const finite = [](auto x) { return std::isfinite(x) ? fmt::format("{}", x) : std::string("null"); };
  return fmt::format(
      "{{\"record\":{},\"file\":{},{}{}\"loss\":{}{}}}", record, nlohmann::json(printable(file)).dump(),
      in_file ? fmt::format("\"in_file\":{},", *in_file) : "",
      line > 0 ? fmt::format("\"line\":{},", line) : "", finite(loss),
      said     ? fmt::format(",\"label\":{},\"class\":{},\"probability\":{}{}", *label, *said, probability,
                             detail::names_json(label_name, said_name))
      : number ? fmt::format(",\"label\":{},\"prediction\":{}", finite(*number), finite(*predicted))
               : "");
}

EDL_INLINE std::string hard_records::seen::json(std::vector<seen> const& all) {
  std::string list;
  for (seen const& s : all) list += (list.empty() ? "" : ",") + s.json();
  return "[" + list + "]";
}

EDL_INLINE hard_records::seen hard_records::seen::of_json(nlohmann::json const& all) {
  seen s{.loss = all.at("loss").is_null() ? std::numeric_limits<double>::infinity()
                                          : all.at("loss").get<double>(),
         .record = all.at("record"),
         .file = all.at("file")};
  if (all.contains("in_file")) s.in_file = all.at("in_file");
  if (all.contains("line")) s.line = all.at("line");
  auto const number = [&](char const* name) {
    return all.at(name).is_null() ? std::numeric_limits<float>::quiet_NaN() : all.at(name).get<float>();
  };
  if (all.contains("prediction")) s.number = number("label"), s.predicted = number("prediction");
  if (all.contains("class"))
    s.label = all.at("label"), s.said = all.at("class"), s.probability = all.at("probability");
  if (all.contains("class_name")) s.label_name = all.at("label_name"), s.said_name = all.at("class_name");
  return s;
}

EDL_INLINE bool hard_records::seen::harder(seen const& a, seen const& b) {
  return a.loss != b.loss ? a.loss > b.loss : a.record < b.record;
}

EDL_INLINE std::string hard_records::found::take_worst() {
  std::ranges::sort(worst, seen::harder);
  return seen::json(std::exchange(worst, {}));
}

EDL_INLINE std::string hard_records::take_worst() { return all_.take_worst(); }

EDL_INLINE void hard_records::worst_of_tasks::add(std::uint32_t task, std::string const& told) {
  std::erase_if(all_, [task](auto const& one) { return one.first == task; });
  try {
    for (nlohmann::json const& one : nlohmann::json::parse(told)) all_.emplace_back(task, seen::of_json(one));
  } catch (nlohmann::json::exception const&) {  // text of another build
  }
  if (all_.size() > 2 * most_) keep_worst();
}

EDL_INLINE void hard_records::worst_of_tasks::keep_worst() {
  std::ranges::sort(all_, [](auto const& a, auto const& b) { return seen::harder(a.second, b.second); });
  all_.resize(std::min<std::size_t>(all_.size(), most_));
}

EDL_INLINE std::string hard_records::worst_of_tasks::take() {
  keep_worst();
  std::vector<seen> worst;
  for (auto& [task, s] : std::exchange(all_, {})) worst.push_back(std::move(s));
  return seen::json(worst);
}

EDL_INLINE void hard_records::found::tell(job const& j, std::ostream& to, logger const& log) {
  std::ranges::sort(worst, seen::harder);
  if (j.evaluation.format != result_format::json)
    for (seen const& s : worst)
      fmt::print(to, "loss {}, {}{}{}{}\n",
                 s.loss < 1e6 ? fmt::format("{:.4f}", s.loss) : fmt::format("{:.4e}", s.loss),
                 s.in_file ? fmt::format("record {} of ", *s.in_file) : "", printable(s.file),
                 s.line > 0 ? fmt::format(", line {}", s.line) : "",
                 s.said     ? fmt::format(": label {}, predicted {} (probability {:.3f})",
                                          detail::with_name(*s.label, s.label_name),
                                          detail::with_name(*s.said, s.said_name), s.probability)
                 : s.number ? fmt::format(": label {:.6g}, predicted {:.6g}", *s.number, *s.predicted)
                            : "");
  else if (j.evaluation.worst > 0)
    fmt::print(to, "{{\"worst\":{}}}\n", seen::json(worst));
  to.flush();
  std::error_code unknown;
  if (j.evaluation.wrong.empty() || !std::filesystem::exists(j.evaluation.wrong + "/wrong.jsonl", unknown))
    return;
  if (wrong == 0) return log.info("no record is classified wrongly");
  log.info(fmt::format(
      "{} classified wrongly; {} in {}/wrong.jsonl", counted(wrong, "record is", "records are"),
      wrong > most_wrong ? fmt::format("the first {} are", most_wrong) : "they are", j.evaluation.wrong));
}

EDL_INLINE void hard_records::tell(std::ostream& to, logger const& log) {
  if (lines_) lines_->commit();
  lines_.reset();
  all_.tell(job_, to, log);
}

EDL_INLINE void hard_records::join(job const& j, std::uint64_t records, std::ostream& to, logger const& log) {
  std::vector<std::string> parts;
  storage_call("cannot read directory " + j.evaluation.wrong, [&](auto& code) {
    for (std::filesystem::directory_iterator at(j.evaluation.wrong, code), end; !code && at != end;
         at.increment(code))
      if (std::string const name = at->path().filename().native();
          name.starts_with("part-") && name.ends_with(".jsonl"))
        parts.push_back(at->path().native());
  });
  std::ranges::sort(parts);  // in the order of the records
  found all;
  std::string line;
  auto const head = [&line](std::ifstream& in) {
    std::getline(in, line);
    return nlohmann::json::parse(line);
  };
  for (std::string const& path : parts) {
    std::ifstream in(path);
    all.records += head(in).at("records").get<std::uint64_t>();
  }
  if (all.records != records)
    return log.warning(fmt::format(
        "--worst and --wrong: this process sees parts of {} of {} in {}: they are left as they are",
        all.records, counted(records, "record"), j.evaluation.wrong));
  std::unique_ptr<durable_file> lines;  // null: the model predicts no class
  for (std::string const& path : parts) {
    std::ifstream in(path);
    std::uint64_t left = most_wrong - std::min(all.wrong, most_wrong);
    if (auto const wrong = head(in).at("wrong"); !wrong.is_null()) {
      if (!lines) lines = std::make_unique<durable_file>(j.evaluation.wrong + "/wrong.jsonl");
      all.wrong += wrong.get<std::uint64_t>();
    }
    while (std::getline(in, line))
      if (line.starts_with("{\"worst\":")) {
        all.keep(seen::of_json(nlohmann::json::parse(line).at("worst")), j.evaluation.worst);
      } else if (lines && left > 0) {
        lines->write(line + "\n");
        --left;
      } else if (auto const one = nlohmann::json::parse(line); one.contains("picture")) {
        detail::remove_file(j.evaluation.wrong + "/" + one["picture"].get<std::string>());
      }
  }
  if (lines) lines->commit();
  for (std::string const& path : parts) detail::remove_file(path);
  all.tell(j, to, log);
}

}  // namespace edl::train
