// An adapter added to its base: a Hugging Face folder without one.
#include "base/arguments.h"
#include "base/files.h"
#include "base/half.h"
#include "base/memory.h"
#include "files/checkpoint/companions.h"
#include "files/safetensors/adapter.h"
#include "files/safetensors/tensor_set.h"
#include "files/safetensors/tensor_writer.h"
#include "infer/trained_base.h"
#include "models/adapter.h"
#include "models/folder.h"
#include "models/models.h"
#include "models/task.h"
#include "plan/flow/plan.h"
#include "train/state/magnitudes.h"

#include <tranche/checkpoint.h>

#include <jansson.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256, CONFIG_MAX = 1 << 20 };
static const char own_name[] = "tr_adapter_merge";

typedef struct merge {
    char folder[PATH_MAX], base[PATH_MAX];
    bool own_base; // that the adapter names
    const char *out;
    tr_model *model; // the base's
    tr_adapter_config *adapter;
    bool in_out; // weights are [in, out] in files
    tr_tensor_set *set;
    tr_tensor_spec *specs;         // [count]
    const tr_stored_tensor **from; // [count] the tensors that are written
    size_t count;
    tr_tensor_writer *writer;
    tr_plan *plan; // says which weights were in few bits; NULL: none
    float *weight; // the whole weight that is written, as it was trained on; or NULL
} merge;

// What one layer has, as files have it.
typedef struct factors {
    float *a, *b; // [rank, in], [out, rank]; NULL: the layer has no adapter
    float *m;     // [out] magnitudes (DoRA); NULL: it has none
    double *by;   // [out] what they multiply the sum of weight and products with
    int64_t rank, in, out;
} factors;

// ---- what is read

static tr_status open_all(merge *m, const char *path, const char *base, tr_error *err) {
    tr_status status = tr_checkpoint_locate(path, m->folder, sizeof m->folder, err);
    if (status == TR_OK && !tr__is_adapter_folder(m->folder)) {
        return tr_fail(err, TR_USAGE, "%s: holds no adapter (" TR_ADAPTER_CONFIG ")",
                       m->folder);
    }
    if (status == TR_OK) {
        m->own_base = base == NULL;
        status = base ? tr_checkpoint_locate(base, m->base, sizeof m->base, err)
                      : tr__adapter_base(m->folder, m->base, err);
    }
    if (status == TR_OK) {
        status = tr__model_from_folder(m->base, NULL, &m->model, err);
    }
    if (status == TR_OK) {
        status = tr__adapter_from_folder(m->folder, m->model->type, &m->adapter, err);
    }
    if (status == TR_OK) {
        m->in_out = tr__weights_are_in_out(m->model->type);
        status = tr__tensor_set_open_over(m->base, m->folder, &m->set, err);
    }
    return status;
}

static tr_status list_tensors(merge *m, tr_error *err) {
    size_t all = tr__tensor_set_count(m->set);
    m->specs = tr__calloc(all, sizeof *m->specs);
    m->from = tr__calloc(all, sizeof *m->from);
    if (!m->specs || !m->from) {
        return tr_fail(err, TR_MEMORY, "no memory for the list of tensors");
    }
    for (size_t i = 0; i < all; i++) {
        const tr_stored_tensor *tensor = tr__tensor_set_at(m->set, i);
        if (tr__is_adapter_tensor(tensor->name)) {
            continue;
        }
        if (tensor->rank > TR_RANK_MAX) {
            return tr_fail(err, TR_IO, "%s: tensor %s has %d dimensions, more than %d",
                           m->base, tensor->name, tensor->rank, TR_RANK_MAX);
        }
        tr_tensor_spec *spec = &m->specs[m->count];
        *spec = (tr_tensor_spec){tensor->name, tensor->dtype, {.rank = tensor->rank}};
        memcpy(spec->shape.dim, tensor->dim, (size_t)tensor->rank * sizeof(int64_t));
        m->from[m->count++] = tensor;
    }
    return TR_OK;
}

// ---- weights that were in few bits

static tr_status find_quantized(merge *m, tr_error *err) {
    tr_plan_request request = {.model = m->model,
                               .train_batch_size = 1,
                               .micro_batch = 1,
                               .accumulation_steps = 1,
                               .mesh = tr_mesh_of_data(1, 0),
                               .inference = true};
    tr__model_adapt(m->model, m->adapter);
    m->adapter = NULL; // the model's
    if (!m->own_base) {
        return TR_OK; // the caller says what is added to
    }
    tr__ask_for_trained_base(m->folder, m->model, &request);
    return request.quantization ? tr_plan_make(&request, &m->plan, err) : TR_OK;
}

