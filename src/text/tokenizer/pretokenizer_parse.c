#include "base/memory.h"
#include "text/tokenizer/pretokenizer.h"

static tr_cut_step *add(tr_pretokenizer *p, tr_cut_kind kind, tr_error *err) {
    if (!tr__grow((void **)&p->step, &p->capacity, p->count + 1, sizeof *p->step)) {
        tr_fail(err, TR_MEMORY, "no memory for a pre-tokenizer");
        return NULL;
    }
    p->step[p->count] = (tr_cut_step){.kind = kind, .behavior = TR_CUT_ISOLATED};
    return &p->step[p->count++];
}

static tr_status add_class(tr_pretokenizer *p, uint32_t flags, tr_cut_behavior behavior,
                           tr_error *err) {
    tr_cut_step *step = add(p, TR_CUT_CLASS, err);
    if (!step) {
        return TR_MEMORY;
    }
    step->flags = flags;
    step->behavior = behavior;
    return TR_OK;
}

// absent: the behavior where the file has none; -1: it must.
static tr_status parse_behavior(const tr_node *node, int absent,
                                tr_cut_behavior *behavior, tr_error *err) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *text;
    size_t bytes;
    tr_node member = tr__node_member(node, "behavior");
    if (!member.value && absent >= 0) {
        *behavior = (tr_cut_behavior)absent;
        return TR_OK;
    }
    tr_status status = tr__node_text(&member, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *behavior = (tr_cut_behavior)i;
            return TR_OK;
        }
    }
    return tr__node_refuse(&member, text, err);
}

static tr_status parse_flag(const tr_node *node, const char *key, bool absent,
                            bool *out, tr_error *err) {
    tr_node member = tr__node_member(node, key);
    return tr__node_bool(&member, absent, out, err);
}

static tr_status parse_split(tr_pretokenizer *p, const tr_node *node, tr_error *err) {
    tr_cut_step *step = add(p, TR_CUT_PATTERN, err);
    if (!step) {
        return TR_MEMORY;
    }
    tr_node pattern = tr__node_member(node, "pattern");
    tr_status status = tr__pattern_parse(&pattern, p->unicode, &step->pattern, err);
    if (status == TR_OK) {
        status = parse_behavior(node, -1, &step->behavior, err);
    }
    return status == TR_OK ? parse_flag(node, "invert", false, &step->invert, err)
                           : status;
}

static tr_status parse_delimiter(tr_pretokenizer *p, const tr_node *node,
                                 tr_error *err) {
    tr_cut_step *step = add(p, TR_CUT_PATTERN, err);
    if (!step) {
        return TR_MEMORY;
    }
    tr_node delimiter = tr__node_member(node, "delimiter");
    step->behavior = TR_CUT_REMOVED;
    return tr__pattern_parse(&delimiter, p->unicode, &step->pattern, err);
}

static tr_status parse_byte_level(tr_pretokenizer *p, const tr_node *node,
                                  tr_error *err) {
    bool prefix = false, regex = false;
    tr_status status = parse_flag(node, "add_prefix_space", true, &prefix, err);
    if (status == TR_OK) {
        status = parse_flag(node, "use_regex", true, &regex, err);
    }
    if (status == TR_OK && prefix && !add(p, TR_CUT_BYTE_PREFIX, err)) {
        return TR_MEMORY;
    }
    if (status == TR_OK && regex) {
        tr_cut_step *step = add(p, TR_CUT_PATTERN, err);
        if (!step) {
            return TR_MEMORY;
        }
        step->pattern = (tr_pattern){.matcher = tr__pattern_known(tr__pattern_gpt2),
                                     .unicode = p->unicode};
    }
    return status == TR_OK && !add(p, TR_CUT_BYTE_LEVEL, err) ? TR_MEMORY : status;
}

static tr_status parse_digits(tr_pretokenizer *p, const tr_node *node, tr_error *err) {
    bool single;
    tr_status status = parse_flag(node, "individual_digits", false, &single, err);
    return status == TR_OK
               ? add_class(p, TR_NUMERIC, single ? TR_CUT_ISOLATED : TR_CUT_CONTIGUOUS,
                           err)
               : status;
}

