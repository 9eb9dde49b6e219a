#include "train/progress.h"

#include "backend/cpu/rate.h"
#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIVE_EVERY_MS = 100 };

void tr__progress_begin(tr_progress_line *line, FILE *to, const tr_engine *engine) {
    double every = engine->settings->log_seconds;
    *line = (tr_progress_line){.to = to, .live = isatty(fileno(to)) != 0};
    line->every = line->live ? LIVE_EVERY_MS / 1e3 : every;
    line->begun = line->last = tr__seconds();
    line->first_step = engine->count.step;
    // Utilization is told against the product rate that this machine reaches just now.
    // Short runs are over before that is measured.
    if (tr_plan_flops(engine->plan) * (double)engine->settings->steps > 1e13) {
        line->flops_limit = tr__cpu_product_rate(engine->plan->request.threads);
    }
}

static void erase(tr_progress_line *line) {
    if (line->drawn) {
        fputs("\r\x1b[K", line->to);
        line->drawn = false;
    }
}

static void print_time(double seconds, FILE *to) {
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600) {
        fprintf(to, "%" PRId64 "h%02d", s / 3600, (int)(s / 60 % 60));
    } else if (s >= 60) {
        fprintf(to, "%" PRId64 "m%02ds", s / 60, (int)(s % 60));
    } else {
        fprintf(to, "%" PRId64 "s", s);
    }
}

static void draw(tr_progress_line *line, const tr_engine *engine,
                 const tr_step_result *r) {
    const tr_model *model = engine->plan->request.model;
    double rate =
        (double)r->batch * (double)tr_model_targets(model) / line->step_seconds;
    char memory[32];
    tr__print_size(memory, sizeof memory, tr_engine_process_peak(engine));
    fprintf(line->to,
            "step %" PRId64 "/%" PRId64 "  loss %.4f  lr %.3g  norm %.3g  %.0f %s/s",
            r->step, engine->settings->steps, r->loss, r->lr, r->grad_norm, rate,
            model->classifier ? "samples" : "tokens");
    if (line->flops_limit > 0) {
        fprintf(line->to, "  MFU %.0f%%",
                100 * tr_plan_flops(engine->plan) /
                    (line->step_seconds * line->flops_limit));
    }
    fprintf(line->to, "  %s  ", memory);
    print_time((double)(engine->settings->steps - r->step) * line->step_seconds,
               line->to);
    fputs(" left", line->to);
}

void tr__progress_step(tr_progress_line *line, const tr_engine *engine,
                       const tr_step_result *result) {
    double now = tr__seconds();
    double weight = line->step_seconds > 0 ? 0.1 : 1;
    line->step_seconds += weight * (result->seconds - line->step_seconds);
    bool last = result->step == engine->settings->steps;
    bool first = result->step == line->first_step + 1;
    int64_t steps = line->live ? 0 : engine->settings->log_steps;
    bool due = steps > 0 ? result->step % steps == 0 : now - line->last >= line->every;
    if (!due && !last && !first) {
        return;
    }
    line->last = now;
    erase(line);
    draw(line, engine, result);
    if (line->live) {
        line->drawn = true;
    } else {
        fputc('\n', line->to);
    }
    fflush(line->to);
}

void tr__progress_say(tr_progress_line *line, const char *format, ...) {
    va_list args;
    erase(line);
    va_start(args, format);
    vfprintf(line->to, format, args);
    va_end(args);
    fputc('\n', line->to);
    fflush(line->to);
}

void tr__progress_end(tr_progress_line *line) {
    if (line->drawn) {
        fputc('\n', line->to);
        line->drawn = false;
        fflush(line->to);
    }
}
