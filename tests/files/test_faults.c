// What goes wrong outside: no space, no permission, no memory, a kill at any moment.
#include "files/support.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Stands before the C library's, to be a file system that cannot exchange two names.
static bool no_exchange;
int renameat2(int from_folder, const char *from, int to_folder, const char *to,
              unsigned int flags) {
    if (no_exchange) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

static tr_status save(const char *out, int64_t step, tr_error *err) {
    test_run run;
    test_run_fill(&run, out, step, 2);
    return tr__checkpoint_save(&run.input, err);
}

static bool has_partial(const char *out) {
    char folder[PATH_MAX];
    tr_step_folder *list;
    size_t count;
    tr_error err = {0};
    bool found = false;
    test_path(folder, out, "checkpoints");
    test_ok(tr__step_scan(folder, &list, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        found |= list[i].kind != TR_STEP_PLAIN;
    }
    tr__free(list);
    return found;
}

// After a failed save: nothing half-written is there, and the one before still loads.
static void check_unharmed(const char *out, int64_t step) {
    char found[PATH_MAX];
    tr_error err = {0};
    assert_false(has_partial(out));
    test_ok(tr__checkpoint_find_latest(out, TR_VERIFY_HASHES, NULL, found, sizeof found,
                                       &err),
            &err);
    test_run_check(found, step);
}

// A file may not grow beyond each limit in turn, from nothing to enough.
static void file_size_limit(void **state) {
    struct rlimit before, limit;
    tr_error first = {0};
    int failures = 0;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    test_ok(save(*state, 1, &first), &first);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t bytes = 0; bytes <= 2048; bytes += 128) {
        tr_error err = {0};
        limit = (struct rlimit){bytes, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        tr_status status = save(*state, 2, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        if (status == TR_OK) {
            check_unharmed(*state, 2);
        } else {
            failures++;
            test_fails(status, &err, TR_IO, "File too large");
            check_unharmed(*state, 1);
        }
    }
    signal(SIGXFSZ, handler);
    assert_true(failures >= 5);
    check_unharmed(*state, 2); // the largest limit was enough
}

// Runs `body` in a child with its own mounts; its exit status, or -1 when mounting is
// not permitted.
static int with_small_disk(const char *folder, const char *options, unsigned long flags,
                           int (*body)(const char *)) {
    enum { NOT_PERMITTED = 77 };
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", folder, "tmpfs", flags, options) != 0) {
            _exit(NOT_PERMITTED);
        }
        _exit(body(folder));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == NOT_PERMITTED ? -1 : WEXITSTATUS(status);
}

// Each save takes about 6 pages with keep = 2 and the new one beside them; then a file
// takes what is left.
static int full_disk(const char *out) {
    tr_error err = {0};
    char path[PATH_MAX], found[PATH_MAX];
    static char filler[256 << 10];
    if (save(out, 1, &err) != TR_OK) {
        return 1;
    }
    test_path(path, out, "filler");
    FILE *file = fopen(path, "w");
    setvbuf(file, NULL, _IONBF, 0);
    fwrite(filler, 1, sizeof filler, file);
    fclose(file);
    if (save(out, 2, &err) != TR_IO || !strstr(err.message, "No space left")) {
        return 2;
    }
    if (has_partial(out) ||
        tr__checkpoint_find_latest(out, TR_VERIFY_HASHES, NULL, found, sizeof found,
                                   NULL) != TR_OK ||
        !strstr(found, "step-00000001")) {
        return 3;
    }
    err = (tr_error){0};
    unlink(path);
    return save(out, 2, &err) == TR_OK ? 0 : 4;
}

static int read_only_disk(const char *out) {
    tr_error err = {0};
    return save(out, 1, &err) == TR_IO && strstr(err.message, "Read-only") ? 0 : 1;
}

static void full_or_read_only_disk(void **state) {
    int full = with_small_disk(*state, "size=128k", 0, full_disk);
    int read_only = with_small_disk(*state, "size=128k", MS_RDONLY, read_only_disk);
    if (full < 0 || read_only < 0) {
        print_message("full_or_read_only_disk: mounting is not permitted here\n");
        skip();
    }
    assert_int_equal(full, 0);
    assert_int_equal(read_only, 0);
}

static void no_folder_possible(void **state) {
    char file[PATH_MAX], out[PATH_MAX];
    tr_error err = {0};
    test_write(test_path(file, *state, "file"), "x", 1);
    test_fails(save(test_path(out, file, "run"), 1, &err), &err, TR_IO, "file");
    err = (tr_error){0};
    test_fails(save(file, 1, &err), &err, TR_IO, "file");
    // A name of ours that is a file.
    err = (tr_error){0};
    test_ok(save(*state, 1, &err), &err);
    test_path(file, *state, "checkpoints/step-00000002");
    test_write(file, "x", 1);
    test_fails(save(*state, 2, &err), &err, TR_IO, "needs this name");
    check_unharmed(*state, 1);
}

// Weights that are not finite take no good checkpoint's place; what the optimizer holds
// may be anything.
static void weights_not_finite(void **state) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    test_run run;
    tr_error err = {0};
    test_ok(save(*state, 1, &err), &err);
    for (int i = 0; i < 3; i++) {
        test_run_fill(&run, *state, 2, 2);
        run.model_data[1][62] = bad[i];
        err = (tr_error){0};
        test_fails(tr__checkpoint_save(&run.input, &err), &err, TR_NUMBERS,
                   "transformer.h.0.bias has values that are not finite");
        check_unharmed(*state, 1);
    }
    test_run_fill(&run, *state, 2, 2);
    run.model_data[1][62] = 3.4e38f; // rounds to an infinity in bf16
    err = (tr_error){0};
    assert_int_equal(tr__checkpoint_save(&run.input, &err),
                     test_in_shards ? TR_NUMBERS : TR_OK);
    test_run_fill(&run, *state, 2, 2);
    run.optimizer_data[1][0] = INFINITY;
    err = (tr_error){0};
    test_ok(tr__checkpoint_save(&run.input, &err), &err);
}

// Everything that takes memory, with the nth request refused.
static tr_status do_everything(const char *out, tr_error *err) {
    char path[PATH_MAX], found[PATH_MAX];
    tr_checkpoint_entry *entries = NULL;
    tr_checkpoint *checkpoint = NULL;
    tr_inspection *inspection = NULL;
    tr_diff *diff = NULL;
    size_t count = 0;
    test_path(path, out, "checkpoints/latest");
    tr_status status = save(out, 3, err);
    if (status == TR_OK) {
        status = tr__checkpoint_find_latest(out, TR_VERIFY_HASHES, NULL, found,
                                            sizeof found, err);
    }
    if (status == TR_OK) {
        status = tr_checkpoint_list(out, &entries, &count, err);
    }
    if (status == TR_OK) {
        status = tr__checkpoint_open(path, TR_VERIFY_SIZES, NULL, &checkpoint, err);
    }
    if (status == TR_OK) {
        status = tr_checkpoint_inspect(path, &inspection, err);
    }
    if (status == TR_OK) {
        status = tr_checkpoint_diff(path, path, &diff, err);
    }
    tr_diff_destroy(diff);
    tr_inspection_destroy(inspection);
    tr__checkpoint_close(checkpoint);
    tr_checkpoint_list_destroy(entries, count);
    return status;
}

static void no_memory(void **state) {
    int refused = 0;
    tr_status status;
    tr_error last = {0};
    test_ok(save(*state, 1, &last), &last);
    for (int64_t nth = 1; nth < 10000; nth++) {
        last = (tr_error){0};
        int64_t calls = tr__memory_calls();
        tr__memory_fail_at(nth);
        status = do_everything(*state, &last);
        calls = tr__memory_calls() - calls;
        tr__memory_fail_at(0);
        if (calls < nth) {
            break; // nothing was refused any more
        }
        refused++;
        // A refusal while old checkpoints are looked through loses none of them and is
        // no error; everywhere else it is reported.
        assert_true(status == TR_OK || status == TR_MEMORY || status == TR_IO);
        tr_error err = {0};
        test_ok(tr__checkpoint_clean(*state, &err), &err);
    }
    test_ok(status, &last);
    assert_true(refused > 50);
    check_unharmed(*state, 3);
}

// ---- kills

typedef struct shared {
    _Atomic int64_t saved; // the last step whose save returned
} shared;

// Saves steps without end, every other one twice.
static void save_for_ever(const char *out, int64_t step, shared *seen) {
    for (;; step++) {
        for (int64_t again = 0; again <= step % 2; again++) {
            tr_error err = {0};
            if (save(out, step, &err) != TR_OK) {
                fprintf(stderr, "%s\n", err.message);
                _exit(1);
            }
            seen->saved = step;
        }
    }
}

static void wait_for(int64_t microseconds) {
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

static void kill_after(const char *out, int64_t step, shared *seen,
                       int64_t microseconds) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        save_for_ever(out, step, seen);
    }
    wait_for(microseconds);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

// The step to resume from, loaded whole; 0 when nothing is there yet.
static int64_t resume(const char *out) {
    char found[PATH_MAX];
    tr_error err = {0};
    test_ok(tr__checkpoint_find_latest(out, TR_VERIFY_HASHES, NULL, found, sizeof found,
                                       &err),
            &err);
    if (!*found) {
        return 0;
    }
    const char *name = strrchr(found, '/') + 1;
    int64_t step = strtoll(name + strlen("step-"), NULL, 10);
    test_run_check(found, step);
    return step;
}

// Every checkpoint that has its name is complete, and `latest` leads to one (but for
// the moment that a file system without exchange needs).
static void check_names(const char *out) {
    tr_error err = {0};
    tr_checkpoint_entry *entries;
    size_t count;
    int latest = 0;
    test_ok(tr_checkpoint_list(out, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        assert_true(entries[i].complete);
        latest += entries[i].latest;
    }
    char link[PATH_MAX];
    struct stat info;
    bool there = lstat(test_path(link, out, "checkpoints/latest"), &info) == 0;
    assert_true(no_exchange || latest == there);
    tr_checkpoint_list_destroy(entries, count);
}

// How long to wait at most, in microseconds: some saves, on this disk.
static uint64_t longest_wait(const char *out) {
    char other[PATH_MAX];
    tr_error err = {0};
    test_ok(tr__folder_create(test_path(other, out, "timed"), &err), &err);
    double start = tr__seconds();
    test_ok(save(other, 1, &err), &err);
    test_ok(save(other, 1, &err), &err);
    return 2000 + (uint64_t)(2e6 * (tr__seconds() - start));
}

static void kill_often(const char *out, uint64_t stream) {
    enum { KILLS = 30 };
    uint64_t longest = longest_wait(out);
    shared *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen != MAP_FAILED);
    int64_t step = 0, interrupted = 0;
    for (uint64_t i = 0; i < KILLS; i++) {
        tr_error err = {0};
        kill_after(out, step + 1, seen,
                   (int64_t)tr__draw_below(longest, i, 2024, stream));
        interrupted += has_partial(out);
        check_names(out);
        assert_true(resume(out) >= seen->saved); // before anything is repaired
        test_ok(tr__checkpoint_clean(out, &err), &err);
        assert_false(has_partial(out));
        step = resume(out);
        assert_true(step >= seen->saved);
    }
    assert_true(step > 0 && interrupted > 0);
    munmap(seen, sizeof *seen);
}

static void killed_at_any_moment(void **state) {
    kill_often(*state, 1);
}

static void killed_without_exchange(void **state) {
    no_exchange = true;
    kill_often(*state, 2);
    no_exchange = false;
}

// With weights in several files.
#define IN_SHARDS(test)                                                                \
    { #test "_in_shards", test, test_shards_make, test_folder_remove, NULL }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_size_limit, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(full_or_read_only_disk, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(no_folder_possible, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(weights_not_finite, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(no_memory, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(killed_at_any_moment, test_folder_make,
                                        test_folder_remove),
        cmocka_unit_test_setup_teardown(killed_without_exchange, test_folder_make,
                                        test_folder_remove),
        IN_SHARDS(file_size_limit),
        IN_SHARDS(weights_not_finite),
        IN_SHARDS(no_memory),
        IN_SHARDS(killed_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
