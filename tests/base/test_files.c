// Files and folders, in a folder of their own.
#include "base/files.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int enter(void **state) {
    char path[] = "/tmp/tranche-files-XXXXXX";
    if (!mkdtemp(path) || chdir(path) != 0) {
        return -1;
    }
    *state = strdup(path);
    return *state ? 0 : -1;
}

static int leave(void **state) {
    int failed = chdir("/") || tr__folder_remove(*state, NULL) != TR_OK;
    failed = failed || access(*state, F_OK) == 0;
    free(*state);
    return failed ? -1 : 0;
}

static void put(const char *path, const char *text) {
    assert_int_equal(tr__file_replace(path, text, strlen(text), NULL), TR_OK);
}

static bool is_there(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

static void assert_holds(const char *path, const char *want) {
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(tr__file_read(path, 1000, &text, &bytes, NULL), TR_OK);
    assert_int_equal(bytes, strlen(want));
    assert_string_equal(text, want); // a zero follows
    tr__free(text);
}

static void assert_names(const tr_error *err, const char *path) {
    assert_int_equal(err->status, TR_IO);
    if (!strstr(err->message, path)) {
        fail_msg("'%s' does not name %s", err->message, path);
    }
}

static void whole_files(void **state) {
    (void)state;
    put("a", "first");
    assert_holds("a", "first");
    put("a", "");
    assert_holds("a", "");
    assert_false(is_there("a.new"));
}

static void files_that_cannot_be_read(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    assert_int_equal(tr__file_read("missing", 10, &text, &bytes, &err), TR_IO);
    assert_names(&err, "missing");
    err = (tr_error){0};
    put("b", "0123456789");
    assert_int_equal(tr__file_read("b", 9, &text, &bytes, &err), TR_IO);
    assert_names(&err, "b: the file has 10 bytes");
    assert_int_equal(tr__file_read(".", 10, &text, &bytes, NULL), TR_IO);
    tr__memory_fail_at(1);
    assert_int_equal(tr__file_read("b", 10, &text, &bytes, NULL), TR_MEMORY);
    assert_null(text);
}

// A pipe that nobody writes to must not stop the program.
static void a_pipe_is_no_file(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    alarm(20);
    assert_int_equal(tr__file_read("pipe", 10, &text, &bytes, NULL), TR_IO);
    alarm(0);
}

static void exact_reads_and_writes(void **state) {
    (void)state;
    char got[8] = "";
    tr_error err = {0};
    int file = open("c", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(tr__pwrite(file, "c", "abcdef", 6, 3, NULL), TR_OK);
    assert_int_equal(tr__pread(file, "c", got, 6, 3, NULL), TR_OK);
    assert_memory_equal(got, "abcdef", 6);
    assert_int_equal(tr__pread(file, "c", got, 3, 0, NULL), TR_OK);
    assert_memory_equal(got, "\0\0\0", 3);
    assert_int_equal(tr__pread(file, "c", got, 0, 100, NULL), TR_OK);
    assert_int_equal(tr__pread(file, "c", got, 6, 5, &err), TR_IO);
    assert_string_equal(err.message, "c: ends 2 bytes early");
    close(file);
    err = (tr_error){0};
    assert_int_equal(tr__pread(file, "c", got, 1, 0, &err), TR_IO);
    assert_names(&err, "c: cannot read");
    assert_int_equal(tr__pwrite(file, "c", got, 1, 0, NULL), TR_IO);
}

static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    static char data[1 << 16];
    tr_error err = {0};
    struct rlimit old, small;
    put("d", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tr_status status = tr__file_replace("d", data, sizeof data, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, TR_IO);
    assert_names(&err, "d.new: cannot write");
    assert_holds("d", "old");
    assert_false(is_there("d.new"));
}

static void replacing_where_it_cannot_be_done(void **state) {
    (void)state;
    tr_error err = {0};
    assert_int_equal(tr__file_replace("nowhere/e", "x", 1, &err), TR_IO);
    assert_names(&err, "nowhere/e");
    err = (tr_error){0};
    assert_int_equal(mkdir("folder", 0700), 0);
    put("folder/inside", "x");
    assert_int_equal(tr__file_replace("folder", "x", 1, &err), TR_IO);
    assert_names(&err, "folder: cannot replace");
    assert_false(is_there("folder.new"));
    assert_holds("folder/inside", "x");
}

static void paths_too_long(void **state) {
    (void)state;
    char path[PATH_MAX + 10], joined[16];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(tr__file_replace(path, "x", 1, NULL), TR_IO);
    assert_int_equal(tr__folder_create(path, NULL), TR_IO);
    assert_int_equal(tr__folder_create("", NULL), TR_IO);
    path[300] = '\0'; // longer than a name may be
    assert_int_equal(tr__file_replace(path, "x", 1, NULL), TR_IO);
    assert_int_equal(tr__folder_create(path, NULL), TR_IO);
    assert_int_equal(tr__path_join(joined, sizeof joined, "abc", "defghijklmn", NULL),
                     TR_OK);
    assert_string_equal(joined, "abc/defghijklmn");
    assert_int_equal(tr__path_join(joined, sizeof joined, "abc", "defghijklmno", NULL),
                     TR_IO);
}

static void folders_are_made_with_their_parents(void **state) {
    char path[PATH_MAX];
    tr_error err = {0};
    assert_int_equal(tr__folder_create("f/g//h/", NULL), TR_OK);
    assert_int_equal(tr__folder_create("f/g/h", NULL), TR_OK); // once more
    assert_true(is_there("f/g/h"));
    assert_int_equal(tr__path_join(path, sizeof path, *state, "i/j", NULL), TR_OK);
    assert_int_equal(tr__folder_create(path, NULL), TR_OK);
    assert_int_equal(tr__folder_sync(path, NULL), TR_OK);
    put("file", "x");
    assert_int_equal(tr__folder_create("file", &err), TR_IO);
    assert_names(&err, "file");
    assert_int_equal(tr__folder_create("file/k", NULL), TR_IO);
    assert_int_equal(tr__folder_sync("file", NULL), TR_IO);
    assert_int_equal(tr__folder_sync("missing", NULL), TR_IO);
}

static void folders_are_removed_with_what_is_in_them(void **state) {
    (void)state;
    assert_int_equal(tr__folder_create("l/m/n", NULL), TR_OK);
    put("l/m/o", "x");
    put("l/.hidden", "x");
    assert_int_equal(tr__folder_remove("l", NULL), TR_OK);
    assert_false(is_there("l"));
    assert_int_equal(tr__folder_remove("l", NULL), TR_OK); // missing is no error
    put("p", "x");
    assert_int_equal(tr__folder_remove("p", NULL), TR_IO); // no folder
    assert_holds("p", "x");
}

static void links_are_not_followed(void **state) {
    (void)state;
    assert_int_equal(tr__folder_create("kept", NULL), TR_OK);
    put("kept/file", "x");
    assert_int_equal(tr__folder_create("q", NULL), TR_OK);
    assert_int_equal(symlink("../kept", "q/link"), 0);
    assert_int_equal(tr__folder_remove("q", NULL), TR_OK);
    assert_false(is_there("q"));
    assert_holds("kept/file", "x");
    assert_int_equal(symlink("kept", "link"), 0);
    assert_int_equal(tr__folder_remove("link", NULL), TR_IO);
    assert_holds("kept/file", "x");
    assert_true(is_there("link"));
}

static void replacing_follows_nothing(void **state) {
    (void)state;
    put("victim", "x");
    assert_int_equal(symlink("victim", "report.new"), 0);
    assert_int_equal(tr__file_replace("report", "y", 1, NULL), TR_OK);
    assert_holds("victim", "x");
    assert_holds("report", "y");
    assert_int_equal(mkfifo("report.new", 0666), 0); // nobody reads it
    assert_int_equal(tr__file_replace("report", "z", 1, NULL), TR_OK);
    assert_holds("report", "z");
    assert_int_equal(symlink("victim", "leads"), 0);
    assert_int_equal(tr__file_replace("leads", "y", 1, NULL), TR_IO);
    assert_holds("victim", "x");
    assert_int_equal(mkfifo("pipe2", 0666), 0);
    assert_int_equal(tr__file_replace("pipe2", "y", 1, NULL), TR_IO);
    assert_true(is_there("pipe2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_files),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(a_pipe_is_no_file),
        cmocka_unit_test(exact_reads_and_writes),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(replacing_where_it_cannot_be_done),
        cmocka_unit_test(replacing_follows_nothing),
        cmocka_unit_test(paths_too_long),
        cmocka_unit_test(folders_are_made_with_their_parents),
        cmocka_unit_test(folders_are_removed_with_what_is_in_them),
        cmocka_unit_test(links_are_not_followed),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
