#include "plan/proof/meaning.h"

#include <stdio.h>

bool tr__meaning_equal(const tr_meaning *a, const tr_meaning *b) {
    return a->kind == b->kind && a->of == b->of && a->version == b->version &&
           a->terms == b->terms && a->index == b->index && a->sum == b->sum &&
           a->base == b->base;
}

// splitmix64 (Steele, Lea and Flood, OOPSLA 2014): every bit depends on every bit.
static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t tr__contribution(int32_t unit, int32_t segment, int64_t micro) {
    return mix(mix((uint64_t)(uint32_t)unit << 32 | (uint32_t)segment) ^
               (uint64_t)micro);
}

// ---- words

typedef struct words {
    const tr_plan *plan;
    const tr_meaning *of;
    const char *update; // which version, in words
    char *text;
    size_t size;
} words;

static const char *unit_name(const words *w) {
    bool there = w->of->of >= 0 && w->of->of < w->plan->unit_count;
    return there ? w->plan->request.model->units[w->of->of].name
           : w->of->of == w->plan->unit_count ? "the caller"
                                              : "no unit";
}

static const char *flat_name(const words *w) {
    bool there = w->of->of >= 0 && w->of->of < (int64_t)w->plan->flat_count;
    return there ? w->plan->flats[w->of->of].name : "no flat buffer";
}

static void say_micro(const words *w, const char *what) {
    const tr_meaning *m = w->of;
    snprintf(w->text, w->size, "%s of %s on micro-batch %lld (segments done: %d)", what,
             unit_name(w), (long long)m->index, (int)m->terms);
}

static void say_wave(const words *w, const char *what) {
    const tr_meaning *m = w->of;
    snprintf(w->text, w->size, "%s of %s over %d micro-batches from %lld on", what,
             unit_name(w), (int)m->terms, (long long)m->index);
}

static void say_parts(const words *w, const char *whose) {
    const tr_meaning *m = w->of;
    snprintf(w->text, w->size, "%s parts of %swave tensors of %s, segment %lld", whose,
             m->terms ? "the gradients of " : "", unit_name(w), (long long)m->index);
}

static void say_version(const words *w, const char *what) {
    snprintf(w->text, w->size, "%s of %s, %s", what, flat_name(w), w->update);
}

static void say_state(const words *w, const char *what) {
    snprintf(w->text, w->size, "%s %lld of %s, %s", what, (long long)w->of->index,
             flat_name(w), w->update);
}

static void say_sum(const words *w, const char *what) {
    const tr_meaning *m = w->of;
    const char *param = w->plan->params[m->of].name;
    snprintf(w->text, w->size,
             "%s of %s over %d contributions, the last of micro-batch %lld", what,
             param, (int)m->terms, (long long)m->index);
}

static void say_scopes(const words *w, const char *what) {
    snprintf(w->text, w->size, "the gradient of %s over all ranks, %s %lld",
             flat_name(w), what, (long long)w->of->index);
}

static void say_gradient(const words *w) {
    switch (w->of->kind) {
    case TR_MEANS_GRADIENT:
        say_sum(w, "the f32 gradient");
        return;
    case TR_MEANS_SUM:
        say_sum(w, "the sum of the gradient");
        return;
    case TR_MEANS_HANDED:
        say_scopes(w, "scope");
        return;
    case TR_MEANS_TOTAL:
        say_scopes(w, "scopes added up:");
        return;
    case TR_MEANS_FIRST_WAVE:
        snprintf(w->text, w->size,
                 "the gradient of %s over the first wave, of %lld stages", flat_name(w),
                 (long long)w->of->index);
        return;
    case TR_MEANS_SQUARES:
        snprintf(w->text, w->size, "the squares of the gradient of %s", flat_name(w));
        return;
    default:
        snprintf(w->text, w->size,
                 "squares of the first micro-batch's gradients of %d segments",
                 (int)w->of->terms);
    }
}

static void say_kept(const words *w) {
    switch (w->of->kind) {
    case TR_MEANS_PARAMETERS:
        say_version(w, w->of->index ? "this rank's part of the parameters"
                                    : "the parameters");
        return;
    case TR_MEANS_MASTERS:
        say_version(w, "the master weights");
        return;
    case TR_MEANS_STATE:
        say_state(w, "optimizer state");
        return;
    case TR_MEANS_MOVED_STATE:
        say_state(w, "the newly measured optimizer state");
        return;
    default:
        snprintf(w->text, w->size, "the model's states of %s, %s", unit_name(w),
                 w->update);
    }
}

