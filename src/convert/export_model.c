// What an adapter's file and a model's have in common: the model, names, rows.
#include "convert/export.h"

#include "base/checked.h"
#include "base/memory.h"
#include "models/folder.h"
#include "models/models.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 16, NAME_BYTES = 256 };

tr_status tr__export_model(tr_export *e, const char *folder, tr_error *err) {
    tr_status status = tr__model_from_folder(folder, NULL, &e->model, err);
    if (status != TR_OK) {
        return status;
    }
    e->architecture = tr__gguf_architecture(e->model->type);
    if (!e->architecture) {
        return tr_fail(err, TR_USAGE,
                       "%s: models of type %s cannot be exported; llama, mistral, "
                       "qwen2, qwen3 and gpt2 can",
                       folder, e->model->type);
    }
    if (tr__model_task(e->model) != TR_TASK_CAUSAL_LM) {
        return tr_fail(err, TR_USAGE,
                       "%s: its config.json names a class that is no language model "
                       "(architectures), and no other can be exported",
                       folder);
    }
    return tr__names_of(e->model, &e->names, err);
}

const tr_gguf_format *tr__export_format(const tr_export *e, tr_dtype dtype,
                                        int64_t columns) {
    int number = e->format          ? e->format->number
                 : dtype == TR_BF16 ? TR_GGUF_BF16
                 : dtype == TR_F16  ? TR_GGUF_F16
                                    : TR_GGUF_F32;
    const tr_gguf_format *format = tr__gguf_format(number);
    return columns % format->elements == 0 ? format : tr__gguf_format(TR_GGUF_F16);
}

// "model" of "out/model.gguf".
static const char *stem_of(const char *path, char stem[NAME_BYTES]) {
    static const char end[] = ".gguf";
    const char *slash = strrchr(path, '/');
    snprintf(stem, NAME_BYTES, "%s", slash ? slash + 1 : path);
    size_t length = strlen(stem), tail = sizeof end - 1;
    if (length > tail && strcmp(stem + length - tail, end) == 0) {
        stem[length - tail] = '\0';
    }
    return stem;
}

static void put_text(tr_gguf_writer *writer, const char *key, const char *text) {
    tr__gguf_put_text(writer, key, text, strlen(text));
}

void tr__export_describe(tr_export *e, const char *type) {
    char stem[NAME_BYTES];
    put_text(e->writer, "general.architecture", e->architecture);
    put_text(e->writer, "general.type", type);
    put_text(e->writer, "general.name", stem_of(e->file, stem));
}

// Rows [first, first + rows) of the file, of `columns` each. whole: of a matrix that is
// turned, all of it; of a vector that is permuted too.
static tr_status fill_rows(const tr_export *e, const tr_name_pair *pair,
                           const tr_stored_tensor *tensor, const float *whole,
                           int64_t first, int64_t rows, float *dst, tr_error *err) {
    int64_t columns = pair->columns;
    tr_status status = TR_OK;
    if (pair->order == TR_ROWS_SAME) {
        return tr__tensor_read_f32(e->set, tensor, first * columns, rows * columns, dst,
                                   err);
    }
    for (int64_t r = 0; r < rows && status == TR_OK; r++) {
        float *row = dst + r * columns;
        if (pair->order == TR_ROWS_PAIRED && pair->rank == 2) {
            status = tr__tensor_read_f32(e->set, tensor,
                                         tr__names_row(pair, first + r) * columns,
                                         columns, row, err);
            continue;
        }
        for (int64_t c = 0; c < columns; c++) {
            row[c] = pair->rank == 1 ? whole[tr__names_row(pair, c)]
                                     : whole[c * pair->rows + first + r];
        }
    }
    return status;
}

tr_status tr__export_rows(tr_export *e, const tr_name_pair *pair,
                          const tr_stored_tensor *tensor, tr_error *err) {
    bool needs_whole = pair->order == TR_ROWS_TURNED ||
                       (pair->order == TR_ROWS_PAIRED && pair->rank == 1);
    int64_t rows = tr__min_i64(pair->rows, tr__max_i64(1, PIECE / pair->columns));
    float *piece = tr__calloc((size_t)(rows * pair->columns), sizeof *piece);
    float *whole =
        needs_whole ? tr__calloc((size_t)tensor->count, sizeof *whole) : NULL;
    tr_status status =
        piece && (whole || !needs_whole)
            ? TR_OK
            : tr_fail(err, TR_MEMORY, "no memory for tensor %s", tensor->name);
    if (status == TR_OK && whole) {
        status = tr__tensor_read_f32(e->set, tensor, 0, tensor->count, whole, err);
    }
    for (int64_t r = 0; r < pair->rows && status == TR_OK; r += rows) {
        int64_t now = tr__min_i64(rows, pair->rows - r);
        status = fill_rows(e, pair, tensor, whole, r, now, piece, err);
        if (status == TR_OK) {
            status = tr__gguf_write(e->writer, piece, now * pair->columns, err);
        }
    }
    tr__free(piece);
    tr__free(whole);
    return status;
}
