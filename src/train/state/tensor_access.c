// Parts of an engine's tensors, read and written by name, on whichever rank they are.
#include "train/engine.h"

#include "base/arguments.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"
#include "exec/store/gradients.h"

#include <math.h>
#include <string.h>

// ---- what a call asks for

enum { PART_VALUES = -1, PART_GRADIENT = -2 }; // others: the optimizer's states

// A range of one part of one tensor.
typedef struct tr_tensor_access {
    tr_engine *engine;
    const char *name; // of the tensor
    int part;
    int state; // of the model; -1: it is a parameter
    int64_t first, count;
    char *values; // of the tensor's type
    bool writes;
} tr_tensor_access;

static tr_status find_part(const tr_engine *engine, const char *part, int *out,
                           tr_error *err) {
    enum { MOST = 2 + 2 * TR_OPTIMIZER_STATES };
    const char *names[MOST];
    size_t count = 0;
    for (; count < MOST && (names[count] = tr_engine_part(engine, count)); count++) {
        if (strcmp(names[count], part) == 0) {
            *out = count == 0   ? PART_VALUES
                   : count == 1 ? PART_GRADIENT
                                : (int)count - 2;
            return TR_OK;
        }
    }
    const char *nearest = tr__nearest(part, names, count);
    return tr_fail(err, TR_USAGE,
                   "tensors have no part \"%.60s\"; did you mean \"%s\"? (%s has %zu "
                   "states)",
                   part, nearest ? nearest : names[0],
                   engine->settings->optimizer->name, count - 2);
}

static tr_status fail_unknown(const tr_engine *engine, const char *name,
                              tr_error *err) {
    const tr_plan *plan = engine->plan;
    const char **names = tr__calloc(plan->param_count + 1, sizeof *names);
    const char *nearest = NULL;
    for (size_t i = 0; names && i < plan->param_count; i++) {
        names[i] = plan->params[i].stored;
    }
    nearest = names ? tr__nearest(name, names, plan->param_count) : NULL;
    tr__free(names);
    return tr_fail(err, TR_USAGE, "the model has no tensor %.200s%s%s%s", name,
                   nearest ? "; did you mean " : "", nearest ? nearest : "",
                   nearest ? "?" : "; tr_engine_tensor lists them");
}

// The tensor's description; its flat buffer, where it is a parameter.
static tr_status find_tensor(tr_tensor_access *a, tr_tensor_desc *desc,
                             const tr_flat **flat, tr_error *err) {
    const tr_plan *plan = a->engine->plan;
    *flat = NULL;
    for (size_t i = 0; i < plan->param_count; i++) {
        if (strcmp(plan->params[i].stored, a->name) == 0) {
            *desc = (tr_tensor_desc){TR_F32, plan->params[i].stored_shape};
            *flat = &plan->flats[plan->params[i].flat];
            return TR_OK;
        }
    }
    for (size_t i = 0; i < plan->state_count; i++) {
        if (strcmp(plan->states[i].name, a->name) == 0) {
            *desc = plan->states[i].desc;
            a->state = (int)i;
            return TR_OK;
        }
    }
    return fail_unknown(a->engine, a->name, err);
}

// Which state of its flat buffer has the name.
static bool find_state(tr_tensor_access *a, const tr_flat *flat, const char *part) {
    const tr_plan *plan = a->engine->plan;
    int s = 0;
    while (s < tr__flat_states(plan, flat) &&
           strcmp(tr__state_name(plan, flat, s), part) != 0) {
        s++;
    }
    a->part = s;
    return s < tr__flat_states(plan, flat);
}

static tr_status check_part(tr_tensor_access *a, const tr_flat *flat, const char *part,
                            tr_error *err) {
    if (a->part != PART_VALUES && !flat) {
        return tr_fail(err, TR_USAGE, "%s is a state of the model: it has values alone",
                       a->name);
    }
    if (a->part != PART_VALUES && flat->frozen) {
        return tr_fail(
            err, TR_USAGE,
            "%s is frozen: it has no gradient and no states of the optimizer", a->name);
    }
    if (flat && flat->quantized) {
        return tr_fail(err, TR_USAGE,
                       "%s is kept in few bits (quantization.base): its values are not "
                       "in memory, and cannot be read or written",
                       a->name);
    }
    if (a->part >= 0 && !find_state(a, flat, part)) {
        return tr_fail(err, TR_USAGE, "%s has no \"%s\": another optimizer updates it",
                       a->name, part);
    }
    if (a->part == PART_GRADIENT && flat->grad.buffer < 0) {
        return tr_fail(err, TR_USAGE, "the plan keeps no gradient of %s after a step",
                       a->name);
    }
    if (a->part == PART_GRADIENT && !(a->engine->unscale > 0)) {
        return tr_fail(err, TR_USAGE,
                       "there are no gradients before the first step: call "
                       "tr_engine_step");
    }
    return TR_OK;
}

