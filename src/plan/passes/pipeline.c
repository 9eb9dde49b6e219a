// Pass: what stages of a pipeline hand on to each other. The unit before a chunk's
// first one runs elsewhere, so its outputs are received, and the gradient of them is
// sent back; behind the chunk's last unit it is the other way round.
//
// Messages go one after the other, so two stages have to agree on their order. All take
// the order in which turns end that make what is sent, in the time that they reckon in
// (tr_turns); and each message stands before the turn that begins then, on both stages.
// So stages never wait for each other in a circle: what a turn waits for ends before it
// begins.
//
// A step in two passes (two_passes.c) is edited twice: its first round, in which all
// waves go forward, has turns of its own.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/flow/roles.h"
#include "plan/passes/two_passes.h"

#include <stdlib.h>

enum { ROUNDS = 3 }; // of a step in two passes: forward, the loss, and back

// All of a wave's micro-batches pass between two units.
typedef struct message {
    bool sends, gradient;
    int unit;  // of this stage
    int above; // the chunk into which outputs pass
    int64_t wave;
    int64_t made;   // when the turn ends that makes it, in the schedule's time
    int64_t before; // it stands before this turn of the stage
} message;

typedef struct writer {
    tr_editor editor;
    const tr_turns *turns;
    size_t begin, end;    // the old steps that are of these turns
    int64_t micros, wave; // of the sequence; of a wave, micro-batches
    int32_t *first;       // [units + 1][micros] boundaries of the first round; NULL
    message *messages;    // [count] in their order
    int64_t count, next;
    // Ids of the last message sent, and of the last one before the running turn.
    int32_t sent, sent_before;
    int64_t turn;
    // The turns' numbers; -1: another stage's.
    int64_t *turn_at; // [TR_TURN_KINDS][chunks][waves]
} writer;

// ---- what passes, and when

// A message crosses the end of a chunk, else its begin.
static bool is_behind(const message *m) {
    return m->sends != m->gradient;
}

static void note(writer *w, tr_pipeline_turn made_by, message m) {
    m.above = made_by.chunk + !m.gradient;
    m.wave = made_by.wave;
    m.made = tr__pipeline_turn_end(w->turns, made_by);
    w->messages[w->count++] = m;
}

// Is what the unit before it makes read in this round? A stage that has the last unit
// alone makes its gradient from the loss, where that has all it needs.
static bool is_read(const writer *w, int unit) {
    const tr_plan *plan = w->editor.plan;
    bool back_alone = plan->request.passes > 1 && !w->first &&
                      w->editor.kind == TR_SEQUENCE_TRAIN &&
                      unit == plan->unit_count - 1;
    return !back_alone || tr__loss_reads_input(plan);
}

static void note_turn(writer *w, int64_t i) {
    const tr_plan *plan = w->editor.plan;
    tr_pipeline_turn turn = w->turns->turn[i], other = turn;
    if (turn.kind == TR_TURN_WEIGHTS) { // which stay
        return;
    }
    bool back = turn.kind == TR_TURN_BACKWARD;
    int first = plan->chunk_first[turn.chunk],
        last = plan->chunk_first[turn.chunk + 1] - 1;
    int from = back ? last : first, to = back ? first : last;
    other.chunk += back ? 1 : -1;
    bool receives = back ? tr__plan_unit_sends(plan, last) &&
                               tr__unit_has_backward(plan->units[last].program)
                         : tr__plan_unit_receives(plan, first) && is_read(w, first);
    bool sends = back ? tr__plan_unit_receives(plan, first) &&
                            tr__unit_has_backward(plan->units[first - 1].program)
                      : tr__plan_unit_sends(plan, last) && is_read(w, last + 1);
    if (receives) {
        note(w, other, (message){.gradient = back, .unit = from});
    }
    if (sends) {
        note(w, turn, (message){.sends = true, .gradient = back, .unit = to});
    }
}

