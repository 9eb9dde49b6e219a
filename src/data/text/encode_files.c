// The ids of a caller's files, taken as one text.
#include "base/arguments.h"
#include "data/sources/paths.h"
#include "data/text/encode.h"

typedef struct hand_over {
    const tr_encode_files *files;
    int64_t total;
} hand_over;

static tr_status open_text(const tr_encode_files *files, tr_joined *text,
                           tr_error *err) {
    tr_file_list list = {.text = true};
    tr_status status = TR_OK;
    for (size_t i = 0; i < files->path_count && status == TR_OK; i++) {
        status = tr__file_list_add(&list, files->paths[i], err);
    }
    if (status != TR_OK) {
        tr__file_list_clear(&list);
        return status;
    }
    return tr__joined_open(text, &list, files->paths[0], 1, err);
}

static tr_status take(void *user, tr_token_ids *ids, int64_t bytes, tr_error *err) {
    const hand_over *h = user;
    return h->files->take(h->files->user, ids->id, ids->count,
                          (tr_encoded){bytes, h->total}, err);
}

static tr_status check(const tr_tokenizer *tokenizer, const tr_encode_files *files,
                       tr_error *err) {
    static const char name[] = "tr_tokenizer_encode_files";
    static const tr_sized known = {"tr_encode_files", "TR_ENCODE_FILES_INIT",
                                   sizeof(tr_encode_files), 0};
    tr_status status = tr__need(tokenizer, name, "tokenizer", err);
    if (status == TR_OK) {
        status = tr__need_sized(files, &known, name, err);
    }
    if (status == TR_OK) {
        status = tr__encode_options_check(files->options, name, err);
    }
    if (status == TR_OK && (files->path_count == 0 || !files->paths || !files->take)) {
        status =
            tr_fail(err, TR_USAGE, "%s: set `paths`, `path_count` and `take`", name);
    }
    return status;
}

tr_status tr_tokenizer_encode_files(const tr_tokenizer *tokenizer,
                                    const tr_encode_files *files, tr_error *err) {
    tr_joined text = {0};
    tr_status status = check(tokenizer, files, err);
    if (status == TR_OK) {
        status = open_text(files, &text, err);
    }
    if (status != TR_OK) {
        return status;
    }
    hand_over h = {files, tr__joined_count(&text)};
    tr_encode job = {.stream = {.tokenizer = tokenizer, .threads = files->threads},
                     .text = &text,
                     .joined = true,
                     .take = take,
                     .user = &h};
    if (files->options) {
        job.stream.options = *files->options;
    }
    status = tr__encode_files(&job, err);
    tr__joined_close(&text);
    return status;
}
