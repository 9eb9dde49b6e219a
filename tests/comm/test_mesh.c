// Ranks, coordinates and groups of a mesh, by hand.
#include "comm/mesh.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// Numbers of ranks, one row for each pipeline stage, by data and tensor coordinate:
//     0  1  2    6  7  8
//     3  4  5    9 10 11
static const tr_mesh mesh = {
    .size = {[TR_AXIS_DATA] = 2, [TR_AXIS_TENSOR] = 3, [TR_AXIS_PIPELINE] = 2}};

static void ranks_are_numbered_by_tensor_then_data_then_pipeline(void **state) {
    static const struct {
        int64_t rank, data, tensor, pipeline;
    } cases[] = {{0, 0, 0, 0}, {1, 0, 1, 0}, {2, 0, 2, 0}, {3, 1, 0, 0},
                 {5, 1, 2, 0}, {6, 0, 0, 1}, {7, 0, 1, 1}, {11, 1, 2, 1}};
    (void)state;
    assert_int_equal(tr_mesh_ranks(&mesh), 12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_mesh at = tr__mesh_of_rank(&mesh, cases[i].rank);
        assert_int_equal(at.at[TR_AXIS_DATA], cases[i].data);
        assert_int_equal(at.at[TR_AXIS_TENSOR], cases[i].tensor);
        assert_int_equal(at.at[TR_AXIS_PIPELINE], cases[i].pipeline);
        assert_int_equal(tr_mesh_rank(&at), cases[i].rank);
        assert_int_equal(tr__mesh_check(&at, NULL), TR_OK);
    }
}

// Rank 7, in each of its groups.
static void a_group_is_of_the_ranks_that_differ_on_its_axes(void **state) {
    static const struct {
        tr_axes axes;
        tr_comm_group group;
        int64_t member;
        const char *name;
    } cases[] = {
        {0, {7, 1, 1}, 0, "none"},
        {TR_ON_TENSOR, {6, 1, 3}, 1, "tensor"},
        {TR_ON_DATA, {7, 3, 2}, 0, "data"},
        {TR_ON_PIPELINE, {1, 6, 2}, 1, "pipeline"},
        {TR_ON_DATA | TR_ON_TENSOR, {6, 1, 6}, 1, "data and tensor"},
        {TR_ON_DATA | TR_ON_PIPELINE, {1, 3, 4}, 2, "data and pipeline"},
        {TR_ON_ALL, {0, 1, 12}, 7, "all"},
    };
    (void)state;
    tr_mesh at = tr__mesh_of_rank(&mesh, 7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tr_comm_group group = {0, 0, 0};
        tr_axes axes = cases[i].axes;
        assert_int_equal(tr__mesh_group(&at, axes, &group, NULL), TR_OK);
        assert_int_equal(group.first, cases[i].group.first);
        assert_int_equal(group.stride, cases[i].group.stride);
        assert_int_equal(group.count, cases[i].group.count);
        assert_int_equal(tr__mesh_members(&at, axes), group.count);
        assert_int_equal(tr__mesh_member(&at, axes), cases[i].member);
        assert_string_equal(tr__axes_name(axes), cases[i].name);
        for (int k = 0; k < group.count; k++) {
            assert_int_equal(tr__mesh_rank_of(&at, axes, k),
                             group.first + group.stride * k);
        }
    }
}

// Two by four by two ranks, of which two that follow each other on the tensor axis have
// the same heads. Ranks are numbered as without.
static void repeats_are_neighbours_on_the_tensor_axis(void **state) {
    tr_mesh heads = {.size = {2, 4, 2}, .repeats = 2};
    (void)state;
    assert_int_equal(tr_mesh_ranks(&heads), 16);
    assert_string_equal(tr__axes_name(TR_ON_REPEATS), "repeats");
    for (int64_t rank = 0; rank < 16; rank++) {
        tr_comm_group group, tensor;
        tr_mesh at = tr__mesh_of_rank(&heads, rank);
        assert_int_equal(tr_mesh_rank(&at), rank);
        assert_int_equal(at.at[TR_AXIS_TENSOR], rank % 4);
        assert_int_equal(at.at[TR_AXIS_DATA], rank / 4 % 2);
        assert_int_equal(tr__mesh_member(&at, TR_ON_REPEATS), rank % 2);
        assert_int_equal(tr__mesh_group(&at, TR_ON_REPEATS, &group, NULL), TR_OK);
        assert_true(group.first == rank / 2 * 2 && group.stride == 1);
        assert_int_equal(group.count, 2);
        assert_int_equal(tr__mesh_group(&at, TR_ON_TENSOR, &tensor, NULL), TR_OK);
        assert_true(tensor.first == rank / 4 * 4 && tensor.stride == 1);
        assert_int_equal(tensor.count, 4);
        heads.repeats = 0;
        at = tr__mesh_of_rank(&heads, rank);
        assert_int_equal(tr__mesh_members(&at, TR_ON_REPEATS), 1);
        heads.repeats = 2;
    }
}

