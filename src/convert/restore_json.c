// A tokenizer.json with the tokens of a GGUF file.
#include "convert/restore.h"

#include <string.h>

static const char *text_of(const tr_restorer *r, tr_role role) {
    return r->role[role] >= 0 ? r->token[r->role[role]].text : NULL;
}

static json_t *null_or(json_t *value) {
    return value ? value : json_null();
}

// ---- tokens that are found before anything else

static json_t *added_tokens(const tr_restorer *r) {
    json_t *list = json_array();
    bool good = list != NULL;
    for (int64_t i = 0; i < r->count && good; i++) {
        int type = r->token[i].type;
        bool special = type == TR_GGUF_CONTROL || type == TR_GGUF_UNKNOWN;
        if (r->token[i].text && (special || type == TR_GGUF_USER_DEFINED)) {
            good = json_array_append_new(
                       list, json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id",
                                       (json_int_t)i, "content", r->token[i].text,
                                       "single_word", 0, "lstrip", 0, "rstrip", 0,
                                       "normalized", 0, "special", special)) == 0;
        }
    }
    if (!good) {
        json_decref(list);
        return NULL;
    }
    return list;
}

// ---- tokens around a text

static bool add_part(json_t *list, const char *kind, const char *id, int type) {
    return json_array_append_new(
               list, json_pack("{s:{s:s, s:i}}", kind, "id", id, "type_id", type)) == 0;
}

// The parts of one text, or of both.
static json_t *parts(const tr_restorer *r, bool both) {
    static const char *const names[] = {"A", "B"};
    json_t *list = json_array();
    bool good = list != NULL;
    for (int i = 0; i < (both ? 2 : 1) && good; i++) {
        good =
            (!r->add_bos ||
             add_part(list, "SpecialToken", text_of(r, TR_ROLE_BOS), i)) &&
            add_part(list, "Sequence", names[i], i) &&
            (!r->add_eos || add_part(list, "SpecialToken", text_of(r, TR_ROLE_EOS), i));
    }
    if (!good) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static bool add_special(const tr_restorer *r, tr_role role, json_t *to) {
    const char *text = text_of(r, role);
    return json_object_set_new(to, text,
                               json_pack("{s:s, s:[I], s:[s]}", "id", text, "ids",
                                         (json_int_t)r->role[role], "tokens", text)) ==
           0;
}

static json_t *post_processor(const tr_restorer *r) {
    if (!r->add_bos && !r->add_eos) {
        return r->bytes
                   ? json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel",
                               "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1)
                   : json_null();
    }
    json_t *special = json_object();
    bool good = special && (!r->add_bos || add_special(r, TR_ROLE_BOS, special)) &&
                (!r->add_eos || add_special(r, TR_ROLE_EOS, special));
    if (!good) {
        json_decref(special);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single",
                     parts(r, false), "pair", parts(r, true), "special_tokens",
                     special);
}

// ---- the text's way

static json_t *normalizer(const tr_restorer *r) {
    if (r->bytes) {
        return r->pre->nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
    }
    json_t *replace = json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern",
                                "String", " ", "content", TR_BLANK_MARK);
    return r->add_prefix ? json_pack("{s:s, s:[{s:s, s:s}, o]}", "type", "Sequence",
                                     "normalizers", "type", "Prepend", "prepend",
                                     TR_BLANK_MARK, replace)
                         : replace;
}

static json_t *decoder(const tr_restorer *r) {
    if (r->bytes) {
        return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel",
                         "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1);
    }
    json_t *steps = json_pack("[{s:s, s:{s:s}, s:s}, {s:s}, {s:s}]", "type", "Replace",
                              "pattern", "String", TR_BLANK_MARK, "content", " ",
                              "type", "ByteFallback", "type", "Fuse");
    if (steps && r->add_prefix) {
        json_array_append_new(steps, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip",
                                               "content", " ", "start", 1, "stop", 0));
    }
    return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", steps);
}

static json_t *model(const tr_restorer *r, tr_error *err) {
    const char *unknown = r->bytes ? NULL : text_of(r, TR_ROLE_UNK);
    json_t *merges = tr__restore_merges(r, err);
    bool ignore = r->bytes && r->pre->ignore_merges;
    return merges ? json_pack("{s:s, s:n, s:o, s:n, s:n, s:b, s:b, s:b, s:O, s:o}",
                              "type", "BPE", "dropout", "unk_token",
                              null_or(unknown ? json_string(unknown) : NULL),
                              "continuing_subword_prefix", "end_of_word_suffix",
                              "fuse_unk", !r->bytes, "byte_fallback", !r->bytes,
                              "ignore_merges", ignore, "vocab", r->vocabulary, "merges",
                              merges)
                  : NULL;
}

json_t *tr__restore_json(const tr_restorer *r, tr_error *err) {
    json_t *bpe = model(r, err);
    if (!bpe) {
        tr_fail(err, TR_MEMORY, "no memory for a tokenizer.json");
        return NULL;
    }
    json_t *pre = r->bytes ? tr__pre_json(r->pre) : json_null();
    json_t *root =
        json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0",
                  "truncation", "padding", "added_tokens", added_tokens(r),
                  "normalizer", normalizer(r), "pre_tokenizer", pre, "post_processor",
                  post_processor(r), "decoder", decoder(r), "model", bpe);
    if (!root) {
        tr_fail(err, TR_MEMORY, "no memory for a tokenizer.json");
    }
    return root;
}
