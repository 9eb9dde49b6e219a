#include <tranche/checkpoint.h>

#include "base/sink.h"
#include "base/text.h"
#include "files/safetensors/json.h"

#include <inttypes.h>

static const struct {
    const char *key, *words;
} kinds[] = {
    [TR_DIFF_SAME] = {"same", "same"},
    [TR_DIFF_VALUES] = {"values", "values differ"},
    [TR_DIFF_DTYPE] = {"dtype", "other data type"},
    [TR_DIFF_SHAPE] = {"shape", "other shape"},
    [TR_DIFF_ONLY_A] = {"only_a", "only in the first"},
    [TR_DIFF_ONLY_B] = {"only_b", "only in the second"},
};

static void print_tensor(const tr_diff_tensor *tensor, FILE *to) {
    fprintf(to, "%-9s  ", tensor->file);
    tr__print_name(to, tensor->name, 44);
    fputc(' ', to);
    if (tensor->kind != TR_DIFF_VALUES && tensor->kind != TR_DIFF_DTYPE) {
        fprintf(to, " %s\n", kinds[tensor->kind].words);
        return;
    }
    fprintf(to, "%12" PRId64 " of %-12" PRId64 " max abs %-9.3g max rel %-9.3g",
            tensor->different, tensor->count, tensor->max_abs, tensor->max_rel);
    if (tensor->not_finite > 0) {
        fprintf(to, " not finite %" PRId64, tensor->not_finite);
    }
    if (tensor->kind == TR_DIFF_DTYPE) {
        fprintf(to, " %s", kinds[tensor->kind].words);
    }
    fputc('\n', to);
}

static void print_states(const tr_diff *diff, FILE *to) {
    for (size_t i = 0; i < diff->state_count; i++) {
        const tr_diff_state *state = &diff->states[i];
        fprintf(to, "%-9s  %-44s  %s, %s\n", "state", state->key,
                state->a[0] ? state->a : "nothing", state->b[0] ? state->b : "nothing");
    }
    if (diff->checkpoint_a != diff->checkpoint_b) {
        fprintf(
            to,
            "only the %s is a checkpoint: weights are compared, optimizer and state "
            "are not\n",
            diff->checkpoint_a ? "first" : "second");
    } else if (diff->optimizer_a != diff->optimizer_b) {
        fprintf(to, "only the %s has the optimizer's state\n",
                diff->optimizer_a ? "first" : "second");
    }
}

static void print_all(const tr_diff *diff, FILE *to) {
    fputs("first   ", to);
    tr__print_name(to, diff->a, 0);
    fputs("\nsecond  ", to);
    tr__print_name(to, diff->b, 0);
    fputc('\n', to);
    for (size_t i = 0; i < diff->count; i++) {
        if (diff->tensors[i].kind != TR_DIFF_SAME) {
            print_tensor(&diff->tensors[i], to);
        }
    }
    print_states(diff, to);
    if (diff->identical) {
        fprintf(to, "bit-identical: %zu tensor%s, %" PRId64 " element%s\n", diff->count,
                tr__plural((int64_t)diff->count), diff->elements,
                tr__plural(diff->elements));
        return;
    }
    fprintf(to,
            "%zu of %zu tensor%s differ%s, %" PRId64 " of %" PRId64
            " element%s; max abs %.3g, max rel %.3g\n",
            diff->different_tensors, diff->count, tr__plural((int64_t)diff->count),
            diff->different_tensors == 1 ? "s" : "", diff->different, diff->elements,
            tr__plural(diff->elements), diff->max_abs, diff->max_rel);
    if (diff->state_count > 0) {
        fprintf(to, "%zu value%s of state.json differ%s\n", diff->state_count,
                tr__plural((int64_t)diff->state_count),
                diff->state_count == 1 ? "s" : "");
    }
}

static tr_status print_text(const void *diff, FILE *to, tr_error *err) {
    (void)err;
    print_all(diff, to);
    return TR_OK;
}

tr_status tr_diff_print(const tr_diff *diff, const tr_sink *to, tr_error *err) {
    return tr__sink_print(to, "tr_diff_print", print_text, diff, err);
}

// [{"key", "a", "b"}, ...]; NULL: no memory.
static json_t *states_json(const tr_diff *diff) {
    json_t *list = json_array();
    int failed = !list;
    for (size_t i = 0; i < diff->state_count; i++) {
        const tr_diff_state *state = &diff->states[i];
        failed |=
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "key", state->key,
                                                  "a", state->a, "b", state->b));
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *tensor_json(const tr_diff_tensor *tensor) {
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "file", tensor->file,
        "name", tensor->name, "status", kinds[tensor->kind].key, "elements",
        (json_int_t)tensor->count, "different", (json_int_t)tensor->different,
        "not_finite", (json_int_t)tensor->not_finite, "max_abs",
        tr__json_double(tensor->max_abs), "max_rel", tr__json_double(tensor->max_rel),
        "l2", tr__json_double(tensor->l2), "l2_a", tr__json_double(tensor->l2_a));
}

static tr_status print_json(const void *of, FILE *to, tr_error *err) {
    const tr_diff *diff = of;
    json_t *list = json_array();
    int failed = 0;
    for (size_t i = 0; i < diff->count; i++) {
        failed |= json_array_append_new(list, tensor_json(&diff->tensors[i]));
    }
    if (failed) {
        json_decref(list);
        return tr_fail(err, TR_MEMORY, "no memory to write JSON");
    }
    json_t *root = json_pack(
        "{s:o, s:o, s:b, s:b, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "a",
        tr__json_path(diff->a), "b", tr__json_path(diff->b), "identical",
        diff->identical, "optimizer_compared", diff->optimizer_a && diff->optimizer_b,
        "state_compared", diff->checkpoint_a && diff->checkpoint_b, "state",
        states_json(diff), "tensor_count", (json_int_t)diff->count, "different_tensors",
        (json_int_t)diff->different_tensors, "elements", (json_int_t)diff->elements,
        "different", (json_int_t)diff->different, "not_finite",
        (json_int_t)diff->not_finite, "max_abs", tr__json_double(diff->max_abs),
        "max_rel", tr__json_double(diff->max_rel), "tensors", list);
    return tr__json_print(root, to, err);
}

tr_status tr_diff_print_json(const tr_diff *diff, const tr_sink *to, tr_error *err) {
    return tr__sink_print(to, "tr_diff_print_json", print_json, diff, err);
}
