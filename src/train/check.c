#include <tranche/check.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/apart.h"
#include "run/run.h"
#include "train/check_cuts.h"
#include "train/engine.h"

#include <math.h>
#include <string.h>

// The first loss scale that fp16 is tried with, and how much lower the next is.
#define SCALE_FIRST 0x1p16
#define SCALE_STEP  0x1p4

typedef struct checker {
    tr_check *check;
    tr_run *run;
    float **first; // [tensors] gradients of the first cut
    size_t *param; // [tensors] its number in the plan
    double whole;  // norm of all of them
    double scale;  // the loss scale of fp16
    double power;  // by which the first cut divided its seeds
    tr_error *err;
} checker;

// A step of the cut, its gradients still in their accumulators.
typedef struct attempt {
    tr_plan *plan;
    tr_engine *engine;
    tr_step_result result;
} attempt;

static void end_attempt(attempt *a) {
    tr_engine_destroy(a->engine);
    tr_plan_destroy(a->plan);
    *a = (attempt){0};
}

static tr_status make_once(checker *c, const tr_plan_request *request, attempt *a,
                           tr_error *err) {
    tr_status status = tr_plan_make(request, &a->plan, err);
    if (status == TR_OK) {
        status = tr_engine_create(c->run, a->plan, &a->engine, err);
    }
    if (status == TR_OK) {
        status = tr_engine_step(a->engine, &a->result, err);
    }
    return status;
}

// In fp16 with the largest of a few loss scales at which nothing overflows, as a run
// would find it in its first steps.
static tr_status make_attempt(checker *c, const tr_plan_request *request, attempt *a,
                              tr_error *err) {
    bool scaled = request->compute == TR_F16;
    for (;; c->scale /= SCALE_STEP) {
        c->run->settings.scale =
            (tr_loss_scale_rules){.initial = scaled ? c->scale : 1};
        tr_status status = make_once(c, request, a, err);
        bool fits = isfinite(a->result.grad_norm) || c->scale <= 1;
        if (status != TR_OK || !scaled || fits) {
            return status;
        }
        end_attempt(a);
    }
}

enum { RUN = 1024 }; // elements that are read at a time

// Elements [first, first + *count) of a tensor's gradient, *count <= RUN of them. The
// accumulators hold loss_scale times the gradient's sum. false: cannot be read.
static bool read_grad(const checker *c, const attempt *a, size_t t, int64_t first,
                      int64_t *count, float values[RUN]) {
    const tr_check_tensor *tensor = &c->check->tensors[t];
    double scale = a->engine->seed_power / c->power / a->result.loss_scale;
    *count = tr__min_i64(RUN, tensor->count - first);
    if (!tr__executor_read_grad(a->engine->executor, (int)c->param[t], first, *count,
                                values)) {
        return false;
    }
    for (int64_t i = 0; i < *count; i++) {
        values[i] = (float)(values[i] * scale);
    }
    return true;
}

// ---- the first cut

static tr_status list_tensors(checker *c, const tr_plan *plan, tr_error *err) {
    c->check->tensors = tr__calloc(plan->param_count, sizeof *c->check->tensors);
    c->first = tr__calloc(plan->param_count, sizeof *c->first);
    c->param = tr__calloc(plan->param_count, sizeof *c->param);
    if (!c->check->tensors || !c->first || !c->param) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (plan->flats[param->flat].frozen) {
            continue;
        }
        size_t t = c->check->tensor_count++;
        tr_check_tensor *tensor = &c->check->tensors[t];
        c->param[t] = i;
        tensor->name = tr__strdup(param->name);
        tensor->count = param->count;
        c->first[t] = tr__calloc((size_t)param->count, sizeof **c->first);
        if (!tensor->name || !c->first[t]) {
            return tr_fail(err, TR_MEMORY, "no memory for a copy of the gradients");
        }
    }
    return TR_OK;
}

// The tensor's gradient, and the sum of its squares.
static bool keep_tensor(checker *c, const attempt *a, size_t t, double *squares) {
    const tr_check_tensor *tensor = &c->check->tensors[t];
    int64_t now = 0;
    *squares = 0;
    for (int64_t at = 0; at < tensor->count; at += now) {
        float values[RUN];
        if (!read_grad(c, a, t, at, &now, values)) {
            return false;
        }
        for (int64_t i = 0; i < now; i++) {
            c->first[t][at + i] = values[i];
            *squares += (double)values[i] * values[i];
        }
    }
    return true;
}

static tr_status keep_first(checker *c, const attempt *a, tr_error *err) {
    tr_status status = list_tensors(c, a->plan, err);
    double whole = 0;
    c->power = a->engine->seed_power;
    for (size_t t = 0; t < c->check->tensor_count && status == TR_OK; t++) {
        double squares;
        if (!keep_tensor(c, a, t, &squares)) {
            return tr_fail(
                err, TR_USAGE,
                "a check reads gradients in memory, which it cannot in reproducible "
                "mode, or with gradients on NVMe: change that for the check by --set");
        }
        c->check->tensors[t].norm = sqrt(squares);
        whole += squares;
    }
    c->whole = sqrt(whole);
    if (status == TR_OK && !isfinite(c->whole)) {
        status = tr_fail(err, TR_NUMBERS,
                         "the gradients of the first step are not "
                         "finite");
    }
    return status;
}

// ---- every cut

