#include "train/watch/progress.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SAID_MAX = 1 << 14, // characters of a message

    LIVE_EVERY_MS = 100,
    SMOOTHED = 10,   // steps that a mean of the time of one step looks back on
    WORK_SECONDS = 1 // that work takes before it is spoken of
};

void tr__progress_open(tr_progress_line *line, const tr_screen *screen, double every) {
    bool live = screen->line && screen->live;
    *line = (tr_progress_line){
        .screen = *screen, .live = live, .every = live ? LIVE_EVERY_MS / 1e3 : every};
    line->last = tr__seconds();
}

void tr__progress_begin(tr_progress_line *line, const tr_screen *screen,
                        const tr_engine *engine) {
    tr__progress_open(line, screen, engine->settings->log_seconds);
    line->first_step = engine->count.step;
    // Utilization is told against the product rate that this machine reaches just now.
    // Short runs are over before that is measured.
    double left = (double)(engine->settings->steps - engine->count.step);
    if (screen->line && tr_plan_flops(engine->plan) * left > 1e13) {
        const tr_target *target = &engine->plan->target;
        line->flops_limit = tr__backend(target->backend)->measure_rate(target->workers);
    }
}

// ---- lines

void tr__progress_hide(tr_progress_line *line) {
    if (line->drawn) {
        line->screen.live(line->screen.user, "");
        line->drawn = false;
    }
}

static int columns(const tr_progress_line *line) {
    const tr_screen *screen = &line->screen;
    bool bounded = line->live && screen->columns;
    int room = bounded ? screen->columns(screen->user) : TR_PROGRESS_TEXT_MAX - 1;
    return room < 1 ? 1 : room < TR_PROGRESS_TEXT_MAX ? room : TR_PROGRESS_TEXT_MAX - 1;
}

// The bytes of the first fields, with two blanks between them, that have room; where
// not even one has, as much as fits of its words.
static int whole_fields(const char *text, int room) {
    int fields = 0, words = 0;
    for (int i = 1; i <= room; i++) {
        bool ends = text[i] == ' ' && text[i - 1] != ' ';
        words = ends ? i : words;
        fields = ends && text[i + 1] == ' ' ? i : fields;
    }
    return fields > 0 ? fields : words;
}

// A live line is cut to the screen: one that wraps could not be drawn over.
static void draw(tr_progress_line *line, const char *text) {
    const tr_screen *screen = &line->screen;
    char cut[TR_PROGRESS_TEXT_MAX];
    if (!screen->line) {
        return;
    }
    if (!line->live) {
        screen->line(screen->user, text);
        return;
    }
    int room = columns(line), length = (int)strlen(text);
    length = length <= room ? length : whole_fields(text, room);
    snprintf(cut, sizeof cut, "%.*s", length, text);
    screen->live(screen->user, cut);
    line->drawn = true;
}

void tr__progress_show(tr_progress_line *line) {
    if (line->live && line->text[0]) {
        draw(line, line->text);
    }
}

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format,
                                                      ...) {
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, TR_PROGRESS_TEXT_MAX - length, format, args);
    va_end(args);
}

static void add_time(char *text, double seconds) {
    char words[32];
    tr__print_time(words, sizeof words, seconds);
    add(text, "%s", words);
}

// What a line has room for, in the order in which it does without: without all of these
// it has the step and the loss.
typedef enum detail {
    BARE,
    WITH_STEPS, // of how many
    WITH_LEFT,
    WITH_SPEED,
    WITH_MFU,
    WITH_MEMORY,
    WITH_RATE,
    WITH_NORM,
    FULL
} detail;

