#include "train/watch/metrics.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

// A line while it is put together; what does not fit is cut, and said at its end.
typedef struct line {
    char text[LINE_MAX_BYTES];
    size_t length;
} line;

static void put(line *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(line *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t room = sizeof to->text - to->length;
    int length = vsnprintf(to->text + to->length, room, format, args);
    va_end(args);
    if (length > 0) {
        to->length += (size_t)length < room ? (size_t)length : room - 1;
    }
}

static const char validation_key[] = "\"validation_loss\": ";

// JSON has no NaN: null stands for what is not finite.
static void put_value(line *to, double value) {
    char text[TR_DOUBLE_TEXT_MAX];
    put(to, "%s", isfinite(value) ? tr__print_double(text, value) : "null");
}

static void put_number(line *to, const char *name, double value) {
    put(to, ", \"%s\": ", name);
    put_value(to, value);
}

// What every line begins with. The step comes first: keep_bytes looks for it there.
static void begin_line(line *to, int64_t step, const char *kind) {
    to->length = 0;
    put(to, "{\"step\": %" PRId64 ", \"kind\": \"%s\", \"time\": %.3f", step, kind,
        tr__wall_seconds());
}

// Where the disk is full, the training goes on, and lines wait until there is room:
// what was written of them is taken back, so that those after it stay whole.
static tr_status without_room(tr_metrics *metrics, int problem, tr_error *err) {
    bool full = problem == ENOSPC || problem == EDQUOT;
    if (!full || ftruncate(metrics->file, metrics->bytes) != 0) {
        return tr_fail(err, TR_IO, "%s: cannot write: %s", metrics->path,
                       strerror(problem));
    }
    if (!metrics->stopped) {
        metrics->stopped = true;
        tr__warn(metrics->log,
                 "%s: cannot write: %s; training goes on, and lines wait until there "
                 "is room",
                 metrics->path, strerror(problem));
    }
    return TR_OK;
}

// 0: all of it; else the error.
static int write_all(int file, const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t wrote = write(file, text, bytes);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return wrote == 0 ? ENOSPC : errno;
        }
        text += wrote;
        bytes -= (size_t)wrote;
    }
    return 0;
}

// The lines that wait go first.
static tr_status write_waiting(tr_metrics *metrics, tr_error *err) {
    int problem = write_all(metrics->file, metrics->waiting, metrics->waiting_bytes);
    if (problem != 0) {
        return without_room(metrics, problem, err);
    }
    metrics->bytes += (int64_t)metrics->waiting_bytes;
    metrics->waiting_bytes = 0;
    if (metrics->missing > 0) {
        tr__warn(metrics->log, "%s: is written again; %" PRId64 " lines are missing",
                 metrics->path, metrics->missing);
    } else if (metrics->stopped) {
        tr__note(metrics->log, "%s: is written again, with the lines that waited",
                 metrics->path);
    }
    metrics->missing = 0;
    metrics->stopped = false;
    return TR_OK;
}

// A line behind one that found no room there finds none either: what waits has no gaps.
static void wait(tr_metrics *metrics, const line *to) {
    bool room = metrics->waiting && metrics->missing == 0 &&
                to->length <= TR_METRICS_WAIT - metrics->waiting_bytes;
    if (!room) {
        metrics->missing++;
        return;
    }
    memcpy(metrics->waiting + metrics->waiting_bytes, to->text, to->length);
    metrics->waiting_bytes += to->length;
}

static tr_status end_line(tr_metrics *metrics, line *to, tr_error *err) {
    put(to, "}");
    if (metrics->tell) {
        metrics->tell(metrics->tell_user, to->text);
    }
    put(to, "\n");
    if (metrics->file < 0) {
        return TR_OK;
    }
    tr_status status = metrics->stopped ? write_waiting(metrics, err) : TR_OK;
    if (status != TR_OK || metrics->stopped) {
        wait(metrics, to);
        return status;
    }
    int problem = write_all(metrics->file, to->text, to->length);
    if (problem == 0) {
        metrics->bytes += (int64_t)to->length;
        return TR_OK;
    }
    status = without_room(metrics, problem, err);
    wait(metrics, to);
    return status;
}

