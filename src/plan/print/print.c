// A plan for people: what it is made of, its bytes, and its steps with repeats folded.
#include "plan/print/print.h"
#include "backend/backend.h"
#include "base/half.h"
#include "base/memory.h"
#include "base/quantized.h"
#include "base/text.h"
#include "plan/flow/algorithm.h"
#include "plan/flow/choices.h"
#include "plan/flow/fp8.h"

#include <inttypes.h>

// A run of steps that do the same: one micro-batch through units that follow each
// other, or one unit over micro-batches that follow each other.
typedef struct item {
    tr_step_label label;
    bool saves_nothing;
    tr_subject subject;
    tr_axes group; // of an exchange
    int32_t unit, last_unit;
    int32_t segment;
    int64_t micro, last_micro;
    int64_t pieces; // of staged updates
    bool deferred;  // those of an update that the step before may have deferred
    bool of_micro, of_flat;
} item;

enum { PERIOD_MAX = 512, DEPTH_MAX = 4 };

static tr_axes group_of(const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_EXCHANGE ? step->payload.exchange.group : 0;
}

static bool same_label(const tr_step_label *a, const tr_step_label *b) {
    return a->verb == b->verb && a->what == b->what;
}

static bool extends(const item *last, const tr_plan_step *step) {
    if (!same_label(&last->label, &step->label) || last->segment != step->segment ||
        last->saves_nothing != tr__step_runs(step, TR_VARIANT_SAVES_NOTHING) ||
        last->group != group_of(step) || step->label.piece != (last->pieces > 0)) {
        return false;
    }
    if (step->label.piece) {
        return step->unit == last->last_unit || step->unit == last->last_unit + 1;
    }
    bool same_micro = last->micro == last->last_micro && step->micro == last->micro;
    bool same_unit = last->unit == last->last_unit && step->unit == last->unit;
    int direction = last->last_unit >= last->unit ? 1 : -1;
    bool next_unit = step->unit == last->last_unit + direction ||
                     (last->unit == last->last_unit && step->unit == last->unit - 1);
    return (same_micro && next_unit) ||
           (same_unit && step->micro == last->last_micro + 1);
}

// What is read and written for pieces of updates is left out.
static size_t fold_runs(const tr_sequence *sequence, item *items) {
    size_t count = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        bool piece = step->label.piece;
        if (piece && step->shape == TR_STEP_IS_FILE) {
            continue;
        }
        if (count > 0 && extends(&items[count - 1], step)) {
            items[count - 1].last_unit = step->unit;
            items[count - 1].last_micro = step->micro;
        } else {
            items[count++] =
                (item){.label = step->label,
                       .saves_nothing = tr__step_runs(step, TR_VARIANT_SAVES_NOTHING),
                       .subject = step->subject,
                       .group = group_of(step),
                       .unit = step->unit,
                       .last_unit = step->unit,
                       .segment = step->segment,
                       .micro = step->micro,
                       .last_micro = step->micro,
                       .deferred = step->guard == TR_GUARD_DEFERRED,
                       .of_micro = step->of_micro_batch,
                       .of_flat = step->subject == TR_OF_FLAT};
        }
        items[count - 1].pieces += piece;
    }
    return count;
}

// `period` items, `times` times, each time so many micro-batches, units (or flat
// buffers) and segments on.
typedef struct repeat {
    size_t period, times;
    int64_t shift;
    int32_t units, flats, segments;
} repeat;

// Is b the same work as a, one repeat later?
static bool is_shifted(const item *a, const item *b, const repeat *by) {
    int64_t micro = a->of_micro ? by->shift : 0;
    int32_t units = a->of_flat ? by->flats : by->units;
    int32_t segments = a->of_flat ? 0 : by->segments;
    return same_label(&a->label, &b->label) && a->saves_nothing == b->saves_nothing &&
           a->group == b->group && a->segment + segments == b->segment &&
           a->unit + units == b->unit && a->last_unit + units == b->last_unit &&
           a->micro + micro == b->micro && a->last_micro + micro == b->last_micro &&
           a->pieces == b->pieces && a->deferred == b->deferred;
}

static size_t times_repeated(const item *items, size_t count, const repeat *by) {
    size_t times = 1, period = by->period;
    while ((times + 1) * period <= count) {
        for (size_t i = 0; i < period; i++) {
            const item *before = &items[(times - 1) * period + i];
            if (!is_shifted(before, &items[times * period + i], by)) {
                return times;
            }
        }
        times++;
    }
    return times;
}

