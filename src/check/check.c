#include <tranche/engine.h>

#include "base/arguments.h"
#include "base/checked.h"
#include "base/memory.h"
#include "check/check_ops.h"
#include "check/check_steps.h"
#include "data/sources/dataset.h"
#include "data/text/apart.h"
#include "models/models.h"
#include "run/run.h"

#include <math.h>
#include <string.h>

// Runs that differ by rounding alone.
enum { DRAWS = 4 };

// Makes a cut once more, from other weights.
static tr_status draw_once(tr_checker *c, const tr_kept_cut *from, tr_movement *m,
                           tr_error *err) {
    tr_attempt a = {0};
    tr_status status = tr__check_step(c, &from->request, &a, err);
    for (size_t t = 0; t < c->check->tensor_count && status == TR_OK; t++) {
        bool same = true;
        m->distance[t] =
            fmax(m->distance[t], tr__check_distance(c, &a, from, t, &same));
    }
    if (status == TR_OK) {
        m->loss = fmax(m->loss, fabs(a.result.loss - from->loss));
    }
    tr__check_end(&a);
    return status;
}

static tr_status measure(tr_checker *c, const tr_kept_cut *from, double part,
                         tr_movement *m, tr_error *err) {
    tr_status status = TR_OK;
    m->distance = tr__calloc(c->check->tensor_count, sizeof *m->distance);
    if (!m->distance) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    c->part = part;
    for (c->draw = 1; c->draw <= DRAWS && status == TR_OK; c->draw++) {
        status = draw_once(c, from, m, err);
    }
    c->part = 0;
    return status;
}

static void allow(const tr_checker *c, const tr_cut_request *asked,
                  const tr_movement *moved, tr_check_cut *cut) {
    double loss = fabs(c->first.loss), rounding = tr__check_rounding(asked->rounds);
    for (size_t t = 0; t < c->check->tensor_count; t++) {
        double measured =
            moved ? tr__check_allowed(moved->distance[t], asked->change) : 0;
        cut->allowed[t] = cut->same_bits ? 0
                          : moved        ? measured + asked->summed
                                         : cut->tolerance;
    }
    cut->loss_allowed =
        moved ? tr__check_allowed(moved->loss, asked->change) + rounding * loss
              : cut->tolerance * loss;
}

// What the cut may be off by. own: the cut's gradients, where its type is coarser than
// that of the first one, so that what rounding does is measured in it.
static tr_status find_allowed(tr_checker *c, const tr_cut_request *asked,
                              tr_kept_cut *own, tr_check_cut *cut, tr_error *err) {
    double part = tr__check_part(asked->rounds, asked->change);
    tr_movement *known = &c->moved[asked->change], mine = {0};
    tr_status status = TR_OK;
    if (asked->rounds == TR_ROUNDS_F32) {
        allow(c, asked, NULL, cut);
    } else if (own->values) {
        status = measure(c, own, part, &mine, err);
        allow(c, asked, &mine, cut);
        tr__free(mine.distance);
    } else {
        status = known->distance ? TR_OK : measure(c, &c->first, part, known, err);
        allow(c, asked, known, cut);
    }
    return status;
}

// Reads what the cut's step came to, and keeps its gradients where they are needed.
static tr_status read_step(tr_checker *c, const tr_attempt *a,
                           const tr_cut_request *asked, tr_check_cut *cut, bool *same,
                           tr_kept_cut *own, tr_error *err) {
    size_t tensors = c->check->tensor_count;
    cut->distance = tr__calloc(tensors, sizeof *cut->distance);
    cut->allowed = tr__calloc(tensors, sizeof *cut->allowed);
    if (!cut->distance || !cut->allowed) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    cut->loss = a->result.loss;
    cut->grad_norm = a->result.grad_norm;
    *same = true;
    for (size_t t = 0; t < tensors; t++) {
        cut->distance[t] = tr__check_distance(c, a, &c->first, t, same);
    }
    return asked->coarser ? tr__check_keep(c, a, own, err) : TR_OK;
}