static void say_unit(const words *w) {
    switch (w->of->kind) {
    case TR_MEANS_INPUT:
        say_micro(w, "the input");
        return;
    case TR_MEANS_INPUT_GRADIENT:
        say_micro(w, "the gradient of the input");
        return;
    case TR_MEANS_HELD:
        say_micro(w, "what the backward keeps");
        return;
    case TR_MEANS_SAVED:
        say_micro(w, "the saved activations");
        return;
    case TR_MEANS_CARRIED:
        snprintf(w->text, w->size, "what pieces of %s carry, of micro-batch %lld",
                 unit_name(w), (long long)w->of->index);
        return;
    case TR_MEANS_WAVE:
        say_wave(w, "wave tensors");
        return;
    case TR_MEANS_MERGED_WAVE:
        say_wave(w, "merged wave tensors");
        return;
    case TR_MEANS_WAVE_GRADIENT:
        say_wave(w, "gradients of wave tensors");
        return;
    case TR_MEANS_WAVE_PARTS:
        say_parts(w, "this rank's");
        return;
    case TR_MEANS_ALL_WAVE_PARTS:
        say_parts(w, "all ranks'");
        return;
    default:
        say_wave(w, "merged gradients of wave tensors");
    }
}

static void say_step(const words *w) {
    static const char *const plain[] = {
        [TR_MEANS_NOTHING] = "nothing",
        [TR_MEANS_SCRATCH] = "one step's working memory",
        [TR_MEANS_DROPPED] = "what an interrupted step has left",
        [TR_MEANS_ZEROS] = "zeros",
        [TR_MEANS_STATISTICS] = "the statistics of the step, of all ranks",
        [TR_MEANS_SQUARE_SUMS] = "the sums of the squares of this rank's gradients",
        [TR_MEANS_NORMS] = "the norms of all tensors",
        [TR_MEANS_DIRECTION] = "directions of a flat buffer's elements",
        [TR_MEANS_LOGITS] = "the logits",
        [TR_MEANS_CACHE] = "what a unit keeps of earlier positions",
        [TR_MEANS_PACKED] = "what kernels have packed of a unit's parameters",
    };
    long long index = (long long)w->of->index;
    switch (w->of->kind) {
    case TR_MEANS_DATA:
        snprintf(w->text, w->size, "the data of micro-batch %lld", index);
        return;
    case TR_MEANS_LOSS:
        snprintf(w->text, w->size, "the loss of micro-batch %lld, %d contributions",
                 index, (int)w->of->terms);
        return;
    case TR_MEANS_FLAG:
        snprintf(w->text, w->size, "entry %d of the step's statistics", (int)w->of->of);
        return;
    case TR_MEANS_MEASURES:
        snprintf(w->text, w->size, "what has been measured of %lld elements", index);
        return;
    case TR_MEANS_TENSOR_SUMS:
        snprintf(w->text, w->size, "the sums of what %s measured of tensors",
                 index ? "all ranks have" : "this rank has");
        return;
    default:
        snprintf(w->text, w->size, "%s", plain[w->of->kind]);
    }
}

void tr__meaning_words(const tr_plan *plan, const tr_meaning *meaning, int32_t version,
                       char *text, size_t size) {
    int32_t updates = meaning->version - version;
    words w = {plan, meaning, NULL, text, size};
    w.update = updates == 0   ? "as this step computes with"
               : updates == 1 ? "as this step updates them"
                              : "of an earlier step";
    if (meaning->kind >= TR_MEANS_INPUT && meaning->kind <= TR_MEANS_ALL_WAVE_PARTS) {
        say_unit(&w);
    } else if ((meaning->kind >= TR_MEANS_PARAMETERS &&
                meaning->kind <= TR_MEANS_MOVED_STATE) ||
               meaning->kind == TR_MEANS_MODEL_STATES) {
        say_kept(&w);
    } else if ((meaning->kind >= TR_MEANS_GRADIENT &&
                meaning->kind <= TR_MEANS_FIRST_WAVE) ||
               meaning->kind == TR_MEANS_SQUARES ||
               meaning->kind == TR_MEANS_FIRST_SQUARES) {
        say_gradient(&w);
    } else {
        say_step(&w);
    }
}
