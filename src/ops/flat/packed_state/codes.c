#include "ops/flat/packed_state/packed_state.h"

#include "ops/flat/packed_state/cells.h"

#include <math.h>
#include <stdlib.h>

enum { DECADES = 7 };

// Point i of `points` equally spaced ones from 0.1 to 1, from the nearer end, rounded
// once: as torch.linspace has them.
static float point(int i, int points) {
    double step = (1.0F - 0.1F) / (float)(points - 1);
    return i < points / 2 ? (float)(0.1F + step * i)
                          : (float)(1 - step * (points - 1 - i));
}

// The middles of so many equal steps, of every power of ten, and 0 and 1.
static void make_values(bool is_signed, float *value) {
    int count = 0;
    for (int d = 0; d < DECADES; d++) {
        int steps = is_signed ? 1 << d : 2 << d;
        float scale = (float)pow(10, d + 1 - DECADES);
        for (int i = 0; i < steps; i++) {
            float middle = (point(i, steps + 1) + point(i + 1, steps + 1)) / 2.0F;
            value[count++] = scale * middle;
            if (is_signed) {
                value[count++] = -(scale * middle);
            }
        }
    }
    value[count++] = 0;
    value[count++] = 1;
}

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

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
    make_values(type == TR_STATE_I8, out->value);
    qsort(out->value, TR_STATE_CODES, sizeof *out->value, ascending);
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
