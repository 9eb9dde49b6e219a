#include "ops/flat/packed_state/packed_state.h"

#include "base/dynamic_map.h"
#include "ops/flat/packed_state/cells.h"

#include <math.h>

// bound: [TR_STATE_CODES]. How many of them are less than the value, or equal to it?
static int count_below(const float *bound, float value, bool or_equal) {
    int low = 0, high = TR_STATE_CODES;
    while (low < high) {
        int middle = (low + high) / 2;
        bool below = or_equal ? bound[middle] <= value : bound[middle] < value;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    return low;
}

void tr__state_codes(tr_state_type type, tr_state_codes *out) {
    tr__dynamic_map_make(type == TR_STATE_I8, out->value);
    for (int i = 0; i + 1 < TR_STATE_CODES; i++) {
        out->bound[i] = (out->value[i] + out->value[i + 1]) / 2.0F;
    }
    out->bound[TR_STATE_CODES - 1] = INFINITY;
    for (int cell = 0; cell < TR_STATE_CELLS; cell++) {
        // Of positive values the smallest of the cell; of negative ones what lies just
        // below its smallest.
        float least = cell > 0 ? tr__cell_begin(cell) : 0;
        out->least[0][cell] = (uint8_t)count_below(out->bound, least, false);
        out->least[1][cell] =
            (uint8_t)count_below(out->bound, -tr__cell_begin(cell + 1), true);
    }
}