// The file's bytes up to the first line that is of a later step or not whole; -1: it
// cannot be read.
static int64_t keep_bytes(FILE *file, int64_t step, tr_metrics_kept *found) {
    char text[LINE_MAX_BYTES];
    int64_t kept = 0;
    errno = 0;
    while (fgets(text, sizeof text, file)) {
        long long of = 0;
        size_t length = strlen(text);
        if (length == 0 || text[length - 1] != '\n' ||
            sscanf(text, "{\"step\": %lld", &of) != 1 || of > step) {
            break;
        }
        const char *loss = strstr(text, validation_key);
        if (loss) {
            found->evaluated_step = of;
            found->best_loss = of == found->best_step
                                   ? strtod(loss + sizeof validation_key - 1, NULL)
                                   : found->best_loss;
        }
        kept += (int64_t)length;
    }
    return ferror(file) ? -1 : kept;
}

// What stays of an earlier process's lines. Another descriptor reads, so that the file
// is the same one.
static tr_status find_kept(const tr_metrics *metrics, int64_t step, int64_t *kept,
                           tr_metrics_kept *found, tr_error *err) {
    int again = dup(metrics->file);
    FILE *old = again >= 0 ? fdopen(again, "re") : NULL;
    *kept = old ? keep_bytes(old, step, found) : -1;
    if (*kept < 0) {
        tr_fail(err, TR_IO, "%s: cannot read the lines up to the checkpoint's step: %s",
                metrics->path, strerror(errno ? errno : EIO));
    }
    if (old) {
        fclose(old);
    } else if (again >= 0) {
        close(again);
    }
    return *kept < 0 ? TR_IO : TR_OK;
}

tr_status tr__metrics_open(const char *out, int64_t step, tr_metrics *metrics,
                           tr_metrics_kept *found, tr_error *err) {
    int64_t kept = 0;
    *metrics = (tr_metrics){.file = -1};
    found->evaluated_step = -1;
    found->best_loss = INFINITY;
    metrics->path = tr__format("%s/metrics.jsonl", out);
    metrics->waiting = tr__calloc(1, TR_METRICS_WAIT);
    if (!metrics->path || !metrics->waiting) {
        tr__metrics_close(metrics);
        return tr_fail(err, TR_MEMORY, "no memory for the metrics");
    }
    tr_status status = tr__file_open(
        metrics->path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, &metrics->file, err);
    if (status == TR_OK && step > 0) {
        status = find_kept(metrics, step, &kept, found, err);
    }
    if (status == TR_OK && ftruncate(metrics->file, kept) != 0) {
        status =
            tr_fail(err, TR_IO, "%s: cannot write: %s", metrics->path, strerror(errno));
    }
    metrics->bytes = kept;
    if (status != TR_OK) {
        tr__metrics_close(metrics);
    }
    return status;
}

void tr__metrics_begin(tr_metrics *metrics, double flops_limit,
                       const tr_train_options *options, const tr_comm *comm) {
    metrics->flops_limit = flops_limit;
    metrics->tell = tr__comm_leads(comm) ? options->metrics : NULL;
    metrics->tell_user = options->metrics_user;
}

// A last time for lines that wait.
static void write_rest(tr_metrics *metrics) {
    if (metrics->stopped && write_waiting(metrics, NULL) == TR_OK &&
        !metrics->stopped) {
        return;
    }
    int64_t lines = metrics->missing;
    for (size_t i = 0; i < metrics->waiting_bytes; i++) {
        lines += metrics->waiting[i] == '\n';
    }
    if (lines > 0) {
        tr__warn(metrics->log,
                 "%s: there was no room to the end; %" PRId64 " lines are missing",
                 metrics->path, lines);
    }
}

void tr__metrics_close(tr_metrics *metrics) {
    if (metrics) {
        if (metrics->file >= 0) {
            write_rest(metrics);
            close(metrics->file);
        }
        tr__monitors_close(&metrics->monitors);
        tr__free(metrics->path);
        tr__free(metrics->waiting);
        *metrics = (tr_metrics){.file = -1};
    }
}

// ---- monitors

tr_status tr__metrics_open_monitors(tr_metrics *metrics, const tr_engine *engine,
                                    tr_error *err) {
    const tr_settings *settings = engine->settings;
    const tr_monitors_ask ask = {&settings->csv_monitor, &settings->tensorboard,
                                 settings->out, engine->count.cursor, metrics->log};
    return tr__monitors_open(&metrics->monitors, &ask, err);
}