static tr_status parse_punctuation(tr_pretokenizer *p, const tr_node *node,
                                   tr_error *err) {
    tr_cut_behavior behavior = TR_CUT_ISOLATED;
    tr_status status = parse_behavior(node, TR_CUT_ISOLATED, &behavior, err);
    return status == TR_OK ? add_class(p, TR_PUNCT, behavior, err) : status;
}

static tr_status parse_bert(tr_pretokenizer *p, const tr_node *node, tr_error *err) {
    (void)node;
    tr_status status = add_class(p, TR_SPACE, TR_CUT_REMOVED, err);
    return status == TR_OK ? add_class(p, TR_BERT_PUNCTUATION, TR_CUT_ISOLATED, err)
                           : status;
}

static tr_status parse_whitespace(tr_pretokenizer *p, const tr_node *node,
                                  tr_error *err) {
    (void)node;
    return add(p, TR_CUT_WORDS, err) ? TR_OK : TR_MEMORY;
}

static tr_status parse_whitespace_split(tr_pretokenizer *p, const tr_node *node,
                                        tr_error *err) {
    (void)node;
    return add_class(p, TR_SPACE, TR_CUT_REMOVED, err);
}

// prepend_scheme, or add_prefix_space of older files.
static tr_status parse_prepend(const tr_node *node, tr_prepend *prepend,
                               tr_error *err) {
    static const char *const names[] = {"always", "first", "never"};
    const char *text;
    size_t bytes;
    bool prefix = true;
    tr_node scheme = tr__node_member(node, "prepend_scheme");
    if (!scheme.value) {
        tr_status status = parse_flag(node, "add_prefix_space", true, &prefix, err);
        *prepend = prefix ? TR_PREPEND_ALWAYS : TR_PREPEND_NEVER;
        return status;
    }
    tr_status status = tr__node_text(&scheme, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *prepend = (tr_prepend)i;
            return TR_OK;
        }
    }
    return tr__node_refuse(&scheme, text, err);
}

static tr_status parse_metaspace(tr_pretokenizer *p, const tr_node *node,
                                 tr_error *err) {
    const char *mark;
    bool split = true;
    tr_cut_step *step = add(p, TR_CUT_METASPACE, err);
    if (!step) {
        return TR_MEMORY;
    }
    tr_node replacement = tr__node_member(node, "replacement");
    tr_status status = tr__node_character(&replacement, &mark, &step->mark_bytes, err);
    if (status == TR_OK) {
        memcpy(step->mark, mark, step->mark_bytes);
        status = parse_prepend(node, &step->prepend, err);
    }
    if (status == TR_OK) {
        status = parse_flag(node, "split", true, &split, err);
    }
    if (status == TR_OK && split) {
        step = add(p, TR_CUT_PATTERN, err);
        if (!step) {
            return TR_MEMORY;
        }
        step->behavior = TR_CUT_MERGED_WITH_NEXT;
        status = tr__pattern_parse(&replacement, p->unicode, &step->pattern, err);
    }
    return status;
}

static tr_status parse_part(void *context, const tr_node *node, const char *type,
                            tr_error *err) {
    static const struct {
        const char *type;
        tr_status (*parse)(tr_pretokenizer *p, const tr_node *node, tr_error *err);
    } parts[] = {
        {"ByteLevel", parse_byte_level},
        {"Split", parse_split},
        {"CharDelimiterSplit", parse_delimiter},
        {"Digits", parse_digits},
        {"Punctuation", parse_punctuation},
        {"Metaspace", parse_metaspace},
        {"Whitespace", parse_whitespace},
        {"WhitespaceSplit", parse_whitespace_split},
        {"BertPreTokenizer", parse_bert},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(type, parts[i].type) == 0) {
            return parts[i].parse(context, node, err);
        }
    }
    return tr__node_refuse(node, type, err);
}

tr_status tr__pretokenizer_parse(const tr_node *node, const tr_unicode *unicode,
                                 tr_pretokenizer *pretokenizer, tr_error *err) {
    pretokenizer->unicode = unicode;
    return tr__node_sequence(node, "pretokenizers", parse_part, pretokenizer, err);
}

void tr__pretokenizer_release(tr_pretokenizer *pretokenizer) {
    for (size_t i = 0; i < pretokenizer->count; i++) {
        tr__pattern_release(&pretokenizer->step[i].pattern);
    }
    tr__free(pretokenizer->step);
    *pretokenizer = (tr_pretokenizer){0};
}
