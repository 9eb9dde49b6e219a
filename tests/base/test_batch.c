// Lists of a batch's tensors: what is refused, and how rows lie in a slot.
#include "base/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// left F32 [3], ids I32 [2], labels I32 []
static tr_batch_tensors three(void) {
    return (tr_batch_tensors){3,
                              {{"left", TR_ROLE_INPUT, {TR_F32, TR_SHAPE1(3)}},
                               {"ids", TR_ROLE_INPUT, {TR_I32, TR_SHAPE1(2)}},
                               {"labels", TR_ROLE_TARGET, {TR_I32, {0}}}}};
}

static void refuse(const tr_batch_tensors *batch, const char *words) {
    tr_error err = {0};
    assert_int_equal(tr__batch_check(batch, "a dataset", &err), TR_USAGE);
    if (!strstr(err.message, words) || strncmp(err.message, "a dataset: ", 11) != 0) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    }
}

static void wrong_lists_are_refused(void **state) {
    (void)state;
    tr_batch_tensors batch = three();
    assert_int_equal(tr__batch_check(&batch, "a dataset", NULL), TR_OK);
    batch.count = 0;
    refuse(&batch, "a batch of 0 tensors");
    batch.count = TR_BATCH_TENSORS_MAX + 1;
    refuse(&batch, "a batch of 9 tensors");
    batch = three();
    batch.tensor[1].name[0] = '\0';
    refuse(&batch, "tensor 1 of the batch needs a name");
    memset(batch.tensor[1].name, 'x', TR_BATCH_NAME_MAX);
    refuse(&batch, "a name of 1 to 31 characters");
    batch = three();
    memcpy(batch.tensor[1].name, "left", 5);
    refuse(&batch, "two tensors of the batch have the name left");
    batch = three();
    batch.tensor[1].desc.dtype = TR_I64;
    refuse(&batch,
           "tensor ids of the batch has the type I64; inputs and targets are F32 or "
           "I32");
    batch = three();
    batch.tensor[2].desc.dtype = TR_F32; // a number, for a loss of the caller's
    assert_int_equal(tr__batch_check(&batch, "a dataset", NULL), TR_OK);
    batch.tensor[2].desc.dtype = TR_F64;
    refuse(&batch, "inputs and targets are F32 or I32");
    batch = tr_batch_packed(4);
    batch.tensor[2].desc.dtype = TR_F32;
    refuse(&batch, "positions are I32");
    batch = three();
    batch.tensor[0].desc.shape.rank = TR_RANK_MAX;
    refuse(&batch, "at most 3 dimensions");
    batch.tensor[0].desc.shape = TR_SHAPE2(2, 0);
    refuse(&batch, "each at least 1");
    batch = three();
    batch.tensor[1].role =
        TR_ROLE_TARGET; // several are for a loss of the caller's, too
    assert_int_equal(tr__batch_check(&batch, "a dataset", NULL), TR_OK);
    batch.count = 1; // none, where the caller computes the loss
    assert_int_equal(tr__batch_check(&batch, "a dataset", NULL), TR_OK);
    batch.count = 2;
    batch.tensor[0].role = TR_ROLE_TARGET;
    refuse(&batch, "at least one input");
    batch = tr_batch_packed(4);
    assert_int_equal(tr__batch_check(&batch, "a dataset", NULL), TR_OK);
    batch.tensor[3] = batch.tensor[2];
    memcpy(batch.tensor[3].name, "places", 7);
    batch.count = 4;
    refuse(&batch, "at most one tensor of positions, not 2");
}

static void tensors_are_found_by_name_and_role(void **state) {
    (void)state;
    tr_batch_tensors batch = three();
    assert_int_equal(tr_batch_find(&batch, "ids"), 1);
    assert_int_equal(tr_batch_find(&batch, "id"), -1);
    assert_ptr_equal(tr_batch_input(&batch), &batch.tensor[0]);
    assert_ptr_equal(tr_batch_target(&batch), &batch.tensor[2]);
    batch.count = 2;
    assert_null(tr_batch_target(&batch));
    tr_batch_tensors images = tr_batch_images(4, 5, 3), tokens = tr_batch_tokens(7);
    assert_int_equal(tr_batch_find(&images, "pixel_values"), 0);
    assert_true(tr_shape_equal(images.tensor[0].desc.shape, TR_SHAPE3(4, 5, 3)));
    assert_int_equal(tr_batch_find(&tokens, "input_ids"), 0);
    assert_true(tr_shape_equal(tokens.tensor[1].desc.shape, TR_SHAPE1(7)));
    tr_tensor_desc desc = tr__batch_desc(&images.tensor[0]);
    assert_true(tr_shape_equal(desc.shape, TR_SHAPE4(TR_BATCH, 4, 5, 3)));
}

// Whatever the order in which a data set has them.
static void rows_go_where_the_model_has_the_tensor(void **state) {
    (void)state;
    enum { ROWS = 20 };
    tr_batch_tensors model = three(), data = three();
    data.tensor[0] = model.tensor[2];
    data.tensor[2] = model.tensor[0];
    _Alignas(64) char slot[1024];
    void *rows[TR_BATCH_TENSORS_MAX];
    assert_int_equal(tr__batch_offset(&model, ROWS, 0), 0);
    assert_int_equal(tr__batch_offset(&model, ROWS, 1), 256); // 240 bytes
    assert_int_equal(tr__batch_offset(&model, ROWS, 2), 256 + 192);
    assert_int_equal(tr__batch_offset(&model, ROWS, 3), 256 + 192 + 128);
    tr__batch_rows(&data, &model, slot, ROWS, 3, rows);
    assert_ptr_equal(rows[0], slot + 256 + 192 + 3 * 4); // labels
    assert_ptr_equal(rows[1], slot + 256 + 3 * 8);
    assert_ptr_equal(rows[2], slot + 3 * 12);
    assert_int_equal(tr__batch_offset(&model, INT64_MAX / 8, 3), -1);
    assert_int_equal(tr__batch_offset(&model, -1, 3), -1);
}

static void missing_rows_have_no_target(void **state) {
    (void)state;
    enum { ROWS = 5, HERE = 2 };
    tr_batch_tensors batch = three();
    _Alignas(64) char slot[256];
    memset(slot, 1, sizeof slot);
    tr__batch_pad(&batch, slot, ROWS, HERE);
    const float *left = (const float *)(const void *)slot;
    const int32_t *ids = (const int32_t *)(const void *)(slot + 64);
    const int32_t *labels = (const int32_t *)(const void *)(slot + 128);
    for (int row = 0; row < ROWS; row++) {
        bool there = row < HERE;
        assert_int_equal(left[3 * row + 2] == 0, !there);
        assert_int_equal(ids[2 * row + 1], there ? 0x01010101 : 0);
        assert_int_equal(labels[row], there ? 0x01010101 : TR_NO_TARGET);
    }
    assert_int_equal(slot[ROWS * 12], 1); // what is behind the rows stays
    batch.tensor[2].desc.dtype = TR_F32;
    tr__batch_pad(&batch, slot, ROWS, HERE);
    const float *numbers = (const float *)(const void *)(slot + 128);
    for (int row = HERE; row < ROWS; row++) {
        assert_true(isnan(numbers[row]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_lists_are_refused),
        cmocka_unit_test(tensors_are_found_by_name_and_role),
        cmocka_unit_test(rows_go_where_the_model_has_the_tensor),
        cmocka_unit_test(missing_rows_have_no_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
