// Rules of what the ranks tell each other before the update.
#include "base/checked.h"
#include "ops/flat/exact_sums/exact_sums.h"
#include "plan/proof/gradients.h"

static const tr_meaning zeros = {.kind = TR_MEANS_ZEROS};

static int64_t blocks_of(int64_t elements) {
    return tr__ceil_div(elements, TR_SHARD_ELEMENTS);
}

// An entry of the statistics that the step brings up to date.
void tr__statistics_note(tr_proof *p, tr_statistics_flag flag) {
    tr_meaning found,
        noted = {.kind = TR_MEANS_FLAG, .of = flag, .version = p->version};
    tr_bytes bytes = tr__statistics_bytes(p, flag, 1);
    tr__bytes_look(p, bytes, &found);
    bool again = tr__meaning_equal(&found, &noted);
    tr__bytes_change(p, bytes, again ? &noted : &zeros, &noted);
}

// Squares of a part of the batch's gradients are added up, one after the other.
void tr__statistics_add(tr_proof *p, tr_statistics_flag flag, uint64_t contribution) {
    tr_bytes bytes = tr__statistics_bytes(p, flag, 1);
    tr_meaning found, sum;
    tr__bytes_look(p, bytes, &found);
    sum = found.kind == TR_MEANS_FIRST_SQUARES ? found : zeros;
    tr_meaning more = {.kind = TR_MEANS_FIRST_SQUARES,
                       .terms = sum.terms + 1,
                       .sum = sum.sum + contribution};
    tr__bytes_change(p, bytes, &sum, &more);
}

// Where the squares of a flat buffer's gradients are.
static tr_bytes squares_bytes(const tr_proof *p, int32_t flat) {
    const tr_flat *of = &p->plan->flats[flat];
    int64_t first = of->squares, end = first + blocks_of(of->own);
    return (tr_bytes){p->plan->statistics.squares, first * (int64_t)sizeof(double),
                      end * (int64_t)sizeof(double)};
}

static tr_bytes all_squares(const tr_proof *p) {
    const tr_statistics_layout *layout = &p->plan->statistics;
    return (tr_bytes){layout->squares, 0, layout->blocks * (int64_t)sizeof(double)};
}

static tr_bytes square_sums(const tr_proof *p) {
    return tr__statistics_bytes(p, p->plan->statistics.norm,
                                TR_NORM_SUMS * TR_EXACT_WORDS);
}

void tr__statistics_squares(tr_proof *p, int32_t flat) {
    tr_meaning squares = {.kind = TR_MEANS_SQUARES, .of = flat, .version = p->version};
    tr__bytes_write(p, squares_bytes(p, flat), &squares);
}

// Each block of what this rank owns goes into the sum of its kind, and no other.
static void check_runs(tr_proof *p) {
    const tr_statistics_layout *layout = &p->plan->statistics;
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count; f++) {
        const tr_flat *flat = &p->plan->flats[f];
        const tr_parts_run *run = &layout->runs[f];
        bool own = !flat->frozen && tr__owns(&flat->axes, &p->plan->request.mesh);
        int64_t total = !flat->measured ? TR_NORM_UNMEASURED
                        : flat->tied    ? TR_NORM_TIED
                                        : TR_NORM_UNTIED;
        if (run->first != flat->squares || run->total != total ||
            run->count != (own ? blocks_of(flat->own) : 0)) {
            tr__proof_wrong(p, "adds up other squares of %s than this rank owns",
                            flat->name);
        }
    }
}

static void read_squares(tr_proof *p) {
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        tr_meaning squares = {.kind = TR_MEANS_SQUARES, .of = f, .version = p->version};
        if (p->plan->flats[f].frozen) { // nobody has made any
            continue;
        }
        tr__bytes_read(p, squares_bytes(p, f), &squares);
    }
}

void tr__rule_norm(tr_proof *p) {
    if (p->walked.normed && !p->stopped) {
        tr__proof_wrong(p, "is there twice");
        return;
    }
    p->walked.normed = true;
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        const tr_flat *flat = &p->plan->flats[f];
        tr_kept kept = tr__kept_part(p, f, TR_PART_GRAD);
        if (!flat->offloaded &&
            !flat->frozen) { // else they are taken on their way, or on the host
            tr__gradient_read(p, f, &kept, flat->first, flat->own, p->version);
            tr__statistics_squares(p, f);
        }
    }
    tr__role_convert(p);
}

void tr__rule_square_sums(tr_proof *p) {
    tr_meaning sums = {.kind = TR_MEANS_SQUARE_SUMS, .version = p->version};
    check_runs(p);
    tr__payload_touch(p, all_squares(p), false); // a short shard has fewer
    read_squares(p);
    tr__bytes_write(p, square_sums(p), &sums);
}

