// SPDX-License-Identifier: Apache-2.0
// DeepFM as a whole job: bench-train's network with its ids in records. `records DIR N` writes N records
// whose labels follow a signal that was planted; every other command is a job's.
#include <cmath>
#include <cstdio>
#include <edl/edl.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "../train/networks.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/core/random.hpp"

struct deepfm_job {
  static constexpr auto& network = bench::deepfm;
  static constexpr edl::nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adagrad optimizer{.learning_rate = 0.05f};
  using metrics = edl::metrics<edl::auc>;

  static void feed(edl::example const& record, edl::sample<deepfm_job>& into, edl::mode m) {
    auto const columns = record.integer_values("ids");
    if (columns.size() != std::size_t(bench::deepfm_columns)) throw edl::data_error("a record has 26 ids");
    std::ranges::copy(columns, into.input<"ids">().begin());
    if (m != edl::mode::prediction) into.label = record.floating("click");
  }
};

/// Each id has a weight that nobody is told, and clicks follow the sum of a record's.
static void write_records(std::string const& directory, std::uint64_t records) {
  std::filesystem::create_directories(directory);
  constexpr std::uint64_t own = bench::deepfm_ids / bench::deepfm_columns, per_shard = 100'000;
  edl::random_stream const random(1, 0), weights(2, 0);
  std::uint64_t drawn = 0;
  edl::example e;
  std::string bytes;
  for (std::uint64_t first = 0; first < records; first += per_shard) {
    edl::data::recordio_writer out(directory + "/part-" + std::to_string(first / per_shard), {});
    for (std::uint64_t i = first; i < std::min(records, first + per_shard); ++i) {
      edl::example_builder b(e);
      float score = 0;
      auto const ids = b.integers("ids", std::size_t(bench::deepfm_columns));
      for (std::size_t k = 0; k < ids.size(); ++k) {
        // Low numbers are frequent: half of all are among the lowest 0.4 %.
        float const u = random.uniform(drawn++);
        std::uint64_t const id = k * own + std::uint64_t(std::pow(u, 8.0f) * float(own - 1));
        ids[k] = std::int64_t(id);
        score += 2 * weights.uniform(id) - 1;
      }
      b.floating("click", random.uniform(drawn++) < 1 / (1 + std::exp(-score)) ? 1.0f : 0.0f);
      edl::encode(e, bytes);
      out.write(bytes);
    }
    out.close();
  }
}

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "records") return write_records(argv[2], std::stoull(argv[3])), 0;
  return edl::run<deepfm_job>(argc, argv);
}
