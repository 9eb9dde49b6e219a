// What the planner came to, for people.
#include "base/text.h"
#include "planner/planner.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SIZE_TEXT = 32, TEXT = 256 };

// What was chosen, or all where everything was given.
static unsigned spoken(const tr_planned *p) {
    return p->request.free ? p->request.free : (1u << TR_DIMENSIONS) - 1;
}

static void say(const tr_planned *p, const tr_planner_option *option, char *dst,
                size_t size) {
    tr_point point = tr__point_of(&p->request, option->value);
    tr__point_say(&point, spoken(p), dst, size);
}

// "+12.3 MiB"
static void print_change(int64_t bytes, char *dst, size_t size) {
    char words[SIZE_TEXT];
    tr__print_size(words, sizeof words, bytes < 0 ? -bytes : bytes);
    snprintf(dst, size, "%s%s", bytes == 0 ? "" : bytes < 0 ? "-" : "+", words);
}

static void print_choice(const tr_planned *p, FILE *to) {
    char words[TEXT];
    say(p, &p->choice, words, sizeof words);
    fprintf(to, "\nplanner: %s; %.4g s a step on %s\n", words, p->choice.seconds,
            p->machine);
    if (p->kept) {
        fprintf(to, "    chosen before, and kept by the checkpoint\n");
    } else if (p->request.free) {
        fprintf(to, "    the fastest of %zu plan%s that fits, of which %zu %s made\n",
                p->points, tr__plural((int64_t)p->points), p->plans,
                p->plans == 1 ? "was" : "were");
    }
}

static void print_timeline(const tr_planned *p, FILE *to) {
    const tr_timeline *t = &p->timeline;
    const char *comma = "";
    fprintf(to, "\ntimeline of a step as simulated, %.3g s a column\n",
            t->seconds / TR_TIMELINE_COLUMNS);
    for (int s = 0; s < TR_STREAMS; s++) {
        if (t->busy[s] > 0) {
            fprintf(to, "    %-8s %s %5.1f %%\n", tr__stream_name((tr_stream)s),
                    t->column[s], 100 * t->busy[s] / t->seconds);
        }
    }
    fprintf(to, "    ");
    for (int k = 0; k < TR_VERBS; k++) {
        if (t->kind[k] >= 0.0005 * t->seconds) {
            fprintf(to, "%s%s %.1f %%", comma, tr__verb_name((tr_verb)k),
                    100 * t->kind[k] / t->seconds);
            comma = ", ";
        }
    }
    fprintf(to, "\n");
}

static void print_beside(const tr_planned *p, const tr_planner_option *o, FILE *to) {
    char words[TEXT];
    say(p, o, words, sizeof words);
    fprintf(to, "    %+7.1f %% ", 100 * (o->seconds / p->choice.seconds - 1));
    for (int s = 0; s < TR_SPACES; s++) {
        char change[SIZE_TEXT + 1];
        int64_t bytes = o->bytes[s] - p->choice.bytes[s];
        print_change(bytes, change, sizeof change);
        fprintf(to, " %12s", bytes ? change : "");
    }
    fprintf(to, "   %s\n", words);
}

static void print_runners(const tr_planned *p, FILE *to) {
    if (p->runner_count + p->has_faster == 0) {
        return;
    }
    fprintf(to, "\nbeside it %6s %12s %12s %12s\n", "time", "device", "host", "nvme");
    if (p->has_faster) {
        print_beside(p, &p->faster, to);
    }
    for (size_t i = 0; i < p->runner_count; i++) {
        print_beside(p, &p->runner[i], to);
    }
}

static int64_t taken(const tr_planned *p, const tr_planner_option *o, int budget) {
    return tr__budget_bytes(budget, o->bytes) + tr__budget_process(&p->request, budget);
}

static void print_budget(const tr_planned *p, int budget, FILE *to) {
    tr_limits limits = tr__planner_limits(&p->request);
    int64_t has = budget < TR_SPACES ? p->request.budget[budget] : p->request.together;
    int64_t excess[TR_BUDGETS] = {0};
    char takes[SIZE_TEXT], of[SIZE_TEXT], more[SIZE_TEXT];
    bool none = budget == TR_SPACE_NVME && has == 0;
    if (has == TR_UNLIMITED || none) {
        return;
    }
    int64_t process = tr__budget_process(&p->request, budget);
    tr__print_size(takes, sizeof takes, taken(p, &p->choice, budget));
    tr__print_size(of, sizeof of, has);
    fprintf(to, "    %-15s takes %12s of %12s", tr__budget_word(&p->request, budget),
            takes, of);
    if (process > 0) {
        tr__print_size(takes, sizeof takes, process);
        fprintf(to, ", %s of it the process", takes);
    }
    if (p->has_faster) {
        tr__limits_excess(&limits, p->faster.bytes, excess);
    }
    if (excess[budget] > 0) {
        tr__print_size(more, sizeof more, excess[budget]);
        fprintf(to, "; it binds: with %s more the next faster plan fits", more);
    }
    fprintf(to, "\n");
}

static void print_budgets(const tr_planned *p, FILE *to) {
    char size[SIZE_TEXT];
    fprintf(to, "\nbudgets\n");
    for (int b = 0; b < TR_BUDGETS; b++) {
        print_budget(p, b, to);
    }
    if (p->has_smallest) {
        int scarce = tr__budget_scarce(&p->request);
        int64_t least = taken(p, &p->smallest, scarce);
        tr__print_size(size, sizeof size, least);
        fprintf(to, "    the smallest %s is %s (%" PRId64 " bytes): %s\n",
                p->request.total ? "total" : "device budget", size, least,
                p->smallest_at);
    }
}

tr_status tr__planned_print(const tr_planned *planned, FILE *to, tr_error *err) {
    print_choice(planned, to);
    print_timeline(planned, to);
    print_runners(planned, to);
    print_budgets(planned, to);
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}