// What cannot be made is skipped with its reason, unless it is the run itself.
static bool may_skip(tr_status status) {
    return status == TR_BUDGET || status == TR_USAGE;
}

// request: of the cut, `asked` but for other data.
static tr_status try_cut(tr_checker *c, const tr_plan_request *request,
                         const tr_cut_request *asked, tr_check_cut *cut,
                         tr_error *err) {
    bool is_first = cut == c->check->cuts, same = true;
    tr_attempt a = {0};
    tr_kept_cut own = {.request = *request};
    tr_error mine = {0};
    tr_status status = tr__check_step(c, request, &a, &mine);
    if (status == TR_OK && is_first) {
        status = tr__check_keep_first(c, &a, &mine);
    }
    if (status == TR_OK) {
        status = read_step(c, &a, asked, cut, &same, &own, &mine);
    }
    tr__check_end(&a);
    if (status == TR_OK) {
        status = find_allowed(c, asked, &own, cut, &mine);
    }
    if (status == TR_OK) {
        tr__check_judge(cut, c->check->tensor_count, same, c->first.loss);
    }
    tr__check_drop(c, &own);
    if (status != TR_OK && !is_first && may_skip(status)) {
        snprintf(cut->skipped, sizeof cut->skipped, "%.*s", TR_CHECK_TEXT - 1,
                 mine.message);
        return TR_OK;
    }
    return status == TR_OK ? TR_OK : tr_fail(err, status, "%s", mine.message);
}

// ---- documents apart

// The documents of the first step's samples, each in a sample of its own.
static tr_status take_apart(const tr_run *run, tr_dataset **out, tr_error *err) {
    tr_batch batch = tr__batcher_next(&run->batcher, 0);
    int64_t *index = tr__calloc((size_t)batch.count, sizeof *index);
    if (!index) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    for (int64_t i = 0; i < batch.count; i++) {
        index[i] = tr__order_sample(&run->order, 0, i);
    }
    tr_status status = tr__documents_apart(run->train, index, batch.count, out, err);
    tr__free(index);
    return status;
}

// The first step on other data, which is all of its batch.
static tr_status try_on(tr_checker *c, tr_dataset *data, const tr_cut_request *asked,
                        tr_check_cut *cut, tr_error *err) {
    tr_run *run = c->run;
    tr_dataset *train = run->train;
    tr_order order = run->order;
    tr_batcher batcher = run->batcher;
    tr_plan_request request = asked->request;
    int64_t samples = tr_dataset_samples(data);
    run->train = data;
    run->order = (tr_order){.samples = samples, .shuffled = false};
    run->batcher = (tr_batcher){.samples = samples, .batch = samples};
    request.train_batch_size = samples;
    request.accumulation_steps = tr__ceil_div(samples, request.micro_batch);
    tr_status status = try_cut(c, &request, asked, cut, err);
    run->train = train;
    run->order = order;
    run->batcher = batcher;
    return status;
}

static bool is_grouped(const tr_run *run) {
    return run->own_model && tr__model_type_reads_tokens(run->own_model->type) &&
           tr__model_group(run->own_model) > 0;
}

static tr_status try_apart(tr_checker *c, const tr_cut_request *asked,
                           tr_check_cut *cut, tr_error *err) {
    tr_dataset *data = NULL;
    if (is_grouped(c->run)) {
        snprintf(cut->skipped, sizeof cut->skipped,
                 "the texts of a sample belong together: its loss compares them");
        return TR_OK;
    }
    if (tr__dataset_has_weights(c->run->train)) {
        snprintf(cut->skipped, sizeof cut->skipped,
                 "a pair of spans has a sample of its own");
        return TR_OK;
    }
    tr_status status = take_apart(c->run, &data, err);
    if (status == TR_OK) {
        status = try_on(c, data, asked, cut, err);
    }
    tr_dataset_destroy(data);
    return status;
}

