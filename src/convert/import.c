// A GGUF file as a Hugging Face folder.
#include "base/arguments.h"
#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "convert/config.h"
#include "convert/names.h"
#include "convert/rope.h"
#include "convert/tokens.h"
#include "files/safetensors/tensor_set.h"
#include "files/safetensors/tensor_writer.h"
#include "models/models.h"

#include <tranche/gguf.h>

#include <limits.h>
#include <string.h>

enum { PIECE = 1 << 16 };
static const char own_name[] = "tr_gguf_import";

typedef struct importer {
    const char *out;
    tr_gguf *gguf;
    tr_model *model;
    tr_name_list names;
    const tr_gguf_tensor **tensor; // [names.count]
    tr_tensor_spec *spec;          // [names.count]
    bool *used;                    // [tensors of the file]
    tr_tensor_writer *writer;
} importer;

// ---- which tensors

static tr_status find_tensor(const importer *m, size_t i, tr_error *err) {
    const tr_name_pair *pair = &m->names.pair[i];
    const tr_gguf_tensor *tensor = tr__gguf_find_tensor(m->gguf, pair->theirs);
    if (!tensor) {
        return tr_fail(err, TR_IO, "%s: has no tensor %s", tr__gguf_path(m->gguf),
                       pair->theirs);
    }
    if (tensor->dim[0] != pair->columns || tensor->dim[1] != pair->rows ||
        tensor->dim[2] != 1 || tensor->dim[3] != 1) {
        return tr_fail(err, TR_IO,
                       "%s: tensor %s has the shape [%lld, %lld], and by the metadata "
                       "it must be [%lld, %lld]",
                       tr__gguf_path(m->gguf), pair->theirs, (long long)tensor->dim[1],
                       (long long)tensor->dim[0], (long long)pair->rows,
                       (long long)pair->columns);
    }
    bool turned = pair->order == TR_ROWS_TURNED;
    m->tensor[i] = tensor;
    m->used[tensor - tr__gguf_tensor_at(m->gguf, 0)] = true;
    m->spec[i] = (tr_tensor_spec){
        pair->ours, tensor->format->dtype ? tensor->format->dtype : TR_F32,
        pair->rank == 1 ? TR_SHAPE1(pair->columns)
                        : TR_SHAPE2(turned ? pair->columns : pair->rows,
                                    turned ? pair->rows : pair->columns)};
    return TR_OK;
}

// GPT-2's output projection is its embedding, which some files have a second time.
static tr_status check_output(const importer *m, const tr_gguf_tensor *output,
                              tr_error *err) {
    const tr_gguf_tensor *tokens = tr__gguf_find_tensor(m->gguf, "token_embd.weight");
    bool same = output->format == tokens->format && output->count == tokens->count &&
                output->dim[0] == tokens->dim[0];
    int64_t piece = PIECE / TR_GGUF_BLOCK_MAX * TR_GGUF_BLOCK_MAX;
    char *a = tr__calloc((size_t)piece, 4), *b = tr__calloc((size_t)piece, 4);
    tr_status status = a && b ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to compare");
    for (int64_t at = 0; same && status == TR_OK && at < output->count; at += piece) {
        int64_t now = tr__min_i64(piece, output->count - at);
        size_t bytes = (size_t)(now / output->format->elements * output->format->bytes);
        status = tr__gguf_read_stored(m->gguf, output, at, now, a, err);
        if (status == TR_OK) {
            status = tr__gguf_read_stored(m->gguf, tokens, at, now, b, err);
        }
        same = status == TR_OK && memcmp(a, b, bytes) == 0;
    }
    tr__free(a);
    tr__free(b);
    return status != TR_OK || same
               ? status
               : tr_fail(err, TR_IO,
                         "%s: output.weight differs from token_embd.weight, and GPT-2 "
                         "has one tensor for both",
                         tr__gguf_path(m->gguf));
}

static tr_status check_others(const importer *m, tr_error *err) {
    bool gpt2 = strcmp(m->model->type, "gpt2") == 0;
    bool llama = strcmp(m->model->type, "llama") == 0;
    tr_status status = TR_OK;
    size_t count = tr__gguf_tensor_count(m->gguf);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        const tr_gguf_tensor *tensor = tr__gguf_tensor_at(m->gguf, i);
        if (m->used[i] || (llama && strcmp(tensor->name, TR_GGUF_ROPE_TENSOR) == 0)) {
            continue;
        }
        status = gpt2 && strcmp(tensor->name, "output.weight") == 0
                     ? check_output(m, tensor, err)
                     : tr_fail(err, TR_IO,
                               "%s: tensor %.80s is none that a model of "
                               "type %s has here",
                               tr__gguf_path(m->gguf), tensor->name, m->model->type);
    }
    return status;
}

static tr_status find_all(importer *m, tr_error *err) {
    tr_status status = tr__config_model(m->gguf, &m->model, err);
    status = status == TR_OK ? tr__names_of(m->model, &m->names, err) : status;
    if (status != TR_OK) {
        return status;
    }
    m->tensor = tr__calloc(m->names.count, sizeof *m->tensor);
    m->spec = tr__calloc(m->names.count, sizeof *m->spec);
    m->used = tr__calloc(tr__gguf_tensor_count(m->gguf), sizeof *m->used);
    if (!m->tensor || !m->spec || !m->used) {
        return tr_fail(err, TR_MEMORY, "no memory for a list of tensors");
    }
    for (size_t i = 0; i < m->names.count && status == TR_OK; i++) {
        status = find_tensor(m, i, err);
    }
    return status == TR_OK ? check_others(m, err) : status;
}

// ---- one tensor

