// The sums of gradients as the host sees them between two steps: what this rank has of
// a parameter's, read and written.
#include "exec/store/gradients.h"

#include "base/checked.h"
#include "exec/store/pieces.h"
#include "plan/flow/residency.h"

#include <math.h>
#include <string.h>

// Elements [element, element + count) of a flat buffer's sums.
typedef struct tr_sums_run {
    const tr_executor *ex;
    const tr_flat *flat;
    int64_t element, count;
    double scale; // a value is its sum, multiplied with this
    float *values;
    bool writes; // values to sums
} tr_sums_run;

tr_piece tr__executor_own_sums(const tr_executor *executor, int param) {
    const tr_plan *plan = executor->plan;
    const tr_plan_param *info = &plan->params[param];
    const tr_flat *flat = &plan->flats[info->flat];
    const tr_flat_range *grad = &flat->grad;
    if (flat->frozen || grad->buffer < 0 ||
        !tr__owns(&flat->axes, &plan->request.mesh)) {
        return (tr_piece){.data = NULL};
    }
    int64_t begin = tr__max_i64(info->offset, tr__max_i64(flat->first, grad->first));
    int64_t end =
        tr__min_i64(info->offset + info->count,
                    tr__min_i64(flat->first + flat->own, grad->first + grad->count));
    return (tr_piece){.first = begin - info->offset,
                      .count = tr__max_i64(end - begin, 0),
                      .param = param,
                      .state = -1};
}

bool tr__executor_has_sums(const tr_executor *executor, int param) {
    const tr_plan *plan = executor->plan;
    return plan->flats[plan->params[param].flat].grad.buffer >= 0;
}

// ---- between a type of sums and f32

static void read_fixed(const int64_t *sums, int64_t count, double scale,
                       float *values) {
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)((double)sums[i] * scale);
    }
}

static void write_fixed(int64_t *sums, int64_t count, double scale,
                        const float *values) {
    for (int64_t i = 0; i < count; i++) {
        sums[i] = llround(values[i] / scale);
    }
}

static void scale_all(float *values, int64_t count, double scale) {
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)(values[i] * scale);
    }
}

static void read_sums(const tr_sums_run *run, const void *sums, int64_t count,
                      float *values) {
    tr_dtype type = run->ex->plan->request.sums;
    if (type == TR_I64) {
        read_fixed(sums, count, run->scale, values);
        return;
    }
    if (type == TR_F32) {
        memcpy(values, sums, (size_t)count * sizeof *values);
    } else {
        tr__convert(run->ex, type, sums, count, TR_F32, values);
    }
    scale_all(values, count, run->scale);
}

static void write_sums(const tr_sums_run *run, void *sums, int64_t count,
                       const float *values) {
    enum { MANY = 1024 };
    tr_dtype type = run->ex->plan->request.sums;
    int64_t element = tr__sum_bytes(run->ex->plan);
    if (type == TR_I64) {
        write_fixed(sums, count, run->scale, values);
        return;
    }
    for (int64_t at = 0; at < count; at += MANY) {
        float scaled[MANY];
        int64_t part = tr__min_i64(MANY, count - at);
        void *to = (char *)sums + at * element;
        memcpy(scaled, values + at, (size_t)part * sizeof *scaled);
        scale_all(scaled, part, 1 / run->scale);
        if (type == TR_F32) {
            memcpy(to, scaled, (size_t)part * sizeof *scaled);
        } else {
            tr__convert(run->ex, TR_F32, scaled, part, type, to);
        }
    }
}

// `sums` are those of `count` elements from number `at` of the run on.
static void convert(const tr_sums_run *run, void *sums, int64_t at, int64_t count) {
    if (run->writes) {
        write_sums(run, sums, count, run->values + at);
    } else {
        read_sums(run, sums, count, run->values + at);
    }
}

// ---- where the sums are

// Elements that the exchange holds, in the type of the sums.
static int64_t exchange_sums(const tr_plan *plan) {
    return plan->buffers[plan->exchange].bytes / tr__sum_bytes(plan);
}

static tr_status move_on_device(const tr_sums_run *run, tr_error *err) {
    const tr_executor *ex = run->ex;
    char *device = tr__kept_sum(ex, &run->flat->grad, run->element);
    int64_t element = tr__sum_bytes(ex->plan), most = exchange_sums(ex->plan);
    void *here = tr__memory(ex, ex->plan->exchange);
    tr_status status = TR_OK;
    for (int64_t at = 0; at < run->count && status == TR_OK; at += most) {
        int64_t count = tr__min_i64(most, run->count - at);
        char *there = device + at * element;
        if (!run->writes) {
            status = tr__device_copy(ex, there, here, count * element, err);
        }
        if (status == TR_OK) {
            convert(run, here, at, count);
        }
        if (status == TR_OK && run->writes) {
            status = tr__device_copy(ex, here, there, count * element, err);
        }
    }
    return status;
}

// Whole blocks; what lies around the run in the first and the last stays as it is.
static tr_status move_in_file(const tr_sums_run *run, tr_error *err) {
    const tr_executor *ex = run->ex;
    const tr_flat_range *grad = &run->flat->grad;
    int64_t block = tr__nvme_elements(ex->plan, run->flat, TR_PART_GRAD);
    int64_t most = exchange_sums(ex->plan) / block * block;
    char *here = tr__memory(ex, ex->plan->exchange);
    tr_status status = TR_OK;
    for (int64_t at = 0, count = 0; at < run->count && status == TR_OK; at += count) {
        int64_t element = run->element + at;
        int64_t into = (element - grad->first) % block;
        tr_blocks b = {
            .flat = run->flat, .part = TR_PART_GRAD, .first = element - into};
        b.count = tr__min_i64(tr__round_up(into + run->count - at, block),
                              tr__min_i64(most, grad->first + grad->count - b.first));
        count = tr__min_i64(run->count - at, b.count - into);
        status = tr__move_blocks(ex, &b, here, TR_TO_HOST, err);
        if (status == TR_OK) {
            convert(run, here + into * tr__sum_bytes(ex->plan), at, count);
        }
        if (status == TR_OK && run->writes) {
            status = tr__move_blocks(ex, &b, here, TR_FROM_HOST, err);
        }
    }
    return status;
}

static tr_status move(tr_executor *executor, const tr_piece *piece, double scale,
                      float *values, bool writes, tr_error *err) {
    const tr_plan *plan = executor->plan;
    const tr_plan_param *info = &plan->params[piece->param];
    const tr_flat *flat = &plan->flats[info->flat];
    tr_sums_run run = {.ex = executor,
                       .flat = flat,
                       .element = info->offset + piece->first,
                       .count = piece->count,
                       .scale = scale,
                       .values = values,
                       .writes = writes};
    if (piece->count == 0) {
        return TR_OK;
    }
    if (tr__is_on_nvme(plan, &flat->grad)) {
        return move_in_file(&run, err);
    }
    if (tr__is_on_device(executor, &flat->grad)) {
        return move_on_device(&run, err);
    }
    convert(&run, tr__kept_sum(executor, &flat->grad, run.element), 0, run.count);
    return TR_OK;
}

tr_status tr__executor_read_sums(tr_executor *executor, const tr_piece *piece,
                                 double scale, float *values, tr_error *err) {
    return move(executor, piece, scale, values, false, err);
}

tr_status tr__executor_write_sums(tr_executor *executor, const tr_piece *piece,
                                  double scale, const float *values, tr_error *err) {
    return move(executor, piece, scale, (float *)(uintptr_t)values, true, err);
}