// Values of applied updates, as DeepSpeed's are.
static void tell_step(tr_metrics *metrics, const tr_engine *engine,
                      const tr_step_result *r, double speed) {
    const tr_monitor_value all[] = {{TR_MONITOR_LOSS, r->loss},
                                    {TR_MONITOR_RATE, r->lr},
                                    {TR_MONITOR_NORM, r->grad_norm},
                                    {TR_MONITOR_SPEED, speed},
                                    {TR_MONITOR_LOSS_SCALE, r->loss_scale}};
    int count = (int)(sizeof all / sizeof *all);
    bool scaled = engine->plan->request.compute == TR_F16;
    if (!r->skipped) {
        tr__monitors_put(&metrics->monitors, all, scaled ? count : count - 1,
                         r->samples);
    }
}

static void tell_evaluation(tr_metrics *metrics, const tr_engine *engine,
                            const tr_evaluation *result) {
    const tr_monitor_value all[] = {{TR_MONITOR_VALIDATION_LOSS, result->loss},
                                    {TR_MONITOR_VALIDATION_ACCURACY, result->accuracy}};
    bool classifier = engine->plan->request.model->classifier;
    tr__monitors_put(&metrics->monitors, all, classifier ? 2 : 1, engine->count.cursor);
}

// ---- lines

static void put_spread(line *to, const char *name, tr_spread of) {
    put(to, ", \"%s\": [", name);
    put_value(to, of.least);
    put(to, ", ");
    put_value(to, of.mean);
    put(to, ", ");
    put_value(to, of.most);
    put(to, "]");
}

// Of each stage of a pipeline, the share of the step in which its ranks wait.
static void put_stages(line *to, const tr_engine *engine) {
    int64_t stages = engine->plan->request.mesh.size[TR_AXIS_PIPELINE];
    if (stages == 1) {
        return;
    }
    put(to, ", \"stage_wait_share\": [");
    for (int64_t s = 0; s < stages; s++) {
        put(to, "%s%.4f", s > 0 ? ", " : "",
            tr__executor_stage_wait(engine->executor, s));
    }
    put(to, "]");
}

// How evenly the ranks fare.
static void put_ranks(line *to, const tr_engine *engine, const tr_step_result *r) {
    int64_t ranks = tr_mesh_ranks(&engine->plan->request.mesh);
    if (ranks > 1) {
        put(to, ", \"ranks\": {\"count\": %" PRId64, ranks);
        put_spread(to, "seconds", r->rank_seconds);
        put_spread(to, "wait_seconds", r->rank_wait_seconds);
        put_spread(to, "peak_bytes", r->rank_peak_bytes);
        put_stages(to, engine);
        put(to, "}");
    }
}

// null: there is one micro-batch in all, or nothing to tell from yet. The parts are
// there where they are measured.
static void put_noise(line *to, const tr_engine *engine, const tr_step_result *r) {
    put_number(to, "noise_scale", r->noise_scale);
    if (engine->plan->request.measure != TR_MEASURE_NEVER) {
        put_number(to, "noise_trace", r->noise_trace);
        put_number(to, "noise_gradient", r->noise_gradient);
    }
}

static void put_guard(line *to, const tr_engine *engine, const tr_step_result *r) {
    if (engine->settings->guard.action != TR_GUARD_NONE) {
        bool spike = r->spike[0] != '\0';
        const char *quote = spike ? "\"" : "";
        put(to, ", \"spike\": %s%s%s, \"act\": %s%s%s", quote,
            spike ? r->spike : "null", quote, quote, spike ? r->act : "null", quote);
        put_number(to, "guard_rate",
                   tr__guard_rate(&engine->settings->guard, &engine->guard));
    }
}

tr_status tr__metrics_rollback(tr_metrics *metrics, const tr_engine *engine,
                               int64_t to_step, tr_error *err) {
    line to;
    begin_line(&to, engine->count.step, "rollback");
    put(&to, ", \"rollback_to\": ");
    put(&to, to_step < 0 ? "null" : "%" PRId64, to_step);
    put_number(&to, "guard_rate", engine->guard.rate);
    return end_line(metrics, &to, err);
}

