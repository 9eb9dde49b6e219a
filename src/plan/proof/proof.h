// What the parts of the proof share: a walk, and what the bytes mean meanwhile.
#ifndef TR_PLAN_PROOF_PROOF_H
#define TR_PLAN_PROOF_PROOF_H

#include "plan/flow/roles.h"
#include "plan/proof/meaning.h"
#include "plan/proof/tables.h"

// Streams that go on beside the thread that issues steps, at most.
enum { TR_BESIDE_STREAMS = 9 };

// Bytes [first, end) of a buffer.
typedef struct tr_bytes {
    int32_t buffer;
    int64_t first, end;
} tr_bytes;

typedef struct tr_byte_list {
    tr_bytes *items;
    size_t count, capacity;
} tr_byte_list;

// Bytes of one meaning and one history.
typedef struct tr_cell {
    int64_t first, end;
    tr_meaning means;
    int32_t writer;                    // the last step of this walk to write, -1: none
    int32_t reader[TR_BESIDE_STREAMS]; // the last of each stream to read since, -1
} tr_cell;

// What is known of a buffer.
typedef struct tr_contents {
    tr_cell *cells; // in order, without gaps
    size_t count, capacity;
    int64_t walk; // in which a passing buffer was last named
    bool gone;    // another buffer lies there now
    bool shared;  // interrupted: who had the memory may still be at work on it
    int32_t last[TR_BESIDE_STREAMS]; // the last step of each stream to touch it, -1
} tr_contents;

// Which passing buffer has which bytes of a space, in one sequence. border: [count]
// where buffers begin and end, ascending.
typedef struct tr_tenants {
    int64_t *border;
    size_t count;
    int32_t *at;      // [count] the buffer from this border on, where begins has it
    uint64_t *begins; // bits
} tr_tenants;

// What is known of a unit while pieces of a segment are at work (pieces.c).
typedef struct tr_open_pieces tr_open_pieces;

// How far a walk is.
typedef struct tr_walked {
    int64_t *forward, *backward; // [unit_segments] micro-batches
    int64_t *again;              // [units] those that ran forward a second time
    int64_t *recomputed;         // [units] micro-batches
    int64_t *weights;            // [units] those whose weights' gradients came later
    int64_t loaded, unloaded;
    int64_t handed;                 // outputs, to the caller
    bool cleared, normed, reported; // the statistics; squares, times are in them
    int64_t *reduced, *evicted;     // [flats] scopes
    int64_t *brought;               // [flats] fetches and gathers in place
    int32_t *wave[2];               // [units] buffer of wave tensors, their gradients
    int64_t *measured;              // [flats] elements
    tr_open_pieces *open;           // [open_count] by unit and micro-batch
    size_t open_count;              // 0: no unit is cut into pieces
} tr_walked;

typedef struct tr_proof {
    const tr_plan *plan;
    int beside; // streams that go on beside in this plan
    tr_proof_tables tables;
    tr_contents *held; // [buffers]
    tr_tenants tenants[TR_SEQUENCES][TR_SPACES];
    // [steps] of each sequence: the steps of each stream, one after the other.
    int32_t *of_stream[TR_SEQUENCES][TR_BESIDE_STREAMS];
    tr_walked walked;
    // [flats] of parameters that each rank keeps whole and updates in part: the version
    // of what other ranks update. (A rank may have nothing of them, or all.)
    int32_t *others;
    // ---- the walk
    tr_sequence_kind kind;
    const tr_plan_step *step;
    int32_t index; // of the step
    int64_t walk;  // number of it
    // Micro-batches that are there: an evaluation leaves out the others of its
    // sequence.
    int64_t present;
    int32_t version;
    // Of training, where the update begins, behind the decision, and what of it may be
    // deferred to the next step.
    size_t update, at_once;
    bool deferred; // the update of the step before is left to this walk
    bool settles;  // the walk is the update that the step before has left
    bool applied;  // the update is not skipped
    bool stopped;  // it was interrupted: what is not there is no error
    // The step has read what is not there; where zeros should be.
    bool spoilt, spoilt_zeros;
    tr_byte_list touched[2]; // bytes that the rule has read; and written
    tr_byte_list named[2]; // bytes that the payload names; and of them those it writes
    int32_t issued[TR_BESIDE_STREAMS], done[TR_BESIDE_STREAMS]; // steps; step numbers
    int32_t known[TR_BESIDE_STREAMS][TR_BESIDE_STREAMS]; // done, as a queue alone knows
    tr_error *err;
    tr_status status; // after an error nothing is done
} tr_proof;