static tr_status make_cuts(tr_checker *c, double tolerance, tr_error *err) {
    tr_cut_request asked[TR_CHECK_CUTS];
    tr_plan *plan = NULL;
    tr_status status = tr_plan_make(tr_run_plan_request(c->run), &plan, err);
    if (status != TR_OK) {
        return status;
    }
    const tr_check_of of = {tr_plan_flops(plan), is_grouped(c->run)};
    size_t count = tr__check_cuts(&plan->request, &of, tolerance, asked);
    tr_plan_destroy(plan);
    c->first.request = asked[0].request;
    c->check->cuts = tr__calloc(count, sizeof *c->check->cuts);
    if (!c->check->cuts) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_check_cut *cut = &c->check->cuts[i];
        *cut = asked[i].cut;
        c->check->cut_count++;
        if (!cut->skipped[0]) {
            status = asked[i].apart
                         ? try_apart(c, &asked[i], cut, err)
                         : try_cut(c, &asked[i].request, &asked[i], cut, err);
        }
        c->check->passed = c->check->passed && (cut->skipped[0] || cut->passed);
    }
    return status;
}

// A run of the same, of one step from the beginning.
static tr_status open_first_step(const tr_run *run, tr_run **out, tr_error *err) {
    static const char *const values[][2] = {
        {"resume", "never"}, {"trace", "null"},  {"trace_step", "null"},
        {"steps", "1"},      {"epochs", "null"},
    };
    tr_status status = tr__run_again(run, out, err);
    for (size_t i = 0; i < sizeof values / sizeof *values && status == TR_OK; i++) {
        status = tr_run_set(*out, values[i][0], values[i][1], err);
    }
    return status == TR_OK ? tr_run_resolve(*out, err) : status;
}

// A wrong op may write over anything, so then no cut is made.
static tr_status make_check(tr_checker *c, double tolerance, tr_error *err) {
    tr_status status = tr__check_ops(c->run->model, c->check, &c->check->passed, err);
    return status == TR_OK && c->check->passed ? make_cuts(c, tolerance, err) : status;
}

tr_status tr_check_run(const tr_run *run, double tolerance, tr_check **out,
                       tr_error *err) {
    tr_status status = tr__need(run, "tr_check_run", "run", err);
    status = status == TR_OK ? tr__need(out, "tr_check_run", "out", err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_comm *comm = run->given.parts.comm;
    tr_checker c = {.scale = TR_CHECK_SCALE, .check = tr__calloc(1, sizeof *c.check)};
    status = c.check ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a check");
    if (status == TR_OK && comm && tr_comm_ranks(comm) > 1) {
        status = tr_fail(err, TR_USAGE,
                         "a check is made by one process; this is one "
                         "of several ranks");
    }
    if (status == TR_OK) {
        status = open_first_step(run, &c.run, err);
    }
    if (status == TR_OK) {
        c.run->settings.dry = true;
        status = make_check(&c, tolerance > 0 ? tolerance : 1e-4, err);
    }
    if (c.check) {
        tr__check_drop(&c, &c.first);
    }
    tr__free(c.param);
    for (int i = 0; i < TR_CHANGES_COUNT; i++) {
        tr__free(c.moved[i].distance);
    }
    tr_run_destroy(c.run);
    if (c.check) {
        c.check->size = sizeof *c.check;
    }
    if (status != TR_OK) {
        tr_check_destroy(c.check);
        return status;
    }
    *out = c.check;
    return TR_OK;
}

void tr_check_destroy(tr_check *check) {
    if (!check) {
        return;
    }
    for (size_t t = 0; t < check->tensor_count; t++) {
        tr__free(check->tensors[t].name);
    }
    for (size_t i = 0; i < check->cut_count; i++) {
        tr__free(check->cuts[i].distance);
        tr__free(check->cuts[i].allowed);
    }
    tr__free(check->ops);
    tr__free(check->tensors);
    tr__free(check->cuts);
    tr__free(check);
}
