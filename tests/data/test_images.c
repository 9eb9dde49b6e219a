// Images in npy: layouts, means and deviations, and files that hold no such images.
#include "data/scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { H = 2, W = 3, C = 2, VALUES = H * W * C, SAMPLES = 2 };

typedef struct pair {
    char images[SCRATCH_PATH_MAX], labels[SCRATCH_PATH_MAX];
    const char *paths[1];
    tr_data_options options;
} pair;

// Two images whose value at (y, x, c) is 100 sample + 10 (3 y + x) + c, and their
// labels; for a model of 2 x 3 pixels with two channels.
static void make(pair *p, void **state, const char *shape, bool channels_first) {
    static const int32_t label[SAMPLES] = {1, 0};
    char dictionary[256];
    uint8_t values[SAMPLES * VALUES];
    for (int i = 0; i < SAMPLES * VALUES; i++) {
        int sample = i / VALUES, at = i % VALUES;
        int pixel = channels_first ? at % (H * W) : at / C;
        int channel = channels_first ? at / (H * W) : at % C;
        values[i] = (uint8_t)(100 * sample + 10 * pixel + channel);
    }
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }\n", shape);
    p->paths[0] =
        scratch_npy(p->images, state, "x.npy", dictionary, values, sizeof values);
    p->options = (tr_data_options){
        .size = sizeof(tr_data_options),
        .format = "npy",
        .paths = p->paths,
        .path_count = 1,
        .labels = scratch_npy(p->labels, state, "y.npy",
                              "{'descr': '<i4', 'fortran_order': False, 'shape': "
                              "(2,), }\n",
                              label, sizeof label),
        .image_height = H,
        .image_width = W,
        .image_channels = C,
    };
}

// What a model reads of it: [H, W, C], less the mean over the deviation of its channel.
static void expect(const pair *p, const float mean[C], const float deviation[C]) {
    const int64_t index[] = {1, 0};
    float row[SAMPLES * VALUES];
    int32_t target[SAMPLES];
    tr_dataset *dataset = scratch_open(&p->options);
    assert_true(tr_shape_equal(tr_dataset_tensors(dataset)->tensor[0].desc.shape,
                               TR_SHAPE3(H, W, C)));
    assert_int_equal(tr_dataset_read(dataset, index, 2, (void *[]){row, target}, NULL),
                     TR_OK);
    for (int i = 0; i < SAMPLES * VALUES; i++) {
        int sample = 1 - i / VALUES, pixel = i % VALUES / C, channel = i % C;
        float want = ((float)(100 * sample + 10 * pixel + channel) - mean[channel]) /
                     deviation[channel];
        assert_true(fabsf(row[i] - want) <= 1e-6f * fabsf(want));
    }
    assert_true(target[0] == 0 && target[1] == 1);
    tr_dataset_destroy(dataset);
}

static const float none[C] = {0, 0}, ones[C] = {1, 1};

static void layouts(void **state) {
    static const struct {
        const char *shape, *layout;
        bool first;
    } cases[] = {
        {"(2, 2, 3, 2)", NULL, false}, // (H, W, C); (C, H, W) would be (2, 2, 3)
        {"(2, 2, 2, 3)", NULL, true},
        {"(2, 2, 3, 2)", "channels_last", false},
        {"(2, 2, 2, 3)", "channels_first", true},
        {"(2, 12)", "channels_last", false},
        {"(2, 12)", "channels_first", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pair p;
        make(&p, state, cases[i].shape, cases[i].first);
        p.options.image_layout = cases[i].layout;
        expect(&p, none, ones);
    }
}

static void means_and_deviations(void **state) {
    static const double mean[C] = {30, 7}, deviation[C] = {2, 0.5};
    static const float each_mean[C] = {30, 7}, all_mean[C] = {30, 30};
    static const float each_deviation[C] = {2, 0.5f}, all_deviation[C] = {2, 2};
    for (int first = 0; first < 2; first++) {
        pair p;
        make(&p, state, first ? "(2, 2, 2, 3)" : "(2, 2, 3, 2)", first);
        p.options.image_mean = mean;
        p.options.image_mean_count = 1;
        expect(&p, all_mean, ones);
        p.options.image_std = deviation;
        p.options.image_std_count = C;
        expect(&p, all_mean, each_deviation);
        p.options.image_mean_count = C;
        expect(&p, each_mean, each_deviation);
        p.options.image_std_count = 1;
        expect(&p, each_mean, all_deviation);
    }
}

static void shapes_that_do_not_fit(void **state) {
    static const struct {
        const char *shape, *layout, *part;
    } cases[] = {
        {"(2, 3, 2, 2)", NULL, "not images of 2 channels, 2 x 3"},
        {"(2, 2, 3, 2)", "channels_first", "channels_first"},
        {"(2, 2, 2, 3)", "channels_last", "channels_last"},
        {"(2, 3, 4)", NULL, "have 2 dimensions"},
        {"(2, 2, 3, 2)", "channels_middle", "'channels_middle' is not known"},
        {"(2, 1, 2, 3, 2)", NULL, "are not images"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pair p;
        make(&p, state, cases[i].shape, false);
        p.options.image_layout = cases[i].layout;
        tr_dataset *dataset = NULL, *validation = NULL;
        tr_error err = {0};
        assert_true(tr_dataset_open(&p.options, &dataset, &validation, &err) != TR_OK);
        if (!strstr(err.message, cases[i].part)) {
            fail_msg("%s: \"%s\"", cases[i].shape, err.message);
        }
    }
}

static void numbers_that_do_not_fit(void **state) {
    static const double three[] = {1, 2, 3}, zero[] = {0}, odd[] = {NAN, 1};
    pair p;
    make(&p, state, "(2, 2, 3, 2)", false);
    p.options.image_mean = three;
    p.options.image_mean_count = 3;
    scratch_refuse(&p.options, TR_USAGE, "3 numbers for 2 channels");
    p.options.image_mean = odd;
    p.options.image_mean_count = 2;
    scratch_refuse(&p.options, TR_USAGE, "image_mean: a number is not finite");
    p.options.image_mean_count = 0;
    p.options.image_std = zero;
    p.options.image_std_count = 1;
    scratch_refuse(&p.options, TR_USAGE, "image_std: must not be 0");
    p.options.image_height = p.options.image_width = p.options.image_channels = 0;
    p.options.image_std = three;
    scratch_refuse(&p.options, TR_USAGE, "have a meaning for models of images alone");
}

#define ON_DISK(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DISK(layouts),
        ON_DISK(means_and_deviations),
        ON_DISK(shapes_that_do_not_fit),
        ON_DISK(numbers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
