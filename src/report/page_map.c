// The map of a plan's arenas as JSON. Texts stand once, in a list, and numbers name
// them.
#include "report/markup.h"
#include "report/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct step {
    int kind, what, subject; // texts; -1: none
    int64_t micro_batch;
    bool named; // the page says what it does
} step;

typedef struct map {
    const char **texts; // the plan's
    int text_count, text_room;
    step *steps;
    int64_t step_count, step_room;
    tr_planned_buffer *buffers;
    int64_t buffer_count, buffer_room;
    int64_t most; // buffers that there is room for; points of curves are a sixth of it
    bool failed;  // no memory
    FILE *to;
} map;

// Room for one more; NULL and map->failed: there is no memory.
static void *grow(map *m, void *items, int64_t count, int64_t *room, size_t bytes) {
    if (count < *room) {
        return items;
    }
    int64_t more = 2 * *room + 256;
    void *grown = realloc(items, (size_t)more * bytes);
    m->failed = m->failed || !grown;
    *room = grown ? more : *room;
    return grown;
}

// The number of a text. There are few of them, and the last ones come again.
static int text_number(map *m, const char *text) {
    if (!text || m->failed) {
        return -1;
    }
    for (int i = m->text_count; i-- > 0;) {
        if (strcmp(m->texts[i], text) == 0) {
            return i;
        }
    }
    int64_t room = m->text_room;
    const char **texts =
        (const char **)grow(m, (void *)m->texts, m->text_count, &room, sizeof *texts);
    if (!texts) {
        return -1;
    }
    m->texts = texts;
    m->text_room = (int)room;
    m->texts[m->text_count] = text;
    return m->text_count++;
}

static void take_step(void *user, const tr_planned_step *planned) {
    map *m = user;
    step *steps = grow(m, m->steps, m->step_count, &m->step_room, sizeof *steps);
    if (!steps) {
        return;
    }
    m->steps = steps;
    m->steps[m->step_count++] =
        (step){text_number(m, planned->kind), text_number(m, planned->what),
               text_number(m, planned->subject), planned->micro_batch, false};
}

static void take_buffer(void *user, const tr_planned_buffer *buffer) {
    map *m = user;
    tr_planned_buffer *buffers =
        grow(m, m->buffers, m->buffer_count, &m->buffer_room, sizeof *buffers);
    if (buffers) {
        m->buffers = buffers;
        m->buffers[m->buffer_count++] = *buffer;
    }
}

// ---- bytes by category, step by step

typedef struct curve {
    int64_t (*bytes)[TR_LEDGER_COUNT]; // [steps]
    int64_t fullest;                   // the step
} curve;

static int64_t sum_of(const int64_t *bytes) {
    int64_t sum = 0;
    for (int c = 0; c < TR_LEDGER_COUNT; c++) {
        sum += bytes[c];
    }
    return sum;
}

static void find_fullest(const map *m, curve *of) {
    int64_t most = -1;
    for (int64_t s = 0; s < m->step_count; s++) {
        int64_t sum = sum_of(of->bytes[s]);
        of->fullest = sum > most ? s : of->fullest;
        most = sum > most ? sum : most;
    }
}

// What changes from step to step, added up.
static tr_status make_curve(const map *m, tr_space space, curve *out, tr_error *err) {
    out->bytes = calloc((size_t)m->step_count + 1, sizeof *out->bytes);
    if (!out->bytes) {
        return tr_fail(err, TR_MEMORY, "no memory for the page");
    }
    for (int64_t i = 0; i < m->buffer_count; i++) {
        const tr_planned_buffer *b = &m->buffers[i];
        if (b->space == space) {
            out->bytes[b->first][b->category] += b->bytes;
            out->bytes[b->last + 1][b->category] -= b->bytes;
        }
    }
    for (int64_t s = 1; s < m->step_count; s++) {
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            out->bytes[s][c] += out->bytes[s - 1][c];
        }
    }
    find_fullest(m, out);
    return TR_OK;
}

// Of so many steps together the fullest one.
static void put_curve(const map *m, const curve *of) {
    int64_t points = m->most / 6;
    int64_t width = (m->step_count + points - 1) / points;
    fprintf(m->to, ",\"fullest\":%" PRId64 ",\"curve\":[", of->fullest);
    for (int64_t s = 0; s < m->step_count; s += width) {
        int64_t at = s;
        for (int64_t i = s; i < s + width && i < m->step_count; i++) {
            at = sum_of(of->bytes[i]) > sum_of(of->bytes[at]) ? i : at;
        }
        fprintf(m->to, "%s[%" PRId64, s > 0 ? ",\n" : "", at);
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            fprintf(m->to, ",%" PRId64, of->bytes[at][c]);
        }
        fputc(']', m->to);
    }
    fputc(']', m->to);
}

// ---- buffers

// Steps between a buffer's and the step `at`.
static int64_t distance(const tr_planned_buffer *b, int64_t at) {
    return b->first > at ? b->first - at : b->last < at ? at - b->last : 0;
}

typedef struct chosen {
    int64_t first, last; // steps at which all buffers of the space are shown
    int64_t left_out;
} chosen;

// How many buffers of a space are nearer to a step than `far`.
static int64_t count_nearer(const map *m, tr_space space, int64_t at, int64_t far) {
    int64_t count = 0;
    for (int64_t i = 0; i < m->buffer_count; i++) {
        const tr_planned_buffer *b = &m->buffers[i];
        count += b->space == space && distance(b, at) < far;
    }
    return count;
}

