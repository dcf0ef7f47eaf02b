// SPDX-License-Identifier: Apache-2.0
#pragma once

/// All that makes numbers and ids of a table's columns.
#include "edl/features/hashing.hpp"
#include "edl/features/id_ranges.hpp"
#include "edl/features/numbers.hpp"
#include "edl/features/pieces.hpp"
#include "edl/features/pipeline.hpp"
#include "edl/features/statistics.hpp"
#include "edl/features/string_lookup.hpp"