void tr__rule_report(tr_proof *p) {
    if (p->walked.reported && !p->stopped) {
        tr__proof_wrong(p, "is there twice");
        return;
    }
    p->walked.reported = true;
    tr__statistics_note(p, TR_STATISTICS_ASKED);
    for (int flag = TR_STATISTICS_SECONDS; flag <= TR_STATISTICS_PEAK; flag++) {
        tr__statistics_note(p, (tr_statistics_flag)flag);
    }
}

static void read_flag(tr_proof *p, tr_statistics_flag flag) {
    tr_meaning found,
        noted = {.kind = TR_MEANS_FLAG, .of = flag, .version = p->version};
    tr_bytes bytes = tr__statistics_bytes(p, flag, 1);
    bool always = flag == TR_STATISTICS_ASKED ||
                  (flag >= TR_STATISTICS_SECONDS && flag <= TR_STATISTICS_PEAK);
    tr__bytes_look(p, bytes, &found);
    tr__bytes_read(p, bytes, always || found.kind == TR_MEANS_FLAG ? &noted : &zeros);
}

// Of the first micro-batch, wherever something is to be measured.
static void read_first_squares(tr_proof *p) {
    const tr_proof_tables *t = &p->tables;
    tr_meaning want = zeros, tied = zeros;
    bool measures = p->plan->request.measure != TR_MEASURE_NEVER;
    const tr_maker *last = NULL;
    for (size_t i = 0; i < t->maker_count && measures; i++) {
        const tr_maker *m = &t->makers[i];
        const tr_flat *flat = &p->plan->flats[p->plan->params[m->param].flat];
        bool own = p->plan->params[m->param].flat == p->plan->units[m->unit].flats[0];
        own = own && tr__owns(&flat->axes, &p->plan->request.mesh);
        bool again = last && m->unit == last->unit && m->segment == last->segment &&
                     m->piece == last->piece;
        if (flat->measured && own && !again) { // all that the piece makes, at once
            want.kind = TR_MEANS_FIRST_SQUARES;
            want.terms++;
            want.sum += tr__contribution(m->unit, m->segment, m->piece);
            last = m;
        }
    }
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && measures; f++) {
        const tr_flat *flat = &p->plan->flats[f];
        bool own = tr__owns(&flat->axes, &p->plan->request.mesh);
        if (flat->tied && flat->measured && own) {
            tied.kind = TR_MEANS_FIRST_SQUARES;
            tied.terms++;
            tied.sum += tr__contribution(f, 0, 0);
        }
    }
    tr__bytes_read(p, tr__statistics_bytes(p, TR_STATISTICS_SQUARES, 1), &want);
    tr__bytes_read(p, tr__statistics_bytes(p, TR_STATISTICS_TIED_SQUARES, 1), &tied);
}

// A stage without a loss leaves the sums as they were cleared.
static void read_losses(tr_proof *p) {
    bool some = p->tables.loss.terms > 0;
    tr_meaning loss = {.kind = TR_MEANS_LOSS,
                       .terms = p->tables.loss.terms,
                       .sum = p->tables.loss.sum};
    for (loss.index = 0; loss.index < p->plan->request.accumulation_steps;
         loss.index++) {
        int64_t first = p->plan->statistics.sums + loss.index * TR_SUMS;
        tr__bytes_read(p, tr__statistics_bytes(p, first, TR_SUMS),
                       some ? &loss : &zeros);
    }
}

static void read_square_sums(tr_proof *p) {
    tr_meaning sums = {.kind = TR_MEANS_SQUARE_SUMS, .version = p->version};
    tr__bytes_read(p, square_sums(p), &sums);
}

void tr__statistics_read(tr_proof *p) {
    for (int flag = 0; flag < TR_STATISTICS_FLAGS; flag++) {
        if (flag != TR_STATISTICS_SQUARES && flag != TR_STATISTICS_TIED_SQUARES) {
            read_flag(p, (tr_statistics_flag)flag);
        }
    }
    read_first_squares(p);
    read_losses(p);
    read_square_sums(p);
}

void tr__rule_gather_statistics(tr_proof *p) {
    const tr_meaning all = {.kind = TR_MEANS_STATISTICS, .version = p->version};
    int32_t buffer = p->plan->statistics.buffer;
    if (p->stopped && !p->walked.reported) {
        tr__proof_wrong(p, "does not tell other ranks that this one was stopped");
        return;
    }
    tr__statistics_read(p);
    tr__exchange_work(p, TR_ON_ALL);
    tr__bytes_write(p, (tr_bytes){buffer, 0, p->plan->buffers[buffer].bytes}, &all);
}

// A walk that has been stopped is over, whatever there is to read.
void tr__rule_decide(tr_proof *p) {
    const tr_meaning all = {.kind = TR_MEANS_STATISTICS, .version = p->version};
    int32_t buffer = p->plan->statistics.buffer;
    if (p->stopped) {
        return;
    }
    if (tr_mesh_ranks(&p->plan->request.mesh) == 1) {
        tr__statistics_read(p);
    } else {
        tr__bytes_read(p, (tr_bytes){buffer, 0, p->plan->buffers[buffer].bytes}, &all);
    }
}
