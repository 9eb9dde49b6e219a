// An adapter as llama.cpp reads it beside its base's file: two matrices for each layer
// that has one, and the number by which their product is multiplied.
#include "convert/export.h"

#include "base/memory.h"
#include "files/safetensors/adapter.h"
#include "models/adapter.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

// The two matrices of one layer. What the file's have of the base's is its name and, of
// B, the order of its rows.
typedef struct factors {
    const tr_stored_tensor *a, *b; // [rank, in], [out, rank]
    tr_name_pair a_pair, b_pair;
} factors;

static void set_pair(tr_name_pair *pair, const tr_name_pair *of, const char *end,
                     const tr_stored_tensor *tensor) {
    *pair = *of;
    snprintf(pair->theirs, sizeof pair->theirs, "%.*s%s", TR_GGUF_NAME_MAX - 16,
             of->theirs, end);
    pair->rows = tensor->dim[0];
    pair->columns = tensor->dim[1];
    if (pair->order == TR_ROWS_TURNED) { // PEFT's are not
        pair->order = TR_ROWS_SAME;
    }
}

// Those of the layer with this weight; a is NULL: it has none.
static tr_status find_factors(const tr_export *e, const tr_name_pair *pair,
                              factors *out, tr_error *err) {
    static const char tail[] = "weight";
    char a_name[TR_GGUF_NAME_MAX + 32], b_name[TR_GGUF_NAME_MAX + 32];
    size_t length = strlen(pair->ours), end = sizeof tail - 1;
    *out = (factors){0};
    if (pair->rank != 2 || strcmp(pair->ours + length - end, tail) != 0) {
        return TR_OK;
    }
    int stem = (int)(length - end);
    snprintf(a_name, sizeof a_name, "%.*s" TR_LORA_A, stem, pair->ours);
    snprintf(b_name, sizeof b_name, "%.*s" TR_LORA_B, stem, pair->ours);
    out->a = tr__tensor_set_find_prefixed(e->set, a_name);
    out->b = tr__tensor_set_find_prefixed(e->set, b_name);
    if (!out->a && !out->b) {
        return TR_OK;
    }
    if (!out->a || !out->b || out->a->rank != 2 || out->b->rank != 2 ||
        out->a->dim[1] != pair->columns || out->b->dim[0] != pair->rows ||
        out->b->dim[1] != out->a->dim[0]) {
        return tr_fail(err, TR_IO,
                       "%s: %s and %s are not the two products of an adapter of %s",
                       e->folder, a_name, b_name, pair->ours);
    }
    set_pair(&out->a_pair, pair, ".lora_a", out->a);
    set_pair(&out->b_pair, pair, ".lora_b", out->b);
    out->a_pair.order = TR_ROWS_SAME;
    return TR_OK;
}

static tr_status add_one(tr_export *e, const tr_name_pair *pair,
                         const tr_stored_tensor *tensor, tr_error *err) {
    const int64_t dim[] = {pair->columns, pair->rows};
    return tr__gguf_add_tensor(e->writer, pair->theirs,
                               tr__export_format(e, tensor->dtype, pair->columns), 2,
                               dim, err);
}

static tr_status fail_other(const tr_export *e, tr_error *err) {
    for (size_t i = 0; i < tr__tensor_set_count(e->set); i++) {
        const char *name = tr__tensor_set_at(e->set, i)->name;
        if (strstr(name, "." TR_DORA_M)) {
            return tr_fail(err, TR_USAGE,
                           "%s: has magnitudes (use_dora), which GGUF adapters cannot "
                           "have; merge the adapter into its base (tranche merge), and "
                           "export that",
                           e->folder);
        }
        if (!tr__is_adapter_tensor(name)) {
            return tr_fail(err, TR_USAGE,
                           "%s: tensor %.200s is one of modules_to_save, which GGUF "
                           "adapters cannot have; merge the adapter into its base "
                           "(tranche merge), and export that",
                           e->folder, name);
        }
    }
    return tr_fail(err, TR_USAGE,
                   "%s: has adapters of layers that the base lacks, or that GGUF "
                   "cannot have adapters of; merge it into its base (tranche merge), "
                   "and export that",
                   e->folder);
}

static tr_status add_all(tr_export *e, tr_error *err) {
    size_t found = 0;
    tr_status status = TR_OK;
    for (size_t i = 0; i < e->names.count && status == TR_OK; i++) {
        factors f;
        status = find_factors(e, &e->names.pair[i], &f, err);
        if (status == TR_OK && f.a) {
            found += 2;
            status = add_one(e, &f.a_pair, f.a, err);
            status = status == TR_OK ? add_one(e, &f.b_pair, f.b, err) : status;
        }
    }
    if (status == TR_OK && found != tr__tensor_set_count(e->set)) {
        status = fail_other(e, err);
    }
    return status;
}

static tr_status write_all(tr_export *e, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < e->names.count && status == TR_OK; i++) {
        factors f;
        status = find_factors(e, &e->names.pair[i], &f, err);
        if (status == TR_OK && f.a) {
            status = tr__export_rows(e, &f.a_pair, f.a, err);
            status = status == TR_OK ? tr__export_rows(e, &f.b_pair, f.b, err) : status;
        }
    }
    return status;
}

// llama.cpp multiplies by alpha / rank, whatever PEFT does. An alpha of 0 is none
// there.
static tr_status describe(tr_export *e, tr_error *err) {
    tr_adapter_config *adapter = NULL;
    tr_status status =
        tr__adapter_from_folder(e->folder, e->model->type, &adapter, err);
    if (status != TR_OK) {
        return status;
    }
    float alpha = tr__adapter_scale(adapter) * (float)tr__adapter_rank(adapter);
    tr__adapter_destroy(adapter);
    if (!(alpha > 0)) {
        return tr_fail(err, TR_USAGE, "%s: a lora_alpha of 0 cannot be exported",
                       e->folder);
    }
    tr__export_describe(e, "adapter");
    tr__gguf_put_text(e->writer, "adapter.type", "lora", 4);
    tr__gguf_put_float(e->writer, "adapter.lora.alpha", alpha);
    return TR_OK;
}

tr_status tr__export_adapter(tr_export *e, tr_error *err) {
    char base[PATH_MAX];
    tr_status status = e->base ? tr_checkpoint_locate(e->base, base, sizeof base, err)
                               : tr__adapter_base(e->folder, base, err);
    status = status == TR_OK ? tr__export_model(e, base, err) : status;
    if (status == TR_OK) {
        status = tr__tensor_set_open_files(e->folder, TR_FILES_ADAPTER, &e->set, err);
    }
    status = status == TR_OK ? describe(e, err) : status;
    status = status == TR_OK ? add_all(e, err) : status;
    if (status == TR_OK) {
        status = tr__gguf_writer_open(e->writer, e->file, err);
    }
    status = status == TR_OK ? write_all(e, err) : status;
    return status == TR_OK ? tr__gguf_writer_finish(e->writer, err) : status;
}
