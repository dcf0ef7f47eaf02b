// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace edl {

/// What a pass over the network, or the decoding of a record, is for.
enum class mode { training, evaluation, prediction };

}  // namespace edl
