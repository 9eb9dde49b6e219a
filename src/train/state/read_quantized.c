#include "train/state/read_quantized.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/quantized.h"

#include <string.h>

enum { RUN = 1 << 14 }; // elements, whole blocks

// Elements of the stored tensor, as the files have them: the rank's part, or all.
typedef struct view {
    tr_shape shape;
    tr_stride lies;
} view;

typedef struct source {
    const tr_tensor_set *set;
    const tr_stored_tensor *stored;
    const tr_plan_param *info;
    view of;
    float *exchanged; // all of these with rows and columns exchanged; NULL: as they are
    float run[RUN];
    unsigned char codes[RUN];
} source;

static view all_of(const tr_plan_param *info) {
    return (view){.shape = info->stored_shape};
}

static view part_of(const tr_plan_param *info) {
    return (view){info->plain, info->lies};
}

// Is it stored in the bits that its values are to be of?
static bool is_as_stored(const source *s) {
    return tr__tensor_quantization(s->set, s->stored) == s->info->quantized;
}

// ---- elements

static tr_status read_elements(const source *s, int64_t first, int64_t count, float *to,
                               tr_error *err) {
    tr_status status = TR_OK;
    int64_t now = 0;
    for (int64_t at = 0; at < count && status == TR_OK; at += now) {
        now = count - at;
        int64_t place = tr__stride_at(&s->of.lies, first + at, &now);
        status = tr__tensor_read_f32(s->set, s->stored, place, now, to + at, err);
    }
    return status;
}

static tr_status exchange(source *s, tr_error *err) {
    int64_t rows = s->of.shape.dim[0], columns = s->of.shape.dim[1];
    float *whole = tr__calloc((size_t)(rows * columns), sizeof *whole);
    s->exchanged = tr__calloc((size_t)(rows * columns), sizeof *whole);
    tr_status status =
        whole && s->exchanged
            ? read_elements(s, 0, rows * columns, whole, err)
            : tr_fail(err, TR_MEMORY, "no memory to read %s", s->stored->name);
    if (status == TR_OK) {
        tr__exchange_sides(whole, rows, columns, s->exchanged);
    }
    tr__free(whole);
    return status;
}

static tr_status look_at(source *s, view of, tr_error *err) {
    tr__free(s->exchanged);
    s->exchanged = NULL;
    s->of = of;
    return s->info->transposed && !is_as_stored(s) ? exchange(s, err) : TR_OK;
}