static void describe(const tr_progress_line *line, const tr_engine *engine,
                     const tr_step_result *r, detail most, char *text) {
    const tr_model *model = engine->plan->request.model;
    bool full = most == FULL;
    double rate =
        line->step_samples * (double)tr_model_targets(model) / line->step_seconds;
    char memory[32];
    tr__print_size(memory, sizeof memory, tr_engine_process_peak(engine));
    text[0] = '\0';
    double loss =
        isnan(r->loss) ? NAN : r->loss; // without a sign: a step without targets
    add(text, "step %" PRId64, r->step);
    if (most >= WITH_STEPS) {
        add(text, "/%" PRId64, engine->settings->steps);
    }
    add(text, "  loss %.4f", loss);
    if (most >= WITH_RATE) {
        add(text, "  lr %.3g", r->lr);
    }
    if (most >= WITH_NORM) {
        add(text, "  norm %.3g", r->grad_norm);
    }
    if (most >= WITH_SPEED) {
        add(text, "  %.0f %s/s", rate, model->classifier ? "samples" : "tokens");
    }
    if (most >= WITH_MFU && line->flops_limit > 0) {
        add(text, "  MFU %.0f%%",
            100 * tr_plan_model_flops(engine->plan).full /
                (line->step_seconds * line->flops_limit));
    }
    if (most >= WITH_MEMORY) {
        add(text, "  %s %s", full ? "memory" : "mem", memory);
    }
    if (most >= WITH_LEFT) {
        add(text, "  ");
        add_time(text,
                 (double)(engine->settings->steps - r->step) * line->step_seconds);
        add(text, " left");
    }
}

// A live line that is too long for its terminal loses whole fields, the last ones being
// throughput, the time that is left and the number of all steps.
static void describe_to_fit(const tr_progress_line *line, const tr_engine *engine,
                            const tr_step_result *r, char *text) {
    int room = columns(line);
    int most = FULL;
    describe(line, engine, r, FULL, text);
    while (most > BARE && (int)strlen(text) > room) {
        most--;
        describe(line, engine, r, (detail)most, text);
    }
}

// A mean over the last steps. The first step of a process touches all memory for the
// first time and stands for no other.
static void smooth(tr_progress_line *line, const tr_step_result *result) {
    int64_t steps = result->step - line->first_step;
    double weight = steps <= 2 ? 1 : fmax(1.0 / (double)(steps - 1), 1.0 / SMOOTHED);
    line->step_seconds += weight * (result->seconds - line->step_seconds);
    line->step_samples += weight * ((double)result->batch - line->step_samples);
}

// ---- what is said

void tr__progress_step(tr_progress_line *line, const tr_engine *engine,
                       const tr_step_result *result) {
    double now = tr__seconds();
    smooth(line, result);
    bool last = result->step == engine->settings->steps;
    bool first = result->step == line->first_step + 1;
    int64_t steps = line->live ? 0 : engine->settings->log_steps;
    bool due = steps > 0 ? result->step % steps == 0 : now - line->last >= line->every;
    if (due || last || first) {
        line->last = now;
        describe_to_fit(line, engine, result, line->text);
        draw(line, line->text);
    }
}

void tr__progress_say(tr_progress_line *line, const char *format, ...) {
    char text[SAID_MAX]; // folders of others are named in it
    va_list args;
    if (!line->screen.line) {
        return;
    }
    tr__progress_hide(line);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    line->screen.line(line->screen.user, text);
    tr__progress_show(line);
}

void tr__progress_work(tr_progress_line *line, const char *what, int64_t done,
                       int64_t total) {
    char text[TR_PROGRESS_TEXT_MAX] = "";
    double now = tr__seconds();
    if (done == 0) {
        line->work_begun = now;
    }
    if (now - line->work_begun < WORK_SECONDS || now - line->last < line->every) {
        return;
    }
    line->last = now;
    add(text, "%s: %.0f%%", what, total > 0 ? 100 * (double)done / (double)total : 0);
    draw(line, text);
}

void tr__progress_end(tr_progress_line *line) {
    if (line->drawn) {
        line->screen.live(line->screen.user, NULL);
        line->drawn = false;
    }
    line->text[0] = '\0'; // what is said after it stands alone
}
