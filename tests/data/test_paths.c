// Which files paths, folders and globs name.
#include "data/scratch.h"
#include "data/sources/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void make_folder(void **state, const char *name) {
    char path[SCRATCH_PATH_MAX];
    assert_int_equal(mkdir(scratch_path(path, state, name), 0777), 0);
}

static void make_link(void **state, const char *to, const char *name) {
    char path[SCRATCH_PATH_MAX];
    assert_int_equal(symlink(to, scratch_path(path, state, name)), 0);
}

// names: what must be found below the folder, in order, ended by NULL.
static void expect(void **state, const char *path, const char *const *names) {
    tr_file_list list = {0};
    tr_error err = {0};
    char whole[SCRATCH_PATH_MAX], want[SCRATCH_PATH_MAX];
    tr_status status = tr__file_list_add(&list, scratch_path(whole, state, path), &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TR_OK);
    size_t i = 0;
    for (; names[i]; i++) {
        assert_true(i < list.count);
        assert_string_equal(list.entry[i].path, scratch_path(want, state, names[i]));
    }
    assert_int_equal(i, list.count);
    tr__file_list_clear(&list);
}

static void refuse(void **state, const char *path, const char *part) {
    tr_file_list list = {0};
    tr_error err = {0};
    char whole[SCRATCH_PATH_MAX];
    assert_int_equal(tr__file_list_add(&list, scratch_path(whole, state, path), &err),
                     TR_DATA);
    if (!strstr(err.message, part)) {
        print_error("'%s' is not in '%s'\n", part, err.message);
    }
    assert_non_null(strstr(err.message, part));
    tr__file_list_clear(&list);
}

static void folders_are_walked_in_order(void **state) {
    char path[SCRATCH_PATH_MAX];
    make_folder(state, "d");
    make_folder(state, "d/a");
    make_folder(state, "d/a/deep");
    make_folder(state, "d/empty");
    scratch_text(path, state, "d/b", "1");
    scratch_text(path, state, "d/a.txt", "22");
    scratch_text(path, state, "d/a/z", "333");
    scratch_text(path, state, "d/a/deep/y", "");
    const char *const names[] = {"d/a.txt", "d/a/deep/y", "d/a/z", "d/b", NULL};
    expect(state, "d", names);
}

static tr_file_list list_of(void **state, const char *name, bool text) {
    char path[SCRATCH_PATH_MAX];
    tr_file_list list = {.text = text};
    assert_int_equal(tr__file_list_add(&list, scratch_path(path, state, name), NULL),
                     TR_OK);
    return list;
}

// Hidden names and, of text, binary files are passed over below folders and counted;
// what is named is taken.
static void what_is_no_text_is_passed_over(void **state) {
    enum { FAR = 9000 };
    char path[SCRATCH_PATH_MAX], far[FAR];
    make_folder(state, "d");
    make_folder(state, "d/.git");
    make_folder(state, "d/inner");
    scratch_text(path, state, "d/.git/config", "g");
    scratch_text(path, state, "d/.hidden", "h");
    scratch_text(path, state, "d/a.txt", "text");
    scratch_text(path, state, "d/inner/.b", "h");
    scratch_file(path, state, "d/inner/binary", "ab\0c", 4);
    memset(far, 'x', sizeof far);
    far[TR_TEXT_LOOKED - 1] = '\0';
    scratch_file(path, state, "d/inner/last", far, sizeof far);
    far[TR_TEXT_LOOKED - 1] = 'x';
    far[TR_TEXT_LOOKED] = '\0';
    scratch_file(path, state, "d/inner/later", far, sizeof far);
    tr_file_list text = list_of(state, "d", true), any = list_of(state, "d", false);
    assert_int_equal(text.count,
                     2); // a.txt, and what is text as far as it is looked at
    assert_int_equal(text.hidden, 3);
    assert_int_equal(text.binary, 2);
    assert_int_equal(any.count, 4);
    assert_int_equal(any.binary, 0);
    tr__file_list_clear(&text);
    tr__file_list_clear(&any);
    static const char *const named[] = {"d/.git", "d/.hidden", "d/inner/binary",
                                        "d/inner/b*"};
    for (int i = 0; i < 4; i++) {
        tr_file_list one = list_of(state, named[i], true);
        assert_int_equal(one.count, 1);
        tr__file_list_clear(&one);
    }
}

