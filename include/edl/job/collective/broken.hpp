// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/core/error.hpp"

namespace edl::collective {

/// An operation of a group, or its forming, failed. The group is unusable afterwards, and the contents of the
/// operation's memory are unspecified.
class broken : public error {
 public:
  /// `rank`: the member whose link failed; −1: none, it was aborted.
  explicit broken(std::string const& text, int rank = -1) : error(text), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace edl::collective