// At most RUN of them, to s->run or where they are.
static tr_status elements(source *s, int64_t first, int64_t count, const float **x,
                          tr_error *err) {
    *x = s->exchanged ? s->exchanged + first : s->run;
    return s->exchanged ? TR_OK : read_elements(s, first, count, s->run, err);
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

// ---- what blocks are multiplied by

// Which blocks of the whole the part has. They lie in the order of the tensor with its
// rows and columns exchanged, where it is kept so.
static tr_stride blocks_of(const tr_plan_param *info) {
    tr_stride lies = info->lies;
    int64_t rows = info->stored_shape.dim[0], columns = info->stored_shape.dim[1];
    bool some_rows = info->plain.dim[1] == columns;
    if (info->transposed) {
        int64_t by = some_rows ? 1 : rows, over = some_rows ? columns : 1;
        lies = tr__stride_scaled(&lies, by, over);
    }
    return tr__stride_of_blocks(&lies, tr__quantized_block(info->quantized));
}

// Of a tensor that is stored in these bits, those blocks' to where the whole has them.
static tr_status read_behind(const source *s, const tr_stride *blocks, int64_t count,
                             tr_quantizer *whole, tr_error *err) {
    int64_t each = whole->kind == TR_QUANTIZED_NF4 ? (int64_t)sizeof(float) : 1;
    int64_t nested = whole->at.bytes - whole->at.nested, now = 0;
    tr_status status = TR_OK;
    for (int64_t b = 0; b < count && status == TR_OK; b += now) {
        now = count - b;
        int64_t at = tr__stride_at(blocks, b, &now) * each;
        status = tr__tensor_read_bits(s->set, s->stored, whole->at.scales + at,
                                      now * each, whole->behind + at, err);
    }
    return status == TR_OK && nested > 0
               ? tr__tensor_read_bits(
                     s->set, s->stored, whole->at.nested, nested,
                     whole->behind + (whole->at.nested - whole->at.scales), err)
               : status;
}

// From what the whole has: of double quantization that follows from all of its blocks.
static tr_status take_scales(source *s, tr_quantizer *q, tr_error *err) {
    const tr_stride blocks = blocks_of(s->info);
    tr_quantizer whole;
    tr_status status =
        tr__quantizer_begin(&whole, s->info->quantized, s->stored->count, err);
    if (status == TR_OK && is_as_stored(s)) {
        status = read_behind(s, &blocks, q->at.blocks, &whole, err);
    } else if (status == TR_OK) {
        status = look_at(s, all_of(s->info), err);
        status = status == TR_OK ? see_all(s, &whole, err) : status;
    }
    if (status == TR_OK) {
        tr__quantizer_take(q, &whole, &blocks);
    }
    tr__quantizer_end(&whole);
    return status == TR_OK ? look_at(s, part_of(s->info), err) : status;
}

static tr_status find_scales(source *s, tr_quantizer *q, tr_error *err) {
    if (is_as_stored(s) || q->kind != s->info->quantized) {
        return take_scales(s, q, err);
    }
    tr_status status = look_at(s, part_of(s->info), err);
    return status == TR_OK ? see_all(s, q, err) : status;
}

// ---- bytes

// The codes of a run as they are stored.
static tr_status read_codes(const source *s, int64_t first, int64_t count,
                            unsigned char *to, tr_error *err) {
    tr_status status = TR_OK;
    int64_t now = 0;
    for (int64_t at = 0; at < count && status == TR_OK; at += now) {
        now = count - at;
        int64_t place = tr__stride_at(&s->of.lies, first + at, &now);
        status = tr__tensor_read_bits(s->set, s->stored, place / 2, (now + 1) / 2,
                                      to + at / 2, err);
    }
    return status;
}

static tr_status make_codes(source *s, const tr_quantizer *q, int64_t first,
                            int64_t count, unsigned char *to, tr_error *err) {
    const float *x;
    if (is_as_stored(s)) {
        return read_codes(s, first, count, to, err);
    }
    tr_status status = elements(s, first, count, &x, err);
    if (status == TR_OK) {
        tr__quantizer_codes(q, first, count, x, to);
    }
    return status;
}

// Bytes [from, end) of the codes.
static tr_status write_codes(source *s, const tr_quantizer *q, int64_t from,
                             int64_t end, unsigned char *to, tr_error *err) {
    int64_t whole = tr__code_bytes(q->kind, RUN), made = 0;
    tr_status status = TR_OK;
    for (int64_t at = from; at < end && status == TR_OK; at += made) {
        int64_t run = at / whole, first = run * RUN;
        int64_t count = tr__min_i64(RUN, q->count - first);
        made = tr__min_i64(end, (run + 1) * whole) - at;
        memset(s->codes, 0, sizeof s->codes); // behind the last code, too
        status = count > 0 ? make_codes(s, q, first, count, s->codes, err) : TR_OK;
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

static tr_status fill(source *s, const tr_quantizer *q, const tr_plan *plan, int param,
                      tr_executor *executor, tr_error *err) {
    tr_piece piece = tr__executor_held(executor, param, -1), run;
    int64_t element = tr__param_bytes(plan);
    tr_status status = TR_OK;
    for (int64_t at = 0; at < piece.count && status == TR_OK; at += run.count) {
        status = tr__executor_borrow(executor, &piece, at, &run, err);
        if (status == TR_OK) {
            status = write_bytes(s, q, run.first * element, run.count * element,
                                 (void *)run.data, err);
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
    s->info = info;
    tr_status status =
        tr__quantizer_begin(&q, info->kept, tr_shape_count(info->plain), err);
    status = status == TR_OK ? find_scales(s, &q, err) : status;
    status = status == TR_OK ? fill(s, &q, plan, param, executor, err) : status;
    tr__quantizer_end(&q);
    tr__free(s->exchanged);
    tr__free(s);
    return status;
}
