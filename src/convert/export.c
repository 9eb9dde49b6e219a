// A Hugging Face folder as a GGUF file.
#include "convert/export.h"

#include "base/arguments.h"
#include "base/memory.h"
#include "convert/describe.h"
#include "convert/rope.h"
#include "convert/tokens.h"
#include "files/safetensors/adapter.h"
#include "models/llama.h"
#include "models/models.h"
#include "models/units.h"

#include <tranche/gguf.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { QUANTIZATION_VERSION = 2 };
static const char own_name[] = "tr_gguf_export";

// What --type may be, with the number of files of that type (general.file_type).
static const struct {
    const char *name;
    int format;
    uint32_t file_type;
} types[] = {{"f32", TR_GGUF_F32, 0},
             {"f16", TR_GGUF_F16, 1},
             {"bf16", TR_GGUF_BF16, 32},
             {"q8_0", TR_GGUF_Q8_0, 7}};
enum { TYPES = sizeof types / sizeof *types };

static tr_status find_type(const char *name, const tr_gguf_format **out,
                           tr_error *err) {
    for (int i = 0; name && i < TYPES; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *out = tr__gguf_format(types[i].format);
            return TR_OK;
        }
    }
    return name ? tr_fail(err, TR_USAGE,
                          "the type \"%.40s\" is unknown; known are f32, f16, bf16 and "
                          "q8_0",
                          name)
                : TR_OK;
}

// Of the file: that of its largest matrices.
static void describe_type(tr_export *e, const tr_gguf_format *format) {
    for (int i = 0; i < TYPES; i++) {
        if (types[i].format == format->number) {
            tr__gguf_put_u32(e->writer, "general.file_type", types[i].file_type);
        }
    }
    tr__gguf_put_u32(e->writer, "general.quantization_version", QUANTIZATION_VERSION);
}

// ---- its tensors

static tr_status find_tensor(const tr_export *e, const tr_name_pair *pair,
                             const tr_stored_tensor **out, tr_error *err) {
    const tr_stored_tensor *tensor = tr__tensor_set_find_prefixed(e->set, pair->ours);
    bool turned = pair->order == TR_ROWS_TURNED;
    if (!tensor) {
        return tr_fail(err, TR_IO, "%s: has no tensor %s", e->folder, pair->ours);
    }
    int64_t first = pair->rank == 1 || turned ? pair->columns : pair->rows;
    int64_t second = turned ? pair->rows : pair->columns;
    if (tensor->rank != pair->rank || tensor->dim[0] != first ||
        (pair->rank == 2 && tensor->dim[1] != second)) {
        return tr_fail(err, TR_IO,
                       "%s: tensor %s has another shape than config.json says",
                       e->folder, pair->ours);
    }
    *out = tensor;
    return TR_OK;
}

static tr_status add_tensor(tr_export *e, const tr_name_pair *pair, tr_error *err) {
    const int64_t dim[] = {pair->columns, pair->rows};
    const tr_stored_tensor *tensor = NULL;
    tr_status status = find_tensor(e, pair, &tensor, err);
    if (status != TR_OK) {
        return status;
    }
    const tr_gguf_format *format =
        pair->plain ? tr__gguf_format(TR_GGUF_F32)
                    : tr__export_format(e, tensor->dtype, pair->columns);
    return tr__gguf_add_tensor(e->writer, pair->theirs, format, pair->rank, dim, err);
}

// ---- rope_freqs.weight

static const tr_llama_config *scaled(const tr_export *e) {
    const tr_units *own = e->model->owned;
    const tr_llama_config *c =
        strcmp(e->architecture, "llama") == 0 ? own->config : NULL;
    return c && c->rope.scaling == TR_ROPE_LLAMA3 ? c : NULL;
}

static tr_status add_factors(tr_export *e, tr_error *err) {
    const tr_llama_config *c = scaled(e);
    const int64_t dim = c ? c->head_dim / 2 : 0;
    return c ? tr__gguf_add_tensor(e->writer, TR_GGUF_ROPE_TENSOR,
                                   tr__gguf_format(TR_GGUF_F32), 1, &dim, err)
             : TR_OK;
}

static tr_status write_factors(tr_export *e, tr_error *err) {
    const tr_llama_config *c = scaled(e);
    if (!c) {
        return TR_OK;
    }
    float *factors = tr__calloc((size_t)c->head_dim, sizeof *factors);
    if (!factors) {
        return tr_fail(err, TR_MEMORY, "no memory for " TR_GGUF_ROPE_TENSOR);
    }
    tr__rope_factors(&c->rope, (int)c->head_dim, factors);
    tr_status status = tr__gguf_write(e->writer, factors, c->head_dim / 2, err);
    tr__free(factors);
    return status;
}

