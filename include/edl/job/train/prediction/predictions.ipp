// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "edl/cli/flag.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/names.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/prediction/predictions.hpp"
#include "edl/job/train/setup/model_copy.hpp"

namespace edl::train {
namespace detail {

using text = fmt::memory_buffer;

inline void append(text& to, std::string_view what) { to.append(what.data(), what.data() + what.size()); }

inline std::string name_of_part(job const& j, std::uint32_t task) {
  return fmt::format("part-{:05}.{}", task, name_of(j.outputs.prediction_format));
}

/// The prefix of the columns of an output's class and probability; its values have the output's own name.
inline std::string prefix_of(model_output const& o) { return o.name == "output" ? "" : o.name + "_"; }

inline std::string numbered(std::string const& name, std::size_t i, std::size_t of) {
  return of == 1 ? name : fmt::format("{}_{}", name, i);
}

/// The name of the likeliest class, if the model names its classes; null: it has no column.
inline std::string const* class_name_of(program const& p, view<float> outputs) {
  if (p.heads.size() != 1 || p.heads[0].meaning != output_meaning::classes || p.class_names.empty())
    return nullptr;
  return &p.class_names.at(likeliest_class(p.heads[0].of(outputs)).number);
}

/// Calls visit(name, number) for the class, the probabilities and the values of all outputs.
template <class Visit>
void each_number(program const& p, view<float> outputs, Visit const& visit) {
  for (model_output const& o : p.heads) {
    auto const values = o.of(outputs);
    if (o.meaning == output_meaning::classes) {
      likeliest_class const c(values);
      visit(prefix_of(o) + "class", std::uint64_t(c.number));
      visit(prefix_of(o) + "probability", c.probability);
    } else if (o.meaning == output_meaning::probabilities) {
      for (std::size_t i = 0; i < values.size(); ++i)
        visit(numbered(prefix_of(o) + "probability", i, values.size()), probability_of(values[i]));
    }
    for (std::size_t i = 0; i < values.size(); ++i) visit(numbered(o.name, i, values.size()), values[i]);
  }
}

inline void append_cell(text& to, std::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == cell.npos) return append(to, cell);
  to.push_back('"');
  for (char const c : cell) {
    if (c == '"') to.push_back(c);
    to.push_back(c);
  }
  to.push_back('"');
}

/// A feature's values as one cell, separated by spaces; empty if the record lacks it.
inline std::string cell_of(example const& record, std::string const& name) {
  if (!record.contains(name) || record.count(name) == 0) return {};
  std::size_t f = 0;
  while (record.name(f) != name) ++f;
  if (record.kind_of(f) == example::kind::floats)
    return fmt::format("{}", fmt::join(view<float>(record.float_values(name)), " "));
  if (record.kind_of(f) == example::kind::integers)
    return fmt::format("{}", fmt::join(view<std::int64_t>(record.integer_values(name)), " "));
  std::string all;
  for (std::size_t i = 0; i < record.count(name); ++i)
    all.append(i == 0 ? "" : " ").append(record.bytes(name, i));
  return all;
}

inline void append_header(text& to, program const& p, std::vector<std::string> const& columns) {
  append(to, "record");
  for (std::string const& c : columns) to.push_back(','), append_cell(to, c);
  each_number(p, std::vector<float>(p.outputs), [&](std::string const& name, auto) {
    to.push_back(',');
    append_cell(to, name);
  });
  if (class_name_of(p, std::vector<float>(p.outputs))) append(to, ",class_name");
  to.push_back('\n');
}

inline void append_line(text& to, program const& p, std::vector<std::string> const& columns,
                        predicted_record const& r) {
  fmt::format_to(std::back_inserter(to), "{}", r.number);
  for (std::string const& c : columns) to.push_back(','), append_cell(to, cell_of(*r.record, c));
  each_number(p, r.outputs, [&](std::string const&, auto number) {
    fmt::format_to(std::back_inserter(to), ",{}", number);
  });
  if (auto const* const name = class_name_of(p, r.outputs)) to.push_back(','), append_cell(to, *name);
  to.push_back('\n');
}

/// Writes null for a value that is not finite, because JSON has no number for it.
inline void append_json(text& to, program const& p, std::vector<std::string> const& columns,
                        predicted_record const& r) {
  auto const write = [&](std::string const& name, std::string_view value) {
    fmt::format_to(std::back_inserter(to), ",{}:{}", nlohmann::json(name).dump(), value);
  };
  auto const number = [](auto value) {
    return std::isfinite(double(value)) ? fmt::format("{}", value) : std::string("null");
  };
  fmt::format_to(std::back_inserter(to), "{{\"record\":{}", r.number);
  for (std::string const& c : columns) write(c, json_of(*r.record, c));
  for (model_output const& o : p.heads) {
    auto const values = o.of(r.outputs);
    std::vector<std::string> list, probabilities;
    for (float const v : values)
      list.push_back(number(v)), probabilities.push_back(number(probability_of(v)));
    auto const all = [](std::vector<std::string> const& of) {
      return of.size() == 1 ? of[0] : fmt::format("[{}]", fmt::join(of, ","));
    };
    if (o.meaning == output_meaning::classes) {
      likeliest_class const c(values);
      write(prefix_of(o) + "class", fmt::format("{}", c.number));
      if (auto const* const name = class_name_of(p, r.outputs))
        write("class_name", nlohmann::json(*name).dump());
      write(prefix_of(o) + "probability", number(c.probability));
    } else if (o.meaning == output_meaning::probabilities) {
      write(prefix_of(o) + "probability", all(probabilities));
    }
    write(o.name, all(list));
  }
  append(to, "}\n");
}

/// The header of an array of this many structures with these fields.
inline std::string npy_header(std::string_view fields, std::uint64_t records) {
  std::string header =
      fmt::format("{{'descr': [{}], 'fortran_order': False, 'shape': ({},), }}", fields, records);
  constexpr std::size_t before = 12, multiple = 64;  // of version 2.0, whose header length has 4 bytes
  header.append((2 * multiple - (before + header.size() + 1) % multiple) % multiple, ' ');
  header += '\n';
  auto const size = std::uint32_t(header.size());
  std::string all("\x93NUMPY\x02\x00", 8);
  all.append(reinterpret_cast<char const*>(&size), sizeof size);
  return all + header;
}

inline std::string npy_fields(program const& p) {
  std::string fields = "('record', '<u8')";
  for (model_output const& o : p.heads) {
    std::string const extents = o.size() == 1 ? "" : fmt::format(", ({},)", o.size());
    if (o.meaning == output_meaning::classes)
      fields += fmt::format(", ('{0}class', '<u8'), ('{0}probability', '<f4')", prefix_of(o));
    else if (o.meaning == output_meaning::probabilities)
      fields += fmt::format(", ('{}probability', '<f4'{})", prefix_of(o), extents);
    fields += fmt::format(", ('{}', '<f4'{})", o.name, extents);
  }
  return fields;
}

template <class T>
void append_bytes(text& to, T const& value) {
  append(to, {reinterpret_cast<char const*>(&value), sizeof value});
}

inline void append_npy(text& to, program const& p, predicted_record const& r) {
  append_bytes(to, r.number);
  each_number(p, r.outputs, [&](std::string const&, auto number) { append_bytes(to, number); });
}

inline void write_recordio(std::string const& path, program const& p, std::vector<std::string> const& columns,
                           std::function<bool(predicted_record&)> const& next) {
  data::recordio_writer file(path);
  std::string bytes;
  for (predicted_record r; next(r);) {
    example made;
    {
      example_builder to(made);
      to.integer("record", std::int64_t(r.number));
      for (std::string const& c : columns)
        for (std::size_t f = 0; f < r.record->size(); ++f) {
          if (r.record->name(f) != c) continue;
          if (r.record->kind_of(f) == example::kind::floats)
            to.floats(c, r.record->float_values(c));
          else if (r.record->kind_of(f) == example::kind::integers)
            to.integers(c, r.record->integer_values(c));
          else {
            std::vector<std::string_view> all;
            for (std::size_t i = 0; i < r.record->count(c); ++i) all.push_back(r.record->bytes(c, i));
            to.bytes(c, all);
          }
        }
      for (model_output const& o : p.heads) {
        auto const values = o.of(r.outputs);
        if (o.meaning == output_meaning::classes) {
          likeliest_class const c(values);
          to.integer(prefix_of(o) + "class", std::int64_t(c.number));
          to.floating(prefix_of(o) + "probability", c.probability);
        } else if (o.meaning == output_meaning::probabilities) {
          auto const into = to.floats(prefix_of(o) + "probability", values.size());
          std::ranges::transform(values, into.begin(), probability_of);
        }
        to.floats(o.name, values);
      }
    }
    encode(made, bytes);
    file.write(bytes);
  }
  file.close();
}

/// Where the records of a part begin and, for an array, its header.
struct part_body {
  std::uint64_t begin = 0, records = 0;
  std::string fields = {};
};

inline part_body body_of(input_file const& part, prediction_format format, std::size_t header) {
  if (format == prediction_format::csv) return {.begin = header};
  if (format != prediction_format::npy) return {};
  std::string head(12, '\0');
  part.read(0, std::as_writable_bytes(std::span(head)));
  std::uint32_t size = 0;
  std::memcpy(&size, head.data() + 8, sizeof size);
  head.resize(std::min<std::uint64_t>(size, part.size() - 12));
  part.read(12, std::as_writable_bytes(std::span(head)));
  constexpr std::string_view before = "{'descr': [", behind = "], 'fortran_order': False, 'shape': (";
  std::size_t const at = head.find(behind);
  if (!head.starts_with(before) || at == head.npos)
    throw error(fmt::format("{} is not a part of predictions", part.path()));
  return {.begin = 12 + head.size(),
          .records = std::strtoull(head.c_str() + at + behind.size(), nullptr, 10),
          .fields = head.substr(before.size(), at - before.size())};
}

/// The first line of a table, including its end; quoted cells may contain line ends.
inline std::string first_line(input_file const& part) {
  std::string all(std::size_t(std::min<std::uint64_t>(part.size(), 16u << 20)), '\0');
  part.read(0, std::as_writable_bytes(std::span(all)));
  bool quoted = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    quoted = quoted != (all[i] == '"');
    if (all[i] == '\n' && !quoted) return all.substr(0, i + 1);
  }
  return all;
}