// How much each repeat is on, from what the first two differ by. false: they are not of
// micro-batches.
static bool guess_repeat(const item *items, size_t period, repeat *out) {
    const item *work = NULL, *flat = NULL;
    *out = (repeat){.period = period, .times = 1};
    for (size_t i = 0; i < period; i++) {
        bool better = !work || (work->of_flat && !items[i].of_flat);
        work = items[i].of_micro && better ? &items[i] : work;
        flat = flat || !items[i].of_flat ? flat : &items[i];
    }
    if (flat) {
        out->flats = flat[period].unit - flat->unit;
    }
    if (work) {
        out->shift = work[period].micro - work->micro;
        out->units = work->of_flat ? 0 : work[period].unit - work->unit;
        out->segments = work[period].segment - work->segment;
    }
    return work != NULL;
}

// The repeat at the start of `items` that covers most of them.
static repeat find_repeat(const item *items, size_t count) {
    repeat best = {.period = 1, .times = 1};
    for (size_t period = 1; period <= PERIOD_MAX && 2 * period <= count; period++) {
        repeat found;
        if (!guess_repeat(items, period, &found)) {
            continue;
        }
        found.times = times_repeated(items, count, &found);
        if (found.times > 1 && period * found.times > best.period * best.times) {
            best = found;
        }
    }
    return best;
}

static const char *unit_name(const tr_plan *plan, const item *it, int32_t unit) {
    return it->of_flat ? plan->flats[unit].name : plan->request.model->units[unit].name;
}

// "    | | " at depth 2.
static void print_indent(int depth, FILE *to) {
    fputs("    ", to);
    for (int i = 0; i < depth; i++) {
        fputs("| ", to);
    }
}

static void print_item(const tr_plan *plan, const item *it, int depth, FILE *to) {
    bool on_unit = it->subject != TR_OF_NOBODY;
    print_indent(depth, to);
    fputs(tr__verb_name(it->label.verb), to);
    if (it->label.what && !it->label.usual) {
        fprintf(to, on_unit ? " %s of" : " %s", it->label.what);
    }
    if (on_unit) {
        fprintf(to, " %s", unit_name(plan, it, it->unit));
        if (it->last_unit != it->unit) {
            fprintf(to, " .. %s", unit_name(plan, it, it->last_unit));
        }
        if (!it->of_flat && plan->units[it->unit].program->segments > 1) {
            fprintf(to, ", segment %d", (int)it->segment);
        }
    }
    if (it->pieces > 0) {
        fprintf(to, ", %" PRId64 " piece%s", it->pieces, tr__plural(it->pieces));
    }
    bool axes = tr__data_ranks(&plan->request) < tr_mesh_ranks(&plan->request.mesh);
    if (it->group && axes) {
        fprintf(to, ", group %s", tr__axes_name(it->group));
    }
    fputs(it->deferred ? ", if the step before deferred them" : "", to);
    if (it->of_micro) {
        bool many = it->last_micro != it->micro;
        fprintf(to, many ? ", micro-batches %" PRId64 : ", micro-batch %" PRId64,
                it->micro);
        if (many) {
            fprintf(to, " .. %" PRId64, it->last_micro);
        }
    }
    fputs(it->saves_nothing ? " (keeps nothing)\n" : "\n", to);
}

static void print_repeat(const repeat *r, int depth, FILE *to) {
    int32_t units = r->units < 0 ? -r->units : r->units;
    int32_t segments = r->segments < 0 ? -r->segments : r->segments;
    print_indent(depth, to);
    fprintf(to, "... %zu times in all", r->times);
    if (r->shift) {
        fprintf(to, ", each %" PRId64 " micro-batch%s on", r->shift,
                r->shift == 1 ? "" : "es");
    }
    if (r->units) {
        fprintf(to, ", each %d unit%s %s", (int)units, tr__plural(units),
                r->units < 0 ? "down" : "up");
    }
    if (r->segments) {
        fprintf(to, ", each %d segment%s %s", (int)segments, tr__plural(segments),
                r->segments < 0 ? "down" : "up");
    }
    fputc('\n', to);
}

// Repeats inside of what is repeated are folded, too.
static void print_items(const tr_plan *plan, const item *items, size_t count, int depth,
                        FILE *to) {
    for (size_t i = 0; i < count;) {
        repeat r = {.period = 1, .times = 1};
        if (depth < DEPTH_MAX) {
            r = find_repeat(items + i, count - i);
        }
        if (r.times > 1) {
            print_items(plan, items + i, r.period, depth + 1, to);
            print_repeat(&r, depth + 1, to);
        } else {
            print_item(plan, &items[i], depth, to);
        }
        i += r.period * r.times;
    }
}

static tr_status print_sequence(const tr_plan *plan, tr_sequence_kind kind, FILE *to,
                                tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[kind];
    if (sequence->count == 0) {
        return TR_OK;
    }
    item *items = tr__calloc(sequence->count, sizeof *items);
    if (!items) {
        return tr_fail(err, TR_MEMORY, "no memory to print the plan");
    }
    size_t count = fold_runs(sequence, items);
    fprintf(to, "\n%s: %zu step%s\n", tr__sequence_name(kind), sequence->count,
            tr__plural((int64_t)sequence->count));
    print_items(plan, items, count, 0, to);
    tr__free(items);
    return TR_OK;
}