// Says which step is wrong, and how. Only the first error counts.
void tr__proof_wrong(tr_proof *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tr__proof_no_memory(tr_proof *p);

// The flat buffer that the step is of; NULL: it is of none.
const tr_flat *tr__proof_flat(const tr_proof *p);
// Is it of one? If not, that is said.
bool tr__proof_has_flat(tr_proof *p);
// Is it of one that is trained, in a training? `frozen`: what is said of it else.
bool tr__proof_trains_flat(tr_proof *p, const char *frozen);

// ---- clock.c: who is done when a step begins
// The step begins: what it waits for is done.
void tr__clock_wait(tr_proof *p);
void tr__clock_issue(tr_proof *p);
// Nothing is under way when step `first` of the sequence begins.
void tr__clock_reset(tr_proof *p, int32_t first);
// How many streams go on beside; which of them the stream is, -1: done at once.
int tr__clock_count(const tr_plan *plan);
int tr__clock_stream(const tr_proof *p, tr_stream stream);
// Is step `before` of this walk (-1: of none) done when this step touches what it did?
bool tr__clock_is_before(const tr_proof *p, int stream, int32_t before);

// ---- bytes.c: reading and writing
// Bytes that mean `want`.
void tr__bytes_read(tr_proof *p, tr_bytes bytes, const tr_meaning *want);
// The same, of bytes that the step does not touch.
void tr__bytes_expect(tr_proof *p, tr_bytes bytes, const tr_meaning *want);
// They mean `leave` then.
void tr__bytes_write(tr_proof *p, tr_bytes bytes, const tr_meaning *leave);
// They meant `want`, and mean `leave` then.
void tr__bytes_change(tr_proof *p, tr_bytes bytes, const tr_meaning *want,
                      const tr_meaning *leave);
// Working memory of the step alone.
void tr__bytes_work(tr_proof *p, tr_bytes bytes);
// What another step has left of a kind, whatever else it is. *found: what its first
// byte means.
void tr__bytes_look(tr_proof *p, tr_bytes bytes, tr_meaning *found);
// What is there is used up: nobody may count on it any more.
void tr__bytes_forget(tr_proof *p, tr_bytes bytes);
// What is there goes there. The lengths are equal.
void tr__bytes_copy(tr_proof *p, tr_bytes from, tr_bytes to);
// Without a step: what bytes mean before a walk, and after it. Do they mean `want`?
void tr__bytes_set(tr_proof *p, tr_bytes bytes, const tr_meaning *means);
bool tr__bytes_mean(const tr_proof *p, tr_bytes bytes, const tr_meaning *want);

// ---- touched.c: what the rule of a step touches
void tr__touched_add(tr_proof *p, tr_byte_list *list, tr_bytes bytes);
void tr__payload_begin(tr_proof *p);
void tr__payload_touch(tr_proof *p, tr_bytes bytes, bool writes);
// ---- payload.c: what the executor does is what the rule says
void tr__payload_check(tr_proof *p);

// ---- tenants.c: who has which memory
tr_status tr__tenants_make(tr_proof *p);
void tr__tenants_clear(tr_proof *p);
void tr__tenants_reset(tr_proof *p);
// The step names the buffer: its memory is the buffer's from now on.
void tr__tenants_name(tr_proof *p, int32_t buffer);
// All that lives always has a place of its own.
void tr__tenants_check_kept(tr_proof *p);

// ---- spans.c: where things lie
// The buffer that the step names in a role, where that does not live always; -1: none.
int32_t tr__role_buffer(const tr_proof *p, tr_operand_role role);
// The first `bytes` of it.
tr_bytes tr__role_bytes(tr_proof *p, tr_operand_role slot, int64_t bytes,
                        tr_space space);
// The step's working memory.
void tr__role_work(tr_proof *p, int64_t bytes);
// The same of its ops: as much as the kernel says that needs the most, in whole lines
// of a cache.
void tr__role_kernels(tr_proof *p);
// Working memory in which pieces of sums of another type become f32; that through which
// messages pass, between the ranks on these axes of the mesh: the step names them.
void tr__role_convert(tr_proof *p);
void tr__exchange_work(tr_proof *p, tr_axes group);
// The same of an exchange of two stages.
void tr__exchange_pair(tr_proof *p, int64_t from, int64_t to);
// What a part of a flat buffer is; where its element 0 would lie; elements of it.
typedef struct tr_kept {
    int32_t buffer;
    int64_t first, count;  // elements that are there
    tr_block_size element; // how many bytes they take
    int64_t base;
    tr_meaning means; // of the version that the step computes with, base included
} tr_kept;
tr_kept tr__kept_part(const tr_proof *p, int32_t flat, tr_part part);
tr_kept tr__kept_params(const tr_proof *p, int32_t flat); // on the device
tr_kept tr__kept_sums(const tr_proof *p, int32_t flat);   // on the device
// Elements [first, first + count) of what is kept; they must be of it.
tr_bytes tr__kept_bytes(tr_proof *p, const tr_kept *kept, int64_t first, int64_t count);
tr_bytes tr__statistics_bytes(const tr_proof *p, int64_t first, int64_t count);
// A state of the model. What lies between those of a unit means nothing.
tr_bytes tr__state_bytes(const tr_proof *p, const tr_plan_state *state);

// ---- rules
// What the step does.
void tr__rule_apply(tr_proof *p);
// Is it the host's decision on the update?
bool tr__decides(const tr_plan_step *step);
// rules_unit.c
void tr__rule_load(tr_proof *p);
void tr__rule_unload(tr_proof *p);
void tr__rule_forward(tr_proof *p);
void tr__rule_recompute(tr_proof *p);
void tr__rule_backward(tr_proof *p);
void tr__rule_track(tr_proof *p);
// pieces.c
bool tr__pieces_make(tr_proof *p); // false: no memory
void tr__pieces_reset(tr_proof *p);
void tr__rule_exchange_tensor(tr_proof *p);
// On which stream such a message is.
tr_stream tr__message_stream(const tr_proof *p);
void tr__rule_message(tr_proof *p);
void tr__rule_sum_parts(tr_proof *p);
// rules_hand_out.c
void tr__rule_hand_out(tr_proof *p);
// rules_wave.c
// A program of one micro-batch reads a wave tensor, or adds to its part of it, or
// writes that; the step names a unit's wave tensors, or their gradients.
void tr__wave_touch(tr_proof *p, const tr_touch *touch, bool adds);
void tr__wave_name(tr_proof *p, bool gradient);
void tr__rule_pack(tr_proof *p);
void tr__rule_gather_wave(tr_proof *p);
void tr__rule_merge(tr_proof *p);
// rules_first_wave.c
void tr__rule_keep_first_wave(tr_proof *p);
void tr__rule_sum_first_wave(tr_proof *p);
void tr__rule_micro_norm_tied(tr_proof *p);
// rules_gradient.c
void tr__rule_clear_gradients(tr_proof *p);
void tr__rule_clear_statistics(tr_proof *p);
void tr__rule_micro_norm(tr_proof *p);
void tr__rule_accumulate(tr_proof *p);
void tr__rule_reduce(tr_proof *p);
void tr__rule_gather_gradient(tr_proof *p);
void tr__rule_gradient_squares(tr_proof *p);
void tr__rule_evict(tr_proof *p);
void tr__rule_add(tr_proof *p);
// Elements [first, first + count) of the gradient of a flat buffer, complete and of all
// ranks, where element 0 of it would lie at `kept->base`.
void tr__gradient_read(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                       int64_t count, int32_t version);
// rules_statistics.c
// An entry that the step brings up to date; one that squares are added to; the squares
// of a flat buffer's gradient.
void tr__statistics_note(tr_proof *p, tr_statistics_flag flag);
void tr__statistics_add(tr_proof *p, tr_statistics_flag flag, uint64_t contribution);
void tr__statistics_squares(tr_proof *p, int32_t flat);
// What ranks tell each other before the update: read complete; gathered.
void tr__statistics_read(tr_proof *p);
void tr__rule_gather_statistics(tr_proof *p);
void tr__rule_norm(tr_proof *p);
void tr__rule_square_sums(tr_proof *p);
void tr__rule_report(tr_proof *p);
void tr__rule_decide(tr_proof *p);
// rules_move.c
void tr__rule_gather(tr_proof *p);
void tr__rule_fetch(tr_proof *p);
void tr__rule_copy(tr_proof *p);
void tr__rule_read(tr_proof *p);
void tr__rule_write(tr_proof *p);
// rules_update.c
void tr__rule_direction_norms(tr_proof *p);
// Where they and the norms are: where the host's updates reach them, too.
tr_space tr__norms_place(const tr_proof *p);
void tr__rule_tensor_sums(tr_proof *p);
void tr__rule_exchange_norms(tr_proof *p);
void tr__rule_tensor_norms(tr_proof *p);
void tr__rule_direction(tr_proof *p);
void tr__rule_gather_directions(tr_proof *p);
void tr__rule_orthogonal(tr_proof *p);
void tr__rule_update(tr_proof *p);
// The version that a step of the update begins with.
int32_t tr__rule_version(const tr_proof *p);
// A file's part and staging hold whole blocks: so many bytes.
int64_t tr__staged_bytes(const tr_kept *kept, int64_t count);
bool tr__is_in_file(const tr_proof *p, const tr_kept *kept);

#endif
