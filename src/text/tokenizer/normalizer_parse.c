#include "base/memory.h"
#include "text/tokenizer/normalizer.h"

static tr_normalizer_step *add(tr_normalizer *normalizer, tr_normalizer_kind kind,
                               tr_error *err) {
    if (!tr__grow((void **)&normalizer->step, &normalizer->capacity,
                  normalizer->count + 1, sizeof *normalizer->step)) {
        tr_fail(err, TR_MEMORY, "no memory for a normalizer");
        return NULL;
    }
    tr_normalizer_step *step = &normalizer->step[normalizer->count++];
    *step = (tr_normalizer_step){.kind = kind};
    return step;
}

static tr_status add_if(tr_normalizer *normalizer, bool wanted, tr_normalizer_kind kind,
                        tr_error *err) {
    return !wanted || add(normalizer, kind, err) ? TR_OK : TR_MEMORY;
}

static tr_status parse_content(const tr_node *node, const char *key, tr_text *content,
                               tr_error *err) {
    const char *text;
    size_t bytes;
    tr_node member = tr__node_member(node, key);
    tr_status status = tr__node_text(&member, &text, &bytes, err);
    if (status == TR_OK) {
        tr__text_add(content, text, bytes);
        status = content->failed ? tr_fail(err, TR_MEMORY, "no memory for a normalizer")
                                 : TR_OK;
    }
    return status;
}

static tr_status parse_replace(tr_normalizer *normalizer, const tr_node *node,
                               tr_error *err) {
    tr_normalizer_step *step = add(normalizer, TR_NORMALIZE_REPLACE, err);
    if (!step) {
        return TR_MEMORY;
    }
    tr_node pattern = tr__node_member(node, "pattern");
    tr_status status =
        tr__pattern_parse(&pattern, normalizer->unicode, &step->pattern, err);
    return status == TR_OK ? parse_content(node, "content", &step->content, err)
                           : status;
}

static tr_status parse_prepend(tr_normalizer *normalizer, const tr_node *node,
                               tr_error *err) {
    tr_normalizer_step *step = add(normalizer, TR_NORMALIZE_PREPEND, err);
    return step ? parse_content(node, "prepend", &step->content, err) : TR_MEMORY;
}

static tr_status parse_flag(const tr_node *node, const char *key, bool absent,
                            bool *out, tr_error *err) {
    tr_node member = tr__node_member(node, key);
    return tr__node_bool(&member, absent, out, err);
}

static tr_status parse_strip(tr_normalizer *normalizer, const tr_node *node,
                             tr_error *err) {
    tr_normalizer_step *step = add(normalizer, TR_NORMALIZE_STRIP, err);
    if (!step) {
        return TR_MEMORY;
    }
    tr_status status = parse_flag(node, "strip_left", true, &step->left, err);
    return status == TR_OK ? parse_flag(node, "strip_right", true, &step->right, err)
                           : status;
}

static tr_status parse_bert(tr_normalizer *normalizer, const tr_node *node,
                            tr_error *err) {
    bool clean, chinese, lowercase, accents;
    tr_status status = parse_flag(node, "clean_text", true, &clean, err);
    if (status == TR_OK) {
        status = parse_flag(node, "handle_chinese_chars", true, &chinese, err);
    }
    if (status == TR_OK) {
        status = parse_flag(node, "lowercase", true, &lowercase, err);
    }
    if (status == TR_OK) { // null: as lowercase says
        status = parse_flag(node, "strip_accents", lowercase, &accents, err);
    }
    if (status == TR_OK) {
        status = add_if(normalizer, clean, TR_NORMALIZE_BERT_CLEAN, err);
    }
    if (status == TR_OK) {
        status = add_if(normalizer, chinese, TR_NORMALIZE_BERT_CHINESE, err);
    }
    if (status == TR_OK) {
        status = add_if(normalizer, accents, TR_NORMALIZE_BERT_ACCENTS, err);
    }
    if (status == TR_OK) {
        status = add_if(normalizer, lowercase, TR_NORMALIZE_LOWERCASE, err);
    }
    return status;
}

static tr_status parse_form(tr_normalizer *normalizer, const char *type,
                            tr_error *err) {
    tr_normalizer_step *step = add(normalizer, TR_NORMALIZE_FORM, err);
    if (!step) {
        return TR_MEMORY;
    }
    step->form.compatibility = type[2] == 'K';
    step->form.compose = type[strlen(type) - 1] == 'C';
    return TR_OK;
}

static tr_status parse_part(void *context, const tr_node *node, const char *type,
                            tr_error *err) {
    tr_normalizer *normalizer = context;
    if (strcmp(type, "NFC") == 0 || strcmp(type, "NFD") == 0 ||
        strcmp(type, "NFKC") == 0 || strcmp(type, "NFKD") == 0) {
        return parse_form(normalizer, type, err);
    }
    if (strcmp(type, "Lowercase") == 0) {
        return add_if(normalizer, true, TR_NORMALIZE_LOWERCASE, err);
    }
    if (strcmp(type, "StripAccents") == 0) {
        return add_if(normalizer, true, TR_NORMALIZE_STRIP_ACCENTS, err);
    }
    if (strcmp(type, "Strip") == 0) {
        return parse_strip(normalizer, node, err);
    }
    if (strcmp(type, "Prepend") == 0) {
        return parse_prepend(normalizer, node, err);
    }
    if (strcmp(type, "Replace") == 0) {
        return parse_replace(normalizer, node, err);
    }
    if (strcmp(type, "BertNormalizer") == 0) {
        return parse_bert(normalizer, node, err);
    }
    return tr__node_refuse(node, type, err);
}

tr_status tr__normalizer_parse(const tr_node *node, const tr_unicode *unicode,
                               tr_normalizer *normalizer, tr_error *err) {
    normalizer->unicode = unicode;
    return tr__node_sequence(node, "normalizers", parse_part, normalizer, err);
}

void tr__normalizer_release(tr_normalizer *normalizer) {
    for (size_t i = 0; i < normalizer->count; i++) {
        tr__pattern_release(&normalizer->step[i].pattern);
        tr__text_release(&normalizer->step[i].content);
    }
    tr__free(normalizer->step);
    *normalizer = (tr_normalizer){0};
}
