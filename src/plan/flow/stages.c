#include "plan/flow/stages.h"

#include "base/memory.h"

#include <math.h>

int tr__chunk_count(const tr_chunks *chunks) {
    return (int)(chunks->stages * chunks->each);
}

// Which way round the stages is the i-th? Every other one goes back where they fold.
static int64_t on_way(const tr_chunks *chunks, int64_t i, int64_t stage) {
    return chunks->folds && i % 2 == 1 ? chunks->stages - 1 - stage : stage;
}

int64_t tr__chunk_stage(const tr_chunks *chunks, int chunk) {
    return on_way(chunks, chunk / chunks->stages, chunk % chunks->stages);
}

int tr__stage_chunk(const tr_chunks *chunks, int64_t stage, int64_t i) {
    return (int)(i * chunks->stages + on_way(chunks, i, stage));
}

// Best ways of cutting the first u units into s parts, for all u and s.
typedef struct table {
    const double *before; // [units + 1] the cost of all units before each
    int units, parts;
    double limit;  // a part may cost so much
    double *least; // [parts + 1][units + 1] the sum of squares, or the costliest part
    int *begin;    // where the last part begins
} table;

static size_t at(const table *t, int part, int unit) {
    return (size_t)part * (size_t)(t->units + 1) + (size_t)unit;
}

// The best first u units in s parts. The last part grows as its begin falls, until it
// alone costs too much.
static double best_of(const table *t, int s, int u, int *first) {
    bool open = isinf(t->limit); // the limit itself is looked for
    double least = INFINITY;
    for (int begin = u - 1; begin >= s - 1; begin--) {
        double cost = t->before[u] - t->before[begin];
        double rest = t->least[at(t, s - 1, begin)];
        double value = open ? fmax(rest, cost) : rest + cost * cost;
        if (cost > (open ? least : t->limit)) {
            break;
        }
        if (value <= least) {
            least = value;
            *first = begin;
        }
    }
    return least;
}

static double fill(table *t) {
    for (int u = 0; u <= t->units; u++) {
        t->least[at(t, 0, u)] = u == 0 ? 0 : INFINITY;
    }
    for (int s = 1; s <= t->parts; s++) {
        for (int u = 0; u <= t->units; u++) {
            t->least[at(t, s, u)] = best_of(t, s, u, &t->begin[at(t, s, u)]);
        }
    }
    return t->least[at(t, t->parts, t->units)];
}

static void read_cut(const table *t, int *first) {
    first[t->parts] = t->units;
    for (int s = t->parts; s > 0; s--) {
        first[s - 1] = t->begin[at(t, s, first[s])];
    }
}

tr_status tr__cut_units(const double *cost, int units, int parts, int *first,
                        tr_error *err) {
    size_t entries = (size_t)(parts + 1) * (size_t)(units + 1);
    double *before = tr__calloc((size_t)units + 1, sizeof *before);
    table t = {.before = before,
               .units = units,
               .parts = parts,
               .limit = INFINITY,
               .least = tr__calloc(entries, sizeof *t.least),
               .begin = tr__calloc(entries, sizeof *t.begin)};
    bool good = before && t.least && t.begin;
    for (int u = 0; u < units && good; u++) {
        before[u + 1] = before[u] + cost[u];
    }
    if (good) {
        t.limit = fill(&t) * (1 + 1e-9); // sums round
        fill(&t);
        read_cut(&t, first);
    }
    tr__free(before);
    tr__free(t.least);
    tr__free(t.begin);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to cut a pipeline");
}
