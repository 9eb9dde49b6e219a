// Gradients of weights behind the exchange of their input's gradient. Where ranks sum
// the gradient of what a product works on, its sum is what the rest of the backward
// waits for: so the parts of it are made first, and the gradients of the product's
// weights, which nobody waits for, are computed while ranks exchange (as Megatron-LM
// does). What is recomputed for these weights alone goes with them; what is gathered
// for them is gathered while the parts of the sum are made.
#include "graph/derive_walk.h"

#include "base/memory.h"

#include <string.h>

// Calls [first, exchange] of one segment, the last of which is an exchange.
typedef struct stretch {
    const tr_walk *w;
    size_t first, exchange;
    bool *later; // [calls of the backward] goes behind the exchange
} stretch;

static const tr_call *call_at(const stretch *s, size_t index) {
    return &s->w->out->backward[index];
}

static bool reads(const tr_call *call, tr_value value) {
    for (int i = 0; i < call->in_count; i++) {
        bool read = !(call->op->shape_only >> i & 1);
        if (read && value != TR_NO_VALUE && call->in[i] == value) {
            return true;
        }
    }
    return false;
}

static bool writes(const tr_call *call, tr_value value) {
    for (int i = 0; i < call->out_count; i++) {
        if (value != TR_NO_VALUE && call->out[i] == value) {
            return true;
        }
    }
    return false;
}

static bool reads_result(const tr_call *reader, const tr_call *maker) {
    for (int i = 0; i < maker->out_count; i++) {
        if (reads(reader, maker->out[i])) {
            return true;
        }
    }
    return false;
}

// Must `call` come before `next`, which follows it?
static bool is_tied(const tr_call *call, const tr_call *next) {
    bool tied = reads_result(next, call) || reads_result(call, next);
    for (int i = 0; i < call->out_count && !tied; i++) {
        tied = writes(next, call->out[i]);
    }
    return tied;
}

// May it come behind all that stays between it and the exchange, and behind that?
static bool may_follow(const stretch *s, size_t index) {
    for (size_t i = index + 1; i <= s->exchange; i++) {
        if (!s->later[i] && is_tied(call_at(s, index), call_at(s, i))) {
            return false;
        }
    }
    return true;
}

// Does it work on the gradient that a part of the sum is made of?
static bool is_of_sum(const stretch *s, const tr_call *call) {
    tr_value sum = call_at(s, s->exchange)->in[0];
    for (size_t i = s->first; i < s->exchange; i++) {
        const tr_call *maker = call_at(s, i);
        for (int k = 0; k < maker->in_count && writes(maker, sum); k++) {
            bool whole = !(maker->op->shape_only >> k & 1);
            if (whole && reads(call, maker->in[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool is_for_later(const stretch *s, size_t index) {
    for (size_t i = index + 1; i < s->exchange; i++) {
        if (s->later[i] && reads_result(call_at(s, i), call_at(s, index))) {
            return true;
        }
    }
    return false;
}

static bool goes_behind(const stretch *s, size_t index) {
    const tr_call *call = call_at(s, index);
    bool of_weights = tr__walk_makes_weights(s->w, call) && is_of_sum(s, call);
    bool for_them = tr__walk_recomputes(s->w, call) && is_for_later(s, index);
    return (of_weights || for_them) && may_follow(s, index);
}

// Puts those that go behind the exchange there, in their order.
static void put_behind(const stretch *s, tr_call *scratch) {
    tr_call *calls = s->w->out->backward;
    size_t stay = s->first, count = 0;
    for (size_t i = s->first; i <= s->exchange; i++) {
        if (s->later[i]) {
            scratch[count++] = calls[i];
            s->later[i] = false;
        } else {
            calls[stay++] = calls[i];
        }
    }
    memcpy(calls + stay, scratch, count * sizeof *calls);
}

static bool sums(const tr_call *call) {
    return (call->op->flags & TR_OP_EXCHANGE) && !(call->op->flags & TR_OP_GATHERS);
}

bool tr__walk_hide_exchanges(tr_walk *w) {
    tr_derivation *out = w->out;
    tr_call *scratch = tr__calloc(out->backward_count, sizeof *scratch);
    stretch s = {.w = w, .later = tr__calloc(out->backward_count, sizeof *s.later)};
    bool good = scratch && s.later;
    for (size_t i = 0; i < out->weights && good; i++) {
        bool begins =
            i == 0 || out->backward[i].segment != out->backward[i - 1].segment;
        s.first = begins ? i : s.first;
        s.exchange = i;
        for (size_t k = i; sums(&out->backward[i]) && k-- > s.first;) {
            s.later[k] = goes_behind(&s, k);
        }
        if (sums(&out->backward[i])) {
            put_behind(&s, scratch);
        }
    }
    tr__free(scratch);
    tr__free(s.later);
    return good;
}