// By the literature's formulas. `limit`: operations a second; 0: not known.
static void put_utilisation(line *to, tr_model_flops step, double seconds,
                            double limit) {
    put_number(to, "tflops_per_rank", step.full / seconds / 1e12);
    if (limit > 0) {
        double possible = limit * seconds;
        put_number(to, "mfu", step.full / possible);
        put_number(to, "mfu_causal", step.causal / possible);
        put_number(to, "hfu", (step.full + step.full_again) / possible);
        put_number(to, "hfu_causal", (step.causal + step.causal_again) / possible);
    }
}

tr_status tr__metrics_step(tr_metrics *metrics, const tr_engine *engine,
                           const tr_step_result *r, tr_error *err) {
    const tr_plan_request *request = &engine->plan->request;
    int64_t tokens = tr_model_targets(request->model);
    double seconds = fmax(r->seconds, 1e-9);
    double ranks = (double)tr_mesh_ranks(&request->mesh);
    line to;
    begin_line(&to, r->step, "step");
    put(&to,
        ", \"update\": %" PRId64 ", \"epoch\": %" PRId64 ", \"samples\": %" PRId64
        ", \"tokens\": %" PRId64,
        r->update, r->epoch, r->samples, r->samples * tokens);
    put_number(&to, "targets", r->targets);
    put_number(&to, "loss", r->loss);
    if (engine->plan->request.model->classifier) {
        put_number(&to, "accuracy", r->accuracy);
    }
    put(&to, ", \"train_batch_size\": %" PRId64, r->train_batch);
    put_number(&to, "lr", r->lr);
    put_number(&to, "grad_norm", r->grad_norm);
    put_noise(&to, engine, r);
    put_guard(&to, engine, r);
    put(&to, ", \"skipped\": %s", r->skipped ? "true" : "false");
    put_number(&to, "loss_scale", r->loss_scale);
    put_number(&to, "seconds", r->seconds);
    put_number(&to, "wait_seconds", r->wait_seconds);
    double speed = (double)r->batch * (double)tokens / seconds;
    put_number(&to, "tokens_per_second", speed);
    put_number(&to, "tokens_per_second_per_rank", speed / ranks);
    put_utilisation(&to, tr_plan_model_flops(engine->plan), seconds,
                    metrics->flops_limit);
    tell_step(metrics, engine, r, speed);
    put(&to,
        ", \"planned_peak_bytes\": {\"device\": %" PRId64 ", \"host\": %" PRId64
        "}, \"peak_bytes\": {\"device\": %" PRId64 ", \"host\": %" PRId64
        ", \"process\": %" PRId64 "}",
        engine->planned[TR_SPACE_DEVICE], engine->planned[TR_SPACE_HOST],
        tr_engine_space_peak(engine, TR_SPACE_DEVICE),
        tr_engine_space_peak(engine, TR_SPACE_HOST), tr_engine_process_peak(engine));
    put_ranks(&to, engine, r);
    return end_line(metrics, &to, err);
}

tr_status tr__metrics_epoch(tr_metrics *metrics, const tr_engine *engine,
                            const tr_step_result *last, tr_error *err) {
    const tr_epoch_sums *sums = &engine->epoch;
    line to;
    begin_line(&to, last->step, "epoch");
    put(&to, ", \"epoch\": %" PRId64, last->epoch);
    put_number(&to, "epoch_loss", sums->loss / sums->targets);
    if (engine->plan->request.model->classifier) {
        put_number(&to, "epoch_accuracy", sums->correct / sums->targets);
    }
    put_number(&to, "epoch_targets", sums->targets);
    put_number(&to, "epoch_seconds", sums->seconds);
    return end_line(metrics, &to, err);
}

tr_status tr__metrics_evaluation(tr_metrics *metrics, const tr_engine *engine,
                                 int64_t step, const tr_evaluation *result,
                                 tr_error *err) {
    line to;
    begin_line(&to, step, "evaluation");
    put_number(&to, "validation_loss", result->loss);
    if (engine->plan->request.model->classifier) {
        put_number(&to, "validation_accuracy", result->accuracy);
    }
    put(&to, ", \"validation_samples\": %" PRId64, result->samples);
    tell_evaluation(metrics, engine, result);
    return end_line(metrics, &to, err);
}
