// The tokenizer of text, and a vocabulary of the model that holds its tokens, padded as
// the run file says.
#include "base/checked.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "models/models.h"
#include "run/run.h"
#include "text/tokenizer/folder.h"

#include <tranche/data.h>

#include <jansson.h>

#include <limits.h>
#include <string.h>
#include <unistd.h>

static const char key[] = "data.tokenizer";

// data.tokenizer, else the model's folder. NULL: there is none.
static const char *find_tokenizer(const tr_run *run) {
    char path[PATH_MAX];
    const char *folder = run->model_folder;
    if (tr__config_is_set(run->config, key)) {
        return tr__config_text(run->config, key);
    }
    bool has =
        folder &&
        tr__path_join(path, sizeof path, folder, "tokenizer.json", NULL) == TR_OK &&
        access(path, F_OK) == 0;
    return has ? folder : NULL;
}

// The path where the tokenizer is. A name on Hugging Face's hub is noted as the folder
// in its local cache: another snapshot may be the newest one day.
static tr_status note_place(tr_run *run, const char *named, tr_error *err) {
    char place[PATH_MAX];
    tr_status status = tr__tokenizer_locate(named, place, err);
    if (status != TR_OK) {
        return status;
    }
    run->tokenizer = tr__strdup(place);
    if (!run->tokenizer) {
        return tr_fail(err, TR_MEMORY, "no memory for a path");
    }
    if (strcmp(place, named) == 0) {
        return tr__config_resolve_text(run->config, key, place, TR_ORIGIN_DERIVED,
                                       "the model's folder", err);
    }
    json_t *path = json_string(place);
    status = path ? tr__config_resolve_json(run->config, key, path, TR_ORIGIN_DERIVED,
                                            "in Hugging Face's local cache", err)
                  : tr_fail(err, TR_MEMORY, "no memory for a path");
    json_decref(path);
    return status;
}

static tr_status name_tokenizer(tr_run *run, tr_error *err) {
    const char *path = find_tokenizer(run);
    if (!path) {
        return tr_fail(err, TR_USAGE,
                       "data.format is \"%s\", and the model (%.300s) has no "
                       "tokenizer.json: name one, or its folder, as data.tokenizer",
                       tr__config_text(run->config, "data.format"),
                       run->model_folder ? run->model_folder : run->model->type);
    }
    return note_place(run, path, err);
}

// How many tokens there are, up to the greatest id.
static tr_status count_tokens(const tr_run *run, int64_t *count, tr_error *err) {
    tr_tokenizer *tokenizer = NULL;
    tr_status status = tr_tokenizer_load(run->tokenizer, &tokenizer, err);
    if (status == TR_OK) {
        *count = tr_tokenizer_vocabulary(tokenizer);
    }
    tr_tokenizer_destroy(tokenizer);
    tr__memory_trim();
    return status;
}

static void say_more(const tr_run *run, int64_t before, int64_t after) {
    tr__note(&run->log,
             "model: the vocabulary has %lld tokens in place of %lld, those of %.300s; "
             "%s",
             (long long)after, (long long)before, run->tokenizer,
             run->weights ? "the new rows of the embedding are drawn"
                          : "its weights are drawn");
}

// The first of the model's tokens that the other tokenizer has not, or has otherwise;
// -1: it has all of them.
static int64_t first_other(const tr_tokenizer *own, const tr_tokenizer *other) {
    int64_t count = tr_tokenizer_vocabulary(own);
    for (int64_t id = 0; id < count; id++) {
        size_t a_bytes = 0, b_bytes = 0;
        const char *a = tr_tokenizer_token(own, (int32_t)id, &a_bytes);
        const char *b = tr_tokenizer_token(other, (int32_t)id, &b_bytes);
        if (a && (!b || a_bytes != b_bytes || memcmp(a, b, a_bytes) != 0)) {
            return id;
        }
    }
    return -1;
}