inline void copy_from(input_file const& part, std::uint64_t begin, durable_file& to) {
  std::string chunk;
  for (std::uint64_t at = begin; at < part.size(); at += chunk.size()) {
    chunk.resize(std::size_t(std::min<std::uint64_t>(part.size() - at, 1u << 20)));
    part.read(at, std::as_writable_bytes(std::span(chunk)));
    to.write(chunk);
  }
}

}  // namespace detail

EDL_INLINE std::string json_of(example const& record, std::string const& name) {
  auto all = nlohmann::ordered_json::array();
  for (std::size_t f = 0; f < record.size(); ++f) {
    if (record.name(f) != name) continue;
    for (std::size_t i = 0; i < record.count(name); ++i)
      if (record.kind_of(f) == example::kind::floats)
        all.push_back(std::isfinite(record.float_values(name)[i])  // in as few digits as tell it
                          ? nlohmann::ordered_json::parse(fmt::format("{}", record.float_values(name)[i]))
                          : nlohmann::ordered_json(nullptr));
      else if (record.kind_of(f) == example::kind::integers)
        all.push_back(record.integer_values(name)[i]);
      else
        all.push_back(std::string(record.bytes(name, i)));
  }
  auto const one = all.size() > 1 ? all : all.empty() ? nlohmann::ordered_json(nullptr) : all[0];
  return one.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

EDL_INLINE std::vector<std::uint64_t> numbers_among_all(data::source const& from, std::size_t shard,
                                                        view<std::uint64_t> records) {
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < shard; ++i) first += from.shards()[i].records;
  std::vector<std::uint64_t> all(records.begin(), records.end());
  for (std::uint64_t& n : all) n += first;
  return all;
}

