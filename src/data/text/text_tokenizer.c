#include "data/text/text_tokenizer.h"

#include "text/tokenizer/folder.h"

static tr_status find_eos(tr_text_tokenizer *s, const char *named, tr_error *err) {
    if (!named) {
        return tr__tokenizer_eos(s->tokenizer, s->folder, &s->eos, err);
    }
    s->eos = tr_tokenizer_find(s->tokenizer, named);
    return s->eos >= 0 ? TR_OK
                       : tr_fail(err, TR_DATA,
                                 "data.eos_token: \"%.100s\" is no token of %.400s",
                                 named, s->file);
}

static tr_status check_vocabulary(const tr_text_tokenizer *s, int64_t has,
                                  tr_error *err) {
    int64_t needs = tr_tokenizer_vocabulary(s->tokenizer);
    return has == 0 || needs <= has
               ? TR_OK
               : tr_fail(err, TR_DATA,
                         "data.tokenizer: the ids of %.400s go up to %lld, the model "
                         "has a vocabulary of %lld; give it one of %lld",
                         s->file, (long long)needs - 1, (long long)has,
                         (long long)needs);
}

static tr_status open_tokenizer(tr_text_tokenizer *s, const tr_data_options *options,
                                tr_error *err) {
    const char *path = options->tokenizer;
    if (!path) {
        return tr_fail(err, TR_USAGE,
                       "data.tokenizer: format %s needs a tokenizer.json, or a "
                       "folder that has one",
                       options->format);
    }
    tr_status status = tr__tokenizer_file(path, s->file, err);
    if (status == TR_OK) {
        status = tr__tokenizer_folder(path, s->folder, err);
    }
    if (status == TR_OK) {
        status = tr_tokenizer_load(path, &s->tokenizer, err);
    }
    if (status == TR_OK) {
        status = check_vocabulary(s, options->vocabulary, err);
    }
    return status == TR_OK ? find_eos(s, options->eos_token, err) : status;
}

tr_status tr__text_tokenizer_open(const tr_data_options *options,
                                  tr_text_tokenizer *out, tr_error *err) {
    *out = (tr_text_tokenizer){.eos = -1};
    tr_status status = open_tokenizer(out, options, err);
    if (status != TR_OK) {
        tr__text_tokenizer_close(out);
    }
    return status;
}

void tr__text_tokenizer_close(tr_text_tokenizer *tokenizer) {
    tr_tokenizer_destroy(tokenizer->tokenizer);
    tokenizer->tokenizer = NULL;
}