static double distance_of(const checker *c, const attempt *a, size_t t, double part,
                          bool *same) {
    const tr_check_tensor *tensor = &c->check->tensors[t];
    int64_t now = 0;
    double sum = 0;
    for (int64_t at = 0; at < tensor->count; at += now) {
        float values[RUN];
        const float *first = c->first[t] + at;
        if (!read_grad(c, a, t, at, &now, values)) {
            return NAN;
        }
        *same = *same && memcmp(values, first, (size_t)now * sizeof *values) == 0;
        for (int64_t i = 0; i < now; i++) {
            double off = (double)values[i] - first[i];
            sum += off * off;
        }
    }
    double least = part * c->whole;
    double norm = tensor->norm > least ? tensor->norm : least;
    return tr__plain(sum > 0 ? sqrt(sum) / norm : sum);
}

static tr_status judge(checker *c, const attempt *a, tr_check_cut *cut, tr_error *err) {
    const tr_check_cut *first = &c->check->cuts[0];
    bool same = true, near = true;
    cut->distance = tr__calloc(c->check->tensor_count, sizeof *cut->distance);
    if (!cut->distance) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    cut->loss = a->result.loss;
    cut->grad_norm = a->result.grad_norm;
    for (size_t t = 0; t < c->check->tensor_count; t++) {
        cut->distance[t] = distance_of(c, a, t, cut->least, &same);
        near = near && cut->distance[t] <= cut->tolerance; // NaN is not
        double worst = cut->distance[cut->worst];          // NaN is the worst there is
        bool worse = !isnan(worst) && !(cut->distance[t] <= worst);
        cut->worst = worse ? t : cut->worst;
    }
    double off = fabs(cut->loss - first->loss);
    cut->passed =
        near && off <= cut->tolerance * fabs(first->loss) && (same || !cut->same_bits);
    return TR_OK;
}

// What cannot be made is skipped with its reason, unless it is the run itself.
static bool may_skip(tr_status status) {
    return status == TR_BUDGET || status == TR_USAGE;
}

static tr_status try_cut(checker *c, const tr_plan_request *request, tr_check_cut *cut,
                         tr_error *err) {
    bool is_first = cut == c->check->cuts;
    attempt a = {0};
    tr_error mine = {0};
    tr_status status = make_attempt(c, request, &a, &mine);
    if (status == TR_OK && is_first) {
        status = keep_first(c, &a, &mine);
    }
    if (status == TR_OK) {
        cut->loss = a.result.loss;
        status = judge(c, &a, cut, &mine);
    }
    end_attempt(&a);
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
static tr_status try_on(checker *c, tr_dataset *data, const tr_cut_request *asked,
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
    tr_status status = try_cut(c, &request, cut, err);
    run->train = train;
    run->order = order;
    run->batcher = batcher;
    return status;
}

static tr_status try_apart(checker *c, const tr_cut_request *asked, tr_check_cut *cut,
                           tr_error *err) {
    tr_dataset *data = NULL;
    tr_status status = take_apart(c->run, &data, err);
    if (status == TR_OK) {
        status = try_on(c, data, asked, cut, err);
    }
    tr_dataset_destroy(data);
    return status;
}

static tr_status make_cuts(checker *c, double tolerance, tr_error *err) {
    tr_cut_request asked[TR_CHECK_CUTS];
    tr_plan *plan = NULL;
    tr_status status = tr_plan_make(tr_run_plan_request(c->run), &plan, err);
    if (status != TR_OK) {
        return status;
    }
    size_t count =
        tr__check_cuts(&plan->request, tr_plan_flops(plan), tolerance, asked);
    tr_plan_destroy(plan);
    c->check->cuts = tr__calloc(count, sizeof *c->check->cuts);
    if (!c->check->cuts) {
        return tr_fail(err, TR_MEMORY, "no memory for a check");
    }
    c->check->passed = true;
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_check_cut *cut = &c->check->cuts[i];
        *cut = asked[i].cut;
        c->check->cut_count++;
        if (!cut->skipped[0]) {
            status = asked[i].apart ? try_apart(c, &asked[i], cut, err)
                                    : try_cut(c, &asked[i].request, cut, err);
        }
        c->check->passed = c->check->passed && (cut->skipped[0] || cut->passed);
    }
    return status;
}

tr_status tr_check_run(const tr_run_options *options, double tolerance, tr_check **out,
                       tr_error *err) {
    tr_run_options own = *options;
    checker c = {
        .err = err, .scale = SCALE_FIRST, .check = tr__calloc(1, sizeof *c.check)};
    own.resume = "never";
    own.trace = NULL;
    own.steps = 1;
    tr_status status = c.check ? TR_OK : tr_fail(err, TR_MEMORY, "no memory");
    if (status == TR_OK && options->comm && tr_comm_ranks(options->comm) > 1) {
        status = tr_fail(err, TR_USAGE,
                         "a check is made by one process; this is one "
                         "of several ranks");
    }
    if (status == TR_OK) {
        status = tr_run_open(&own, &c.run, err);
    }
    if (status == TR_OK) {
        c.run->settings.dry = true;
        status = make_cuts(&c, tolerance > 0 ? tolerance : 1e-4, err);
    }
    for (size_t t = 0; c.first && t < c.check->tensor_count; t++) {
        tr__free(c.first[t]);
    }
    tr__free(c.first);
    tr__free(c.param);
    tr_run_close(c.run);
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
    }
    tr__free(check->tensors);
    tr__free(check->cuts);
    tr__free(check);
}