static void print_bytes(const char *label, int64_t bytes, FILE *to) {
    char text[32];
    tr__print_size(text, sizeof text, bytes);
    fprintf(to, "    %-22s %14" PRId64 "  %12s\n", label, bytes, text);
}

// What this rank sends in one step, beside the most that waits between units.
static void print_traffic(const tr_plan *plan, FILE *to) {
    if (plan->traffic.device_host > 0) {
        fprintf(to, "\ntraffic of a step between device and host\n");
        print_bytes("copied, both ways", plan->traffic.device_host, to);
        if (plan->traffic.reached > 0) {
            print_bytes("reached, not copied", plan->traffic.reached, to);
        }
    }
    if (plan->traffic.nvme > 0) {
        fprintf(to, "\ntraffic of a step between host and NVMe\n");
        print_bytes("read and written", plan->traffic.nvme, to);
    }
    if (tr_mesh_ranks(&plan->request.mesh) > 1) {
        fprintf(to, "\ntraffic of a step, sent by rank %" PRId64 "\n",
                tr_mesh_rank(&plan->request.mesh));
        print_bytes("gathered", plan->traffic.gather, to);
        print_bytes("reduced", plan->traffic.reduce, to);
        if (tr__plan_nodes(plan) > 1) {
            print_bytes("of both, between nodes", plan->traffic.between, to);
        }
        print_bytes("boundary, in memory",
                    plan->ledger.bytes[TR_SPACE_DEVICE][TR_LEDGER_boundary], to);
    }
}

static void print_ledger(const tr_plan *plan, FILE *to) {
    char text[32];
    fprintf(to, "\nledger at the fullest moment\n");
    for (int s = 0; s < TR_SPACES; s++) {
        if (plan->ledger.total[s] == 0) {
            continue;
        }
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            if (plan->ledger.bytes[s][c] > 0) {
                tr__print_size(text, sizeof text, plan->ledger.bytes[s][c]);
                fprintf(to, "    %-7s %-14s %14" PRId64 "  %12s\n",
                        tr_space_name((tr_space)s),
                        tr_ledger_name((tr_ledger_category)c), plan->ledger.bytes[s][c],
                        text);
            }
        }
        tr__print_size(text, sizeof text, plan->ledger.total[s]);
        fprintf(to, "    %-7s %-14s %14" PRId64 "  %12s\n", tr_space_name((tr_space)s),
                "total", plan->ledger.total[s], text);
    }
}

void tr__plan_print_batch(const tr_plan_request *r, FILE *to) {
    int64_t ranks = tr__data_ranks(r);
    fprintf(to,
            "batch %" PRId64 " = micro-batch %" PRId64 " x %" PRId64
            " accumulation step%s x %" PRId64 " rank%s",
            r->train_batch_size, r->micro_batch, r->accumulation_steps,
            tr__plural(r->accumulation_steps), ranks, tr__plural(ranks));
}

void tr__plan_recomputed_say(int64_t first, int units, char *dst, size_t size) {
    if (first < 0 || (first > 0 && first >= units - 1)) {
        snprintf(dst, size, "all units but the last");
    } else if (first == 0) {
        snprintf(dst, size, "no unit");
    } else {
        snprintf(dst, size, "the first %" PRId64 " unit%s", first, tr__plural(first));
    }
}

static void print_request(const tr_plan *plan, FILE *to) {
    const tr_plan_request *r = &plan->request;
    int64_t ranks = tr__data_ranks(r);
    char recomputed[64];
    tr__plan_recomputed_say(r->recomputed_units, plan->unit_count, recomputed,
                            sizeof recomputed);
    int64_t all = tr_plan_parameters(plan), trained = tr_plan_trained(plan);
    fprintf(to, "model %s: %d unit%s, %" PRId64 " parameters", r->model->type,
            plan->unit_count, tr__plural(plan->unit_count), all);
    if (trained < all) {
        fprintf(to, ", %" PRId64 " trained and %" PRId64 " frozen", trained,
                all - trained);
    }
    fputc('\n', to);
    tr__plan_print_batch(r, to);
    if (tr_mesh_ranks(&r->mesh) > ranks) {
        fprintf(to, "; mesh %" PRId64 " x %" PRId64 " x %" PRId64, ranks,
                r->mesh.size[TR_AXIS_TENSOR], r->mesh.size[TR_AXIS_PIPELINE]);
    }
    fprintf(to,
            "%s%s; wave %" PRId64 "%s%s; stage %d\n"
            "recomputed: %s; %.3f GFLOP a step; kernels: %s, %d thread%s\n",
            r->train_batch_size == r->micro_batch * r->accumulation_steps * ranks
                ? ""
                : " (the last one short)",
            r->passes > 1 ? "; two passes" : "", r->wave, plan->why_wave ? ": " : "",
            plan->why_wave ? plan->why_wave : "", r->stage, recomputed,
            plan->flops / 1e9, tr__target_name(&plan->target), r->threads,
            tr__plural(r->threads));
}

