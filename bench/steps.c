// The steps of a run, and nothing else: no checkpoint, so that a model that is larger
// than the disk can be measured.
//
//     steps RUN.json [--set KEY=VALUE]...
//
// Prints one JSON object: the median of targets a second over the steps after the
// first, the bytes that the plan takes on the device, and the last loss.
#include <tranche/engine.h>
#include <tranche/extend/plan.h>

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

static tr_status make_run(tr_run *run, const char *file, const char *const *set,
                          size_t count, tr_error *err) {
    tr_status status = tr_run_load_file(run, file, err);
    if (status == TR_OK) {
        status = tr_run_set(run, "resume", "never", err);
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = tr_run_assign(run, set[i], err);
    }
    return status == TR_OK ? tr_run_resolve(run, err) : status;
}

static tr_status measure(const char *file, const char *const *set, size_t count,
                         tr_error *err) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_step_result last = TR_STEP_RESULT_INIT;
    double rate = 0;
    tr_status status = tr_run_create(&run, err);
    if (status == TR_OK) {
        status = make_run(run, file, set, count, err);
    }
    if (status == TR_OK) {
        status = tr_run_make_plan(run, &plan, err);
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
    tr_run_destroy(run);
    return status;
}

int main(int argc, char **argv) {
    const char *set[SETS_MAX];
    const char *file = NULL;
    size_t count = 0;
    tr_error err = {0};
    for (int i = 1; i < argc; i++) {
        bool sets = strcmp(argv[i], "--set") == 0 && i + 1 < argc;
        if (sets && count < SETS_MAX) {
            set[count++] = argv[++i];
        } else if (argv[i][0] != '-' && !file) {
            file = argv[i];
        } else {
            file = NULL;
            break;
        }
    }
    if (!file) {
        fprintf(stderr, "usage: steps RUN.json [--set KEY=VALUE]...\n");
        return tr_status_exit(TR_USAGE);
    }
    tr_status status = measure(file, set, count, &err);
    if (status != TR_OK) {
        fprintf(stderr, "steps: %s\n", err.message);
    }
    return tr_status_exit(status);
}
