// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Includes all conversions of a table's columns to numbers and ids.
#include "edl/compute/features/date.hpp"
#include "edl/compute/features/hashing.hpp"
#include "edl/compute/features/id_ranges.hpp"
#include "edl/compute/features/numbers.hpp"
#include "edl/compute/features/pieces.hpp"
#include "edl/compute/features/pipeline.hpp"
#include "edl/compute/features/statistics.hpp"
#include "edl/compute/features/string_lookup.hpp"
