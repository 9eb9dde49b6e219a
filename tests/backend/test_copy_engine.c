// Labels: threads
// A copy engine on real memory and a real file, by io_uring and by threads.
#include "backend/copy_engine_model.h"

#include "backend/host/copy_engine.h"
#include "base/files.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = TR_CARRY_ALIGN, FILE_BYTES = 8 << 20, NO_FILTER = 77 };

static char folder[256]; // of this program's files

static int make_folder(void **state) {
    (void)state;
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tranche-copy_engine-XXXXXX",
             root ? root : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return tr__folder_remove(folder, NULL) == TR_OK ? 0 : -1;
}

static tr_copy_engine *make(const char *where, int64_t file_bytes, bool plain) {
    tr_copy_engine_options options = {where, file_bytes, plain};
    tr_copy_engine *copy_engine = NULL;
    tr_error err = {0};
    if (tr__copy_engine_create(&options, &copy_engine, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return copy_engine;
}

static int64_t start(tr_copy_engine *copy_engine, tr_carry_kind kind, const void *from,
                     void *to, int64_t bytes, int64_t offset) {
    tr_carry order = {kind, from, to, bytes, offset};
    return tr__copy_engine_start(copy_engine, &order);
}

static void wait_for(tr_copy_engine *copy_engine, int64_t ticket) {
    tr_error err = {0};
    if (tr__copy_engine_wait(copy_engine, ticket, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
}

// ---- copies and sums

// Sizes around a line of the cache, a piece of work, and where copies begin to go past
// the caches; from and to any address; nothing beside them is touched.
static void test_copies_of_any_size(void **state) {
    (void)state;
    static const int64_t sizes[] = {0,   1,    63,      64,      65,      127,
                                    128, 4095, 1048577, 4194303, 4194304, 5000001};
    enum { MOST = 5000001, MARGIN = 128, ROOM = 1232 * PAGE };
    char *from = page_memory(ROOM), *to = page_memory(ROOM);
    uint64_t random = 1;
    tr_copy_engine *copy_engine = make("", 0, false);
    for (int64_t i = 0; i < ROOM; i++) {
        from[i] = (char)draw_below(&random, 256);
    }
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int t = 0; t < 4; t++) {
            int64_t bytes = sizes[s], a = draw_below(&random, MARGIN);
            int64_t b = MARGIN + draw_below(&random, MARGIN);
            memset(to, 0x55, ROOM);
            wait_for(copy_engine,
                     start(copy_engine, TR_CARRY_COPY, from + a, to + b, bytes, 0));
            assert_memory_equal(to + b, from + a, bytes);
            for (int64_t i = 1; i <= MARGIN; i++) {
                assert_int_equal(to[b - i], 0x55);
                assert_int_equal(to[b + bytes + i - 1], 0x55);
            }
        }
    }
    tr__copy_engine_destroy(copy_engine);
    free(from);
    free(to);
}

// More orders than the queue holds: each moves what the one before it has moved.
static void test_more_orders_than_the_queue_holds(void **state) {
    (void)state;
    enum { ORDERS = 5 * TR_CARRY_QUEUE };
    char *memory = page_memory(PAGE);
    tr_copy_engine *copy_engine = make("", 0, false);
    assert_int_equal(tr__copy_engine_newest(copy_engine), 0);
    wait_for(copy_engine, 0);
    memory[0] = 42;
    for (int i = 0; i < ORDERS; i++) {
        int64_t ticket =
            start(copy_engine, TR_CARRY_COPY, memory + i, memory + i + 1, 1, 0);
        assert_int_equal(ticket, i + 1);
        assert_int_equal(tr__copy_engine_newest(copy_engine), i + 1);
    }
    wait_for(copy_engine, ORDERS);
    assert_int_equal(memory[ORDERS], 42);
    wait_for(copy_engine, 1);
    wait_for(copy_engine, ORDERS + 100); // never given out: nothing to wait for
    tr__copy_engine_destroy(copy_engine);
    free(memory);
}

static void test_no_file(void **state) {
    (void)state;
    bool direct = true;
    char *memory = page_memory(MODEL_MEMORY);
    tr_copy_engine *copy_engine = make("", 0, false);
    assert_string_equal(tr__copy_engine_method(copy_engine, &direct), "");
    assert_false(direct);
    assert_false(tr__copy_engine_pin(copy_engine, memory, PAGE));
    model_check(copy_engine, false, 300, 11, memory);
    tr__copy_engine_destroy(copy_engine);
    tr__copy_engine_destroy(NULL);
    free(memory);
}

// ---- the file

static int entries(const char *where) {
    int count = 0;
    DIR *dir = opendir(where);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

static void check_on_file(const char *where, bool plain, bool pin) {
    bool direct;
    char *memory = page_memory(MODEL_MEMORY);
    tr_copy_engine *copy_engine = make(where, MODEL_FILE, plain);
    const char *method = tr__copy_engine_method(copy_engine, &direct);
    if (plain) {
        assert_string_equal(method, "threads");
    }
    if (pin) { // all but the last page, which orders use too
        bool pinned = tr__copy_engine_pin(copy_engine, memory, MODEL_MEMORY - PAGE);
        print_message("%s, %s, %s\n", method, direct ? "direct" : "cached",
                      pinned ? "pinned" : "not pinned");
    }
    model_check(copy_engine, true, 200, 12, memory);
    tr_copy_engine_totals totals = tr__copy_engine_totals(copy_engine);
    assert_true(totals.read >= MODEL_FILE && totals.written > 0 && totals.copied > 0);
    assert_true(totals.wait_seconds > 0);
    tr__copy_engine_destroy(copy_engine);
    free(memory);
}

static void test_file(void **state) {
    (void)state;
    check_on_file(folder, false, false);
    check_on_file(folder, false, true);
    check_on_file(folder, true, true);
    if (access("/dev/shm", W_OK) == 0) { // a file system in memory
        check_on_file("/dev/shm", false, false);
        check_on_file("/dev/shm", true, false);
    }
}

// A read sees the write that was ordered before it, whether their ends meet or not.
static void test_read_after_write(void **state) {
    (void)state;
    enum { BLOCKS = 64, BYTES = 32 * PAGE };
    char *memory = page_memory(2 * BYTES);
    for (int plain = 0; plain < 2; plain++) {
        tr_copy_engine *copy_engine = make(folder, FILE_BYTES, plain);
        for (int i = 0; i < BLOCKS; i++) {
            int64_t offset = i % 4 * PAGE;
            memset(memory, i, BYTES);
            start(copy_engine, TR_CARRY_WRITE, memory, NULL, BYTES, offset);
            wait_for(copy_engine, start(copy_engine, TR_CARRY_READ, NULL,
                                        memory + BYTES, BYTES / 2, offset + BYTES / 4));
            for (int k = 0; k < BYTES / 2; k++) {
                assert_int_equal(memory[BYTES + k], i);
            }
        }
        tr__copy_engine_destroy(copy_engine);
    }
    free(memory);
}

static void test_file_has_no_name(void **state) {
    (void)state;
    tr_copy_engine *copy_engine = make(folder, FILE_BYTES, false);
    assert_int_equal(entries(folder), 0);
    tr__copy_engine_destroy(copy_engine);
    assert_int_equal(entries(folder), 0);
}

static void test_takes_no_memory(void **state) {
    (void)state;
    char *memory = page_memory(4 * PAGE);
    for (int plain = 0; plain < 2; plain++) {
        tr_copy_engine *copy_engine = make(folder, FILE_BYTES, plain);
        int64_t calls = tr__memory_calls();
        for (int i = 0; i < 2 * TR_CARRY_QUEUE; i++) {
            tr_carry_kind kind = (tr_carry_kind)(i % (TR_CARRY_WRITE + 1));
            start(copy_engine, kind, memory, memory + 2 * PAGE, 2 * PAGE, i * PAGE);
        }
        wait_for(copy_engine, tr__copy_engine_newest(copy_engine));
        assert_int_equal(tr__memory_calls(), calls);
        tr__copy_engine_destroy(copy_engine);
    }
    free(memory);
}

// ---- orders of no sense

static void check_refused(const char *where, tr_carry order, const char *words) {
    tr_error err = {0};
    tr_copy_engine *copy_engine = make(where, FILE_BYTES, false);
    int64_t ticket = tr__copy_engine_start(copy_engine, &order);
    assert_int_equal(tr__copy_engine_wait(copy_engine, ticket, &err), TR_INTERNAL);
    if (!strstr(err.message, words)) {
        fail_msg("\"%s\" says nothing of \"%s\"", err.message, words);
    }
    tr__copy_engine_destroy(copy_engine);
}

static void test_orders_of_no_sense(void **state) {
    (void)state;
    char *m = page_memory(8 * PAGE), *n = m + 4 * PAGE;
    check_refused("", (tr_carry){TR_CARRY_READ, 0, m, PAGE, 0}, "no file");
    check_refused(folder, (tr_carry){TR_CARRY_READ, 0, m + 64, PAGE, 0}, "aligned");
    check_refused(folder, (tr_carry){TR_CARRY_READ, 0, m, PAGE + 8, 0}, "aligned");
    check_refused(folder, (tr_carry){TR_CARRY_WRITE, m, 0, PAGE, 512}, "aligned");
    check_refused(folder, (tr_carry){TR_CARRY_WRITE, 0, m, PAGE, 0}, "aligned");
    check_refused(folder, (tr_carry){TR_CARRY_WRITE, m, 0, PAGE, -PAGE}, "outside");
    check_refused(folder, (tr_carry){TR_CARRY_WRITE, m, 0, PAGE, FILE_BYTES},
                  "outside");
    check_refused(folder, (tr_carry){TR_CARRY_READ, 0, m, 2 * PAGE, FILE_BYTES - PAGE},
                  "outside");
    check_refused(folder,
                  (tr_carry){TR_CARRY_READ, 0, m, PAGE, INT64_MAX / PAGE * PAGE},
                  "outside");
    check_refused("", (tr_carry){TR_CARRY_COPY, m, n, -1, 0}, "negative");
    check_refused("", (tr_carry){TR_CARRY_COPY, NULL, n, 1, 0}, "no memory");
    check_refused("", (tr_carry){TR_CARRY_COPY, m, m + 7, 8, 0}, "overlaps");
    check_refused("", (tr_carry){(tr_carry_kind)9, m, n, 8, 0}, "of no kind");
    free(m);
}

// ---- what cannot be created

static void check_not_created(const tr_copy_engine_options *options,
                              const char *words) {
    tr_error err = {0};
    tr_copy_engine *copy_engine = (tr_copy_engine *)folder;
    assert_int_equal(tr__copy_engine_create(options, &copy_engine, &err), TR_IO);
    assert_null(copy_engine);
    if (!strstr(err.message, options->folder) || !strstr(err.message, words)) {
        fail_msg("\"%s\" does not name %s, or says nothing of \"%s\"", err.message,
                 options->folder, words);
    }
    assert_int_equal(entries(folder), 0);
}

static void test_no_folder(void **state) {
    (void)state;
    char path[512], locked[512];
    snprintf(path, sizeof path, "%s/none", folder);
    check_not_created(&(tr_copy_engine_options){path, PAGE, false}, "No such file");
    check_not_created(&(tr_copy_engine_options){"/dev/null", PAGE, false},
                      "Not a directory");
    snprintf(locked, sizeof locked, "%s.locked", folder);
    assert_int_equal(mkdir(locked, 0500), 0);
    if (geteuid() != 0) {
        check_not_created(&(tr_copy_engine_options){locked, PAGE, false}, "denied");
    }
    assert_int_equal(rmdir(locked), 0);
}

static void test_no_room(void **state) {
    (void)state;
    struct statvfs info;
    assert_int_equal(statvfs(folder, &info), 0);
    int64_t free_bytes = (int64_t)info.f_bavail * (int64_t)info.f_frsize;
    tr_copy_engine_options options = {folder, free_bytes + (INT64_C(8) << 30), false};
    check_not_created(&options, "are free: make room there, or name another folder");
}

static void test_limit_on_file_sizes(void **state) {
    (void)state;
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = FILE_BYTES - 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    check_not_created(&(tr_copy_engine_options){folder, FILE_BYTES, false},
                      "ulimit -f");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void test_no_memory(void **state) {
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        tr_copy_engine_options options = {folder, FILE_BYTES, plain};
        tr_status status = TR_MEMORY;
        int calls = 0;
        while (status == TR_MEMORY) {
            tr_error err = {0};
            tr_copy_engine *copy_engine = NULL;
            tr__memory_fail_at(++calls);
            status = tr__copy_engine_create(&options, &copy_engine, &err);
            tr__memory_fail_at(0);
            assert_true((status == TR_OK) == (copy_engine != NULL));
            tr__copy_engine_destroy(copy_engine);
        }
        assert_int_equal(status, TR_OK);
        assert_in_range(calls, 4, 5); // 5: io_uring is tried in vain
    }
}

// ---- the file fails

// The descriptor of the file that has no name.
static int find_file(void) {
    char link[512], target[512];
    for (int file = 3; file < 1024; file++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (length > 0 && strncmp(target, folder, strlen(folder)) == 0 &&
            strstr(target, "(deleted)")) {
            return file;
        }
    }
    fail_msg("no file below %s is open", folder);
    return -1;
}

static void check_failure(tr_copy_engine *copy_engine, tr_carry_kind kind, char *memory,
                          const char *words) {
    tr_error err = {0};
    start(copy_engine, kind, memory, memory, FILE_BYTES / 2, 0);
    int64_t ticket =
        start(copy_engine, kind, memory, memory, FILE_BYTES / 2, FILE_BYTES / 2);
    assert_int_equal(tr__copy_engine_wait(copy_engine, ticket, &err), TR_IO);
    if (!strstr(err.message, folder) || !strstr(err.message, words)) {
        fail_msg("\"%s\" says nothing of \"%s\"", err.message, words);
    }
    assert_int_equal(tr__copy_engine_wait(copy_engine, 1, NULL), TR_IO);
    tr__copy_engine_destroy(copy_engine);
}

static void test_file_too_short(void **state) {
    (void)state;
    char *memory = page_memory(FILE_BYTES / 2);
    for (int plain = 0; plain < 2; plain++) {
        tr_copy_engine *copy_engine = make(folder, FILE_BYTES, plain);
        assert_int_equal(ftruncate(find_file(), FILE_BYTES - 5 * PAGE), 0);
        check_failure(copy_engine, TR_CARRY_READ, memory, "came short");
    }
    free(memory);
}

static void test_file_not_writable(void **state) {
    (void)state;
    char *memory = page_memory(FILE_BYTES / 2);
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(other >= 0);
    for (int plain = 0; plain < 2; plain++) {
        tr_copy_engine *copy_engine = make(folder, FILE_BYTES, plain);
        assert_true(dup3(other, find_file(), O_CLOEXEC) >= 0);
        check_failure(copy_engine, TR_CARRY_WRITE, memory, "Bad file descriptor");
    }
    close(other);
    free(memory);
}

// ---- io_uring is not permitted

static bool forbid_uring(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static int carry_without_uring(void) {
    bool direct;
    if (!forbid_uring()) {
        return NO_FILTER;
    }
    char *memory = page_memory(PAGE);
    tr_copy_engine *copy_engine = make(folder, FILE_BYTES, false);
    bool threads = strcmp(tr__copy_engine_method(copy_engine, &direct), "threads") == 0;
    wait_for(copy_engine, start(copy_engine, TR_CARRY_WRITE, memory, NULL, PAGE, PAGE));
    tr__copy_engine_destroy(copy_engine);
    free(memory);
    return threads ? 0 : 1;
}

static void test_uring_not_permitted(void **state) {
    (void)state;
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(carry_without_uring());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uring_not_permitted), // forks: before any thread
        cmocka_unit_test(test_copies_of_any_size),
        cmocka_unit_test(test_more_orders_than_the_queue_holds),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_read_after_write),
        cmocka_unit_test(test_file_has_no_name),
        cmocka_unit_test(test_takes_no_memory),
        cmocka_unit_test(test_orders_of_no_sense),
        cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_limit_on_file_sizes),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_file_too_short),
        cmocka_unit_test(test_file_not_writable),
    };
    return cmocka_run_group_tests_name("copy_engine", tests, make_folder,
                                       remove_folder);
}
