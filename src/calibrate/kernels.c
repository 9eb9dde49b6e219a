// Kernels of the model, each on operands that lie where the step before would have left
// them: parameters, gradients and what is kept in memory, the rest in the cache.
#include "base/clock.h"
#include "calibrate/measure.h"

#include <string.h>

enum { COLD = 128 << 20 }; // more than a cache has

static const double brief = 0.01; // seconds: no kernel is left out that takes less
// Seconds: of the kernel that computes beside what moves; and the least that one takes.
static const double usual = 5e-3, least = 1e-7;

static size_t pages(size_t bytes) {
    return (bytes + TR_MEASURE_PAGE - 1) / TR_MEASURE_PAGE * TR_MEASURE_PAGE;
}

static size_t room(const tr_operand *operand, tr_tensor_desc desc) {
    return pages(
        desc.dtype == TR_NONE ? 0 : (size_t)(tr_tensor_bytes(desc) + operand->padding));
}

// ---- operands

typedef struct needs {
    size_t cold, warm, ids;
} needs;

static bool is_cold(tr_place place) {
    return place == TR_PLACE_PARAM || place == TR_PLACE_PARAM_GRAD ||
           place == TR_PLACE_SAVED;
}

static void need(const tr_operand *operand, tr_tensor_desc desc, needs *n) {
    size_t bytes = room(operand, desc);
    if (operand->place == TR_PLACE_NONE) {
        return;
    }
    if (desc.dtype == TR_I32) { // ids, targets
        n->ids = bytes > n->ids ? bytes : n->ids;
    } else {
        *(is_cold(operand->place) ? &n->cold : &n->warm) += bytes;
    }
}

static needs needs_of(const tr_instruction *at) {
    needs n = {0, 0, 0};
    const tr_kernel *kernel = at->kernel;
    tr_op_desc desc = tr__desc_alone(at);
    for (int i = 0; i < at->desc.in_count; i++) {
        need(&at->in[i], at->desc.in[i], &n);
    }
    for (int i = 0; i < at->desc.out_count; i++) {
        need(&at->out[i], at->desc.out[i], &n);
    }
    n.warm += kernel->workspace ? kernel->workspace(&desc, at->state) : 0;
    n.cold += pages((size_t)at->packed_bytes);
    return n;
}

static bool fits(const tr_measuring *m, const needs *n) {
    return n->cold + n->warm + 2 * n->ids <= (size_t)m->memory;
}

static double flops_of(const tr_instruction *at) {
    tr_cost cost = {0};
    if (at->kernel->cost) {
        at->kernel->cost(&at->desc, &cost);
    }
    return cost.flops;
}

// ---- programs

typedef tr_status visitor(tr_measuring *m, int size, const tr_instruction *at,
                          void *what);

static tr_status visit(tr_measuring *m, int size, const tr_program *program,
                       visitor *look, void *what) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < program->count && status == TR_OK; i++) {
        const tr_instruction *at = &program->instructions[i];
        if (flops_of(at) > 0 && tr__rated_op_find(at->desc.op->name) != TR_RATED_OPS) {
            status = look(m, size, at, what);
        }
    }
    return status;
}

static tr_status visit_segment(tr_measuring *m, int size, const tr_unit_program *unit,
                               tr_variant role, int segment, visitor *look,
                               void *what) {
    tr_piece_range pieces = tr__segment_pieces(unit, role, segment);
    tr_status status = TR_OK;
    for (int i = pieces.first; i < pieces.end && status == TR_OK; i++) {
        status = visit(m, size, tr__unit_piece(unit, role, i), look, what);
    }
    return status;
}

// The kernels that do arithmetic, of every kind of unit.
static tr_status visit_all(tr_measuring *m, int size, visitor *look, void *what) {
    const tr_plan *plan = m->plans[size];
    tr_status status = TR_OK;
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_plan_unit *unit = &plan->units[u];
        int segments = unit->owns_program ? unit->program->segments : 0;
        for (int s = 0; s < segments && status == TR_OK; s++) {
            status = visit_segment(m, size, unit->program, TR_VARIANT_FORWARD, s, look,
                                   what);
            status = status == TR_OK ? visit_segment(m, size, unit->program,
                                                     TR_VARIANT_BACKWARD, s, look, what)
                                     : status;
        }
    }
    return status;
}

// ---- one kernel

typedef struct launch_work {
    tr_measuring *m;
    const tr_instruction *at;
    tr_op_desc desc; // alone
} launch_work;

static void *cold_place(tr_measuring *m, size_t bytes) {
    size_t at = m->cold_at + bytes > m->cold_bytes ? 0 : m->cold_at;
    m->cold_at = at + bytes;
    return tr__arena_view(m->cold, at, bytes);
}

