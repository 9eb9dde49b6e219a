#include "snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The tensor that parameter `i` of the plan is, or is a slice of.
static snapshot_tensor *tensor_of(snapshot *s, const trial *t, size_t i) {
    const tr_plan_param *param = &t->plan->params[i];
    for (size_t k = 0; k < s->count; k++) {
        if (strcmp(s->tensors[k].name, param->stored) == 0) {
            return &s->tensors[k];
        }
    }
    snapshot_tensor *tensor = &s->tensors[s->count++];
    tensor->name = strdup(param->stored);
    tensor->count = tr_shape_count(param->stored_shape);
    return tensor;
}

// A part of the tensor that parameter `i` belongs to.
static float *part_of(snapshot *s, const trial *t, size_t i, int part) {
    snapshot_tensor *tensor = tensor_of(s, t, i);
    if (!tensor->part[part]) {
        tensor->part[part] = calloc((size_t)tensor->count, sizeof(float));
    }
    assert_non_null(tensor->part[part]);
    return tensor->part[part];
}

// Copies a piece, wherever it lives, to its elements' places: `lies` in `to`.
static void copy_piece(const trial *t, const tr_piece *piece, const tr_stride *lies,
                       float *to) {
    tr_error err = {0};
    tr_piece run;
    for (int64_t at = 0; at < piece->count; at += run.count) {
        trial_ok(tr__executor_borrow(t->engine->executor, piece, at, &run, &err), &err);
        int64_t now = 0;
        for (int64_t done = 0; done < run.count; done += now) {
            now = run.count - done;
            int64_t place = tr__stride_at(lies, run.first + done, &now);
            memcpy(to + place, run.data + done, (size_t)now * sizeof(float));
        }
    }
}

// It has values, and nothing else.
static bool is_frozen(const trial *t, size_t i) {
    return t->plan->flats[t->plan->params[i].flat].frozen;
}

// Its bits are no values: those of a part are others than those of the whole.
static bool is_in_bits(const trial *t, size_t i) {
    return t->plan->params[i].quantized != TR_QUANTIZED_NOT;
}

static void begin(snapshot *s, const trial *t) {
    s->count = 0;
    s->tensors = calloc(t->plan->param_count, sizeof *s->tensors);
    assert_non_null(s->tensors);
}

void snapshot_take(snapshot *s, const trial *t) {
    int states = tr__plan_states(t->plan);
    begin(s, t);
    for (size_t i = 0; i < t->plan->param_count; i++) {
        for (int state = -1; state < states && !is_in_bits(t, i); state++) {
            tr_piece piece = tr__executor_held(t->engine->executor, (int)i, state);
            const tr_flat *flat = &t->plan->flats[t->plan->params[i].flat];
            if (state >= tr__flat_states(t->plan, flat)) {
                assert_int_equal(piece.count, 0);
                continue;
            }
            assert_int_equal(piece.count, t->plan->params[i].count);
            copy_piece(t, &piece, &t->plan->params[i].lies,
                       part_of(s, t, i, state + 1));
        }
    }
}

// Of a parameter that ranks have parts of, its tensor's elements; else its own.
static int64_t elements_of(const trial *t, size_t i) {
    const tr_plan_param *param = &t->plan->params[i];
    return t->plan->flats[param->flat].split ? tr_shape_count(param->stored_shape)
                                             : param->count;
}

// The elements of all tensors and states, one after the other: this rank's at their
// places, zeros at the others'.
static void put_own(const trial *t, int states, uint32_t *to) {
    for (size_t i = 0; i < t->plan->param_count; i++) {
        for (int state = -1; state < states && !is_in_bits(t, i); state++) {
            tr_piece piece = tr__executor_own(t->engine->executor, (int)i, state);
            const tr_stride *lies = &t->plan->params[i].lies, alone = {.first = 0};
            copy_piece(t, &piece, lies->run > 0 ? lies : &alone, (float *)to);
            to += elements_of(t, i);
        }
    }
}