static tr_status check_range(const tr_tensor_access *a, const tr_tensor_desc *desc,
                             tr_error *err) {
    int64_t all = tr_shape_count(desc->shape);
    if (a->first < 0 || a->count < 0 || a->first > all || a->count > all - a->first) {
        return tr_fail(err, TR_USAGE,
                       "%s has %lld elements: there are no %lld from number %lld on",
                       a->name, (long long)all, (long long)a->count,
                       (long long)a->first);
    }
    return TR_OK;
}

// A call as all ranks have to make it.
static uint64_t hash_of(const tr_tensor_access *a) {
    int64_t numbers[] = {a->part, a->first, a->count, a->writes};
    return tr__hash_text(a->name) ^ tr__hash(numbers, sizeof numbers);
}

static tr_status check_same(const tr_tensor_access *a, tr_error *err) {
    int64_t mine = (int64_t)(hash_of(a) >> 2), most = 0, least = 0;
    if (!a->engine->comm) {
        return TR_OK;
    }
    tr_status status = tr_comm_most(a->engine->comm, mine, &most, err);
    if (status == TR_OK) {
        status = tr_comm_most(a->engine->comm, -mine, &least, err);
    }
    return status == TR_OK && most != -least
               ? tr_fail(err, TR_USAGE,
                         "the ranks ask for different tensors, parts or ranges; all "
                         "must make the same call")
               : status;
}

// All ranks find the same, or get the error of one.
static tr_status begin(tr_tensor_access *a, const char *part, tr_error *err) {
    tr_error mine = {0};
    tr_tensor_desc desc;
    const tr_flat *flat = NULL;
    tr_status status = find_part(a->engine, part, &a->part, &mine);
    status = status == TR_OK ? find_tensor(a, &desc, &flat, &mine) : status;
    status = status == TR_OK ? check_part(a, flat, part, &mine) : status;
    status = status == TR_OK ? check_range(a, &desc, &mine) : status;
    status = tr__agree(a->engine->comm, status, &mine, err);
    status = status == TR_OK ? check_same(a, err) : status;
    return status == TR_OK ? tr__engine_settle(a->engine, err) : status;
}

// ---- pieces

static float *values_at(const tr_tensor_access *a, int64_t element) {
    return (float *)(void *)a->values + (element - a->first);
}

// Elements of a piece that follow each other in the tensor, and that the call asks for.
typedef struct stretch {
    int64_t local, count; // in the piece's parameter
    int64_t element;      // in the tensor
} stretch;

// The next one from element `*at` of the piece on; false: there is none.
static bool next_stretch(const tr_tensor_access *a, const tr_stride *lies,
                         const tr_piece *piece, int64_t *at, stretch *out) {
    while (*at < piece->count) {
        int64_t count = piece->count - *at;
        int64_t first = tr__stride_at(lies, piece->first + *at, &count);
        int64_t begin = tr__max_i64(first, a->first);
        int64_t end = tr__min_i64(first + count, a->first + a->count);
        int64_t local = piece->first + *at + begin - first;
        *at += count;
        if (begin < end) {
            *out = (stretch){local, end - begin, begin};
            return true;
        }
    }
    return false;
}

// What makes sums the gradients of the mean loss.
static double scale_of(const tr_engine *engine) {
    bool fixed = engine->plan->request.sums == TR_I64;
    return fixed ? ldexp(engine->unscale, -engine->summed_exponent) : engine->unscale;
}

// Of a piece, elements [local, local + count) of its parameter.
static tr_piece part_of(tr_piece piece, const stretch *s) {
    piece.data = piece.data ? piece.data + (s->local - piece.first) : NULL;
    piece.first = s->local;
    piece.count = s->count;
    return piece;
}

static tr_status move_sums(const tr_tensor_access *a, const tr_piece *part,
                           float *values, tr_error *err) {
    tr_executor *executor = a->engine->executor;
    double scale = scale_of(a->engine);
    return a->writes ? tr__executor_write_sums(executor, part, scale, values, err)
                     : tr__executor_read_sums(executor, part, scale, values, err);
}

static tr_status move_runs(const tr_tensor_access *a, const tr_piece *part,
                           float *values, tr_error *err) {
    tr_executor *executor = a->engine->executor;
    tr_status status = TR_OK;
    tr_piece run;
    for (int64_t at = 0; at < part->count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(executor, part, at, &run, err);
        if (status != TR_OK) {
            return status;
        }
        size_t bytes = (size_t)run.count * sizeof *run.data;
        if (!a->writes) {
            memcpy(values + at, run.data, bytes);
            continue;
        }
        memcpy(run.data, values + at, bytes);
        status = tr__executor_return(executor, &run, err);
    }
    return status;
}

