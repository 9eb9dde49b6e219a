#include "train/state/read_quantized.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/quantized.h"

#include <string.h>

enum { RUN = 1 << 14 }; // elements, whole blocks

typedef struct source {
    const tr_tensor_set *set;
    const tr_stored_tensor *stored;
    float
        *exchanged; // the whole tensor with rows and columns exchanged; NULL: as it is
    float run[RUN];
    unsigned char codes[RUN];
} source;

// ---- elements

static tr_status exchange(source *s, tr_shape shape, tr_error *err) {
    int64_t rows = shape.dim[0], columns = shape.dim[1];
    float *whole = tr__calloc((size_t)(rows * columns), sizeof *whole);
    s->exchanged = tr__calloc((size_t)(rows * columns), sizeof *whole);
    tr_status status =
        whole && s->exchanged
            ? tr__tensor_read_f32(s->set, s->stored, 0, rows * columns, whole, err)
            : tr_fail(err, TR_MEMORY, "no memory to read %s", s->stored->name);
    if (status == TR_OK) {
        tr__exchange_sides(whole, rows, columns, s->exchanged);
    }
    tr__free(whole);
    return status;
}

// At most RUN of them, to s->run or where they are.
static tr_status elements(source *s, int64_t first, int64_t count, const float **x,
                          tr_error *err) {
    *x = s->exchanged ? s->exchanged + first : s->run;
    return s->exchanged
               ? TR_OK
               : tr__tensor_read_f32(s->set, s->stored, first, count, s->run, err);
}

static tr_status see_all(source *s, tr_quantizer *q, tr_error *err) {
    tr_status status = TR_OK;
    for (int64_t at = 0; at < q->count && status == TR_OK; at += RUN) {
        int64_t count = tr__min_i64(RUN, q->count - at);
        const float *x;
        status = elements(s, at, count, &x, err);
        if (status == TR_OK) {
            tr__quantizer_see(q, at, count, x);
        }
    }
    tr__quantizer_settle(q);
    return status;
}

// ---- bytes

// Bytes [from, end) of the codes.
static tr_status write_codes(source *s, const tr_quantizer *q, int64_t from,
                             int64_t end, unsigned char *to, tr_error *err) {
    int64_t whole = tr__code_bytes(q->kind, RUN), made = 0;
    tr_status status = TR_OK;
    for (int64_t at = from; at < end && status == TR_OK; at += made) {
        int64_t run = at / whole, first = run * RUN;
        int64_t count = tr__min_i64(RUN, q->count - first);
        int64_t bytes = count > 0 ? tr__code_bytes(q->kind, count) : 0;
        made = tr__min_i64(end, (run + 1) * whole) - at;
        const float *x = NULL;
        memset(s->codes, 0, sizeof s->codes); // behind the last code, too
        status = bytes > 0 ? elements(s, first, count, &x, err) : TR_OK;
        if (status == TR_OK && bytes > 0) {
            tr__quantizer_codes(q, first, count, x, s->codes);
        }
        memcpy(to + (at - from), s->codes + (at - run * whole), (size_t)made);
    }
    return status;
}

static tr_status write_bytes(source *s, const tr_quantizer *q, int64_t first,
                             int64_t count, unsigned char *to, tr_error *err) {
    int64_t codes_end = tr__min_i64(first + count, q->at.scales);
    int64_t behind = tr__max_i64(first, q->at.scales);
    tr_status status =
        first < codes_end ? write_codes(s, q, first, codes_end, to, err) : TR_OK;
    if (behind < first + count) {
        memcpy(to + (behind - first), q->behind + (behind - q->at.scales),
               (size_t)(first + count - behind));
    }
    return status;
}

// Is it stored in these bits?
static bool is_as_stored(const source *s, const tr_plan_param *info) {
    return tr__tensor_quantization(s->set, s->stored) == info->quantized;
}

static tr_status fill(source *s, const tr_quantizer *q, const tr_plan *plan, int param,
                      tr_executor *executor, tr_error *err) {
    tr_piece piece = tr__executor_held(executor, param, -1), run;
    int64_t element = tr__param_bytes(plan);
    tr_status status = TR_OK;
    for (int64_t at = 0; at < piece.count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(executor, &piece, at, &run, err);
        if (status == TR_OK) {
            int64_t first = run.first * element, bytes = run.count * element;
            status = is_as_stored(s, &plan->params[param])
                         ? tr__tensor_read_bits(s->set, s->stored, first, bytes,
                                                run.data, err)
                         : write_bytes(s, q, first, bytes, (void *)run.data, err);
        }
        if (status == TR_OK) {
            status = tr__executor_return(executor, &run, err);
        }
    }
    return status;
}

tr_status tr__read_quantized(const tr_tensor_set *set, const tr_stored_tensor *stored,
                             const tr_plan *plan, int param, tr_executor *executor,
                             tr_error *err) {
    const tr_plan_param *info = &plan->params[param];
    source *s = tr__calloc(1, sizeof *s);
    tr_quantizer q = {.count = 0};
    if (!s) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", stored->name);
    }
    s->set = set;
    s->stored = stored;
    bool made = !is_as_stored(s, info);
    tr_status status =
        made && info->transposed ? exchange(s, info->stored_shape, err) : TR_OK;
    if (status == TR_OK && made) {
        status = tr__quantizer_begin(&q, info->quantized, stored->count, err);
    }
    status = status == TR_OK && made ? see_all(s, &q, err) : status;
    status = status == TR_OK ? fill(s, &q, plan, param, executor, err) : status;
    tr__quantizer_end(&q);
    tr__free(s->exchanged);
    tr__free(s);
    return status;
}