EDL_INLINE prediction_parts::prediction_parts(job const& j, program const& p, data::source const& from)
    : job_(j),
      program_(p),
      from_(from),
      place_(j.outputs.prediction_outputs, cache_of(j)),
      columns_(cli::list_of("prediction_columns", j.outputs.prediction_columns)) {
  if (columns_.empty()) return;
  std::vector<std::string> own{"record"};
  if (detail::class_name_of(p, std::vector<float>(p.outputs))) own.push_back("class_name");
  for (model_output const& o : p.heads) own.push_back(o.name);
  detail::each_number(p, std::vector<float>(p.outputs),
                      [&](std::string const& name, auto) { own.push_back(name); });
  for (std::string const& c : columns_)
    if (std::ranges::find(own, c) != own.end())
      throw usage_error(
          fmt::format("--prediction_columns={}: the predictions have a column '{}' of their own; "
                      "give that of the records another name",
                      printable(job_.outputs.prediction_columns), printable(c)));
  reader_ = from.open();
  // A record may lack features that another one has.
  constexpr int most_looked_at = 1000;
  int looked_at = 0, damaged = 0;
  std::vector<std::string> missing = columns_, has;
  example record;
  for (std::size_t shard = 0; shard < from.shards().size(); ++shard)
    for (std::uint64_t i = 0; i < from.shards()[shard].records; ++i) {
      if (missing.empty() || looked_at == most_looked_at || damaged == most_looked_at) break;
      try {
        reader_->read(shard, i, record);
      } catch (data_error const&) {  // prediction reports it
        ++damaged;
        continue;
      }
      ++looked_at;
      std::erase_if(missing, [&](std::string const& c) { return record.contains(c); });
      for (std::string_view const name : record.names())
        if (std::ranges::find(has, name) == has.end()) has.emplace_back(name);
    }
  if (looked_at > 0 && !missing.empty())
    throw usage_error(
        fmt::format("--prediction_columns={}: {} no '{}'; they have {}", job_.outputs.prediction_columns,
                    looked_at == most_looked_at ? "the first 1000 records have" : "the records have",
                    missing.front(), printable(fmt::format("{}", fmt::join(has, ", ")))));
}

