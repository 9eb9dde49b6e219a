#include "base/dynamic_map.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { DECADES = 7 };

// Point i of `points` equally spaced ones from 0.1 to 1, from the nearer end, rounded
// once: as torch.linspace has them.
static float point(int i, int points) {
    double step = (double)((1.0F - 0.1F) / (float)(points - 1));
    return i < points / 2 ? (float)((double)0.1F + step * i)
                          : (float)(1 - step * (points - 1 - i));
}

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// The middles of so many equal steps, of every power of ten, and 0 and 1.
void tr__dynamic_map_make(bool is_signed, float *value) {
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
    qsort(value, TR_DYNAMIC_CODES, sizeof *value, ascending);
}

static float with_signs[TR_DYNAMIC_CODES];

static void make_with_signs(void) {
    tr__dynamic_map_make(true, with_signs);
}

const float *tr__dynamic_map(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_with_signs);
    return with_signs;
}
