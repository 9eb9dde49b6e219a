// Evaluation: the model forward over the first validation samples, in order. Ranks take
// runs of micro-batches; the sums of each are kept apart and added in the order of the
// samples, so that the loss has the same bits for every number of ranks.
#include "base/arguments.h"
#include "base/checked.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "plan/flow/evaluation.h"
#include "train/engine.h"

#include <string.h>

enum {
    STOPPED = 0, // a record: whether its rank was asked for an end,
    SUMS = 1,    // then the sums of its micro-batches
};

typedef struct rounds {
    tr_engine *engine;
    tr_asking ask;
    int64_t rank, ranks; // along the data axis
    tr_evaluation_deal deal;
    int64_t doubles; // of a record
    double *own;     // [doubles]
    double *all;     // [ranks of the mesh][doubles]
    tr_feed *feed;
    double sums[TR_SUMS];
} rounds;

static tr_status open_rounds(rounds *r, int64_t count, tr_error *err) {
    tr_dataset *data = tr__run_validation_data(r->engine->run);
    const tr_mesh *mesh = &r->engine->plan->request.mesh;
    int64_t m = r->engine->plan->request.micro_batch;
    const tr_evaluation_deal *deal = &r->deal;
    tr_feed_options options = {
        .dataset = data,
        .batch = &r->engine->plan->batch,
        .model = r->engine->plan->request.model,
        .order = {.samples = tr_dataset_samples(data), .shuffled = false},
        .batcher = {.samples = count, .batch = deal->round * m},
        .steps = tr__ceil_div(deal->micros, deal->round),
        .micro_batch = m,
        .first_micro = r->rank * deal->share,
        .micros = deal->share,
        .weigh_whole = true,
        .slots = r->engine->plan->slots[1],
        .memory = tr__executor_ring(r->engine->executor, 1),
    };
    r->own = tr__calloc((size_t)r->doubles, sizeof *r->own);
    r->all = tr__calloc((size_t)(r->doubles * tr_mesh_ranks(mesh)), sizeof *r->all);
    if (!r->own || !r->all) {
        return tr_fail(err, TR_MEMORY, "no memory for an evaluation's sums");
    }
    tr_status status = tr__feed_create(&options, &r->feed, err);
    tr__executor_feed(r->engine->executor, 1, r->feed);
    return status;
}

static void close_rounds(rounds *r) {
    tr__executor_feed(r->engine->executor, 1, NULL);
    tr__feed_destroy(r->feed);
    tr__free(r->own);
    tr__free(r->all);
}

// This rank's micro-batches of a round, as many at a time as the plan has in one
// sequence. An end that is asked for is noted in the record: ranks stop together, after
// the round.
static tr_status run_share(rounds *r, int64_t micros, tr_error *err) {
    tr_engine *engine = r->engine;
    tr_run_context context = {.seed = engine->settings->seed};
    tr_walk_calls calls = {.stop = tr__is_asked, .user = &r->ask};
    double *sums = tr__executor_sums(engine->executor);
    int64_t most = engine->plan->evaluated;
    for (int64_t j = 0; j < micros; j += most) {
        calls.micros = tr__min_i64(most, micros - j);
        memset(sums, 0, (size_t)(most * TR_SUMS) * sizeof *sums);
        tr_error mine = {0};
        tr_status status = tr__executor_run(engine->executor, TR_SEQUENCE_EVALUATE,
                                            &context, &calls, &mine);
        if (status == TR_INTERRUPTED) {
            r->own[STOPPED] = 1;
        } else if (status != TR_OK) {
            return tr_fail(err, status, "%s", mine.message);
        }
        memcpy(r->own + SUMS + j * TR_SUMS, sums,
               (size_t)(calls.micros * TR_SUMS) * sizeof *sums);
    }
    return TR_OK;
}

