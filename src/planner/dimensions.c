// The table of what a plan can be chosen by. A new dimension is a name in
// <tranche/planner.h> and a row here.
#include "base/checked.h"
#include "base/text.h"
#include "planner/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tr__classes_say(uint32_t classes, const char *between, char *dst, size_t size) {
    size_t used = 0;
    dst[0] = '\0';
    for (uint32_t bit = 1; bit & TR_REMAKE_ALL && used < size; bit <<= 1) {
        if (classes & bit) {
            used +=
                (size_t)snprintf(dst + used, size - used, "%s%s", used ? between : "",
                                 tr_remake_name((tr_remake)bit));
        }
    }
}

const char *tr_dimension_word(tr_dimension_name dimension) {
    return tr__dimensions[dimension].name;
}

// ---- micro-batch
// ---------------------------------------------------------------------

// More micro-batches than this, times units, make a plan too long to look at.
enum { UNROLLED_MAX = 1 << 20, PROBES = 4, PER_OCTAVE = 2 };

static int64_t get_micro_batch(const tr_point *p) {
    return p->plan.micro_batch;
}

static void set_micro_batch(tr_point *p, int64_t value) {
    p->plan.micro_batch = value;
    p->plan.accumulation_steps =
        tr__ceil_div(p->plan.train_batch_size, value * p->plan.ranks);
}

// Of some sizes from `low` to twice that, those that leave no row of the share empty,
// else the one that leaves the fewest. Returns how many.
static size_t best_of_octave(int64_t share, int64_t low, int64_t out[PER_OCTAVE]) {
    int64_t least = INT64_MAX, last = 0;
    size_t count = 0;
    for (int i = 0; i < PROBES; i++) {
        int64_t steps = tr__ceil_div(share, low + low * i / PROBES);
        int64_t m = tr__ceil_div(share, steps), empty = m * steps - share;
        if (m < low || m == last || empty > least) {
            continue;
        }
        count = empty < least || least > 0 ? 0 : count;
        least = empty;
        if (count < PER_OCTAVE) {
            out[count++] = m;
        }
        last = m;
    }
    return count;
}

static size_t values_micro_batch(const tr_planner_request *request,
                                 const tr_point *point, int64_t *values) {
    const tr_plan_request *r = &request->plan;
    int64_t share = tr__ceil_div(r->train_batch_size, r->ranks);
    int64_t least = tr__ceil_div(share, UNROLLED_MAX / r->model->unit_count);
    size_t count = 0;
    (void)point;
    for (int64_t low = 1; low < share; low *= 2) {
        int64_t best[PER_OCTAVE];
        size_t found = best_of_octave(share, low, best);
        for (size_t i = 0; i < found; i++) {
            if (best[i] >= least && best[i] < share) {
                values[count++] = best[i];
            }
        }
    }
    values[count++] = share;
    return count;
}

static void say_micro_batch(const tr_point *p, char *dst, size_t size) {
    snprintf(dst, size, "micro-batch %" PRId64 " x %" PRId64, p->plan.micro_batch,
             p->plan.accumulation_steps);
}

// ---- slices of the vocabulary
// -------------------------------------------------------

static int64_t get_vocabulary_slices(const tr_point *p) {
    return p->slices;
}

static void set_vocabulary_slices(tr_point *p, int64_t value) {
    p->slices = value;
}

enum { SLICES_MAX = 16 };

// Only where parameters come and go is it of use to have fewer of them at once.
static size_t values_vocabulary_slices(const tr_planner_request *request,
                                       const tr_point *point, int64_t *values) {
    bool pass = point->plan.param_home != TR_SPACE_DEVICE ||
                (point->plan.ranks > 1 && point->plan.stage == 3);
    size_t count = 0;
    for (int64_t n = 1; n <= SLICES_MAX; n *= 2) {
        bool possible = n == 1 || (pass && n <= request->plan.model->classes);
        if (possible && (request->sliced || n == request->vocabulary_slices)) {
            values[count++] = n;
        }
    }
    return count;
}

static void say_vocabulary_slices(const tr_point *p, char *dst, size_t size) {
    if (p->slices > 1) {
        snprintf(dst, size, "vocabulary in %" PRId64 " slices", p->slices);
    }
}

// ---- stage
// ---------------------------------------------------------------------------

static int64_t get_stage(const tr_point *p) {
    return p->plan.stage;
}

static void set_stage(tr_point *p, int64_t value) {
    p->plan.stage = (int)value;
}

// One rank has nothing to share out.
static size_t values_stage(const tr_planner_request *request, const tr_point *point,
                           int64_t *values) {
    (void)point;
    if (request->plan.ranks == 1) {
        values[0] = 0;
        return 1;
    }
    for (int stage = 0; stage <= 3; stage++) {
        values[stage] = stage;
    }
    return 4;
}

