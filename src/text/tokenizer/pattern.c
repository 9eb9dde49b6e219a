#include "text/tokenizer/pattern.h"

#include "base/memory.h"

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to cut a text into words");
}

static tr_status parse_regex(const tr_node *node, tr_pattern *pattern, tr_error *err) {
    const char *text;
    size_t bytes;
    tr_status status = tr__node_text(node, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    pattern->matcher = tr__pattern_known(text);
    return pattern->matcher ? TR_OK
                            : tr__regex_compile(node, text, bytes, &pattern->code, err);
}

static tr_status parse_literal(const tr_node *node, tr_pattern *pattern,
                               tr_error *err) {
    const char *text;
    tr_status status = tr__node_text(node, &text, &pattern->literal_bytes, err);
    if (status != TR_OK) {
        return status;
    }
    if (pattern->literal_bytes == 0) {
        return tr__node_fail(node, err, "an empty text is not supported");
    }
    pattern->literal = tr__calloc(pattern->literal_bytes + 1, 1);
    if (!pattern->literal) {
        return tr_fail(err, TR_MEMORY, "no memory for a pattern");
    }
    memcpy(pattern->literal, text, pattern->literal_bytes);
    return TR_OK;
}

tr_status tr__pattern_parse(const tr_node *node, const tr_unicode *unicode,
                            tr_pattern *pattern, tr_error *err) {
    tr_node regex = tr__node_member(node, "Regex");
    tr_node literal = tr__node_member(node, "String");
    *pattern = (tr_pattern){.unicode = unicode};
    if (json_is_string(node->value)) {
        return parse_literal(node, pattern, err);
    }
    if (regex.value) {
        return parse_regex(&regex, pattern, err);
    }
    if (literal.value) {
        return parse_literal(&literal, pattern, err);
    }
    return tr__node_fail(node, err,
                         "is neither {\"String\": ...} nor {\"Regex\": ...}");
}

void tr__pattern_release(tr_pattern *pattern) {
    tr__free(pattern->literal);
    tr__regex_release(pattern->code);
    *pattern = (tr_pattern){0};
}

static void cut_literal(const tr_pattern *pattern, const unsigned char *text,
                        tr_text_span within, tr_text_spans *spans, tr_text *kinds) {
    size_t from = within.begin, bytes = pattern->literal_bytes;
    while (from < within.end) {
        const unsigned char *found =
            memmem(text + from, within.end - from, pattern->literal, bytes);
        if (!found) {
            break;
        }
        size_t at = (size_t)(found - text);
        tr__cut_add(spans, kinds, from, at, false);
        tr__cut_add(spans, kinds, at, at + bytes, true);
        from = at + bytes;
    }
    tr__cut_add(spans, kinds, from, within.end, false);
}

static void cut_known(const tr_pattern *pattern, const unsigned char *text,
                      tr_text_span within, tr_text_spans *spans, tr_text *kinds) {
    const uint32_t *flags = pattern->unicode->flags;
    size_t from = within.begin, at = from;
    while (at < within.end && !spans->failed) {
        size_t end = pattern->matcher(flags, text, at, within.end);
        if (end == at) {
            at += tr__utf8_length(text[at]);
            continue;
        }
        tr__cut_add(spans, kinds, from, at, false);
        tr__cut_add(spans, kinds, at, end, true);
        from = at = end;
    }
    tr__cut_add(spans, kinds, from, within.end, false);
}

tr_status tr__pattern_cut(const tr_pattern *pattern, const unsigned char *text,
                          tr_text_span within, tr_text_spans *spans, tr_text *kinds,
                          tr_error *err) {
    tr_status status = TR_OK;
    if (pattern->code) {
        status = tr__regex_cut(pattern->code, text, within, spans, kinds, err);
    } else if (pattern->matcher) {
        cut_known(pattern, text, within, spans, kinds);
    } else {
        cut_literal(pattern, text, within, spans, kinds);
    }
    return status == TR_OK && (spans->failed || kinds->failed) ? no_memory(err)
                                                               : status;
}