// What all ranks have found, by micro-batch.
static tr_status add_records(rounds *r, int64_t micros, tr_error *err) {
    const tr_mesh *mesh = &r->engine->plan->request.mesh;
    int64_t last = tr__plan_last_stage(r->engine->plan);
    double stopped = 0;
    tr_status status = TR_OK;
    if (r->engine->comm) {
        status = tr__comm_all_gather(r->engine->comm, r->own,
                                     (size_t)r->doubles * sizeof *r->own, r->all, err);
    } else {
        memcpy(r->all, r->own, (size_t)r->doubles * sizeof *r->own);
    }
    for (int64_t k = 0; k < tr_mesh_ranks(mesh) && status == TR_OK; k++) {
        stopped += r->all[k * r->doubles + STOPPED];
    }
    for (int64_t k = 0; k < r->ranks && status == TR_OK; k++) {
        int64_t rank = tr__loss_rank(mesh, last, k);
        const double *record = r->all + rank * r->doubles;
        for (int64_t i = 0; i < micros * TR_SUMS; i++) {
            r->sums[i % TR_SUMS] += record[SUMS + i];
        }
    }
    return stopped > 0 ? TR_INTERRUPTED : status;
}

// Every rank runs as many micro-batches, of which the last ones may be empty.
static tr_status run_rounds(rounds *r, tr_error *err) {
    for (int64_t first = 0; first < r->deal.micros; first += r->deal.round) {
        int64_t micros = tr__evaluation_share(&r->deal, first);
        tr_status status = run_share(r, micros, err);
        if (status == TR_OK) {
            status = add_records(r, micros, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

static tr_status evaluate(rounds *r, int64_t count, tr_error *err) {
    tr_error mine = {0};
    r->deal = tr__evaluation_deal(r->engine->plan, count);
    r->doubles = SUMS + r->deal.share * TR_SUMS;
    tr_status status = open_rounds(r, count, &mine);
    status = tr__agree(r->engine->comm, status, &mine, err);
    if (status == TR_OK) {
        status = run_rounds(r, &mine);
        status = tr__engine_end_work(r->engine, status, &mine, err);
    }
    close_rounds(r);
    return status;
}

tr_status tr__engine_evaluate_until(tr_engine *engine, int64_t samples,
                                    bool (*stop)(void *user), void *user,
                                    tr_evaluation *result, tr_error *err) {
    const tr_plan_request *request = &engine->plan->request;
    tr_dataset *data = tr__run_validation_data(engine->run);
    if (!data) {
        return tr_fail(
            err, TR_USAGE,
            "there is no validation data: set data.validation to files or to "
            "a fraction");
    }
    int64_t all = tr_dataset_samples(data);
    int64_t count = samples > 0 ? tr__min_i64(samples, all) : all;
    rounds r = {.engine = engine,
                .ask = {engine->comm, stop, user},
                .rank = tr__data_rank(request),
                .ranks = tr__data_ranks(request)};
    tr_status status = tr_engine_refresh(engine, err);
    if (status == TR_OK) {
        status = evaluate(&r, count, err);
    }
    *result = (tr_evaluation){
        .size = sizeof *result,
        .loss = tr__plain(r.sums[TR_SUM_LOSS] / r.sums[TR_SUM_COUNT]),
        .accuracy = tr__plain(r.sums[TR_SUM_CORRECT] / r.sums[TR_SUM_COUNT]),
        .samples = count};
    return status;
}

tr_status tr_engine_evaluate(tr_engine *engine, int64_t samples, tr_evaluation *result,
                             tr_error *err) {
    static const char name[] = "tr_engine_evaluate";
    static const tr_sized known = {"tr_evaluation", "TR_EVALUATION_INIT",
                                   sizeof *result, 0};
    tr_evaluation made = TR_EVALUATION_INIT;
    tr_status status = tr__engine_need(engine, result, name, "result", err);
    status = status == TR_OK ? tr__need_sized(result, &known, name, err) : status;
    status = status == TR_OK ? tr__engine_enter(engine, result, name, "result", err)
                             : status;
    if (status != TR_OK) {
        return status;
    }
    status = tr__engine_need_loss(engine, name, err);
    if (status == TR_OK) {
        status = tr__engine_evaluate_until(engine, samples, engine->stop,
                                           engine->stop_user, &made, err);
    }
    if (status == TR_OK) {
        tr__give_sized(result, &made);
    }
    tr__engine_leave(engine, status, err);
    return status;
}