static void say_stage(const tr_point *p, char *dst, size_t size) {
    if (p->plan.ranks > 1) {
        snprintf(dst, size, "stage %d", p->plan.stage);
    }
}

// ---- homes
// ---------------------------------------------------------------------------

static size_t values_optimizer_home(const tr_planner_request *request,
                                    const tr_point *point, int64_t *values) {
    size_t count = 0;
    (void)point;
    for (int space = 0; space < TR_SPACES; space++) {
        if (space == TR_SPACE_DEVICE || request->budget[space] > 0) {
            values[count++] = space;
        }
    }
    return count;
}

static void say_home(const char *what, tr_space home, char *dst, size_t size) {
    if (home != TR_SPACE_DEVICE) {
        snprintf(dst, size, "%s on %s%s", what, home == TR_SPACE_HOST ? "the " : "",
                 tr_space_name(home));
    }
}

static int64_t get_optimizer_home(const tr_point *p) {
    return p->plan.optimizer_home;
}

static void set_optimizer_home(tr_point *p, int64_t value) {
    p->plan.optimizer_home = (tr_space)value;
}

static void say_optimizer_home(const tr_point *p, char *dst, size_t size) {
    say_home("optimizer", p->plan.optimizer_home, dst, size);
}

static int64_t get_grad_home(const tr_point *p) {
    return p->plan.grad_home == TR_SPACE_NVME;
}

static void set_grad_home(tr_point *p, int64_t value) {
    p->plan.grad_home = value ? TR_SPACE_NVME : TR_SPACE_DEVICE;
}

static size_t values_grad_home(const tr_planner_request *request, const tr_point *point,
                               int64_t *values) {
    (void)request;
    values[0] = 0;
    values[1] = 1;
    return point->plan.optimizer_home == TR_SPACE_NVME ? 2 : 1;
}

static void say_grad_home(const tr_point *p, char *dst, size_t size) {
    if (p->plan.grad_home == TR_SPACE_NVME) {
        snprintf(dst, size, "gradients on nvme");
    }
}

// The optimizer goes first, where it may: there is more of it, and it is used once a
// step.
static size_t values_param_home(const tr_planner_request *request,
                                const tr_point *point, int64_t *values) {
    bool open = request->free >> TR_DIMENSION_optimizer_home & 1;
    if (open && point->plan.optimizer_home == TR_SPACE_DEVICE) {
        values[0] = TR_SPACE_DEVICE;
        return 1;
    }
    return values_optimizer_home(request, point, values);
}

static int64_t get_param_home(const tr_point *p) {
    return p->plan.param_home;
}

static void set_param_home(tr_point *p, int64_t value) {
    p->plan.param_home = (tr_space)value;
}

static void say_param_home(const tr_point *p, char *dst, size_t size) {
    say_home("parameters", p->plan.param_home, dst, size);
}

// ---- wave and recomputation
// ----------------------------------------------------------

static int64_t get_wave(const tr_point *p) {
    return p->plan.wave;
}

static void set_wave(tr_point *p, int64_t value) {
    p->plan.wave = value;
}

static size_t values_wave(const tr_planner_request *request, const tr_point *point,
                          int64_t *values) {
    int64_t g = point->plan.accumulation_steps;
    size_t count = 0;
    (void)request;
    for (int64_t wave = 1; wave < g; wave *= 2) {
        values[count++] = wave;
    }
    values[count++] = g;
    return count;
}

static void say_wave(const tr_point *p, char *dst, size_t size) {
    snprintf(dst, size, "wave %" PRId64, p->plan.wave);
}

static int64_t get_recomputed_ops(const tr_point *p) {
    return p->plan.recomputed_ops ? p->plan.recomputed_ops : TR_RECOMPUTE_DEFAULT;
}

static void set_recomputed_ops(tr_point *p, int64_t value) {
    p->plan.recomputed_ops = (uint32_t)value;
}

static size_t values_recomputed_ops(const tr_planner_request *request,
                                    const tr_point *point, int64_t *values) {
    for (int i = 0; i < request->remake_count; i++) {
        values[i] = request->remakes[i];
    }
    if (request->remake_count == 0) {
        values[0] = get_recomputed_ops(point);
        return 1;
    }
    return (size_t)request->remake_count;
}

static void say_recomputed_ops(const tr_point *p, char *dst, size_t size) {
    tr__classes_say((uint32_t)get_recomputed_ops(p), "+", dst, size);
    size_t used = strlen(dst);
    snprintf(dst + used, size - used, "%srecomputed", used ? " " : "no tensor ");
}

static int64_t get_boundary_home(const tr_point *p) {
    return p->plan.boundary_home == TR_SPACE_HOST;
}