// Tensors of which several tensor ranks have the same part.
static void print_repeats(const tr_plan *plan, FILE *to) {
    int64_t repeats = plan->request.mesh.repeats, elements = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        elements +=
            plan->flats[param->flat].repeated ? tr_shape_count(param->stored_shape) : 0;
    }
    if (repeats > 1) {
        fprintf(to,
                "heads of keys: each on %" PRId64 " tensor ranks, which sum its "
                "gradients (%" PRId64 " parameters)\n",
                repeats, elements);
    }
}

// Between which ranks messages go first, where there are nodes of them.
static void print_nodes(const tr_plan *plan, FILE *to) {
    int64_t nodes = tr__plan_nodes(plan), ranks = plan->request.node_ranks;
    if (nodes > 1) {
        fprintf(to, "%" PRId64 " nodes of %" PRId64 " rank%s exchange: %s\n", nodes,
                ranks, tr__plural(ranks),
                tr__plan_room(plan).by_nodes
                    ? "on each node, then once between nodes (hierarchical)"
                    : "each rank with every other (direct)");
    }
}

// "12 direct, 4 ring", where not all of them are as the nodes' line says.
static void print_exchanges(const tr_plan *plan, FILE *to) {
    const int64_t *count = plan->traffic.exchanges;
    const char *between = "";
    if (count[TR_EXCHANGE_RING] + count[TR_EXCHANGE_TREE] == 0) {
        return;
    }
    fprintf(to, "exchanges of a step: ");
    for (int a = TR_EXCHANGE_DIRECT; a < TR_EXCHANGE_ALGORITHMS; a++) {
        if (count[a] > 0) {
            fprintf(to, "%s%" PRId64 " %s", between, count[a],
                    tr__algorithm_name((tr_exchange_algorithm)a));
            between = ", ";
        }
    }
    fputc('\n', to);
}

// As papers count the operations of a model.
static void print_literature(const tr_plan *plan, FILE *to) {
    const tr_model_flops *f = &plan->model_flops;
    if (f->full > 0) {
        fprintf(to,
                "model FLOPs: %.3f GFLOP a step with attention in full, %.3f causal",
                f->full / 1e9, f->causal / 1e9);
        if (f->full_again > 0) {
            fprintf(to, "; %.3f recomputed", f->full_again / 1e9);
        }
        fputc('\n', to);
    }
}

tr_status tr__plan_print(const tr_plan *plan, FILE *to, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    int slices = tr__plan_slices(plan);
    print_request(plan, to);
    print_literature(plan, to);
    print_repeats(plan, to);
    print_nodes(plan, to);
    print_exchanges(plan, to);
    if (slices > 1) {
        fprintf(to, "vocabulary in %d slices\n", slices);
    }
    if (r->fp8.enabled) {
        int units = tr__plan_fp8_units(plan);
        fprintf(to,
                "products in fp8, with current scaling: linear layers of %d unit%s\n",
                units, tr__plural(units));
    }
    if (r->quantization) {
        fprintf(to, "frozen weights of linear layers kept as %s\n",
                tr__quantization_name(r->quantization));
    }
    if (tr__dtype_is_half(r->sums)) {
        fprintf(to, "gradients summed in %s\n", tr__half_name(r->sums));
    }
    if (r->optimizer_stays > 0) {
        fprintf(to, "updated on the device: %" PRId64 " elements of flat buffers\n",
                tr__plan_staying(plan));
    }
    if (r->optimizer_placement != TR_SPACE_DEVICE && !r->inference) {
        fprintf(
            to,
            "the host's steps run on the device's processors, in the plan's order\n");
    }
    print_ledger(plan, to);
    tr__stages_print(plan, to);
    print_traffic(plan, to);
    tr_status choices = tr__functions_print(plan, to, err);
    if (choices == TR_OK) {
        choices = tr__choices_print(plan, to, err);
    }
    if (choices == TR_OK && tr__backend(plan->target.backend)->device) {
        choices = tr__kernels_print(plan, to, err); // others are told by their level
    }
    if (choices != TR_OK) {
        return choices;
    }
    for (int s = 0; s < TR_SEQUENCES; s++) {
        tr_status status = print_sequence(plan, (tr_sequence_kind)s, to, err);
        if (status != TR_OK) {
            return status;
        }
    }
    return ferror(to) ? tr_fail(err, TR_IO, "cannot write the plan") : TR_OK;
}
