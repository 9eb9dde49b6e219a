#include "text/tokenizer/wordpiece.h"

static tr_status fill(const tr_node *node, const tr_vocabulary *v, const char *prefix,
                      size_t prefix_bytes, tr_wordpiece *model, tr_error *err) {
    for (size_t id = 0; id < v->count; id++) {
        if (v->token[id].present &&
            !tr__trie_add(&model->trie, tr__vocabulary_bytes(v, (int32_t)id),
                          v->token[id].count, (int32_t)id)) {
            return tr_fail(err, TR_MEMORY, "no memory for the tokens of %s",
                           node->file);
        }
    }
    for (size_t i = 0; i < prefix_bytes && model->inner >= 0; i++) {
        model->inner =
            tr__trie_step(&model->trie, model->inner, (unsigned char)prefix[i]);
    }
    return TR_OK;
}

tr_status tr__wordpiece_parse(const tr_node *node, const tr_vocabulary *vocabulary,
                              tr_wordpiece *model, tr_error *err) {
    const char *unk = NULL, *prefix = "##";
    size_t unk_bytes = 0, prefix_bytes = 2;
    tr_node unknown = tr__node_member(node, "unk_token");
    tr_node affix = tr__node_member(node, "continuing_subword_prefix");
    tr_node most = tr__node_member(node, "max_input_chars_per_word");
    tr_status status = tr__node_text(&unknown, &unk, &unk_bytes, err);
    if (status == TR_OK) {
        model->unk = tr__vocabulary_find(vocabulary, unk, unk_bytes);
        status = model->unk >= 0
                     ? TR_OK
                     : tr__node_fail(&unknown, err, "is not in the vocabulary");
    }
    if (status == TR_OK && affix.value) {
        status = tr__node_text(&affix, &prefix, &prefix_bytes, err);
    }
    model->characters_max = 100;
    if (status == TR_OK && most.value) {
        status = tr__node_integer(&most, 0, INT64_MAX, &model->characters_max, err);
    }
    return status == TR_OK ? fill(node, vocabulary, prefix, prefix_bytes, model, err)
                           : status;
}

void tr__wordpiece_release(tr_wordpiece *model) {
    tr__trie_release(&model->trie);
    *model = (tr_wordpiece){0};
}

static bool is_too_long(const tr_wordpiece *model, const unsigned char *word,
                        size_t bytes) {
    int64_t characters = 0;
    for (size_t i = 0; i < bytes && characters <= model->characters_max; i++) {
        characters += !tr__utf8_continues(word[i]);
    }
    return characters > model->characters_max;
}

bool tr__wordpiece_word(const tr_wordpiece *model, const unsigned char *word,
                        size_t bytes, tr_token_ids *ids) {
    size_t before = ids->count, length = 0;
    bool unknown = is_too_long(model, word, bytes);
    for (size_t at = 0; at < bytes && !unknown; at += length) {
        int32_t root = at == 0 ? model->root : model->inner;
        int32_t id = root < 0 ? -1
                              : tr__trie_longest(&model->trie, root, word + at,
                                                 bytes - at, &length);
        unknown = id < 0;
        if (!unknown && !tr__ids_add(ids, &id, 1)) {
            return false;
        }
    }
    if (unknown) {
        ids->count = before;
        return tr__ids_add(ids, &model->unk, 1);
    }
    return true;
}