// ---- a whole model

static tr_status describe(tr_export *e, tr_error *err) {
    const tr_stored_tensor *first = NULL;
    tr_status status = find_tensor(e, &e->names.pair[0], &first, err);
    if (status != TR_OK) {
        return status;
    }
    tr__export_describe(e, "model");
    describe_type(e, tr__export_format(e, first->dtype, e->names.pair[0].columns));
    status = tr__describe_model(e->writer, e->model, e->architecture, e->log, err);
    return status == TR_OK ? tr__tokens_describe(e->writer, e->folder,
                                                 e->model->classes, e->log, err)
                           : status;
}

static tr_status write_tensors(tr_export *e, tr_error *err) {
    tr_status status = write_factors(e, err);
    for (size_t i = 0; i < e->names.count && status == TR_OK; i++) {
        const tr_stored_tensor *tensor = NULL;
        status = find_tensor(e, &e->names.pair[i], &tensor, err);
        if (status == TR_OK) {
            status = tr__export_rows(e, &e->names.pair[i], tensor, err);
        }
    }
    return status;
}

static tr_status export_model(tr_export *e, tr_error *err) {
    tr_status status = tr__export_model(e, e->folder, err);
    status = status == TR_OK ? tr__tensor_set_open(e->folder, &e->set, err) : status;
    status = status == TR_OK ? describe(e, err) : status;
    status = status == TR_OK ? add_factors(e, err) : status;
    for (size_t i = 0; i < e->names.count && status == TR_OK; i++) {
        status = add_tensor(e, &e->names.pair[i], err);
    }
    if (status == TR_OK) {
        status = tr__gguf_writer_open(e->writer, e->file, err);
    }
    status = status == TR_OK ? write_tensors(e, err) : status;
    return status == TR_OK ? tr__gguf_writer_finish(e->writer, err) : status;
}

// ---- the public function

static void write_note(void *user, tr_log_level level, const char *line) {
    const tr_sink *to = user;
    (void)level;
    if (to->write(to->user, line, strlen(line))) {
        to->write(to->user, "\n", 1);
    }
}

static tr_status check_folder(const char *folder, tr_error *err) {
    struct stat info;
    return stat(folder, &info) == 0 && S_ISDIR(info.st_mode)
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s: is a file; name the folder with its config.json", folder);
}

static tr_status export_folder(tr_export *e, const char *path, tr_error *err) {
    char folder[PATH_MAX];
    tr_status status = tr_checkpoint_locate(path, folder, sizeof folder, err);
    status = status == TR_OK ? check_folder(folder, err) : status;
    if (status != TR_OK) {
        return status;
    }
    e->folder = folder;
    bool adapter = tr__is_adapter_folder(folder);
    if (e->base && !adapter) {
        return tr_fail(err, TR_USAGE,
                       "%s: holds no adapter, so there is no base of it to name",
                       folder);
    }
    e->writer = tr__gguf_writer_create();
    if (!e->writer) {
        return tr_fail(err, TR_MEMORY, "no memory to write %s", e->file);
    }
    status = adapter ? tr__export_adapter(e, err) : export_model(e, err);
    tr__gguf_writer_destroy(e->writer);
    tr__names_release(&e->names);
    tr__tensor_set_close(e->set);
    tr_model_destroy(e->model);
    return status;
}

tr_status tr_gguf_export(const char *path, const char *file,
                         const tr_gguf_options *options, tr_error *err) {
    static const tr_gguf_options usual = TR_GGUF_OPTIONS_INIT;
    static const tr_sized known = {"tr_gguf_options", "TR_GGUF_OPTIONS_INIT",
                                   sizeof(tr_gguf_options), 0};
    const tr_gguf_options *o = options ? options : &usual;
    tr_log log = {NULL, NULL};
    tr_export e = {.file = file, .log = &log};
    tr_status status = tr__need(path, own_name, "path", err);
    status = status == TR_OK ? tr__need(file, own_name, "file", err) : status;
    status = status == TR_OK ? tr__need_sized(o, &known, own_name, err) : status;
    status = status == TR_OK ? find_type(o->type, &e.format, err) : status;
    if (status != TR_OK) {
        return status;
    }
    if (o->notes && o->notes->write) {
        log = (tr_log){write_note, (void *)(uintptr_t)o->notes};
    }
    e.base = o->base;
    return export_folder(&e, path, err);
}