static int compare_numbers(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

// The same on both stages. Of messages that are made at the same time, those into even
// chunks come first: else a stage would wait for what it receives before it sends, and
// so would the next one, and the next.
static int compare(const void *a, const void *b) {
    const message *x = a, *y = b;
    const int64_t by[][2] = {{x->made, y->made},
                             {x->above % 2, y->above % 2},
                             {x->gradient, y->gradient},
                             {x->above, y->above}};
    int order = 0;
    for (size_t i = 0; i < sizeof by / sizeof *by && order == 0; i++) {
        order = compare_numbers(by[i][0], by[i][1]);
    }
    return order;
}

static int64_t begin_of(const writer *w, int64_t turn) {
    return tr__pipeline_turn_begin(w->turns, w->turns->turn[turn]);
}

static void find_messages(writer *w) {
    for (int64_t i = 0; i < w->turns->count; i++) {
        note_turn(w, i);
    }
    qsort(w->messages, (size_t)w->count, sizeof *w->messages, compare);
    int64_t turn = 0;
    for (int64_t i = 0; i < w->count; i++) {
        message *m = &w->messages[i];
        while (turn < w->turns->count && begin_of(w, turn) < m->made) {
            turn++;
        }
        m->before = turn;
    }
}

static int64_t *turn_at(const writer *w, tr_pipeline_turn turn) {
    return &w->turn_at[tr__pipeline_turn_index(w->turns, turn)];
}

// ---- steps

static tr_region region_of(const writer *w, const message *m, int64_t micro) {
    const tr_plan *plan = w->editor.plan;
    const tr_unit_values *values = &plan->unit_values[w->editor.kind];
    const tr_unit_program *program = plan->units[m->unit].program;
    bool behind = is_behind(m);
    const int32_t *of = w->first      ? w->first
                        : m->gradient ? values->gradient
                                      : values->boundary;
    int64_t bytes =
        behind        ? m->gradient ? program->output_grad_bytes : program->output_bytes
        : m->gradient ? program->input_grad_bytes
                      : program->input_bytes;
    return tr__region(of[(m->unit + behind) * w->micros + micro], bytes);
}

static const char *name_of(const message *m) {
    return is_behind(m)  ? m->gradient ? "gradients of outputs" : "outputs"
           : m->gradient ? "gradients of inputs"
                         : "inputs";
}

static void put_message(writer *w, const message *m, int64_t micro) {
    const tr_plan *plan = w->editor.plan;
    int32_t stage = (int32_t)tr__plan_stage_of(plan, m->unit);
    int32_t other =
        (int32_t)tr__plan_stage_of(plan, is_behind(m) ? m->unit + 1 : m->unit - 1);
    tr_region region = region_of(w, m, micro);
    int64_t bytes = region.end - region.first;
    tr_plan_step step = {.label = {.verb = m->sends ? TR_VERB_send : TR_VERB_receive,
                                   .what = name_of(m)},
                         .subject = TR_OF_UNIT,
                         .of_micro_batch = true,
                         .backward = m->gradient,
                         .unit = m->unit,
                         .micro = micro,
                         .stream = m->sends ? TR_STREAM_SEND : TR_STREAM_RECEIVE,
                         .guard = TR_GUARD_ALWAYS};
    tr_exchange exchange = {.part = TR_PART_BOUNDARY,
                            .kind = TR_COMM_GATHER,
                            .type = TR_COMM_BYTE,
                            .group = TR_ON_PIPELINE,
                            .in_place = !m->sends,
                            .from = m->sends ? stage : other,
                            .to = m->sends ? other : stage,
                            .count = bytes,
                            .shard = bytes};
    tr_region received = m->sends ? (tr_region){region.value, 0, 0} : region;
    int32_t id = tr__make_exchange(&w->editor, step, exchange, region, received, false);
    w->sent = m->sends ? id : w->sent;
}

// The next message, of all micro-batches of its wave.
static void put_wave(writer *w) {
    const message *m = &w->messages[w->next++];
    int64_t first = m->wave * w->wave;
    int64_t end = tr__min_i64(first + w->wave, w->micros);
    for (int64_t j = first; j < end; j++) {
        put_message(w, m, j);
    }
}

// Those that stand before the turn.
static void put_before(writer *w, int64_t turn) {
    while (w->next < w->count && w->messages[w->next].before <= turn) {
        put_wave(w);
    }
}

// The turn that the step belongs to; -1: to none. The model's last unit turns a
// micro-batch around at once, in one pass.
static int64_t turn_of(const writer *w, const tr_plan_step *step) {
    const tr_plan *plan = w->editor.plan;
    bool back = tr__step_runs(step, TR_VARIANT_BACKWARD);
    if (!back && !tr__step_is_forward(step)) {
        return -1;
    }
    const tr_plan_unit *unit = &plan->units[step->unit];
    bool at_once = step->unit == plan->unit_count - 1 && plan->request.passes < 2;
    tr_turn_kind kind = !back || at_once              ? TR_TURN_FORWARD
                        : tr__step_runs_weights(step) ? TR_TURN_WEIGHTS
                                                      : TR_TURN_BACKWARD;
    return *turn_at(w, (tr_pipeline_turn){kind, unit->chunk, step->micro / w->wave});
}

// Does the step end the micro-batch's turn, which makes what the message sends?
static bool makes(const writer *w, const tr_plan_step *step, const message *m) {
    bool back = tr__step_runs(step, TR_VARIANT_BACKWARD);
    int last = w->editor.plan->units[step->unit].program->segments - 1;
    return tr__step_ends(step) && !tr__step_runs_weights(step) &&
           step->segment == (back ? 0 : last) && m->sends && m->unit == step->unit &&
           m->gradient == back && m->wave == step->micro / w->wave;
}

// A micro-batch is sent on at once, behind what is received before it.
static void put_behind(writer *w, const tr_plan_step *step, int64_t turn) {
    int64_t at = w->next;
    while (at < w->count && !w->messages[at].sends) {
        at++;
    }
    const message *m = &w->messages[at];
    if (at == w->count || m->before != turn + 1 || !makes(w, step, m)) {
        return;
    }
    while (w->next < at) {
        put_wave(w);
    }
    put_message(w, m, step->micro);
    w->next += (step->micro + 1) % w->wave == 0 || step->micro + 1 == w->micros;
}

// What a turn has sent is gone when the turn after the next begins: its memory is free.
static void limit_sending(writer *w, int64_t turn, int32_t id) {
    if (turn >= 0 && turn != w->turn) {
        tr__edit_limit(&w->editor, w->sent_before, id);
        w->sent_before = w->sent;
        w->turn = turn;
    }
}

static void write_steps(writer *w) {
    const tr_sequence *old = w->editor.old;
    size_t last = w->end;
    while (last > w->begin && turn_of(w, &old->steps[last - 1]) < 0) {
        last--;
    }
    for (size_t i = 0; i < old->count && w->editor.status == TR_OK; i++) {
        const tr_plan_step *step = &old->steps[i];
        int64_t turn = i < w->begin ? -1 : i < last ? turn_of(w, step) : INT64_MAX - 1;
        put_before(w, turn);
        limit_sending(w, turn, tr__edit_add(&w->editor, *step));
        put_behind(w, step, turn);
    }
}

// ---- sequences

// When the stage has taken all waves through the chunk that it has before this one.
static int64_t end_before(const tr_plan *plan, const tr_turns *of, int chunk) {
    int64_t stage = tr__chunk_stage(&plan->chunks, chunk), end = 0;
    for (int c = 0; c < chunk; c++) {
        bool same = tr__chunk_stage(&plan->chunks, c) == stage;
        end = same ? of->ends[(c + 1) * of->waves - 1] : end;
    }
    return end;
}

// All waves go forward through a chunk, one after the other, then through the next.
static void take_forward(const tr_plan *plan, tr_turns *out) {
    for (int c = 0; c < tr__chunk_count(&plan->chunks); c++) {
        int64_t before = end_before(plan, out, c);
        out->takes[c] = 1;
        for (int64_t w = 0; w < out->waves; w++) {
            int64_t came = c > 0 ? out->ends[(c - 1) * out->waves + w] : 0;
            before = 1 + tr__max_i64(before, came);
            out->ends[c * out->waves + w] = before;
            if (tr__plan_runs(plan, plan->chunk_first[c])) {
                out->turn[out->count++] = (tr_pipeline_turn){TR_TURN_FORWARD, c, w};
            }
        }
    }
}

static tr_status turns_forward(const tr_plan *plan, int64_t waves, tr_turns *out,
                               tr_error *err) {
    size_t chunks = (size_t)tr__chunk_count(&plan->chunks),
           all = chunks * (size_t)waves;
    *out = (tr_turns){.chunks = plan->chunks,
                      .waves = waves,
                      .takes = tr__calloc(TR_TURN_KINDS * chunks, sizeof *out->takes),
                      .turn = tr__calloc(all, sizeof *out->turn),
                      .ends = tr__calloc(TR_TURN_KINDS * all, sizeof *out->ends)};
    if (!out->turn || !out->takes || !out->ends) {
        return tr_fail(err, TR_MEMORY, "no memory for a pipeline");
    }
    take_forward(plan, out);
    return TR_OK;
}

static tr_status allocate(writer *w, tr_error *err) {
    size_t turns = (size_t)w->turns->count;
    size_t all =
        (size_t)(TR_TURN_KINDS * tr__chunk_count(&w->turns->chunks) * w->turns->waves);
    w->messages = tr__calloc(2 * turns, sizeof *w->messages);
    w->turn_at = tr__calloc(all, sizeof *w->turn_at);
    if (!w->messages || !w->turn_at) {
        return tr_fail(err, TR_MEMORY, "no memory for a pipeline");
    }
    for (size_t i = 0; i < all; i++) {
        w->turn_at[i] = -1;
    }
    for (size_t i = 0; i < turns; i++) {
        *turn_at(w, w->turns->turn[i]) = (int64_t)i;
    }
    return TR_OK;
}

// Which steps a round of a step in two passes has: each begins with the load of the
// first micro-batch. (A step in one pass, an evaluation: one round.)
static void find_round(writer *w, int64_t round, int64_t rounds) {
    const tr_sequence *old = w->editor.old;
    int64_t loads = 0;
    w->begin = 0;
    w->end = old->count;
    for (size_t i = 0; i < old->count; i++) {
        const tr_plan_step *step = &old->steps[i];
        bool begins = step->shape == TR_STEP_IS_FEED && !step->payload.gives_back &&
                      loads++ % w->micros == 0;
        int64_t begun = (loads - 1) / w->micros;
        w->begin = begins && begun == round && round > 0 ? i : w->begin;
        w->end = begins && begun == round + 1 && round + 1 < rounds ? i : w->end;
    }
}

// Steps after the first round name other values.
static tr_status note_boundaries(writer *w, tr_error *err) {
    const tr_sequence *old = w->editor.old;
    size_t boundaries = (size_t)(w->editor.plan->unit_count + 1) * (size_t)w->micros;
    w->first = tr__calloc(boundaries, sizeof *w->first);
    if (!w->first) {
        return tr_fail(err, TR_MEMORY, "no memory for a pipeline");
    }
    for (size_t i = w->begin; i < w->end; i++) {
        const tr_plan_step *step = &old->steps[i];
        const tr_step_operand *in = NULL, *out = NULL;
        if (tr__step_is_forward(step)) {
            in = tr__step_block(w->editor.plan, step, TR_PLACE_INPUT, 0, false);
            out = tr__step_block(w->editor.plan, step, TR_PLACE_OUTPUT, 0, false);
        }
        if (in) {
            w->first[step->unit * w->micros + step->micro] = in->buffer;
        }
        if (out) {
            w->first[(step->unit + 1) * w->micros + step->micro] = out->buffer;
        }
    }
    return TR_OK;
}

// The round that these turns are of.
static tr_status edit(tr_plan *plan, tr_sequence_kind kind, const tr_turns *turns,
                      int64_t round, tr_error *err) {
    bool train = kind == TR_SEQUENCE_TRAIN, twice = train && plan->request.passes > 1;
    writer w = {.editor = tr__edit_begin(plan, kind, err),
                .turns = turns,
                .turn = -1,
                .micros = tr__plan_micros(plan, kind),
                .wave = train ? plan->request.wave : 1};
    tr_status status = allocate(&w, err);
    find_round(&w, round, twice ? ROUNDS : 1);
    if (status == TR_OK && twice && round == 0) {
        status = note_boundaries(&w, err);
    }
    if (status == TR_OK) {
        find_messages(&w);
        write_steps(&w);
    } else {
        tr__edit_refuse(&w.editor, status);
    }
    tr__free(w.first);
    tr__free(w.messages);
    tr__free(w.turn_at);
    return tr__edit_end(&w.editor);
}

// All waves go forward, before any comes back.
static tr_status edit_first(tr_plan *plan, tr_error *err) {
    tr_turns forward = {.turn = NULL};
    tr_status status =
        turns_forward(plan, plan->turns[TR_SEQUENCE_TRAIN].waves, &forward, err);
    status = status == TR_OK ? edit(plan, TR_SEQUENCE_TRAIN, &forward, 0, err) : status;
    tr__turns_clear(&forward);
    return status;
}

static tr_status edit_training(tr_plan *plan, tr_error *err) {
    bool twice = plan->request.passes > 1;
    tr_status status = twice ? edit_first(plan, err) : TR_OK;
    return status == TR_OK
               ? edit(plan, TR_SEQUENCE_TRAIN, &plan->turns[TR_SEQUENCE_TRAIN],
                      twice ? ROUNDS - 1 : 0, err)
               : status;
}

tr_status tr__pass_pipeline(tr_plan *plan, tr_error *err) {
    if (plan->request.mesh.size[TR_AXIS_PIPELINE] == 1) {
        return TR_OK;
    }
    tr_status status = edit_training(plan, err);
    return status == TR_OK ? edit(plan, TR_SEQUENCE_EVALUATE,
                                  &plan->turns[TR_SEQUENCE_EVALUATE], 0, err)
                           : status;
}