static const tr_plan_param *quantized_param(const merge *m, const char *name) {
    for (size_t i = 0; m->plan && i < m->plan->param_count; i++) {
        const tr_plan_param *param = &m->plan->params[i];
        if (param->quantized && strcmp(param->stored, name) == 0) {
            return param;
        }
    }
    return NULL;
}

// ---- one layer

static void free_factors(factors *f) {
    tr__free(f->a);
    tr__free(f->b);
    tr__free(f->m);
    tr__free(f->by);
    *f = (factors){0};
}

static tr_status read_whole(const merge *m, const tr_stored_tensor *tensor, float **out,
                            tr_error *err) {
    *out = tr__calloc((size_t)tensor->count, sizeof **out);
    return *out ? tr__tensor_read_f32(m->set, tensor, 0, tensor->count, *out, err)
                : tr_fail(err, TR_MEMORY, "no memory for tensor %s", tensor->name);
}

// The adapter of the layer with this weight, if it has one.
static tr_status read_factors(const merge *m, const tr_stored_tensor *weight,
                              factors *out, tr_error *err) {
    static const char tail[] = "weight";
    char a_name[NAME_BYTES], b_name[NAME_BYTES], m_name[NAME_BYTES];
    bool magnitudes = m->model->adapter->magnitudes;
    size_t length = strlen(weight->name), end = sizeof tail - 1;
    *out = (factors){0};
    if (length < end || strcmp(weight->name + length - end, tail) != 0) {
        return TR_OK;
    }
    int stem = (int)(length - end);
    snprintf(a_name, sizeof a_name, "%.*s" TR_LORA_A, stem, weight->name);
    snprintf(b_name, sizeof b_name, "%.*s" TR_LORA_B, stem, weight->name);
    snprintf(m_name, sizeof m_name, "%.*s" TR_DORA_M, stem, weight->name);
    const tr_stored_tensor *a = tr__tensor_set_find_prefixed(m->set, a_name);
    const tr_stored_tensor *b = tr__tensor_set_find_prefixed(m->set, b_name);
    const tr_stored_tensor *by = tr__tensor_set_find_prefixed(m->set, m_name);
    if (!a && !b) {
        return TR_OK;
    }
    const int64_t *dim = weight->dim;
    if (!a || !b || weight->rank != 2 || a->rank != 2 || b->rank != 2 ||
        a->dim[1] != dim[!m->in_out] || b->dim[0] != dim[m->in_out] ||
        b->dim[1] != a->dim[0]) {
        return tr_fail(err, TR_IO,
                       "%s: %s and %s are not the two products of an adapter of %s",
                       m->folder, a_name, b_name, weight->name);
    }
    if (magnitudes && (!by || by->rank != 1 || by->dim[0] != b->dim[0])) {
        return tr_fail(err, TR_IO, "%s: %s is not the magnitudes of an adapter of %s",
                       m->folder, m_name, weight->name);
    }
    out->rank = a->dim[0];
    out->in = a->dim[1];
    out->out = b->dim[0];
    tr_status status = read_whole(m, a, &out->a, err);
    status = status == TR_OK ? read_whole(m, b, &out->b, err) : status;
    return status == TR_OK && magnitudes ? read_whole(m, by, &out->m, err) : status;
}

// values: [columns], a row of the weight. Sums in double.
static void add_row(const merge *m, const factors *f, int64_t row, int64_t columns,
                    float *values) {
    double scale = (double)tr__adapter_scale(tr__model_adapter(m->model));
    for (int64_t c = 0; c < columns; c++) {
        int64_t out = m->in_out ? c : row, in = m->in_out ? row : c;
        double sum = 0;
        for (int64_t k = 0; k < f->rank; k++) {
            sum += (double)f->b[out * f->rank + k] * (double)f->a[k * f->in + in];
        }
        double by = f->by ? f->by[out] : 1;
        values[c] = (float)(((double)values[c] + scale * sum) * by);
    }
}

// ---- what is written

