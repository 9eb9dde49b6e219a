#include "train/watch/summary.h"

#include "base/clock.h"
#include "base/text.h"
#include "data/sources/dataset.h"
#include "models/models.h"
#include "run/run.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_TEXT = 512, TIME_TEXT = 32, BYTES = 256 };

tr_summary tr__summary_begin(void) {
    return (tr_summary){.began = tr__seconds(), .best = INFINITY};
}

void tr__summary_step(tr_summary *summary, const tr_step_result *result) {
    summary->steps++;
    summary->loss = result->loss;
}

void tr__summary_evaluation(tr_summary *summary, int64_t step,
                            const tr_evaluation *result) {
    summary->evaluations++;
    summary->validation = result->loss;
    if (result->loss < summary->best) {
        summary->best = result->loss;
        summary->best_step = step;
    }
}

// "1h02m", "3m12s", "4.2s"
static void print_time(double seconds, char text[TIME_TEXT]) {
    int64_t whole = (int64_t)(seconds + 0.5);
    if (whole >= 3600) {
        snprintf(text, TIME_TEXT, "%" PRId64 "h%02dm", whole / 3600,
                 (int)(whole / 60 % 60));
    } else if (whole >= 60) {
        snprintf(text, TIME_TEXT, "%" PRId64 "m%02ds", whole / 60, (int)(whole % 60));
    } else {
        snprintf(text, TIME_TEXT, "%.1fs", seconds);
    }
}

// A path as a word of the shell: in quotes where it has other than plain characters,
// and control characters as '?'.
static void print_word(const char *path, char text[PATH_TEXT]) {
    bool plain = *path && *path != '-';
    size_t used = 0;
    for (const char *c = path; *c && plain; c++) {
        plain = isalnum((unsigned char)*c) || strchr("/._-+=:,@%", *c);
    }
    if (plain) {
        snprintf(text, PATH_TEXT, "%s", path);
        return;
    }
    text[used++] = '\'';
    for (const char *c = path; *c && used < PATH_TEXT - 8; c++) {
        if (*c == '\'') {
            memcpy(text + used, "'\\''", 4);
            used += 4;
        } else {
            text[used++] = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
        }
    }
    memcpy(text + used, "'", 2);
}

static void say_losses(const tr_summary *s, tr_progress_line *line) {
    char time[TIME_TEXT], validation[128] = "";
    print_time(tr__seconds() - s->began, time);
    if (s->evaluations > 0) {
        snprintf(validation, sizeof validation,
                 "; validation loss %.4f, best %.4f at step %" PRId64, s->validation,
                 s->best, s->best_step);
    }
    char loss[32] = "not finite";
    if (isfinite(s->loss)) {
        snprintf(loss, sizeof loss, "%.4f", s->loss);
    }
    tr__progress_say(line, "done: %" PRId64 " step%s in %s; last loss %s%s", s->steps,
                     tr__plural(s->steps), time, loss, validation);
}

// What tranche sample takes of this run: text, or ids.
static bool takes_text(const tr_engine *engine) {
    return engine->plan->request.model->classes == BYTES ||
           tr__companions_have(&engine->companions, "tokenizer.json");
}

static void say_next(const tr_summary *s, const tr_engine *engine,
                     tr_progress_line *line) {
    const tr_model *model = engine->plan->request.model;
    bool labels = model->labels > 0 || model->embedding_width > 0;
    bool text = !model->classifier && !labels && tr__model_reads_tokens(model);
    bool per_sample = tr_model_targets(model) == 1;
    const char *read_as = tr__config_text(engine->run->config, "data.format");
    // Of samples that were drawn there are no others.
    bool drawn = read_as && strcmp(read_as, "random") == 0;
    const char *file = drawn ? " --data FILE --format csv" : " --data FILE";
    const char *data = s->evaluations > 0 ? "" : file;
    char out[PATH_TEXT];
    print_word(engine->settings->out, out);
    tr__progress_say(line, "next: tranche plot %s", out);
    if (!tr__run_is_own(engine->run)) { // a program's own model is for that program
        if (text) {
            bool chats =
                engine->run->train && tr__dataset_has_chats(engine->run->train);
            tr__progress_say(line, "      tranche sample %s %s", out,
                             chats                ? "--chat --prompt \"Hello\""
                             : takes_text(engine) ? "--prompt \"Once\""
                                                  : "--prompt \"1 2 3\"");
        }
        tr__progress_say(line, "      tranche evaluate %s%s", out, data);
        if (per_sample) {
            tr__progress_say(line, "      tranche predict %s%s", out, file);
        }
        tr__progress_say(line,
                         "      tranche train %s/run.json --steps %" PRId64
                         "   goes on from here",
                         out, 2 * engine->count.step);
    }
}

void tr__summary_say(const tr_summary *summary, const tr_engine *engine,
                     int64_t saved_step, tr_progress_line *line) {
    char out[PATH_TEXT];
    if (summary->steps == 0) {
        return;
    }
    say_losses(summary, line);
    if (saved_step >= 0) {
        print_word(engine->settings->out, out);
        tr__progress_say(line, "saved: %s/checkpoints/step-%08" PRId64, out,
                         saved_step);
    }
    say_next(summary, engine, line);
}
