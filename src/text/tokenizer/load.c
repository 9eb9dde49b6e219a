#include "base/files.h"
#include "text/tokenizer/folder.h"
#include "text/tokenizer/tokenizer.h"

enum { FILE_MAX = 512 << 20 };

static tr_status parse_model(const tr_node *node, bool byte_level, tr_tokenizer *t,
                             tr_error *err) {
    const char *type = NULL;
    tr_node named = tr__node_member(node, "type");
    tr_node vocabulary = tr__node_member(node, "vocab");
    tr_node merges = tr__node_member(node, "merges");
    tr_status status = tr__node_object(node, err);
    if (status == TR_OK && named.value) {
        status = tr__node_type(node, &type, err);
    }
    if (status != TR_OK) {
        return status;
    }
    if (!type) { // older files: what has merges is BPE
        type = merges.value ? "BPE" : "WordPiece";
    }
    bool bpe = strcmp(type, "BPE") == 0;
    if (!bpe && strcmp(type, "WordPiece") != 0) {
        return tr__node_refuse(node, type, err);
    }
    status = tr__vocabulary_parse(&t->vocabulary, &vocabulary, err);
    if (status != TR_OK) {
        return status;
    }
    t->model = bpe ? TR_TOKENS_BPE : TR_TOKENS_WORDPIECE;
    return bpe ? tr__bpe_parse(node, &t->vocabulary, byte_level, &t->bpe, err)
               : tr__wordpiece_parse(node, &t->vocabulary, &t->wordpiece, err);
}

// Does the text come to the model as ByteLevel's characters?
static bool ends_in_bytes(const tr_pretokenizer *p) {
    return p->count > 0 && p->step[p->count - 1].kind == TR_CUT_BYTE_LEVEL;
}

static tr_status parse_parts(const tr_node *root, tr_tokenizer *t, tr_error *err) {
    tr_tokens tokens = tr__tokenizer_tokens(t);
    tr_node normalizer = tr__node_member(root, "normalizer");
    tr_node pretokenizer = tr__node_member(root, "pre_tokenizer");
    tr_node model = tr__node_member(root, "model");
    tr_node added = tr__node_member(root, "added_tokens");
    tr_node template = tr__node_member(root, "post_processor");
    tr_node decoder = tr__node_member(root, "decoder");
    tr_status status = tr__unicode_create(&t->unicode, err);
    if (status == TR_OK) {
        status = tr__normalizer_parse(&normalizer, &t->unicode, &t->normalizer, err);
    }
    if (status == TR_OK) {
        status =
            tr__pretokenizer_parse(&pretokenizer, &t->unicode, &t->pretokenizer, err);
    }
    if (status == TR_OK) {
        status = parse_model(&model, ends_in_bytes(&t->pretokenizer), t, err);
    }
    if (status == TR_OK && t->model == TR_TOKENS_BPE && t->bpe.bytes) {
        t->pretokenizer.count--; // the model takes the bytes themselves
    }
    if (status == TR_OK) {
        status = tr__added_parse(&added, &t->normalizer, &tokens, &t->added, err);
    }
    if (status == TR_OK) {
        status = tr__template_parse(&template, &t->template, err);
    }
    return status == TR_OK ? tr__decoder_parse(&decoder, &t->unicode, &t->decoder, err)
                           : status;
}

tr_status tr__tokenizer_parse(const char *file, const char *text, size_t bytes,
                              tr_tokenizer **out, tr_error *err) {
    json_error_t problem;
    json_t *json =
        json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
    if (!json) {
        return tr_fail(err, TR_DATA, "%s: line %d, column %d: not valid JSON: %s", file,
                       problem.line, problem.column, problem.text);
    }
    tr_node root = {.file = file, .value = json};
    tr_tokenizer *t = tr__calloc(1, sizeof *t);
    tr_status status = t ? tr__node_object(&root, err)
                         : tr_fail(err, TR_MEMORY, "no memory for a tokenizer");
    if (status == TR_OK) {
        status = parse_parts(&root, t, err);
    }
    json_decref(json);
    if (status != TR_OK) {
        tr_tokenizer_destroy(t);
        return status;
    }
    t->cuts_pieces = t->model == TR_TOKENS_BPE && tr__bpe_cuts(&t->bpe);
    tr__tokenizer_find_cuts(t);
    *out = t;
    return TR_OK;
}

tr_status tr_tokenizer_load(const char *path, tr_tokenizer **out, tr_error *err) {
    char file[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    tr_status status = tr__tokenizer_file(path, file, err);
    if (status == TR_OK) {
        status = tr__file_read(file, FILE_MAX, &text, &bytes, err);
    }
    if (status == TR_OK) {
        status = tr__tokenizer_parse(file, text, bytes, out, err);
    }
    tr__free(text);
    return status;
}
