// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl {

/// The purpose of a pass over the network, or of decoding a record.
enum class mode { training, evaluation, prediction };

}  // namespace edl
