// The statistics of a step: each rank's, and what all of them come to.
#include "exec/statistics.h"

#include "base/checked.h"
#include "exec/walk.h"
#include "ops/flat/exact_sums/exact_sums.h"

#include <math.h>
#include <string.h>

static double *statistics_of(const tr_executor *ex, int64_t rank) {
    double *all = tr__memory(ex, ex->plan->statistics.buffer);
    return all + rank * ex->plan->statistics.doubles;
}

double *tr__own_statistics(const tr_executor *ex) {
    return statistics_of(ex, tr_mesh_rank(&ex->plan->request.mesh));
}

// The sums of the loss of a data rank's micro-batches.
static const double *sums_of(const tr_executor *ex, int64_t data) {
    int64_t rank =
        tr__loss_rank(&ex->plan->request.mesh, tr__plan_last_stage(ex->plan), data);
    return statistics_of(ex, rank) + ex->plan->statistics.sums;
}

// By micro-batch: data ranks take runs of them.
static void add_sums(const tr_executor *ex, tr_step_statistics *all) {
    for (int64_t r = 0; r < tr__data_ranks(&ex->plan->request); r++) {
        const double *sums = sums_of(ex, r);
        for (int64_t j = 0; j < ex->plan->request.accumulation_steps; j++) {
            for (int i = 0; i < TR_SUMS; i++) {
                all->sums[i] += sums[j * TR_SUMS + i];
            }
        }
    }
}

static void add_squares(const tr_executor *ex, tr_step_statistics *all) {
    int64_t sums[TR_NORM_SUMS][TR_EXACT_WORDS] = {{0}}, norm[TR_EXACT_WORDS] = {0};
    for (int64_t r = 0; r < tr_mesh_ranks(&ex->plan->request.mesh); r++) {
        const double *own = statistics_of(ex, r) + ex->plan->statistics.norm;
        for (int i = 0; i < TR_NORM_SUMS; i++) {
            int64_t words[TR_EXACT_WORDS];
            memcpy(words, own + i * TR_EXACT_WORDS, sizeof words);
            tr__exact_add_sum(sums[i], words);
        }
    }
    for (int i = 0; i < TR_NORM_SUMS; i++) {
        tr__exact_add_sum(norm, sums[i]);
    }
    all->untied.squares = tr__exact_value(sums[TR_NORM_UNTIED]);
    all->tied.squares = tr__exact_value(sums[TR_NORM_TIED]);
    all->norm_squares = tr__exact_value(norm);
}

// What a data rank's ranks have measured, each of what it owns.
static double measured_of(const tr_executor *ex, int64_t data,
                          tr_statistics_flag flag) {
    const tr_axes others = TR_ON_TENSOR | TR_ON_PIPELINE;
    tr_mesh mesh = ex->plan->request.mesh;
    double sum = 0;
    mesh.at[TR_AXIS_DATA] = data;
    for (int64_t k = 0; k < tr__mesh_members(&mesh, others); k++) {
        sum += statistics_of(ex, tr__mesh_rank_of(&mesh, others, k))[flag];
    }
    return sum;
}

// Of each data rank's first `micros` micro-batches, by their own count of targets;
// ranks without any have no say.
static void compare_firsts(const tr_executor *ex, tr_statistics_flag squares,
                           int64_t micros, tr_measured *out) {
    for (int64_t r = 0; r < tr__data_ranks(&ex->plan->request); r++) {
        const double *sums = sums_of(ex, r);
        double count = 0;
        for (int64_t j = 0; j < micros; j++) {
            count += sums[j * TR_SUMS + TR_SUM_COUNT];
        }
        if (count > 0) {
            out->firsts++;
            out->first_squares += measured_of(ex, r, squares) / (count * count);
            out->first_inverse += 1 / count;
        }
    }
    if (out->firsts > 0) {
        out->first_squares /= (double)out->firsts;
        out->first_inverse /= (double)out->firsts;
    }
}

static void compare_parts(const tr_executor *ex, tr_step_statistics *all) {
    const tr_plan_request *r = &ex->plan->request;
    if (r->measure == TR_MEASURE_NEVER) {
        return;
    }
    compare_firsts(ex, TR_STATISTICS_SQUARES, 1, &all->untied);
    if (ex->plan->micro_norms_tied) {
        int64_t wave = tr__min_i64(r->wave, r->accumulation_steps);
        compare_firsts(ex, TR_STATISTICS_TIED_SQUARES, wave, &all->tied);
    }
}

static void compare_flags(const tr_executor *ex, tr_step_statistics *all) {
    int64_t ranks = tr_mesh_ranks(&ex->plan->request.mesh);
    for (int64_t r = 0; r < ranks; r++) {
        double bad = statistics_of(ex, r)[TR_STATISTICS_FIRST_BAD];
        bool first = bad > 0 && (all->first_bad == 0 || bad < all->first_bad);
        all->first_bad = first ? bad : all->first_bad;
    }
    for (int i = 0; i < TR_STATISTICS_FLAGS; i++) {
        all->least[i] = all->most[i] = statistics_of(ex, 0)[i];
        for (int64_t r = 0; r < ranks; r++) {
            double value = statistics_of(ex, r)[i];
            all->least[i] = fmin(all->least[i], value);
            all->most[i] = fmax(all->most[i], value);
            all->mean[i] += value / (double)ranks;
        }
    }
}

void tr__executor_statistics(const tr_executor *executor, tr_step_statistics *all) {
    memset(all, 0, sizeof *all);
    add_sums(executor, all);
    add_squares(executor, all);
    compare_flags(executor, all);
    compare_parts(executor, all);
    all->save_asked = all->most[TR_STATISTICS_ASKED] >= TR_ASKS_SAVE;
    all->stopped = all->most[TR_STATISTICS_ASKED] >= TR_ASKS_END;
    all->too_large = all->most[TR_STATISTICS_TOO_LARGE] > 0;
    all->not_finite = all->most[TR_STATISTICS_NOT_FINITE] > 0;
}

// A rank that is done before others waits for them, too.
double tr__executor_stage_wait(const tr_executor *executor, int64_t stage) {
    const tr_mesh *mesh = &executor->plan->request.mesh;
    double all = 0, waited = 0, ranks = 0;
    for (int64_t r = 0; r < tr_mesh_ranks(mesh); r++) {
        all = fmax(all, statistics_of(executor, r)[TR_STATISTICS_SECONDS]);
    }
    for (int64_t r = 0; r < tr_mesh_ranks(mesh); r++) {
        const double *own = statistics_of(executor, r);
        if (tr__mesh_of_rank(mesh, r).at[TR_AXIS_PIPELINE] == stage) {
            waited += own[TR_STATISTICS_WAIT] + all - own[TR_STATISTICS_SECONDS];
            ranks++;
        }
    }
    return all > 0 ? waited / (ranks * all) : 0;
}
