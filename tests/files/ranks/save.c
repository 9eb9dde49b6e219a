// Run on two ranks or more: checkpoints that they write and read together are the files
// of one process, and one rank's trouble is everybody's.
//
// save OUT STEP RANK N: saves a checkpoint of that step, in which the rank is killed at
// its Nth write, sync or renaming (0: at none; how many there are is said).
#include "files/support.h"

#include "base/files.h"
#include "base/memory.h"
#include "base/rng.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TENSORS = 6, LARGEST = 4099, WAYS = 12 };

static tr_comm *comm;

static const struct {
    const char *name;
    tr_shape shape;
} parts[TENSORS] = {
    {"wte", {2, {4099, 1, 0, 0}}}, {"bias", {1, {63, 0, 0, 0}}},
    {"one", {0, {0, 0, 0, 0}}},    {"none", {2, {0, 7, 0, 0}}},
    {"cube", {3, {3, 5, 17, 0}}},  {"two", {1, {2, 0, 0, 0}}},
};

typedef struct shared_run {
    float data[2][TENSORS][LARGEST];
    tr_checkpoint_tensor tensors[2][TENSORS];
    tr_state state;
    tr_checkpoint_input input;
} shared_run;

// These stand before the C library's. What this rank's writes come to, when asked for:
// a byte of them turns on the way; or they are its last.
static bool spoils;
static int calls, last_call; // last_call 0: there is none

static void count_call(void) {
    if (++calls == last_call) {
        kill(getpid(), SIGKILL);
    }
}

int fsync(int file) {
    count_call();
    return (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to) {
    count_call();
    return (int)syscall(SYS_rename, from, to);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
    const char *from = data;
    char turned;
    count_call();
    if (spoils && bytes > 0) {
        turned = (char)(from[0] ^ 4);
        from = &turned;
        bytes = 1;
    }
    return syscall(SYS_pwrite64, file, from, bytes, offset);
}

static int64_t draw(uint64_t bound, uint64_t index, int64_t way) {
    return (int64_t)tr__draw_below(bound, index, 77, (uint64_t)way);
}

// Where piece `k` of a tensor begins, one of as many as there are ranks; the last one
// ends at `count`. Odd places; pieces may be empty.
static int64_t cut(int64_t count, int k, int tensor, int64_t way) {
    int64_t begin = 0;
    for (int i = 0; i < k; i++) {
        begin += draw((uint64_t)(count - begin) + 1, (uint64_t)(64 * tensor + i), way);
    }
    return k == tr_comm_ranks(comm) ? count : begin;
}

// This rank's piece. Way 0: all is rank 0's; way 1: all is the last rank's.
static void set_piece(tr_checkpoint_tensor *t, const float *data, int tensor,
                      int64_t way) {
    int rank = tr_comm_rank(comm), ranks = tr_comm_ranks(comm);
    int64_t count = tr_shape_count(t->shape);
    int place = (int)((rank + way) % ranks); // the ranks' pieces lie in any order
    t->first = cut(count, place, tensor, way);
    t->count = cut(count, place + 1, tensor, way) - t->first;
    if (way < 2) {
        t->first = 0;
        t->count = rank == (way == 0 ? 0 : ranks - 1) ? count : 0;
    }
    t->data = data + t->first;
}

static void fill(shared_run *run, const char *out, int64_t step, int64_t way) {
    bool in_files = way >= WAYS / 2; // of weights in bf16
    memset(run, 0, sizeof *run);
    for (int f = 0; f < 2; f++) {
        for (int t = 0; t < TENSORS; t++) {
            for (int i = 0; i < LARGEST; i++) {
                run->data[f][t][i] = test_value(step, t + 10 * f, i);
            }
            run->tensors[f][t].name = parts[t].name;
            run->tensors[f][t].shape = parts[t].shape;
            set_piece(&run->tensors[f][t], run->data[f][t], t + TENSORS * f, way);
        }
    }
    run->state = (tr_state){.step = step, .update = step, .loss_scale = 1};
    for (int t = 0; in_files && t < TENSORS; t++) {
        run->tensors[0][t].stored = TR_BF16;
    }
    run->input = (tr_checkpoint_input){.comm = comm,
                                       .shard_bytes = in_files ? 8000 : 0,
                                       .out_folder = out,
                                       .state = &run->state,
                                       .config = "{}\n",
                                       .model = run->tensors[0],
                                       .model_count = TENSORS,
                                       .optimizer = run->tensors[1],
                                       .optimizer_count = TENSORS};
}

// The same as one process has it.
static void fill_alone(shared_run *run, const char *out, int64_t step, int64_t way) {
    fill(run, out, step, way);
    run->input.comm = NULL;
    for (int f = 0; f < 2; f++) {
        for (int t = 0; t < TENSORS; t++) {
            run->tensors[f][t].first = 0;
            run->tensors[f][t].count = tr_shape_count(parts[t].shape);
            run->tensors[f][t].data = run->data[f][t];
        }
    }
}

static tr_status save(const char *out, int64_t step, int64_t way, tr_error *err) {
    shared_run run;
    *err = (tr_error){0};
    fill(&run, out, step, way);
    return tr__checkpoint_save(&run.input, err);
}

// All files of a checkpoint: state.json has the others' sizes and hashes.
static void compare_files(const char *a, const char *b) {
    tr_error err = {0};
    tr_manifest manifest;
    test_ok(tr__checkpoint_verify(a, TR_VERIFY_HASHES, NULL, NULL, &manifest, &err),
            &err);
    const char *names[TR_MANIFEST_FILES_MAX + 1] = {"state.json"};
    for (int i = 0; i < manifest.count; i++) {
        names[i + 1] = manifest.file[i].name;
    }
    for (int i = 0; i <= manifest.count; i++) {
        char path[PATH_MAX];
        size_t bytes = 0, other_bytes = 0;
        char *text = test_read(test_path(path, a, names[i]), &bytes);
        char *other = test_read(test_path(path, b, names[i]), &other_bytes);
        assert_int_equal(bytes, other_bytes);
        assert_memory_equal(text, other, bytes);
        tr__free(text);
        tr__free(other);
    }
}

// Nothing half-written, and the checkpoint to resume from is that of `step`. On rank 0,
// while the others wait.
static void check_state(const char *out, int64_t step) {
    tr_error err = {0};
    char folder[PATH_MAX], found[PATH_MAX], expected[64];
    if (tr_comm_rank(comm) == 0) {
        tr_step_folder *list = NULL;
        size_t count = 0;
        test_ok(
            tr__step_scan(test_path(folder, out, "checkpoints"), &list, &count, &err),
            &err);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(list[i].kind, TR_STEP_PLAIN);
        }
        tr__free(list);
        test_ok(tr__checkpoint_find_latest(out, TR_VERIFY_HASHES, NULL, found,
                                           sizeof found, &err),
                &err);
        snprintf(expected, sizeof expected, "step-%08d", (int)step);
        assert_non_null(strstr(found, expected));
    }
    test_ok(tr__comm_barrier(comm, &err), &err);
}