EDL_INLINE void prediction_parts::write(std::uint32_t task, std::size_t shard, view<std::uint64_t> records,
                                        view<float> outputs) {
  std::vector<std::uint64_t> const numbers = numbers_among_all(from_, shard, records);
  example record;
  std::size_t i = 0;
  auto const next = [&](predicted_record& r) {
    if (i == records.size()) return false;
    if (reader_) try {
        reader_->read(shard, records[i], record);
      } catch (data_error const& e) {  // it was read before, so this is no failure of a task
        throw error(fmt::format("--prediction_columns: {}", e.what()));
      }
    r = {numbers[i], reader_ ? &record : nullptr, outputs.subspan(i * program_.outputs, program_.outputs)};
    ++i;
    return true;
  };
  std::string const name = detail::name_of_part(job_, task);
  if (job_.outputs.prediction_format == prediction_format::recordio)
    return place_.write(
        name, [&](std::string const& path) { detail::write_recordio(path, program_, columns_, next); });
  detail::text text;
  if (job_.outputs.prediction_format == prediction_format::csv)
    detail::append_header(text, program_, columns_);
  if (job_.outputs.prediction_format == prediction_format::npy)
    detail::append(text, detail::npy_header(detail::npy_fields(program_), records.size()));
  for (predicted_record r; next(r);)
    if (job_.outputs.prediction_format == prediction_format::csv)
      detail::append_line(text, program_, columns_, r);
    else if (job_.outputs.prediction_format == prediction_format::jsonl)
      detail::append_json(text, program_, columns_, r);
    else
      detail::append_npy(text, program_, r);
  place_.write(name, [&](std::string const& path) { replace_file(path, {text.data(), text.size()}); });
}

namespace detail {

/// Joins the parts in a directory into one file.
inline void join_parts(job const& j, std::uint32_t tasks, std::string const& directory,
                       std::string const& path) {
  auto const part = [&](std::uint32_t i) { return input_file(directory + "/" + name_of_part(j, i)); };
  durable_file file(path);
  std::string header;
  if (j.outputs.prediction_format == prediction_format::csv) {
    header = first_line(part(0));
    file.write(header);
  } else if (j.outputs.prediction_format == prediction_format::npy) {
    part_body all;
    for (std::uint32_t i = 0; i < tasks; ++i) {
      auto one = body_of(part(i), j.outputs.prediction_format, 0);
      all = {.records = all.records + one.records, .fields = std::move(one.fields)};
    }
    file.write(npy_header(all.fields, all.records));
  }
  for (std::uint32_t i = 0; i < tasks; ++i) {
    input_file const from = part(i);
    copy_from(from, body_of(from, j.outputs.prediction_format, header.size()).begin, file);
  }
  file.commit();
}

}  // namespace detail

EDL_INLINE std::string join_predictions(job const& j, std::uint32_t tasks) {
  std::string const& directory = j.outputs.prediction_outputs;
  std::string const format(name_of(j.outputs.prediction_format)), name = "predictions." + format;
  bucket::place const all(directory, cache_of(j));
  auto const names = all.names();
  std::set<std::string> const there(names.begin(), names.end());
  for (std::uint32_t i = 0; i < std::max(tasks, 1u); ++i)
    if (std::string const part = detail::name_of_part(j, i); !there.contains(part))
      return fmt::format(
          "the predictions are in the directory {0}, of each task's records in a part-NNNNN.{1} of its own: "
          "this process does not see {0}/{2}, so that they stay parts",
          directory, format, part);
  readable_model const parts(
      bucket::names_objects(directory) ? fmt::format("{}/part-*.{}", directory, format) : directory,
      cache_of(j));
  std::string const here =
      bucket::names_objects(directory) ? parts.path().substr(0, parts.path().rfind('/')) : directory;
  all.write(name, [&](std::string const& path) { detail::join_parts(j, tasks, here, path); });
  for (std::uint32_t i = 0; i < tasks; ++i) try {
      all.remove(detail::name_of_part(j, i));
    } catch (error const&) {  // the predictions are complete without
    }
  return fmt::format("the predictions are in {}/{}", directory, name);
}

}  // namespace edl::train