// Elements [first, first + count) as the folder has them, of `size` bytes each.
static tr_status read_elements(const importer *m, const tr_gguf_tensor *tensor,
                               int64_t first, int64_t count, void *dst, tr_error *err) {
    return tensor->format->dtype
               ? tr__gguf_read_stored(m->gguf, tensor, first, count, dst, err)
               : tr__gguf_read(m->gguf, tensor, first, count, dst, err);
}

// The file's row that is the folder's row `row`: tr__names_row the other way round.
static int64_t file_row(const tr_name_pair *pair, int64_t row) {
    int64_t within = row % pair->head, half = pair->head / 2;
    return row - within + within % half * 2 + within / half;
}

// Of a matrix that is turned, and of a vector that is permuted, all at once.
static void reorder(const tr_name_pair *pair, size_t size, const char *from, char *to) {
    for (int64_t r = 0; pair->rank == 2 && r < pair->rows; r++) {
        for (int64_t c = 0; c < pair->columns; c++) {
            memcpy(to + (size_t)(c * pair->rows + r) * size,
                   from + (size_t)(r * pair->columns + c) * size, size);
        }
    }
    for (int64_t i = 0; pair->rank == 1 && i < pair->columns; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)file_row(pair, i) * size, size);
    }
}

static tr_status write_whole(importer *m, size_t i, tr_error *err) {
    const tr_gguf_tensor *tensor = m->tensor[i];
    size_t size = tr_dtype_bytes(m->spec[i].dtype);
    char *from = tr__calloc((size_t)tensor->count, size);
    char *to = tr__calloc((size_t)tensor->count, size);
    tr_status status =
        from && to ? TR_OK
                   : tr_fail(err, TR_MEMORY, "no memory for tensor %s", tensor->name);
    if (status == TR_OK) {
        status = read_elements(m, tensor, 0, tensor->count, from, err);
    }
    if (status == TR_OK) {
        reorder(&m->names.pair[i], size, from, to);
        status = tr__tensor_writer_put(m->writer, i, 0, tensor->count, to, err);
    }
    tr__free(from);
    tr__free(to);
    return status;
}

static tr_status write_rows(importer *m, size_t i, tr_error *err) {
    const tr_name_pair *pair = &m->names.pair[i];
    int64_t columns = pair->columns;
    int64_t most = pair->order == TR_ROWS_PAIRED ? 1 : tr__max_i64(1, PIECE / columns);
    size_t size = tr_dtype_bytes(m->spec[i].dtype);
    char *piece = tr__calloc((size_t)(most * columns), size);
    tr_status status =
        piece ? TR_OK
              : tr_fail(err, TR_MEMORY, "no memory for tensor %s", m->tensor[i]->name);
    for (int64_t r = 0; r < pair->rows && status == TR_OK; r += most) {
        int64_t now = tr__min_i64(most, pair->rows - r) * columns;
        int64_t from = pair->order == TR_ROWS_PAIRED ? file_row(pair, r) : r;
        status = read_elements(m, m->tensor[i], from * columns, now, piece, err);
        if (status == TR_OK) {
            status = tr__tensor_writer_put(m->writer, i, r * columns, now, piece, err);
        }
    }
    tr__free(piece);
    return status;
}

static tr_status write_tensors(importer *m, tr_error *err) {
    char path[PATH_MAX];
    int64_t bytes = 0;
    uint64_t hash = 0;
    tr_status status =
        tr__path_join(path, sizeof path, m->out, tr__files_name(TR_FILES_MODEL), err);
    if (status == TR_OK) {
        status =
            tr__tensor_writer_create(path, m->spec, m->names.count, &m->writer, err);
    }
    for (size_t k = 0; k < m->names.count && status == TR_OK; k++) {
        size_t i = tr__tensor_writer_order(m->writer, k);
        const tr_name_pair *pair = &m->names.pair[i];
        bool whole = pair->order == TR_ROWS_TURNED ||
                     (pair->order == TR_ROWS_PAIRED && pair->rank == 1);
        status = whole ? write_whole(m, i, err) : write_rows(m, i, err);
    }
    return status == TR_OK ? tr__tensor_writer_finish(m->writer, &bytes, &hash, err)
                           : status;
}

// ---- the folder

// Last of all: a folder without it is no model.
static tr_status write_config(const importer *m, tr_error *err) {
    char path[PATH_MAX];
    tr_dtype type = m->spec[0].dtype == TR_BF16 ? TR_BF16 : TR_F32;
    char *text = tr__model_config(m->model, type);
    tr_status status =
        text ? tr__path_join(path, sizeof path, m->out, "config.json", err)
             : tr_fail(err, TR_MEMORY, "no memory for a config.json");
    if (status == TR_OK) {
        status = tr__file_replace(path, text, strlen(text), err);
    }
    tr__free(text);
    return status;
}

tr_status tr_gguf_import(const char *file, const char *out, tr_error *err) {
    importer m = {.out = out};
    tr_status status = tr__need(file, own_name, "file", err);
    status = status == TR_OK ? tr__need(out, own_name, "out", err) : status;
    status = status == TR_OK ? tr__folder_check_empty(out, err) : status;
    status = status == TR_OK ? tr__gguf_open(file, &m.gguf, err) : status;
    status = status == TR_OK ? find_all(&m, err) : status;
    status = status == TR_OK ? tr__folder_create(out, err) : status;
    if (status == TR_OK) {
        status = tr__tokens_restore(m.gguf, out, m.model->classes, err);
    }
    status = status == TR_OK ? write_tensors(&m, err) : status;
    status = status == TR_OK ? write_config(&m, err) : status;
    tr__tensor_writer_destroy(m.writer);
    tr__free(m.tensor);
    tr__free(m.spec);
    tr__free(m.used);
    tr__names_release(&m.names);
    tr_model_destroy(m.model);
    tr__gguf_close(m.gguf);
    return status;
}
