// The files of sentence-transformers beside a model's config.json. Of two forms that
// files have had, this is the one that all its versions read.
#include "models/sentence.h"

#include "base/memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define MODULE "sentence_transformers.models."

static json_t *module(int number, const char *path, const char *type) {
    char name[8];
    snprintf(name, sizeof name, "%d", number);
    return json_pack("{s:i, s:s, s:s, s:s}", "idx", number, "name", name, "path", path,
                     "type", type);
}

static json_t *modules_of(const tr_embedding_way *way) {
    json_t *list = json_array();
    json_array_append_new(list, module(0, "", MODULE "Transformer"));
    json_array_append_new(list, module(1, "1_Pooling", MODULE "Pooling"));
    if (way->normalize) {
        json_array_append_new(list, module(2, "2_Normalize", MODULE "Normalize"));
    }
    return list;
}

static json_t *pooling_of(const tr_embedding_way *way, int64_t width) {
    return json_pack("{s:I, s:b, s:b, s:b, s:b, s:b}", "word_embedding_dimension",
                     (json_int_t)width, "pooling_mode_cls_token",
                     way->pooling == TR_TEXT_CLS, "pooling_mode_mean_tokens",
                     way->pooling == TR_TEXT_MEAN, "pooling_mode_max_tokens", 0,
                     "pooling_mode_mean_sqrt_len_tokens", 0, "pooling_mode_lasttoken",
                     way->pooling == TR_TEXT_LAST);
}

tr_status tr__sentence_write(const tr_embedding_way *way, int64_t tokens, int64_t width,
                             tr_sentence_file out[TR_SENTENCE_FILES], tr_error *err) {
    json_t *const keys[] = {modules_of(way), pooling_of(way, width),
                            json_pack("{s:I, s:b}", "max_seq_length",
                                      (json_int_t)tokens, "do_lower_case", 0)};
    static const char *const names[] = {"modules.json", "1_Pooling/config.json",
                                        "sentence_bert_config.json"};
    bool good = true;
    for (int i = 0; i < TR_SENTENCE_FILES; i++) {
        char *text = keys[i] ? json_dumps(keys[i], JSON_INDENT(2)) : NULL;
        out[i] = (tr_sentence_file){names[i], text ? tr__strdup(text) : NULL};
        good = good && out[i].text;
        json_decref(keys[i]);
        free(text);
    }
    if (!good) {
        tr__sentence_release(out);
        return tr_fail(err, TR_MEMORY, "no memory for a checkpoint's files");
    }
    return TR_OK;
}

void tr__sentence_release(tr_sentence_file files[TR_SENTENCE_FILES]) {
    for (int i = 0; i < TR_SENTENCE_FILES; i++) {
        tr__free(files[i].text);
        files[i].text = NULL;
    }
}
