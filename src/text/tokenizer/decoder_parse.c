#include "base/memory.h"
#include "text/tokenizer/decoder.h"

static tr_decode_step *add(tr_decoder *d, tr_decode_kind kind, tr_error *err) {
    if (!tr__grow((void **)&d->step, &d->capacity, d->count + 1, sizeof *d->step)) {
        tr_fail(err, TR_MEMORY, "no memory for a decoder");
        return NULL;
    }
    d->step[d->count] = (tr_decode_step){.kind = kind};
    return &d->step[d->count++];
}

static tr_status keep(tr_text *to, const char *text, size_t bytes, tr_error *err) {
    tr__text_add(to, text, bytes);
    return to->failed ? tr_fail(err, TR_MEMORY, "no memory for a decoder") : TR_OK;
}

static tr_status parse_text(const tr_node *node, const char *key, const char *absent,
                            tr_text *to, tr_error *err) {
    const char *text = absent;
    size_t bytes = absent ? strlen(absent) : 0;
    tr_node member = tr__node_member(node, key);
    tr_status status =
        member.value || !absent ? tr__node_text(&member, &text, &bytes, err) : TR_OK;
    return status == TR_OK ? keep(to, text, bytes, err) : status;
}

static tr_status parse_replace(tr_decode_step *step, const tr_node *node,
                               const tr_unicode *unicode, tr_error *err) {
    tr_node pattern = tr__node_member(node, "pattern");
    tr_status status = tr__pattern_parse(&pattern, unicode, &step->pattern, err);
    return status == TR_OK ? parse_text(node, "content", NULL, &step->text, err)
                           : status;
}

static tr_status parse_character(const tr_node *node, const char *name, tr_text *text,
                                 tr_error *err) {
    const char *character;
    size_t bytes;
    tr_node member = tr__node_member(node, name);
    tr_status status = tr__node_character(&member, &character, &bytes, err);
    return status == TR_OK ? keep(text, character, bytes, err) : status;
}

static tr_status parse_strip(tr_decode_step *step, const tr_node *node, tr_error *err) {
    tr_node start = tr__node_member(node, "start");
    tr_node stop = tr__node_member(node, "stop");
    tr_status status = parse_character(node, "content", &step->text, err);
    if (status == TR_OK) {
        status = tr__node_integer(&start, 0, INT64_MAX, &step->start, err);
    }
    if (status == TR_OK) {
        status = tr__node_integer(&stop, 0, INT64_MAX, &step->stop, err);
    }
    return status;
}

static tr_status parse_metaspace(tr_decode_step *step, const tr_node *node,
                                 tr_error *err) {
    const char *text;
    size_t bytes;
    bool prefix = true;
    tr_node scheme = tr__node_member(node, "prepend_scheme");
    tr_node older = tr__node_member(node, "add_prefix_space");
    tr_status status = parse_character(node, "replacement", &step->text, err);
    if (status == TR_OK) {
        status = tr__node_bool(&older, true, &prefix, err);
    }
    if (status == TR_OK && scheme.value) {
        status = tr__node_text(&scheme, &text, &bytes, err);
        prefix = status == TR_OK && strcmp(text, "never") != 0;
    }
    step->drop_first = prefix;
    return status;
}

static tr_status parse_wordpiece(tr_decode_step *step, const tr_node *node,
                                 tr_error *err) {
    tr_node cleanup = tr__node_member(node, "cleanup");
    tr_status status = parse_text(node, "prefix", "##", &step->text, err);
    return status == TR_OK ? tr__node_bool(&cleanup, true, &step->cleanup, err)
                           : status;
}

typedef struct parse_state {
    tr_decoder *decoder;
    const tr_unicode *unicode;
} parse_state;

static tr_status parse_step(tr_decode_step *step, const tr_node *node,
                            const tr_unicode *unicode, tr_error *err) {
    switch (step->kind) {
    case TR_DECODE_REPLACE:
        return parse_replace(step, node, unicode, err);
    case TR_DECODE_STRIP:
        return parse_strip(step, node, err);
    case TR_DECODE_METASPACE:
        return parse_metaspace(step, node, err);
    case TR_DECODE_WORDPIECE:
        return parse_wordpiece(step, node, err);
    case TR_DECODE_SUFFIX:
        return parse_text(node, "suffix", "</w>", &step->text, err);
    case TR_DECODE_BYTE_LEVEL:
    case TR_DECODE_BYTE_FALLBACK:
    case TR_DECODE_FUSE:
        return TR_OK;
    }
    return TR_OK;
}

static tr_status parse_part(void *context, const tr_node *node, const char *type,
                            tr_error *err) {
    static const struct {
        const char *type;
        tr_decode_kind kind;
    } parts[] = {
        {"ByteLevel", TR_DECODE_BYTE_LEVEL},
        {"ByteFallback", TR_DECODE_BYTE_FALLBACK},
        {"Fuse", TR_DECODE_FUSE},
        {"Replace", TR_DECODE_REPLACE},
        {"Strip", TR_DECODE_STRIP},
        {"Metaspace", TR_DECODE_METASPACE},
        {"WordPiece", TR_DECODE_WORDPIECE},
        {"BPEDecoder", TR_DECODE_SUFFIX},
    };
    const parse_state *state = context;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(type, parts[i].type) == 0) {
            tr_decode_step *step = add(state->decoder, parts[i].kind, err);
            return step ? parse_step(step, node, state->unicode, err) : TR_MEMORY;
        }
    }
    return tr__node_refuse(node, type, err);
}

tr_status tr__decoder_parse(const tr_node *node, const tr_unicode *unicode,
                            tr_decoder *decoder, tr_error *err) {
    parse_state state = {decoder, unicode};
    decoder->any = node->value != NULL;
    return tr__node_sequence(node, "decoders", parse_part, &state, err);
}

void tr__decoder_release(tr_decoder *decoder) {
    for (size_t i = 0; i < decoder->count; i++) {
        tr__pattern_release(&decoder->step[i].pattern);
        tr__text_release(&decoder->step[i].text);
    }
    tr__free(decoder->step);
    *decoder = (tr_decoder){0};
}