// Every rank has the same status and words.
static void fails_everywhere(tr_status status, const tr_error *err, tr_status expected,
                             const char *words) {
    tr_error first = *err, other = {0};
    test_fails(status, err, expected, words);
    test_ok(tr__comm_broadcast(comm, 0, &first, sizeof first, &other), &other);
    assert_int_equal(first.status, err->status);
    assert_string_equal(first.message, err->message);
}

// ---- saving

static void files_of_one_process(void **state) {
    char a[PATH_MAX], b[PATH_MAX], alone[PATH_MAX];
    tr_error err = {0};
    test_path(alone, *state, "alone");
    for (int64_t way = 0; way < WAYS; way++) {
        test_ok(save(*state, way, way, &err), &err);
        if (tr_comm_rank(comm) == 0) {
            char name[64];
            shared_run run;
            snprintf(name, sizeof name, "checkpoints/step-%08d", (int)way);
            fill_alone(&run, alone, way, way);
            test_ok(tr__checkpoint_save(&run.input, &err), &err);
            compare_files(test_path(a, *state, name), test_path(b, alone, name));
        }
    }
    check_state(*state, WAYS - 1);
}

typedef struct seen {
    int64_t calls, done, total;
} seen;

static void see(void *user, int64_t done, int64_t total) {
    seen *s = user;
    assert_true(done >= s->done && done <= total);
    *s = (seen){s->calls + 1, done, total};
}

// Rank 0 tells of what it writes and reads back; the others say nothing.
static void progress(void **state) {
    for (int64_t way = 0; way < 4; way++) {
        shared_run run;
        tr_error err = {0};
        seen s = {0};
        fill(&run, *state, 1, way);
        run.input.progress = (tr_progress){see, &s};
        test_ok(tr__checkpoint_save(&run.input, &err), &err);
        assert_int_equal(s.done, s.total);
        assert_int_equal(s.calls > 0, tr_comm_rank(comm) == 0);
    }
}