// Where there are too many for a page, those around the fullest step: all that live
// less than so many steps away from it.
static int64_t choose_far(const map *m, tr_space space, int64_t at, int64_t most) {
    int64_t far = m->step_count + 1, near = 1;
    if (count_nearer(m, space, at, far) <= most) {
        return far;
    }
    while (far - near > 1) { // near has room, far has not
        int64_t middle = near + (far - near) / 2;
        bool fits = count_nearer(m, space, at, middle) <= most;
        near = fits ? middle : near;
        far = fits ? far : middle;
    }
    return near;
}

static void put_buffer(map *m, const tr_planned_buffer *b, const char *before) {
    fprintf(m->to,
            "%s[%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%d,%" PRId64
            ",%" PRId64 ",%" PRId64 ",%d]",
            before, (int)b->category, b->offset, b->bytes, b->first, b->last,
            text_number(m, b->what), text_number(m, b->subject), b->micro_batch,
            b->writer, b->reader, b->kept ? 1 : 0);
    if (b->writer >= 0) {
        m->steps[b->writer].named = true;
    }
    if (b->reader >= 0) {
        m->steps[b->reader].named = true;
    }
}

static void put_buffers(map *m, tr_space space, int64_t at, int64_t most) {
    int64_t far = choose_far(m, space, at, most);
    chosen of = {at - far + 1, at + far - 1, 0};
    const char *before = "";
    fputs(",\"buffers\":[", m->to);
    for (int64_t i = 0; i < m->buffer_count; i++) {
        const tr_planned_buffer *b = &m->buffers[i];
        if (b->space == space && distance(b, at) < far) {
            put_buffer(m, b, before);
            before = ",\n";
        } else {
            of.left_out += b->space == space;
        }
    }
    of.first = of.left_out > 0 && of.first > 0 ? of.first : 0;
    of.last = of.left_out > 0 && of.last < m->step_count ? of.last : m->step_count - 1;
    fprintf(m->to, "],\"left_out\":%" PRId64 ",\"first\":%" PRId64 ",\"last\":%" PRId64,
            of.left_out, of.first, of.last);
}

static tr_status put_space(map *m, const tr_ledger *ledger, tr_space space,
                           int64_t most, tr_error *err) {
    curve of = {0};
    tr_status status = make_curve(m, space, &of, err);
    if (status == TR_OK) {
        fputs("{\"name\":", m->to);
        markup_json(tr_space_name(space), m->to);
        fprintf(m->to, ",\"total\":%" PRId64 ",\"ledger\":[", ledger->total[space]);
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            fprintf(m->to, "%s%" PRId64, c > 0 ? "," : "", ledger->bytes[space][c]);
        }
        fputc(']', m->to);
        put_curve(m, &of);
        put_buffers(m, space, of.fullest, most);
        fputc('}', m->to);
    }
    free(of.bytes);
    return status;
}

// ----

// Where a plan has few steps all are named, else those that buffers name.
static void put_steps(const map *m) {
    const char *before = "";
    fprintf(m->to, ",\"count\":%" PRId64 ",\"steps\":[", m->step_count);
    for (int64_t i = 0; i < m->step_count; i++) {
        const step *s = &m->steps[i];
        if (s->named || m->step_count <= m->most / 2) {
            fprintf(m->to, "%s[%" PRId64 ",%d,%d,%d,%" PRId64 "]", before, i, s->kind,
                    s->what, s->subject, s->micro_batch);
            before = ",\n";
        }
    }
    fputc(']', m->to);
}

static void put_texts(const map *m) {
    fputs(",\"texts\":[", m->to);
    for (int i = 0; i < m->text_count; i++) {
        fputs(i > 0 ? "," : "", m->to);
        markup_json(m->texts[i], m->to);
    }
    fputs("],\"categories\":[", m->to);
    for (int c = 0; c < TR_LEDGER_COUNT; c++) {
        fputs(c > 0 ? "," : "", m->to);
        markup_json(tr_ledger_name((tr_ledger_category)c), m->to);
    }
    fputc(']', m->to);
}

static tr_status put_spaces(map *m, const tr_plan *plan, int64_t most, tr_error *err) {
    tr_status status = TR_OK;
    const char *before = "";
    fputs("{\"spaces\":[", m->to);
    for (int s = 0; s < TR_SPACES && status == TR_OK; s++) {
        if (tr_plan_ledger(plan)->total[s] > 0) {
            fputs(before, m->to);
            status = put_space(m, tr_plan_ledger(plan), (tr_space)s, most, err);
            before = ",\n";
        }
    }
    fputc(']', m->to);
    return status;
}

tr_status page_map(const tr_plan *plan, int64_t buffers, FILE *to, tr_error *err) {
    map m = {.to = to, .most = buffers};
    tr_status status = tr_plan_steps(plan, take_step, &m, err);
    if (status == TR_OK) {
        status = tr_plan_buffers(plan, take_buffer, &m, err);
    }
    if (status == TR_OK && !m.failed) {
        status = put_spaces(&m, plan, buffers, err);
    }
    if (status == TR_OK && m.failed) {
        status = tr_fail(err, TR_MEMORY, "no memory for the page");
    }
    if (status == TR_OK) {
        put_steps(&m);
        put_texts(&m);
        fputc('}', to);
    }
    free((void *)m.texts);
    free(m.steps);
    free(m.buffers);
    return status;
}