static void set_boundary_home(tr_point *p, int64_t value) {
    p->plan.boundary_home = value ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

static size_t values_boundary_home(const tr_planner_request *request,
                                   const tr_point *point, int64_t *values) {
    bool units = request->free >> TR_DIMENSION_recomputed_units & 1 ||
                 point->plan.recomputed_units != 0;
    values[0] = 0;
    values[1] = 1;
    return units && request->budget[TR_SPACE_HOST] > 0 ? 2 : 1;
}

static void say_boundary_home(const tr_point *p, char *dst, size_t size) {
    if (get_boundary_home(p) && p->plan.recomputed_units != 0) {
        snprintf(dst, size, "their inputs on the host");
    }
}

static int64_t get_recomputed_units(const tr_point *p) {
    return p->plan.recomputed_units;
}

static void set_recomputed_units(tr_point *p, int64_t value) {
    p->plan.recomputed_units = value;
}

// All but the last unit, which is turned around at once; of many units not every
// number.
static size_t values_recomputed_units(const tr_planner_request *request,
                                      const tr_point *point, int64_t *values) {
    int64_t most = request->plan.model->unit_count - 1;
    int64_t step = tr__ceil_div(most + 1, TR_VALUES_MAX - 1);
    size_t count = 0;
    (void)point;
    for (int64_t n = 0; n < most; n += step) {
        values[count++] = n;
    }
    values[count++] = most;
    return count;
}

static void say_recomputed_units(const tr_point *p, char *dst, size_t size) {
    int64_t n = p->plan.recomputed_units;
    if (n < 0 || n >= p->plan.model->unit_count - 1) {
        snprintf(dst, size, "all units but the last recomputed");
    } else {
        snprintf(dst, size, n ? "%" PRId64 " unit%s recomputed" : "no unit recomputed",
                 n, tr__plural(n));
    }
}

// ---- the table
// -----------------------------------------------------------------------

const tr_dimension tr__dimensions[TR_DIMENSIONS] = {
#define TR_ROW(name, key, kind, in_class)                                              \
    [TR_DIMENSION_##name] = {#name,      (key),      kind,          in_class,          \
                             get_##name, set_##name, values_##name, say_##name}
    TR_ROW(micro_batch, "train_micro_batch_size_per_gpu", TR_COUNT, false),
    TR_ROW(stage, "zero_optimization.stage", TR_COUNT, true),
    TR_ROW(optimizer_home, "zero_optimization.offload_optimizer.device", TR_SPACE,
           true),
    TR_ROW(grad_home, "memory.nvme.gradients", TR_YES, true),
    TR_ROW(param_home, "zero_optimization.offload_param.device", TR_SPACE, true),
    TR_ROW(vocabulary_slices, "execution.vocabulary_slices", TR_COUNT, true),
    TR_ROW(wave, "execution.wave", TR_COUNT, false),
    TR_ROW(recomputed_ops, "execution.recompute", TR_CLASSES, false),
    TR_ROW(boundary_home, "activation_checkpointing.cpu_checkpointing", TR_YES, false),
    TR_ROW(recomputed_units, "activation_checkpointing.number_checkpoints", TR_COUNT,
           false),
#undef TR_ROW
};

size_t tr__dimension_values(const tr_planner_request *request, tr_dimension_name d,
                            const tr_point *point, int64_t *values) {
    if (request->free >> d & 1) {
        return tr__dimensions[d].values(request, point, values);
    }
    values[0] = tr__dimensions[d].get(point);
    return 1;
}

void tr__dimension_value(const tr_dimension *dimension, int64_t value, char *dst,
                         size_t size) {
    static const char *const homes[TR_SPACES] = {"none", "cpu", "nvme"};
    if (dimension->kind == TR_SPACE) {
        snprintf(dst, size, "%s", homes[value]);
    } else if (dimension->kind == TR_CLASSES) {
        tr__classes_say((uint32_t)value, "+", dst, size);
        if (dst[0] == '\0') {
            snprintf(dst, size, "none");
        }
    } else if (dimension->kind == TR_YES) {
        snprintf(dst, size, "%s", value ? "true" : "false");
    } else {
        snprintf(dst, size, "%" PRId64, value);
    }
}

// ---- points
// --------------------------------------------------------------------------

tr_point tr__planner_start(const tr_planner_request *request) {
    return (tr_point){request->plan, request->vocabulary_slices};
}

tr_point tr__point_of(const tr_planner_request *request, const int64_t *value) {
    tr_point point = tr__planner_start(request);
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        tr__dimensions[d].set(&point, value[d]);
    }
    return point;
}

void tr__point_values(const tr_point *point, int64_t *value) {
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        value[d] = tr__dimensions[d].get(point);
    }
}

void tr__point_say(const tr_point *point, unsigned which, char *dst, size_t size) {
    size_t used = 0;
    dst[0] = '\0';
    for (int d = 0; d < TR_DIMENSIONS && used < size; d++) {
        char words[96] = "";
        if (which >> d & 1) {
            tr__dimensions[d].say(point, words, sizeof words);
        }
        if (words[0]) {
            used += (size_t)snprintf(dst + used, size - used, "%s%s", used ? ", " : "",
                                     words);
        }
    }
}
