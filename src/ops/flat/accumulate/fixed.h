// From sums in fixed point to f32; for the host and for devices.
#ifndef TR_OPS_FLAT_ACCUMULATE_FIXED_H
#define TR_OPS_FLAT_ACCUMULATE_FIXED_H

#include "base/device.h"

#include <stdbool.h>
#include <stdint.h>

// A sum has up to 63 bits: the one rounding to f32 goes by f64, whose own rounding, to
// odd, cannot change which f32 is nearest (Boldo and Melquiond, IEEE Trans. Computers
// 57(4), 2008); the bits below f64's are folded into its last one.
TR_DEVICE static inline double tr__fixed_to_odd(int64_t sum) {
    enum { DROPPED = 9 }; // 62 - 53
    int64_t low = sum & ((1 << DROPPED) - 1);
    int64_t high = sum - low;
    int64_t kept = low ? high | (INT64_C(1) << DROPPED) : high;
    bool exact = sum < (INT64_C(1) << 53) && sum > -(INT64_C(1) << 53);
    return (double)(exact ? sum : kept);
}

#endif