static void compare_vocabularies(const tr_run *run, const tr_tokenizer *own,
                                 const tr_tokenizer *other) {
    int64_t id = first_other(own, other);
    size_t bytes = 0;
    const char *token = id >= 0 ? tr_tokenizer_token(own, (int32_t)id, &bytes) : NULL;
    if (token) {
        tr__warn(&run->log,
                 "data.tokenizer: %.300s has another vocabulary than the tokenizer of "
                 "the model's folder (%.300s): token %lld is '%.*s' there; the weights "
                 "were trained on that one's ids",
                 run->tokenizer, run->model_folder, (long long)id,
                 (int)(bytes < 40 ? bytes : 40), token);
    }
}

// Weights know the ids of the tokenizer beside them. Where that one cannot be read,
// there is nothing to compare.
static tr_status check_tokenizer(const tr_run *run, tr_error *err) {
    char own_file[PATH_MAX], file[PATH_MAX];
    tr_tokenizer *own = NULL, *other = NULL;
    uint64_t a = 0, b = 0;
    bool compare = run->weights && run->model_folder &&
                   tr__config_is_set(run->config, key) &&
                   tr__tokenizer_file(run->model_folder, own_file, NULL) == TR_OK &&
                   tr__hash_file(own_file, &a, NULL) == TR_OK;
    if (!compare) {
        return TR_OK;
    }
    tr_status status = tr__tokenizer_file(run->tokenizer, file, err);
    if (status == TR_OK) {
        status = tr__hash_file(file, &b, err);
    }
    if (status != TR_OK || a == b ||
        tr_tokenizer_load(run->model_folder, &own, NULL) != TR_OK) {
        return status;
    }
    status = tr_tokenizer_load(run->tokenizer, &other, err);
    if (status == TR_OK) {
        compare_vocabularies(run, own, other);
    }
    tr_tokenizer_destroy(own);
    tr_tokenizer_destroy(other);
    tr__memory_trim();
    return status;
}

// The tokenizer's tokens where the run reads text, and else none.
static tr_status find_tokens(tr_run *run, int64_t *tokens, tr_error *err) {
    const char *format = tr__config_text(run->config, "data.format");
    bool text = strcmp(format, "text") == 0 || strcmp(format, "jsonl") == 0;
    *tokens = 0;
    if (!text || !tr__model_reads_tokens(run->model)) {
        return TR_OK;
    }
    tr_status status = name_tokenizer(run, err);
    if (status == TR_OK) {
        status = check_tokenizer(run, err);
    }
    bool asked = run->own_model && !run->vocabulary_fixed;
    return status == TR_OK && asked ? count_tokens(run, tokens, err) : status;
}

static tr_status check_padding(const tr_run *run, int64_t multiple, tr_error *err) {
    if (multiple == 1 || (run->own_model && run->model->token_tensors)) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "vocabulary.pad_to_multiple_of is %lld, but %s %s has no vocabulary "
                   "to pad",
                   (long long)multiple,
                   run->own_model ? "a model of type" : "the caller's own model",
                   run->model->type);
}

// tokens: of the tokenizer; 0: there is none.
static tr_status resize(tr_run *run, int64_t tokens, int64_t multiple, tr_error *err) {
    const tr_model *model = run->model;
    int64_t before = model->classes, after = tr__max_i64(before, tokens);
    int64_t had = model->padded_classes ? model->padded_classes : before;
    if (run->vocabulary_open && tokens > 0) {
        after = had = tokens;
    }
    int64_t rows = tr__round_up(tr__max_i64(had, after), multiple);
    if (after == before && rows == had) {
        return TR_OK;
    }
    run->rows_read = run->weights ? had : 0;
    run->tokens_read = run->weights ? before : 0;
    if (after > before && !run->vocabulary_open) {
        say_more(run, before, after);
    }
    return tr__model_resize(run->own_model, after, rows, err);
}

tr_status tr__run_resolve_vocabulary(tr_run *run, tr_error *err) {
    int64_t multiple = tr__config_int(run->config, "vocabulary.pad_to_multiple_of");
    int64_t tokens = 0;
    tr_status status = find_tokens(run, &tokens, err);
    if (status == TR_OK) {
        status = check_padding(run, multiple, err);
    }
    bool grows = run->own_model && !run->vocabulary_fixed && run->model->token_tensors;
    return status == TR_OK && grows ? resize(run, tokens, multiple, err) : status;
}
