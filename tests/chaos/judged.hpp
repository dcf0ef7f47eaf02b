// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/job.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/manifest.hpp"

namespace chaos {

/// What a job of `plan::judged` leaves behind.
struct judged_result {
  std::string evaluations;   ///< evaluations.json, as it is
  std::string best;          ///< the best version's model, as it is
  std::string account;       ///< the log's, of all epochs
  std::uint64_t ended = 0;   ///< the version of the last checkpoint
  std::string best_version;  ///< "version 96, accuracy 0.92"

  static judged_result of(std::string const& checkpoints, std::string const& log) {
    judged_result r{.evaluations = job::slurp(checkpoints + "/evaluations.json"),
                    .best = job::slurp(checkpoints + "/best/model.safetensors"),
                    .account = {}};
    std::istringstream in(log);
    for (std::string line; std::getline(in, line);)
      if (auto const at = line.find("Epoch"); at != line.npos && job::has(line, "records in the data set"))
        r.account += line.substr(at) + '\n';
    if (auto const newest = edl::checkpoint::newest_valid(checkpoints))
      r.ended = edl::checkpoint::read_manifest(*newest).version;
    auto const all = nlohmann::json::parse(r.evaluations, nullptr, false);
    if (all.is_object() && all.contains("best")) {
      auto const& best = all["best"];
      std::string const metric = best.at("metric");
      std::ostringstream text;
      text << "version " << best.at("version") << ", " << metric << ' ' << best.at("metrics").at(metric);
      r.best_version = text.str();
    }
    return r;
  }

  /// In what another job's differs; empty: in nothing.
  std::vector<std::string> differences(judged_result const& from) const {
    std::vector<std::string> all;
    if (best_version != from.best_version)
      all.push_back("the best is " + best_version + ", undisturbed " + from.best_version);
    if (best != from.best) all.push_back("the best model is not the undisturbed run's, bit for bit");
    if (ended != from.ended)
      all.push_back("it ended at version " + std::to_string(ended) + ", undisturbed at " +
                    std::to_string(from.ended));
    if (evaluations != from.evaluations)
      all.push_back("evaluations.json is not the undisturbed run's: " + apart(evaluations, from.evaluations));
    if (account != from.account)
      all.push_back("the account is not the undisturbed run's: " + apart(account, from.account));
    return all;
  }

 private:
  /// The first line that is not alike, of both.
  static std::string apart(std::string const& one, std::string const& other) {
    std::istringstream a(one), b(other);
    for (std::string of_one, of_other;;) {
      bool const more = bool(std::getline(a, of_one)), others = bool(std::getline(b, of_other));
      if (!more) of_one.clear();
      if (!others) of_other.clear();
      if (of_one != of_other || (!more && !others)) return "'" + of_one + "' for '" + of_other + "'";
    }
  }
};

}  // namespace chaos