// Every rank is in one group of each set of axes, and all members agree on it.
static void groups_part_the_ranks(void **state) {
    (void)state;
    for (tr_axes axes = 0; axes <= TR_ON_ALL; axes++) {
        int64_t members = tr__mesh_members(&mesh, axes), groups[12] = {0};
        for (int64_t rank = 0; rank < 12; rank++) {
            tr_mesh at = tr__mesh_of_rank(&mesh, rank);
            int64_t first = tr__mesh_rank_of(&at, axes, 0);
            assert_int_equal(tr__mesh_rank_of(&at, axes, tr__mesh_member(&at, axes)),
                             rank);
            groups[first]++;
        }
        for (int64_t first = 0; first < 12; first++) {
            assert_true(groups[first] == 0 || groups[first] == members);
        }
    }
}

static void ranks_that_are_not_evenly_apart_are_no_group(void **state) {
    tr_error err = {0};
    tr_comm_group group;
    (void)state;
    tr_mesh at = tr__mesh_of_rank(&mesh, 7); // 0 1 2 6 7 8
    assert_int_equal(tr__mesh_group(&at, TR_ON_TENSOR | TR_ON_PIPELINE, &group, &err),
                     TR_USAGE);
    assert_string_equal(err.message,
                        "ranks on the axes tensor and pipeline of a mesh of 2 x 3 x 2 "
                        "(data, tensor, pipeline) are not evenly apart");
    at.size[TR_AXIS_DATA] = 1; // 0 1 2 3 4 5
    assert_int_equal(tr__mesh_group(&at, TR_ON_TENSOR | TR_ON_PIPELINE, &group, &err),
                     TR_OK);
    assert_true(group.first == 0 && group.stride == 1 && group.count == 6);
}

static void along_the_data_axis_a_coordinate_is_a_rank(void **state) {
    tr_comm_group group;
    (void)state;
    tr_mesh at = tr_mesh_of_data(5, 3);
    assert_true(tr_mesh_ranks(&at) == 5 && tr_mesh_rank(&at) == 3);
    assert_int_equal(tr__mesh_group(&at, TR_ON_DATA, &group, NULL), TR_OK);
    assert_true(group.first == 0 && group.stride == 1 && group.count == 5);
}

static void refuse(tr_mesh bad, const char *why) {
    tr_error err = {0};
    assert_int_equal(tr__mesh_check(&bad, &err), TR_USAGE);
    assert_non_null(strstr(err.message, why));
}

static void what_is_no_mesh_is_refused(void **state) {
    (void)state;
    tr_mesh bad = mesh;
    bad.size[TR_AXIS_PIPELINE] = 0;
    refuse(bad, "0 ranks on the pipeline axis");
    bad = mesh;
    bad.at[TR_AXIS_TENSOR] = 3;
    refuse(bad, "rank 3 of 3 on the tensor axis");
    bad.at[TR_AXIS_TENSOR] = -1;
    refuse(bad, "rank -1 of 3 on the tensor axis");
    bad = mesh;
    bad.size[TR_AXIS_DATA] = TR_MESH_RANKS_MAX;
    refuse(bad, "possible are 1 to 1048576 ranks on all axes together");
    bad.size[TR_AXIS_DATA] = INT64_MAX;
    refuse(bad, "possible are 1 to 1048576 ranks");
}

static void near_ranks_share_a_node(void **state) {
    // 4 x 2 ranks: data ranks are two apart.
    static const tr_mesh wide = {
        .size = {[TR_AXIS_DATA] = 4, [TR_AXIS_TENSOR] = 2, [TR_AXIS_PIPELINE] = 1}};
    static const struct {
        tr_axes axes;
        int64_t node_ranks, near;
    } cases[] = {
        {TR_ON_DATA, 0, 4},   {TR_ON_DATA, 8, 4}, {TR_ON_DATA, 4, 2},
        {TR_ON_DATA, 2, 1},   {TR_ON_DATA, 3, 1}, {TR_ON_DATA, 6, 1},
        {TR_ON_TENSOR, 4, 2}, {TR_ON_ALL, 4, 4},  {TR_ON_ALL, 2, 2},
        {TR_ON_ALL, 3, 1},    {TR_ON_ALL, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tr__mesh_near(&wide, cases[i].axes, cases[i].node_ranks),
                         cases[i].near);
    }
    assert_true(tr__mesh_has_nodes(&wide, 4));
    assert_true(tr__mesh_has_nodes(&wide, 2)); // all ranks, two on each
    assert_false(tr__mesh_has_nodes(&wide, 1));
    assert_false(tr__mesh_has_nodes(&wide, 8));
    assert_false(tr__mesh_has_nodes(&wide, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_numbered_by_tensor_then_data_then_pipeline),
        cmocka_unit_test(a_group_is_of_the_ranks_that_differ_on_its_axes),
        cmocka_unit_test(repeats_are_neighbours_on_the_tensor_axis),
        cmocka_unit_test(groups_part_the_ranks),
        cmocka_unit_test(ranks_that_are_not_evenly_apart_are_no_group),
        cmocka_unit_test(along_the_data_axis_a_coordinate_is_a_rank),
        cmocka_unit_test(what_is_no_mesh_is_refused),
        cmocka_unit_test(near_ranks_share_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
