// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/pipeline.hpp"

#include <map>

#include "edl/compute/data/format/example.hpp"
#include "fuzz.hpp"

namespace pipeline_fuzz {

namespace {

/// What one step wants of the environment.
char const* known(char const* name) {
  std::string_view const n(name);
  return n.ends_with("_boundaries") ? "1,2,3" : n.ends_with("_vocab") ? nullptr : "2";
}

struct row {
  std::size_t written = 0;
  float value = 0;
  float& operator()(std::size_t i) { return written = i + 1, value; }
};

struct list {
  std::int64_t below;
  void add(std::int64_t id) const { fuzz::require(id >= 0 && id < below, "an id is below the size"); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text = fuzz::text(data, size);
  if (text.find("file") != text.npos) return 0;  // a file of this machine's is not the input's
  fuzz::takes([&] {
    edl::features::pipeline const p(text, "columns", known);
    edl::example record;
    {
      edl::example_builder b(record);
      b.floating("a", 3.5f);
      b.integer("b", -4);
      b.bytes("c", text);
    }
    row numbers, ids;
    if (fuzz::takes([&] { p.write_numbers(record, numbers); }))
      fuzz::require(numbers.written == p.numbers(), "as many numbers are written as there are");
    if (fuzz::takes([&] { p.write_ids(record, ids); }))
      fuzz::require(ids.written == p.ids(), "as many ids are written as there are");
    fuzz::takes([&] { p.add_ids(record, list{p.size()}); });
  });
  return 0;
}

}  // namespace pipeline_fuzz
