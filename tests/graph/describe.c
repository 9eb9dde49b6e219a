#include "graph/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct text {
    char *at;
    size_t left;
} text;

static void put(text *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(text *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to->at, to->left, format, args);
    va_end(args);
    if (length > 0 && (size_t)length < to->left) {
        to->at += length;
        to->left -= (size_t)length;
    }
}

// How many of the kind and of the same index come before this value?
static int earlier(const tr_graph *graph, tr_value value) {
    const tr_value_info *info = &graph->values[value];
    int count = 0;
    for (tr_value v = 0; v < value; v++) {
        const tr_value_info *other = &graph->values[v];
        count += other->kind == info->kind &&
                 (info->kind == TR_VALUE_TEMP || other->index == info->index);
    }
    return count;
}

static void put_value(text *to, const tr_graph *graph, tr_value value) {
    if (value == TR_NO_VALUE) {
        put(to, "_");
        return;
    }
    const tr_value_info *info = &graph->values[value];
    switch (info->kind) {
    case TR_VALUE_INPUT:
        put(to, "i%d", info->index);
        break;
    case TR_VALUE_DATA:
        put(to, info->index == 0 ? "x" : "t");
        break;
    case TR_VALUE_PARAM:
        put(to, "p%d", info->index);
        break;
    case TR_VALUE_STATE:
        put(to, "s%d", info->index);
        break;
    case TR_VALUE_NODE:
        put(to, info->index ? "n%d.%d" : "n%d", info->node, info->index);
        break;
    case TR_VALUE_GRAD:
        put(to, "d");
        put_value(to, graph, (tr_value)info->index);
        for (int i = earlier(graph, value); i > 0; i--) {
            put(to, "'");
        }
        break;
    case TR_VALUE_TEMP:
        put(to, "t%d", earlier(graph, value));
        break;
    case TR_VALUE_LOGITS:
        put(to, "logits");
        break;
    case TR_VALUE_CACHE:
        put(to, "c%d", info->node);
        break;
    }
}

static void put_call(text *to, const tr_graph *graph, const tr_call *call) {
    put(to, "%s(", call->op->name);
    for (int i = 0; i < call->in_count; i++) {
        put(to, i ? " " : "");
        put_value(to, graph, call->in[i]);
    }
    put(to, " ->");
    for (int i = 0; i < call->out_count; i++) {
        put(to, call->accumulate >> i & 1 ? " +" : call->first >> i & 1 ? " ?" : " ");
        put_value(to, graph, call->out[i]);
    }
    put(to, ")\n");
}

const char *test_describe(const tr_graph *graph, const tr_derivation *derived,
                          char *dst) {
    text to = {dst, TEST_TEXT};
    dst[0] = 0;
    int segment = graph->segment_count - 1;
    for (size_t i = 0; i < derived->backward_count; i++) {
        if (derived->backward[i].segment != segment) {
            put(&to, "--\n");
            segment = derived->backward[i].segment;
        }
        put_call(&to, graph, &derived->backward[i]);
    }
    return dst;
}

const char *test_describe_values(const tr_graph *graph, const bool *flags, char *dst) {
    text to = {dst, TEST_TEXT};
    dst[0] = 0;
    for (size_t v = 0; v < graph->value_count; v++) {
        tr_value_kind kind = graph->values[v].kind;
        if (kind == TR_VALUE_GRAD || kind == TR_VALUE_TEMP) {
            break;
        }
        if (flags[v]) {
            put(&to, to.at == dst ? "" : " ");
            put_value(&to, graph, (tr_value)v);
        }
    }
    return dst;
}
