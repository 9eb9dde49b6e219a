// The steps of a run, and nothing else: no checkpoint, so that a model that is larger
// than the disk can be measured.
//
//     steps RUN.json [--set KEY=VALUE]...
//
// Prints one JSON object: the median of targets a second over the steps after the
// first, the bytes that the plan takes on the device, and the last loss.
#include <tranche/engine.h>
#include <tranche/plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 64, STEPS_MAX = 1000 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static tr_status make_steps(tr_engine *engine, int64_t steps, double *rate,
                            tr_step_result *last, tr_error *err) {
    double rates[STEPS_MAX];
    int count = 0;
    for (int64_t i = 0; i < steps && i < STEPS_MAX; i++) {
        tr_status status = tr_engine_step(engine, last, err);
        if (status != TR_OK) {
            return status;
        }
        rates[count] = last->targets / last->seconds;
        count += i > 0 || steps == 1; // the first touches memory for the first time
    }
    qsort(rates, (size_t)count, sizeof *rates, by_value);
    *rate = count > 0 ? rates[count / 2] : 0;
    return TR_OK;
}

static tr_status measure(const tr_run_options *options, tr_error *err) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_step_result last = {0};
    double rate = 0;
    tr_status status = tr_run_open(options, &run, err);
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(run), &plan, err);
    }
    if (status == TR_OK) {
        status = tr_engine_create(run, plan, &engine, err);
    }
    if (status == TR_OK) {
        status = make_steps(engine, tr_run_steps(run), &rate, &last, err);
    }
    if (status == TR_OK) {
        printf(
            "{\"tokens_per_second\": %.2f, \"planned_bytes\": %lld, \"loss\": %.6g}\n",
            rate, (long long)tr_plan_ledger(plan)->total[TR_SPACE_DEVICE], last.loss);
    }
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_close(run);
    return status;
}

int main(int argc, char **argv) {
    const char *set[SETS_MAX];
    tr_run_options options = {.resume = "never", .set = set};
    tr_error err = {0};
    for (int i = 1; i < argc; i++) {
        bool sets = strcmp(argv[i], "--set") == 0 && i + 1 < argc;
        if (sets && options.set_count < SETS_MAX) {
            set[options.set_count++] = argv[++i];
        } else if (argv[i][0] != '-' && !options.file) {
            options.file = argv[i];
        } else {
            options.file = NULL;
            break;
        }
    }
    if (!options.file) {
        fprintf(stderr, "usage: steps RUN.json [--set KEY=VALUE]...\n");
        return tr_status_exit(TR_USAGE);
    }
    tr_status status = measure(&options, &err);
    if (status != TR_OK) {
        fprintf(stderr, "steps: %s\n", err.message);
    }
    return tr_status_exit(status);
}
