// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bodies of what knows no model stand in `.ipp` files. Target `edl::edl` compiles them once; target
/// `edl::header_only` defines EDL_HEADER_ONLY, and every header then includes its own.
#ifdef EDL_HEADER_ONLY
#define EDL_INLINE inline
#else
#define EDL_INLINE
#endif
