#include "backend/cpu/rate.h"

#include "backend/cpu/matmul.h"
#include "base/arena.h"
#include "base/clock.h"

enum { ROWS = 1024, WIDTH = 768, TRIES = 8, PAGE = 4096 };

// No try begins after these seconds: a slow processor takes as long for one or two as a
// fast one for all.
static const double SECONDS = 0.1;

static size_t pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static double time_product(tr_matmul *product, tr_arena *memory) {
    size_t a_bytes = pages(sizeof(float) * ROWS * WIDTH);
    size_t b_bytes = pages(sizeof(float) * WIDTH * WIDTH);
    float *a = tr__arena_view(memory, 0, a_bytes);
    float *b = tr__arena_view(memory, a_bytes, b_bytes);
    float *c = tr__arena_view(memory, a_bytes + b_bytes, a_bytes);
    void *workspace =
        tr__arena_view(memory, 2 * a_bytes + b_bytes, tr__matmul_workspace(product));
    double first = tr__seconds(), begin = first, best = 0;
    for (int i = 0; i < TRIES && begin - first < SECONDS; i++) {
        tr__matmul_run(product, false, a, b, NULL, c, workspace);
        double end = tr__seconds();
        best = i == 0 || end - begin < best ? end - begin : best;
        begin = end;
    }
    return best;
}

double tr__cpu_product_rate(int threads) {
    tr_matmul_desc desc = {.m = ROWS,
                           .n = WIDTH,
                           .k = WIDTH,
                           .a_row = WIDTH,
                           .a_col = 1,
                           .b_row = WIDTH,
                           .b_col = 1,
                           .c_row = WIDTH,
                           .fresh = true,
                           .threads = threads};
    tr_matmul *product = NULL;
    tr_arena *memory = NULL;
    double rate = 0;
    if (tr__matmul_create(&desc, &product, NULL) == TR_OK) {
        size_t bytes = 2 * pages(sizeof(float) * ROWS * WIDTH) +
                       pages(sizeof(float) * WIDTH * WIDTH) +
                       tr__matmul_workspace(product);
        if (tr__arena_create("rate", bytes, &memory, NULL) == TR_OK) {
            rate = 2.0 * ROWS * WIDTH * WIDTH / time_product(product, memory);
        }
    }
    tr__arena_destroy(memory);
    tr__matmul_destroy(product);
    return rate;
}
