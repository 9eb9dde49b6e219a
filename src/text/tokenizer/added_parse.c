#include "base/memory.h"
#include "text/tokenizer/added.h"

static tr_status parse_flags(const tr_node *node, tr_added_token *token,
                             tr_error *err) {
    const struct {
        const char *key;
        bool *to;
    } flags[] = {{"special", &token->special},
                 {"single_word", &token->single_word},
                 {"lstrip", &token->lstrip},
                 {"rstrip", &token->rstrip},
                 {"normalized", &token->normalized}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        tr_node member = tr__node_member(node, flags[i].key);
        tr_status status = tr__node_bool(&member, false, flags[i].to, err);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

// A token that the model has keeps its id; any other one has the next id behind all.
static tr_status join(const tr_tokens *tokens, const tr_node *node, const char *text,
                      size_t bytes, int64_t id, tr_error *err) {
    int32_t known = tr__tokens_find(tokens, text, bytes);
    int64_t right =
        known >= 0 ? known : (int64_t)(tokens->model->used + tokens->extra->used);
    if (id != right) {
        return tr__node_fail(node, err,
                             "the id is %lld, but the model gives this token %lld",
                             (long long)id, (long long)right);
    }
    return known >= 0
               ? TR_OK
               : tr__vocabulary_add(tokens->extra, node, text, bytes, (int32_t)id, err);
}

// What all tokens of the array need.
typedef struct sources {
    const tr_normalizer *normalizer;
    tr_normalized *scratch;
    const tr_tokens *tokens;
} sources;

// What the normalizer makes of the token is what decoding shows, as `tokenizers` has
// it.
static tr_status rename_token(tr_added *added, const tr_tokens *tokens, int32_t place,
                              const unsigned char *text, size_t bytes,
                              const tr_node *node, tr_error *err) {
    tr_added_token *token = &added->token[place];
    if (bytes > TR_ADDED_NORMALIZED_MAX) {
        return tr__node_fail(node, err,
                             "the normalizer makes %zu bytes of it; at most %d are "
                             "supported",
                             bytes, TR_ADDED_NORMALIZED_MAX);
    }
    token->shown = (tr_text_span){added->shown.count, added->shown.count + bytes};
    tr__text_add(&added->shown, text, bytes);
    tr__tokens_at(tokens, token->id)->renamed = place + 1;
    return added->shown.failed ? tr_fail(err, TR_MEMORY, "no memory for added tokens")
                               : TR_OK;
}

// Adds what is looked for: the text, or what the normalizer makes of it.
static tr_status enter(tr_added *added, const sources *s, const char *text,
                       size_t bytes, const tr_node *node, tr_error *err) {
    const unsigned char *sought = (const unsigned char *)text;
    int32_t place = (int32_t)added->count - 1;
    bool normalized = added->token[place].normalized;
    tr_added_set *set = normalized ? &added->normalized : &added->raw;
    tr_status status = TR_OK;
    if (normalized) {
        status = tr__normalizer_run(s->normalizer, s->scratch, sought, bytes, false,
                                    &sought, &bytes, err);
    }
    if (status == TR_OK && normalized) {
        status = rename_token(added, s->tokens, place, sought, bytes, node, err);
    }
    if (status != TR_OK || bytes == 0) {
        return status;
    }
    set->any = true;
    set->begins[sought[0]] = true;
    return tr__trie_add(&set->trie, sought, bytes, place)
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for added tokens");
}

static tr_status parse_token(const tr_node *node, const sources *s, tr_added *added,
                             tr_error *err) {
    const char *text;
    size_t bytes;
    int64_t id = 0;
    tr_node member = tr__node_member(node, "content");
    tr_status status = tr__node_text(&member, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    if (bytes == 0 || bytes > TR_ADDED_BYTES_MAX) {
        return tr__node_fail(&member, err, "has %zu bytes; 1 to %d are supported",
                             bytes, TR_ADDED_BYTES_MAX);
    }
    member = tr__node_member(node, "id");
    status = tr__node_integer(&member, 0, TR_TOKEN_ID_MAX, &id, err);
    if (status == TR_OK) {
        status = join(s->tokens, &member, text, bytes, id, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_added_token *token = &added->token[added->count++];
    *token = (tr_added_token){
        .id = (int32_t)id, .bytes = bytes, .last = (unsigned char)text[bytes - 1]};
    status = parse_flags(node, token, err);
    tr__tokens_at(s->tokens, (int32_t)id)->special |= token->special;
    return status == TR_OK ? enter(added, s, text, bytes, node, err) : status;
}

tr_status tr__added_parse(const tr_node *node, const tr_normalizer *normalizer,
                          const tr_tokens *tokens, tr_added *added, tr_error *err) {
    size_t count;
    tr_normalized scratch = {0};
    if (!node->value) {
        return TR_OK;
    }
    tr_status status = tr__node_array(node, &count, err);
    if (status != TR_OK) {
        return status;
    }
    added->token = tr__calloc(count, sizeof *added->token);
    if (!added->token && count > 0) {
        return tr_fail(err, TR_MEMORY, "no memory for added tokens");
    }
    sources s = {normalizer, &scratch, tokens};
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node token = tr__node_element(node, i);
        status = tr__node_object(&token, err);
        if (status == TR_OK) {
            status = parse_token(&token, &s, added, err);
        }
    }
    tr__normalized_release(&scratch);
    return status;
}

void tr__added_release(tr_added *added) {
    tr__free(added->token);
    tr__trie_release(&added->raw.trie);
    tr__trie_release(&added->normalized.trie);
    tr__text_release(&added->shown);
    *added = (tr_added){0};
}