// values: [count]; raw: room for as many of the type.
static const void *rounded(tr_dtype dtype, const float *values, int64_t count,
                           uint16_t *raw) {
    for (int64_t i = 0; dtype != TR_F32 && i < count; i++) {
        raw[i] = tr__half_of_f32(dtype, values[i]);
    }
    return dtype == TR_F32 ? (const void *)values : raw;
}

static tr_status read_row(const merge *m, const tr_stored_tensor *weight, int64_t first,
                          int64_t columns, float *values, tr_error *err) {
    if (m->weight) {
        memcpy(values, m->weight + first, (size_t)columns * sizeof *values);
        return TR_OK;
    }
    return tr__tensor_read_f32(m->set, weight, first, columns, values, err);
}

// What magnitudes multiply with: each over the length of its row, once the products
// have been added to it.
static tr_status find_lengths(const merge *m, const tr_stored_tensor *weight,
                              factors *f, tr_error *err) {
    int64_t columns = weight->dim[1];
    double *lengths = tr__calloc((size_t)f->out, sizeof *lengths);
    float *values = tr__calloc((size_t)columns, sizeof *values);
    tr_status status =
        lengths && values
            ? TR_OK
            : tr_fail(err, TR_MEMORY, "no memory for tensor %s", weight->name);
    for (int64_t r = 0; r < weight->dim[0] && status == TR_OK; r++) {
        status = read_row(m, weight, r * columns, columns, values, err);
        if (status == TR_OK) {
            add_row(m, f, r, columns, values);
            tr__add_squares(values, 1, columns, m->in_out,
                            m->in_out ? lengths : lengths + r);
        }
    }
    for (int64_t o = 0; o < f->out && status == TR_OK; o++) {
        lengths[o] = lengths[o] > 0 ? (double)f->m[o] / sqrt(lengths[o]) : 0;
    }
    tr__free(values);
    f->by = lengths;
    return status;
}

// f: without factors nothing is added.
static tr_status write_merged(merge *m, size_t index, const factors *f, tr_error *err) {
    const tr_stored_tensor *weight = m->from[index];
    int64_t columns = weight->dim[1];
    if (weight->dtype != TR_F32 && !tr__dtype_is_half(weight->dtype)) {
        return tr_fail(err, TR_IO,
                       "%s: tensor %s is of a type that nothing is added to", m->base,
                       weight->name);
    }
    float *values = tr__calloc((size_t)columns, sizeof *values);
    uint16_t *raw = tr__calloc((size_t)columns, sizeof *raw);
    tr_status status = values && raw ? TR_OK
                                     : tr_fail(err, TR_MEMORY,
                                               "no memory for tensor %s", weight->name);
    for (int64_t r = 0; r < weight->dim[0] && status == TR_OK; r++) {
        status = read_row(m, weight, r * columns, columns, values, err);
        if (status == TR_OK && f->a) {
            add_row(m, f, r, columns, values);
        }
        if (status == TR_OK) {
            status = tr__tensor_writer_put(m->writer, index, r * columns, columns,
                                           rounded(weight->dtype, values, columns, raw),
                                           err);
        }
    }
    tr__free(values);
    tr__free(raw);
    return status;
}

static tr_status copy(merge *m, size_t index, tr_error *err) {
    enum { PIECE = 1 << 16 };
    const tr_stored_tensor *tensor = m->from[index];
    size_t element = tr_dtype_bytes(tensor->dtype);
    char *raw = tr__calloc(PIECE, element);
    tr_status status = raw ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to copy");
    for (int64_t at = 0; at < tensor->count && status == TR_OK; at += PIECE) {
        int64_t count = tensor->count - at < PIECE ? tensor->count - at : PIECE;
        status = tr__tensor_read(m->set, tensor, at, count, raw, err);
        if (status == TR_OK) {
            status = tr__tensor_writer_put(m->writer, index, at, count, raw, err);
        }
    }
    tr__free(raw);
    return status;
}

static tr_status write_tensor(merge *m, size_t index, tr_error *err) {
    const tr_plan_param *param = quantized_param(m, m->from[index]->name);
    factors f;
    tr_status status = read_factors(m, m->from[index], &f, err);
    // Values that are stored in these bits are what was trained on.
    if (status == TR_OK && param &&
        tr__tensor_quantization(m->set, m->from[index]) != param->quantized) {
        status = tr__read_as_kept(m->set, m->from[index], param, &m->weight, err);
    }
    if (status == TR_OK && f.m) {
        status = find_lengths(m, m->from[index], &f, err);
    }
    if (status == TR_OK) {
        status =
            f.a || m->weight ? write_merged(m, index, &f, err) : copy(m, index, err);
    }
    tr__free(m->weight);
    m->weight = NULL;
    free_factors(&f);
    return status;
}

