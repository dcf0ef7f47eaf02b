// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace edl {

/// A failure that a person can act on. The text names the thing, the place (flag, file and offset, peer) and
/// the remedy; it is one line without a prefix.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A record or a file that cannot be used. It counts against the retry budget of the task that read it.
struct data_error : error {
  using error::error;
};

/// A file that changed while it was being read. Nothing in it can be trusted, so no record of it is skipped
/// as damaged.
struct changed_error : data_error {
  using data_error::data_error;
};

/// An intact record that the model does not accept: the message does not suggest skipping it.
struct misfit_error : data_error {
  using data_error::data_error;
};

/// Memory that changed without a training step: a bit has flipped.
struct memory_fault : error {
  using error::error;
};

/// A command line that asks for something impossible.
struct usage_error : error {
  using error::error;
};

}  // namespace edl
