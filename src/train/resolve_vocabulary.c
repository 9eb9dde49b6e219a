// The tokenizer of text, and a vocabulary of the model that holds its tokens.
#include "base/files.h"
#include "base/memory.h"
#include "models/models.h"
#include "train/run.h"

#include <tranche/tokenizer.h>

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

static tr_status name_tokenizer(tr_run *run, tr_error *err) {
    const char *path = find_tokenizer(run);
    if (!path) {
        return tr_fail(err, TR_USAGE,
                       "data.format is \"text\", and the model (%.300s) has no "
                       "tokenizer.json: name one, or its folder, as data.tokenizer",
                       run->model_folder ? run->model_folder : run->model->type);
    }
    run->tokenizer = tr__strdup(path);
    if (!run->tokenizer) {
        return tr_fail(err, TR_MEMORY, "no memory for a path");
    }
    return tr__config_resolve_text(run->config, key, path, TR_ORIGIN_DERIVED,
                                   "the model's folder", err);
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

tr_status tr__run_resolve_vocabulary(tr_run *run, tr_error *err) {
    const char *format = tr__config_text(run->config, "data.format");
    int64_t tokens = 0, before = run->model->classes;
    if (strcmp(format, "text") != 0 || run->model->input.dtype != TR_I32) {
        return TR_OK;
    }
    tr_status status = name_tokenizer(run, err);
    if (status != TR_OK || !run->own_model || run->vocabulary_fixed) {
        return status;
    }
    status = count_tokens(run, &tokens, err);
    if (status != TR_OK || (tokens <= before && !run->vocabulary_open) ||
        tokens == before) {
        return status;
    }
    status = tr__model_resize(run->own_model, tokens, err);
    if (status == TR_OK && !run->vocabulary_open) {
        run->vocabulary_read = run->weights ? before : 0;
        say_more(run, before, tokens);
    }
    return status;
}