// One element too much or too little: of all that may be wrong with pieces, this is
// what would look like a checkpoint.
static void gap_or_overlap(void **state) {
    static const char *const words[] = {"leave a gap", "overlap"};
    tr_error err = {0};
    test_ok(save(*state, 1, 5, &err), &err);
    for (int overlap = 0; overlap < 2; overlap++) {
        shared_run run;
        err = (tr_error){0};
        fill(&run, *state, 2, overlap); // all is one rank's
        tr_checkpoint_tensor *cube = &run.tensors[1][4];
        if (!overlap && cube->count > 0) {
            cube->count--;
        } else if (overlap && tr_comm_rank(comm) == 0) {
            cube->first = 11;
            cube->count = 1;
        }
        fails_everywhere(tr__checkpoint_save(&run.input, &err), &err, TR_INTERNAL,
                         words[overlap]);
        check_state(*state, 1);
    }
}

// ---- one rank's trouble

static bool is_last(void) {
    return tr_comm_rank(comm) == tr_comm_ranks(comm) - 1;
}

static void cannot_write(void **state) {
    struct rlimit before;
    tr_error err = {0};
    char words[32];
    snprintf(words, sizeof words, "rank %d: ", tr_comm_ranks(comm) - 1);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    test_ok(save(*state, 1, 1, &err), &err);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t bytes = 0; bytes < 18000; bytes += 6000) {
        struct rlimit limit = {bytes, before.rlim_max};
        if (is_last()) {
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        }
        tr_status status = save(*state, 2, 1, &err);
        if (is_last()) {
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        }
        fails_everywhere(status, &err, TR_IO, "File too large");
        assert_non_null(strstr(err.message, words));
        check_state(*state, 1);
    }
    signal(SIGXFSZ, handler);
    test_ok(save(*state, 2, 1, &err), &err);
    check_state(*state, 2);
}

// What a rank wrote is not what is there.
static void file_system_loses_bytes(void **state) {
    tr_error err = {0};
    test_ok(save(*state, 1, 3, &err), &err);
    spoils = is_last();
    tr_status status = save(*state, 2, 1, &err);
    spoils = false;
    fails_everywhere(status, &err, TR_IO, "not what a rank wrote");
    check_state(*state, 1);
}

static void folder_is_not_shared(void **state) {
    char other[PATH_MAX];
    tr_error err = {0};
    test_ok(save(*state, 1, 3, &err), &err);
    test_path(other, *state, "elsewhere");
    fails_everywhere(save(is_last() ? other : *state, 2, 3, &err), &err, TR_IO,
                     "share one file system");
    check_state(*state, 1);
}

static void no_memory(void **state) {
    tr_error err = {0};
    tr_status status = TR_MEMORY;
    int refused = 0;
    test_ok(save(*state, 1, 3, &err), &err);
    for (int64_t nth = 1; status != TR_OK && nth < 100; nth++) {
        if (is_last()) {
            tr__memory_fail_at(nth);
        }
        status = save(*state, 2, 3, &err);
        tr__memory_fail_at(0);
        if (status != TR_OK) {
            fails_everywhere(status, &err, TR_MEMORY, "no memory");
            check_state(*state, 1);
            refused++;
        }
    }
    test_ok(status, &err);
    assert_true(refused > 5);
    check_state(*state, 2);
}

// ---- reading

static void check_open(const char *folder, int64_t step) {
    tr_error err = {0};
    tr_checkpoint *checkpoint = NULL;
    static float read[LARGEST];
    shared_run run;
    fill(&run, "", step, step + 2);
    test_ok(tr__checkpoint_open_all(comm, folder, TR_VERIFY_HASHES, NULL, &checkpoint,
                                    &err),
            &err);
    assert_int_equal(checkpoint->state.step, step);
    for (int t = 0; t < TENSORS; t++) {
        const tr_checkpoint_tensor *piece = &run.tensors[0][t];
        test_ok(tr__tensor_read_f32(checkpoint->model,
                                    tr__tensor_set_find(checkpoint->model, piece->name),
                                    piece->first, piece->count, read, &err),
                &err);
        assert_memory_equal(read, piece->data, (size_t)piece->count * sizeof *read);
    }
    tr__checkpoint_close(checkpoint);
}