// positions: it holds a batch's, which are those of one document a sample: no other
// documents take longer.
static void *place_of(tr_measuring *m, const tr_operand *operand, tr_tensor_desc desc,
                      bool positions, size_t *warm_at) {
    size_t bytes = room(operand, desc), at = *warm_at;
    if (operand->place == TR_PLACE_NONE) {
        return NULL;
    }
    if (desc.dtype == TR_I32) {
        return tr__arena_view(m->ids, positions ? m->positions_at : 0, bytes);
    }
    if (!is_cold(operand->place)) {
        *warm_at += bytes;
        return tr__arena_view(m->warm, at, bytes);
    }
    return cold_place(m, bytes);
}

static void launch(void *what) {
    const launch_work *w = what;
    const tr_instruction *at = w->at;
    tr_run_context run = {.loss_seed = 1};
    tr_launch args = {.run = &run, .accumulate = at->desc.accumulate};
    size_t warm_at = 0;
    for (int i = 0; i < at->desc.in_count; i++) {
        bool positions = at->desc.op->positions >> i & 1;
        args.in[i] = place_of(w->m, &at->in[i], at->desc.in[i], positions, &warm_at);
    }
    for (int i = 0; i < at->desc.out_count; i++) {
        args.out[i] = place_of(w->m, &at->out[i], at->desc.out[i], false, &warm_at);
    }
    args.workspace = tr__arena_view(w->m->warm, warm_at, 0);
    args.packed = cold_place(w->m, pages((size_t)at->packed_bytes));
    args.is_packed = true; // as it is for most micro-batches
    const tr_device_work work = {at->kernel, &w->desc, at->state, &args, "calibration"};
    tr__measure_put(w->m, &work);
}

static void launch_alone(void *what) {
    const launch_work *w = what;
    launch(what);
    tr__measure_settle(w->m, w->m->queue);
}

// Long ones are left out when there is no time for them: all ranks do so together.
static bool is_too_long(const tr_measuring *m, double flops) {
    double expected = flops / m->machine->flops;
    return expected > brief && expected > m->until - tr__seconds();
}

// With its launch, which a short one would take no time without.
static bool is_nearer(const tr_measuring *m, double seconds) {
    double now = m->usual_seconds / usual, then = seconds / usual;
    now = now < 1 ? 1 / now : now;
    then = then < 1 ? 1 / then : then;
    return !m->usual || then < now;
}

// A small kernel may take no longer than what was measured as the time of a launch; its
// work still takes some of it.
static double without_launch(const tr_measuring *m, double whole) {
    double seconds = whole - m->overhead, little = whole / 10;
    return seconds > little ? seconds : little;
}

// The plan that is trained by says why one is not.
static bool is_ready(const tr_instruction *at) {
    return !at->kernel->bind || at->kernel->bind(&at->desc, at->state, NULL) == TR_OK;
}

static tr_status measure_one(tr_measuring *m, int size, const tr_instruction *at,
                             void *what) {
    double flops = flops_of(at);
    needs n = needs_of(at);
    launch_work w = {m, at, tr__desc_alone(at)};
    int64_t skip = !fits(m, &n) || is_too_long(m, flops) || !is_ready(at), any;
    (void)what;
    tr_status status = tr__measure_together(m, skip, &any);
    if (status != TR_OK || any) {
        return status;
    }
    double whole = tr__measure(launch_alone, &w);
    tr_op_sums *sums = &m->sums[size][tr__rated_op_find(at->desc.op->name)];
    sums->flops += flops;
    sums->seconds += without_launch(m, whole);
    sums->calls++;
    whole = whole > least ? whole : least;
    if (size == 0 && is_nearer(m, whole)) {
        m->usual = at;
        m->usual_seconds = whole;
    }
    return TR_OK;
}

void tr__measure_usual(tr_measuring *m, int times) {
    launch_work w = {m, m->usual, tr__desc_alone(m->usual)};
    for (int i = 0; i < times; i++) {
        launch(&w);
    }
    tr__measure_settle(m, m->queue);
}

// ---- rates

// seconds = calls * more + flops / rate, through both sizes; without a second size, or
// where the larger one is slower than that, all is rate.
static void fit(const tr_op_sums *small, const tr_op_sums *large, double *rate,
                double *more) {
    double flops = large->flops - small->flops;
    double seconds = large->seconds - small->seconds;
    *more = 0;
    *rate = 0;
    if (small->calls > 0 && small->calls == large->calls && flops > 0 && seconds > 0) {
        *rate = flops / seconds;
        *more = (small->seconds - small->flops / *rate) / small->calls;
    }
    if (small->seconds > 0 && *more <= 0) {
        bool both = large->seconds > 0 && small->calls == large->calls;
        *more = 0;
        *rate = (small->flops + (both ? large->flops : 0)) /
                (small->seconds + (both ? large->seconds : 0));
    }
}