static void loops_of_links_end(void **state) {
    char path[SCRATCH_PATH_MAX];
    make_folder(state, "d");
    make_folder(state, "d/inner");
    scratch_text(path, state, "d/inner/file", "x");
    make_link(state, "..", "d/inner/up");
    make_link(state, ".", "d/self");
    make_link(state, "inner", "d/again");
    make_link(state, "inner/file", "d/alias");
    // Each file once, under the path that is shallowest and then first.
    const char *const names[] = {"d/alias", NULL};
    expect(state, "d", names);
}

static void globs_match(void **state) {
    char path[SCRATCH_PATH_MAX];
    make_folder(state, "part-3");
    scratch_text(path, state, "part-2.txt", "2");
    scratch_text(path, state, "part-10.txt", "10");
    scratch_text(path, state, "other.txt", "o");
    scratch_text(path, state, "part-3/inner", "i");
    const char *const texts[] = {"part-10.txt", "part-2.txt", NULL};
    expect(state, "part-*.txt", texts);
    const char *const all[] = {"part-10.txt", "part-2.txt", "part-3/inner", NULL};
    expect(state, "part-*", all);
    refuse(state, "nothing-*", "no file matches");
}

static void odd_names_are_names(void **state) {
    char path[SCRATCH_PATH_MAX];
    scratch_text(path, state, "100%s %n.txt", "x");
    scratch_text(path, state, "a[1]*?", "y");
    const char *const percent[] = {"100%s %n.txt", NULL};
    const char *const magic[] = {"a[1]*?", NULL};
    expect(state, "100%s %n.txt", percent);
    expect(state, "a[1]*?", magic);
    refuse(state, "%s%n%n", "%s%n%n: cannot open: No such file");
}

static void what_is_no_file_is_refused(void **state) {
    char path[SCRATCH_PATH_MAX];
    refuse(state, "missing", "missing: cannot open: No such file");
    make_folder(state, "d");
    make_link(state, "nowhere", "d/broken");
    refuse(state, "d", "d/broken: a link that leads nowhere");
    assert_int_equal(unlink(scratch_path(path, state, "d/broken")), 0);
    assert_int_equal(mkfifo(scratch_path(path, state, "d/pipe"), 0666), 0);
    refuse(state, "d", "d/pipe: is neither a regular file nor a folder");
    refuse(state, "d/pipe", "d/pipe: is neither");
}

// Root reads everything, so root becomes nobody for a while.
static void a_locked_folder_is_named(void **state) {
    enum { NOBODY = 65534 };
    char path[SCRATCH_PATH_MAX];
    bool root = geteuid() == 0;
    make_folder(state, "d");
    make_folder(state, "d/locked");
    assert_int_equal(chmod(scratch_path(path, state, "d/locked"), 0), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    if (root) {
        assert_int_equal(seteuid(NOBODY), 0);
    }
    if (euidaccess(*state, R_OK | X_OK) == 0) { // not so below a private TMPDIR
        refuse(state, "d", "d/locked: cannot read the folder: Permission denied");
        refuse(state, "d/lock*/*", "a folder on the way cannot be read");
    }
    if (root) {
        assert_int_equal(seteuid(0), 0);
    }
    assert_int_equal(chmod(path, 0777), 0);
}

static void hashes_follow_names_and_sizes(void **state) {
    char path[SCRATCH_PATH_MAX];
    uint64_t hash[3];
    const char *const names[] = {"one", "two", "one"};
    const char *const texts[] = {"aaa", "bbb", "cccc"};
    for (int i = 0; i < 3; i++) {
        tr_file_list list = {0};
        scratch_text(path, state, names[i], texts[i]);
        assert_int_equal(tr__file_list_add(&list, path, NULL), TR_OK);
        hash[i] = tr__file_list_names(&list, 0);
        assert_true(tr__file_list_bytes(&list) > (int64_t)strlen(path));
        tr__file_list_clear(&list);
    }
    assert_true(hash[0] != hash[1] && hash[0] != hash[2] && hash[1] != hash[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_are_walked_in_order, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_is_no_text_is_passed_over, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(loops_of_links_end, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(globs_match, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(odd_names_are_names, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(a_locked_folder_is_named, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(hashes_follow_names_and_sizes, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
