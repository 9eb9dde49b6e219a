#include "infer/retrieval.h"

#include "backend/backend.h"
#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "ops/nn/linear/linear.h"

#include <math.h>
#include <string.h>

enum { ROWS = 128, COLUMNS = 1024, ALIGNMENT = 64 };

struct tr_retrieval {
    int64_t groups, each, width; // each: candidates of a group
    tr_op_desc desc;             // products [ROWS, COLUMNS] of a tile
    const tr_kernel *kernel;
    void *state;
    size_t workspace;
    tr_arena *arena;   // of what follows
    float *anchors;    // [groups, width], whole tiles of them
    float *candidates; // [groups * each, width], likewise
    float *products;   // [ROWS, COLUMNS]
    void *scratch;
};

static void describe(tr_retrieval *r, tr_target host) {
    const tr_linear_attr attr = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE};
    r->desc = (tr_op_desc){.op = &tr__op_linear,
                           .in_count = 3,
                           .out_count = 1,
                           .in = {{TR_F32, TR_SHAPE2(ROWS, r->width)},
                                  {TR_F32, TR_SHAPE2(COLUMNS, r->width)}},
                           .out = {{TR_F32, TR_SHAPE2(ROWS, COLUMNS)}},
                           .fresh = 1,
                           .target = host};
    memcpy(r->desc.attr, &attr, sizeof attr);
}

tr_status tr__retrieval_create(int64_t groups, int64_t texts, int64_t width,
                               tr_target host, tr_retrieval **out, tr_error *err) {
    tr_retrieval *r = tr__calloc(1, sizeof *r);
    *out = r;
    if (!r) {
        return tr_fail(err, TR_MEMORY, "no memory to compare embeddings");
    }
    r->groups = groups;
    r->each = texts - 1;
    r->width = width;
    describe(r, host);
    r->kernel = tr__kernel_find(&r->desc);
    tr_status status =
        r->kernel ? TR_OK
                  : tr_fail(err, TR_INTERNAL, "no kernel for products of embeddings");
    if (status == TR_OK && r->kernel->prepare) {
        status = r->kernel->prepare(&r->desc, &r->state, err);
    }
    if (status == TR_OK && r->kernel->workspace) {
        r->workspace = r->kernel->workspace(&r->desc, r->state);
    }
    return status;
}

void tr__retrieval_destroy(tr_retrieval *r) {
    if (r) {
        if (r->kernel && r->kernel->release) {
            r->kernel->release(r->state);
        }
        tr__arena_destroy(r->arena);
        tr__free(r);
    }
}

static size_t row_bytes(const tr_retrieval *r) {
    return (size_t)r->width * sizeof(float);
}

static size_t anchor_bytes(const tr_retrieval *r) {
    return (size_t)tr__round_up(r->groups, ROWS) * row_bytes(r);
}

static size_t candidate_bytes(const tr_retrieval *r) {
    return (size_t)tr__round_up(r->groups * r->each, COLUMNS) * row_bytes(r);
}

enum { PRODUCT_BYTES = ROWS * COLUMNS * (int)sizeof(float) };

size_t tr__retrieval_bytes(const tr_retrieval *r) {
    return r ? anchor_bytes(r) + candidate_bytes(r) + PRODUCT_BYTES + r->workspace : 0;
}

tr_status tr__retrieval_take_memory(tr_retrieval *r, tr_error *err) {
    size_t at = 0, anchors = anchor_bytes(r), candidates = candidate_bytes(r);
    tr_status status =
        tr__arena_create("embeddings", tr__retrieval_bytes(r), &r->arena, err);
    if (status != TR_OK) {
        return status;
    }
    r->anchors = tr__arena_view(r->arena, at, anchors);
    r->candidates = tr__arena_view(r->arena, at += anchors, candidates);
    r->products = tr__arena_view(r->arena, at += candidates, PRODUCT_BYTES);
    r->scratch = tr__arena_view(r->arena, at + PRODUCT_BYTES, r->workspace);
    return TR_OK;
}

void tr__retrieval_put(tr_retrieval *r, int64_t first, int64_t count,
                       const float *embeddings) {
    for (int64_t i = 0; i < count; i++) {
        const float *group = embeddings + i * (1 + r->each) * r->width;
        memcpy(r->anchors + (first + i) * r->width, group, row_bytes(r));
        memcpy(r->candidates + (first + i) * r->each * r->width, group + r->width,
               (size_t)r->each * row_bytes(r));
    }
}

// The products of the anchors from `first` on with the candidates from `column` on.
static void multiply(const tr_retrieval *r, int64_t first, int64_t column) {
    const tr_run_context run = {.rows = INT64_MAX};
    tr_launch launch = {
        .in = {r->anchors + first * r->width, r->candidates + column * r->width},
        .out = {r->products},
        .workspace = r->scratch,
        .run = &run};
    tr__backend_launch(tr__backend(TR_BACKEND_HOST), r->kernel, &r->desc, r->state,
                       &launch);
}

// own: [ROWS], of the anchors [first, end) the products with their positives.
static void find_own(const tr_retrieval *r, int64_t first, int64_t end, float *own) {
    int64_t column = first * r->each / COLUMNS * COLUMNS;
    for (; column < end * r->each; column += COLUMNS) {
        multiply(r, first, column);
        for (int64_t a = first; a < end; a++) {
            int64_t at = a * r->each - column; // of the positive
            if (at >= 0 && at < COLUMNS) {
                own[a - first] = r->products[(a - first) * COLUMNS + at];
            }
        }
    }
}

// larger: [ROWS], how many candidates have a larger product than the anchor's own.
static void count_larger(const tr_retrieval *r, int64_t first, int64_t end,
                         int64_t candidates, const float *own, int64_t *larger) {
    for (int64_t column = 0; column < candidates; column += COLUMNS) {
        int64_t there = tr__min_i64(COLUMNS, candidates - column);
        multiply(r, first, column);
        for (int64_t a = 0; a < end - first; a++) {
            const float *row = r->products + a * COLUMNS;
            for (int64_t c = 0; c < there; c++) {
                larger[a] += row[c] > own[a];
            }
        }
    }
}

tr_retrieved tr__retrieval_score(const tr_retrieval *r, int64_t count) {
    const tr_backend *host = tr__backend(TR_BACKEND_HOST);
    tr_retrieved sum = {0};
    int before = host->begin ? host->begin(r->desc.target.workers) : 0;
    for (int64_t first = 0; first < count; first += ROWS) {
        int64_t larger[ROWS] = {0}, end = tr__min_i64(first + ROWS, count);
        float own[ROWS];
        find_own(r, first, end, own);
        count_larger(r, first, end, count * r->each, own, larger);
        for (int64_t a = 0; a < end - first; a++) {
            sum.recall_at_1 += larger[a] < 1;
            sum.recall_at_10 += larger[a] < 10;
            sum.mrr += 1 / (double)(larger[a] + 1);
        }
    }
    if (host->end) {
        host->end(before);
    }
    double all = (double)count;
    return (tr_retrieved){sum.recall_at_1 / all, sum.recall_at_10 / all, sum.mrr / all};
}