// Of all ops whose names begin so, but not like `except`, at large sizes. 0: none was
// measured.
static double rate_of(const tr_measuring *m, const char *begin, const char *except) {
    double flops = 0, seconds = 0;
    for (int i = 0; i < TR_RATED_OPS; i++) {
        const tr_op_sums *sums = &m->sums[0][i];
        const char *name = tr__rated_op_name((tr_rated_op)i);
        bool is = strncmp(name, begin, strlen(begin)) == 0;
        if (is && !(except && strncmp(name, except, strlen(except)) == 0) &&
            m->machine->op_flops[i] > 0) {
            flops += sums->flops;
            seconds += sums->flops / m->machine->op_flops[i];
        }
    }
    return seconds > 0 ? flops / seconds : 0;
}

// Products of layers, those in 8 bits apart. Where all are in 8 bits, theirs is the
// rate that utilisation is measured by.
static void conclude_products(const tr_measuring *m) {
    tr_machine *machine = m->machine;
    double plain = rate_of(m, "linear", "linear_fp8");
    double fp8 = rate_of(m, "linear_fp8", NULL);
    machine->flops = plain > 0 ? plain : fp8 > 0 ? fp8 : machine->flops;
    machine->half_flops = machine->flops;
    machine->fp8_flops = fp8 > 0 ? fp8 : machine->flops;
}

static void conclude(tr_measuring *m) {
    tr_machine *machine = m->machine;
    int last = m->plan_count - 1;
    for (int i = 0; i < TR_RATED_OPS; i++) {
        const tr_op_sums *small = &m->sums[0][i];
        double rate, more;
        fit(small, last > 0 ? &m->sums[last][i] : &(tr_op_sums){0}, &rate, &more);
        if (rate >= 1) {
            machine->op_flops[i] = rate;
            machine->op_launch[i] = more;
        }
    }
    conclude_products(m);
}

// ---- all of them

static tr_status add_needs(tr_measuring *m, int size, const tr_instruction *at,
                           void *what) {
    needs n = needs_of(at), *most = what;
    (void)size;
    if (fits(m, &n)) {
        most->cold = n.cold > most->cold ? n.cold : most->cold;
        most->warm = n.warm > most->warm ? n.warm : most->warm;
        most->ids = n.ids > most->ids ? n.ids : most->ids;
    }
    return TR_OK;
}

// As many as the largest operand of ids has, behind the ids.
static void fill_positions(const tr_measuring *m, tr_arena *ids) {
    const tr_batch_tensor *tensor = tr_batch_positions(&m->plans[0]->batch);
    if (!tensor) {
        return;
    }
    int32_t *place = tr__arena_view(ids, m->positions_at, m->positions_at);
    for (size_t i = 0; i < m->positions_at / sizeof *place; i++) {
        place[i] = (int32_t)((int64_t)i % tensor->desc.shape.dim[0]);
    }
}

// The ids are all 0; a discrete device gets them by way of the host.
static tr_status take_ids(tr_measuring *m, size_t bytes) {
    tr_arena *staging = NULL;
    m->positions_at = bytes;
    tr_status status =
        tr__measure_take(m, "operands", 2 * bytes, false, &m->ids, m->err);
    if (status != TR_OK || bytes == 0) {
        return status;
    }
    if (!m->queue) {
        fill_positions(m, m->ids);
        return TR_OK;
    }
    status = tr__arena_create_from(tr__backend_host_memory(m->backend), "staging",
                                   2 * bytes, &staging, m->err);
    if (status == TR_OK) {
        fill_positions(m, staging);
        tr__measure_bring(m, m->ids, tr__arena_view(staging, 0, 2 * bytes), 2 * bytes);
    }
    tr__arena_destroy(staging);
    return status;
}

static tr_status take_memory(tr_measuring *m) {
    needs most = {0, 0, 0};
    for (int i = 0; i < m->plan_count; i++) {
        visit_all(m, i, add_needs, &most);
    }
    size_t more = (size_t)m->memory / 4;
    m->cold_bytes = most.cold + (more < COLD ? more : COLD);
    tr_status status =
        tr__measure_take(m, "operands", most.warm, true, &m->warm, m->err);
    if (status == TR_OK) {
        status = take_ids(m, most.ids);
    }
    return status == TR_OK
               ? tr__measure_take(m, "operands", m->cold_bytes, true, &m->cold, m->err)
               : status;
}

tr_status tr__measure_kernels(tr_measuring *m) {
    tr_error mine = {0}, *err = m->err;
    m->err = &mine;
    tr_status status = take_memory(m);
    m->err = err;
    status = tr__agree(m->comm, status, &mine, err);
    m->until = tr__seconds() + m->seconds;
    for (int i = 0; i < m->plan_count && status == TR_OK; i++) {
        status = visit_all(m, i, measure_one, NULL);
    }
    if (status == TR_OK) {
        conclude(m);
    }
    return status;
}