void snapshot_gather(snapshot *s, const trial *t) {
    int states = tr__plan_states(t->plan);
    size_t count = (size_t)(tr_plan_parameters(t->plan) * (1 + states));
    size_t ranks = (size_t)tr_mesh_ranks(&t->plan->request.mesh);
    uint32_t *own = calloc(count, sizeof *own);
    uint32_t *all = calloc(ranks * count, sizeof *all), *from = own;
    tr_error err = {0};
    assert_true(own && all);
    put_own(t, states, own);
    if (t->engine->comm) {
        trial_ok(
            tr__comm_all_gather(t->engine->comm, own, count * sizeof *own, all, &err),
            &err);
    }
    for (size_t k = 0; k < ranks * count; k++) {
        own[k % count] |= all[k];
    }
    begin(s, t);
    for (size_t i = 0; i < t->plan->param_count; i++) {
        for (int p = 0; p <= states && !is_in_bits(t, i); p++) {
            const tr_flat *flat = &t->plan->flats[t->plan->params[i].flat];
            if (p <= tr__flat_states(t->plan, flat)) {
                const tr_stride *lies = &t->plan->params[i].lies;
                memcpy(part_of(s, t, i, p) + (lies->run > 0 ? 0 : lies->first), from,
                       (size_t)elements_of(t, i) * sizeof *from);
            }
            from += elements_of(t, i);
        }
    }
    free(own);
    free(all);
}

void snapshot_take_gradients(snapshot *s, const trial *t) {
    begin(s, t);
    for (size_t i = 0; i < t->plan->param_count; i++) {
        const tr_plan_param *param = &t->plan->params[i];
        if (!is_frozen(t, i)) {
            assert_true(
                tr__executor_read_grad(t->engine->executor, (int)i, 0, param->count,
                                       part_of(s, t, i, 0) + param->lies.first));
        }
    }
}

void snapshot_free(snapshot *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->tensors[i].name);
        for (int p = 0; p < SNAPSHOT_PARTS; p++) {
            free(s->tensors[i].part[p]);
        }
    }
    free(s->tensors);
    *s = (snapshot){0};
}

const snapshot_tensor *snapshot_find(const snapshot *s, const char *name) {
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->tensors[i].name, name) == 0) {
            return &s->tensors[i];
        }
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

void snapshot_assert_same(const snapshot *a, const snapshot *b) {
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const snapshot_tensor *x = &a->tensors[i];
        const snapshot_tensor *y = snapshot_find(b, x->name);
        assert_int_equal(x->count, y->count);
        for (int p = 0; p < SNAPSHOT_PARTS; p++) {
            assert_int_equal(!x->part[p], !y->part[p]);
            if (x->part[p] &&
                memcmp(x->part[p], y->part[p], (size_t)x->count * sizeof(float)) != 0) {
                fail_msg("%s: part %d has other bits", x->name, p);
            }
        }
    }
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

// Is this an element of a key bias, whose true gradient is 0: the middle third of
// attn.c_attn.bias, or all of BERT's?
static bool left_out(const snapshot_tensor *tensor, int64_t i) {
    int64_t third = tensor->count / 3;
    if (ends_with(tensor->name, "self.key.bias")) {
        return true;
    }
    return ends_with(tensor->name, "attn.c_attn.bias") && i >= third && i < 2 * third;
}

// The L2 distance of one part of `b` from that of `a`, by share of the distance of `a`
// from `from` (NULL: from zero).
static double share_apart(const snapshot_tensor *a, const snapshot_tensor *b, int part,
                          const float *from) {
    const float *x = a->part[part], *y = b->part[part];
    double moved = 0, apart = 0;
    for (int64_t i = 0; i < a->count; i++) {
        if (!left_out(a, i)) {
            moved += pow((double)x[i] - (from ? (double)from[i] : 0), 2);
            apart += pow((double)x[i] - (double)y[i], 2);
        }
    }
    return apart > 0 ? sqrt(apart / moved) : 0;
}

double snapshot_assert_close(const snapshot *start, const snapshot *uncut,
                             const snapshot *cut, double tolerance, const char *what) {
    static const char *const parts[SNAPSHOT_PARTS] = {"values", "first state",
                                                      "second state"};
    double worst = 0;
    assert_int_equal(uncut->count, cut->count);
    for (size_t t = 0; t < uncut->count; t++) {
        const snapshot_tensor *a = &uncut->tensors[t];
        const snapshot_tensor *b = snapshot_find(cut, a->name);
        const float *from = start ? snapshot_find(start, a->name)->part[0] : NULL;
        assert_int_equal(a->count, b->count);
        for (int p = 0; p < SNAPSHOT_PARTS; p++) {
            assert_int_equal(!a->part[p], !b->part[p]);
            double share = a->part[p] ? share_apart(a, b, p, p == 0 ? from : NULL) : 0;
            if (!(share <= tolerance)) {
                fail_msg("%s: %s of %s: a distance of %.3g of the way, at most %.3g",
                         what, parts[p], a->name, share, tolerance);
            }
            worst = p == 0 ? fmax(worst, share) : worst;
        }
    }
    return worst;
}

void snapshot_end(snapshot *ends, int i, trial *t) {
    snapshot_take(&ends[i], t);
    trial_close(t);
    snapshot_assert_same(&ends[0], &ends[i]);
}