static void resumes(void **state) {
    char found[PATH_MAX], expected[PATH_MAX];
    tr_error err = {0};
    test_ok(tr__checkpoint_find(comm, *state, NULL, found, &err), &err);
    assert_string_equal(found, ""); // nothing is there
    test_ok(save(*state, 1, 4, &err), &err);
    test_ok(save(*state, 2, 5, &err), &err);
    test_ok(tr__checkpoint_find(comm, *state, NULL, found, &err), &err);
    assert_string_equal(found,
                        test_path(expected, *state, "checkpoints/step-00000002"));
    check_open(found, 2);
}

static void damaged(void **state) {
    char found[PATH_MAX], path[PATH_MAX];
    tr_error err = {0};
    test_ok(save(*state, 1, 4, &err), &err);
    test_ok(save(*state, 2, 5, &err), &err);
    test_path(found, *state, "checkpoints/step-00000002");
    if (tr_comm_rank(comm) == 0) {
        size_t bytes = 0;
        char *text = test_read(test_path(path, found, "model.safetensors"), &bytes);
        text[bytes / 2] ^= 1;
        test_write(path, text, bytes);
        tr__free(text);
    }
    test_ok(tr__comm_barrier(comm, &err), &err);
    tr_checkpoint *checkpoint = NULL;
    tr_status status =
        tr__checkpoint_open_all(comm, found, TR_VERIFY_HASHES, NULL, &checkpoint, &err);
    fails_everywhere(status, &err, TR_IO, "damaged checkpoint");
    assert_null(checkpoint);
    err = (tr_error){0};
    fails_everywhere(tr__checkpoint_find(comm, *state, NULL, found, &err), &err, TR_IO,
                     "step-00000001");
}

// A rank that finds another checkpoint, or none, under the name that rank 0 says.
static void not_the_same(void **state) {
    static const char *const others[] = {"checkpoints/step-00000001", "nowhere"};
    static const char *const words[] = {"than rank 0 does", "cannot open"};
    tr_error err = {0};
    test_ok(save(*state, 1, 4, &err), &err);
    test_ok(save(*state, 2, 5, &err), &err);
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        tr_checkpoint *checkpoint = NULL;
        test_path(path, *state, is_last() ? others[i] : "checkpoints/step-00000002");
        err = (tr_error){0};
        tr_status status = tr__checkpoint_open_all(comm, path, TR_VERIFY_SIZES, NULL,
                                                   &checkpoint, &err);
        fails_everywhere(status, &err, TR_IO, words[i]);
        assert_null(checkpoint);
    }
}

// ---- a folder for all ranks

static int make(void **state) {
    tr_error err = {0};
    char path[PATH_MAX] = "";
    void *own = NULL;
    if (tr_comm_rank(comm) == 0 && test_folder_make(&own) == 0) {
        snprintf(path, sizeof path, "%s", (char *)own);
    }
    tr__free(own);
    tr_status status = tr__comm_broadcast(comm, 0, path, sizeof path, &err);
    *state = tr__strdup(path);
    return status == TR_OK && path[0] && *state ? 0 : -1;
}

static int take_away(void **state) {
    tr_error err = {0};
    tr_status status = tr__comm_barrier(comm, &err);
    if (tr_comm_rank(comm) == 0) {
        return test_folder_remove(state);
    }
    tr__free(*state);
    return status == TR_OK ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, take_away)

static int save_and_die(char **argument) {
    tr_error err = {0};
    int rank = atoi(argument[3]), nth = atoi(argument[4]);
    calls = 0;
    last_call = tr_comm_rank(comm) == rank ? nth : 0;
    tr_status status = save(argument[1], atoi(argument[2]), WAYS / 2 + 1, &err);
    if (status == TR_OK) {
        printf("calls of rank %d: %d\n", tr_comm_rank(comm), calls);
    } else {
        fprintf(stderr, "%s\n", err.message);
    }
    return tr_status_exit(status);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(files_of_one_process),
        TEST(progress),
        TEST(gap_or_overlap),
        TEST(cannot_write),
        TEST(file_system_loses_bytes),
        TEST(folder_is_not_shared),
        TEST(no_memory),
        TEST(resumes),
        TEST(damaged),
        TEST(not_the_same),
    };
    tr_error err = {0};
    if (tr_comm_open(&comm, &err) != TR_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    int result =
        argc == 5 ? save_and_die(argv) : cmocka_run_group_tests(tests, NULL, NULL);
    tr_comm_close(comm);
    return result;
}
