// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bodies that do not depend on a model are in `.ipp` files. Target `edl::edl` compiles them once; target
/// `edl::header_only` defines EDL_HEADER_ONLY, and every header then includes its own.
#ifdef EDL_HEADER_ONLY
#define EDL_INLINE inline
#else
#define EDL_INLINE
#endif