// What this rank has of a parameter; *piece: what it alone reads of it.
static tr_status move_param(const tr_tensor_access *a, int param, tr_piece *piece,
                            tr_error *err) {
    tr_executor *executor = a->engine->executor;
    const tr_stride *lies = &a->engine->plan->params[param].lies;
    bool sums = a->part == PART_GRADIENT;
    tr_status status = TR_OK;
    stretch s;
    *piece = sums        ? tr__executor_own_sums(executor, param)
             : a->writes ? tr__executor_held(executor, param, a->part)
                         : tr__executor_own(executor, param, a->part);
    for (int64_t at = 0; status == TR_OK && next_stretch(a, lies, piece, &at, &s);) {
        tr_piece part = part_of(*piece, &s);
        float *values = values_at(a, s.element);
        status =
            sums ? move_sums(a, &part, values, err) : move_runs(a, &part, values, err);
    }
    return status == TR_OK && a->writes && a->part == PART_VALUES
               ? tr__executor_round_param(executor, param, err)
               : status;
}

// A piece of a parameter, as one rank tells the others of it.
typedef struct told_piece {
    int64_t first, count;
    tr_stride lies;
} told_piece;

// What each rank has read goes to all others.
static tr_status share(const tr_tensor_access *a, const told_piece *own,
                       tr_error *err) {
    tr_comm *comm = a->engine->comm;
    tr_status status = TR_OK;
    for (int r = 0; comm && r < tr_comm_ranks(comm) && status == TR_OK; r++) {
        told_piece told = *own;
        stretch s;
        status = tr__comm_broadcast(comm, r, &told, sizeof told, err);
        const tr_piece piece = {.first = told.first, .count = told.count};
        for (int64_t at = 0;
             status == TR_OK && next_stretch(a, &told.lies, &piece, &at, &s);) {
            status = tr__comm_broadcast(comm, r, values_at(a, s.element),
                                        (size_t)s.count * sizeof(float), err);
        }
    }
    return status;
}

static tr_status move_params(const tr_tensor_access *a, tr_error *err) {
    const tr_plan *plan = a->engine->plan;
    tr_error mine = {0};
    tr_status moved = TR_OK, status = TR_OK;
    for (size_t i = 0; i < plan->param_count && status == TR_OK; i++) {
        if (strcmp(plan->params[i].stored, a->name) != 0) {
            continue;
        }
        tr_piece piece = {0};
        moved = moved == TR_OK ? move_param(a, (int)i, &piece, &mine) : moved;
        const told_piece own = {piece.first, piece.count, plan->params[i].lies};
        status = a->writes ? TR_OK : share(a, &own, err);
    }
    return status == TR_OK ? tr__agree(a->engine->comm, moved, &mine, err) : status;
}

// The model's own states are the same on all ranks.
static void move_state(const tr_tensor_access *a) {
    const tr_plan_state *state = &a->engine->plan->states[a->state];
    size_t element = tr_dtype_bytes(state->desc.dtype);
    char *here = tr__executor_state(a->engine->executor, a->state);
    here += (size_t)a->first * element;
    memcpy(a->writes ? here : a->values, a->writes ? a->values : here,
           (size_t)a->count * element);
}

static tr_status access_tensor(tr_tensor_access *a, const char *part, tr_error *err) {
    tr_status status = begin(a, part, err);
    if (status != TR_OK) {
        return status;
    }
    if (a->state >= 0) {
        move_state(a);
        return TR_OK;
    }
    if (a->writes && a->part == PART_VALUES) {
        a->engine->stale_params = true; // other ranks' copies
    }
    return move_params(a, err);
}

static tr_status access_in_turn(tr_tensor_access *a, const char *part,
                                const char *function, tr_error *err) {
    tr_engine *engine = a->engine;
    tr_status status = tr__need(engine, function, "engine", err);
    status = status == TR_OK ? tr__need(a->name, function, "name", err) : status;
    status = status == TR_OK ? tr__need(part, function, "part", err) : status;
    if (status == TR_OK) {
        status = tr__engine_enter(engine, a->values, function, "values", err);
    }
    if (status == TR_OK) {
        status = access_tensor(a, part, err);
        tr__engine_leave(engine, status, err);
    }
    return status;
}

tr_status tr_engine_read(tr_engine *engine, const char *name, const char *part,
                         int64_t first, int64_t count, void *values, tr_error *err) {
    tr_tensor_access a = {.engine = engine,
                          .name = name,
                          .state = -1,
                          .first = first,
                          .count = count,
                          .values = values};
    return access_in_turn(&a, part, "tr_engine_read", err);
}

tr_status tr_engine_write(tr_engine *engine, const char *name, const char *part,
                          int64_t first, int64_t count, const void *values,
                          tr_error *err) {
    tr_tensor_access a = {.engine = engine,
                          .name = name,
                          .state = -1,
                          .first = first,
                          .count = count,
                          .values = (char *)(uintptr_t)values,
                          .writes = true};
    return access_in_turn(&a, part, "tr_engine_write", err);
}
