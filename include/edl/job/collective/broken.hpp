// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/core/error.hpp"

namespace edl::collective {

/// An operation of a group, or its forming, ended without a result. Its group is of no use any more, and the
/// memory that it worked on holds anything.
class broken : public error {
 public:
  /// `rank`: whose link failed; −1: nobody's, it was aborted.
  explicit broken(std::string const& text, int rank = -1) : error(text), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace edl::collective