static tr_status write_tensors(merge *m, tr_error *err) {
    char path[PATH_MAX];
    int64_t bytes = 0;
    uint64_t hash = 0;
    tr_status status =
        tr__path_join(path, sizeof path, m->out, tr__files_name(TR_FILES_MODEL), err);
    if (status == TR_OK) {
        status = tr__tensor_writer_create(path, m->specs, m->count, &m->writer, err);
    }
    for (size_t i = 0; i < m->count && status == TR_OK; i++) {
        size_t index = tr__tensor_writer_order(m->writer, i);
        status = write_tensor(m, index, err);
    }
    return status == TR_OK ? tr__tensor_writer_finish(m->writer, &bytes, &hash, err)
                           : status;
}

// What is written is in no few bits, whatever the base was: *text says so then, too.
static tr_status plain_config(const char *path, char **text, size_t *bytes,
                              tr_error *err) {
    static const char key[] = "quantization_config";
    json_t *config = json_loadb(*text, *bytes, 0, NULL);
    if (json_object_get(config, key)) {
        json_object_del(config, key);
        tr__free(*text);
        char *plain = json_dumps(config, JSON_INDENT(2));
        *text = plain ? tr__strdup(plain) : NULL;
        free(plain);
        *bytes = *text ? strlen(*text) : 0;
    }
    json_decref(config);
    return *text ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for %s", path);
}

// Has the adapter a head that gives labels, of which its checkpoint's config.json says
// the names?
static bool has_labels(const char *folder) {
    char path[PATH_MAX];
    json_t *keys =
        tr__path_join(path, sizeof path, folder, "config.json", NULL) == TR_OK
            ? json_load_file(path, 0, NULL)
            : NULL;
    bool has = keys && tr__class_task(keys, false) == TR_TASK_CLASSIFICATION;
    json_decref(keys);
    return has;
}

// Last of all: a folder without it is no model.
static tr_status write_config(const merge *m, tr_error *err) {
    char from[PATH_MAX], to[PATH_MAX];
    const char *of = has_labels(m->folder) ? m->folder : m->base;
    char *text = NULL;
    size_t bytes = 0;
    tr_status status = tr__path_join(from, sizeof from, of, "config.json", err);
    if (status == TR_OK) {
        status = tr__path_join(to, sizeof to, m->out, "config.json", err);
    }
    if (status == TR_OK) {
        status = tr__file_read(from, CONFIG_MAX, &text, &bytes, err);
    }
    status = status == TR_OK ? plain_config(from, &text, &bytes, err) : status;
    status = status == TR_OK ? tr__file_replace(to, text, bytes, err) : status;
    tr__free(text);
    return status;
}

static tr_status copy_companions(const merge *m, tr_error *err) {
    tr_companions companions = {0};
    tr_status status = tr__companions_open(NULL, m->base, &companions, err);
    for (int i = 0; i < companions.count && status == TR_OK; i++) {
        tr_file_record record;
        status = tr__companion_copy(&companions, i, m->out, &record, err);
    }
    tr__companions_close(&companions);
    return status;
}

tr_status tr_adapter_merge(const char *path, const char *base, const char *out,
                           tr_error *err) {
    merge m = {.out = out};
    tr_status status = tr__need(path, own_name, "path", err);
    status = status == TR_OK ? tr__need(out, own_name, "out", err) : status;
    status = status == TR_OK ? tr__folder_check_empty(out, err) : status;
    status = status == TR_OK ? open_all(&m, path, base, err) : status;
    status = status == TR_OK ? list_tensors(&m, err) : status;
    status = status == TR_OK ? find_quantized(&m, err) : status;
    status = status == TR_OK ? tr__folder_create(out, err) : status;
    status = status == TR_OK ? write_tensors(&m, err) : status;
    status = status == TR_OK ? copy_companions(&m, err) : status;
    status = status == TR_OK ? write_config(&m, err) : status;
    tr__tensor_writer_destroy(m.writer);
    tr_plan_destroy(m.plan);
    tr__free(m.specs);
    tr__free(m.from);
    tr__tensor_set_close(m.set);
    tr__adapter_destroy(m.adapter);
    tr_model_destroy(m.model);
    return status;
}
