// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace edl {

/// What goes wrong for a reason that a person can act on. The text names the thing, the place (flag, file and
/// offset, peer) and the way out; it is one line and carries no prefix.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A record or a file that cannot be used. Counts on the retry budget of the task that met it.
struct data_error : error {
  using error::error;
};

/// A file that was changed while it was being read. Nothing of it can be believed, and so no record of it is
/// left out as damaged.
struct changed_error : data_error {
  using data_error::data_error;
};

/// A record that is whole, and that the model does not take: nobody is advised to leave it out.
struct misfit_error : data_error {
  using data_error::data_error;
};

/// Memory has changed without a step: a bit has flipped.
struct memory_fault : error {
  using error::error;
};

/// The user's command line asks for what cannot be done.
struct usage_error : error {
  using error::error;
};

}  // namespace edl
