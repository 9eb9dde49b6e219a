// What is reached of a data sheet: by shape, by watts, by size of message.
#include "sim/helper.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const double nearly = 1e-12;

static tr_cost product(double rows, double columns, double depth) {
    return (tr_cost){.rows = rows, .columns = columns, .depth = depth};
}

// Ten processors, tiles of 64 x 64; what is smaller is not worth its edges.
static tr_reached ten_processors(void) {
    tr_reached r = {0};
    r.products.processors = 10;
    r.products.rows = r.products.columns = 64;
    r.products.edge = 1e6;
    return r;
}

static void assert_shape(const tr_reached *r, tr_cost p, double wanted) {
    assert_near(tr__reached_shape(r, r->products.processors, &p), wanted, nearly);
}

// Where nothing is said, every shape reaches all.
static void test_nothing_said(void **state) {
    (void)state;
    const tr_reached none = {0};
    tr_cost small = product(1, 1, 1);
    assert_shape(&none, small, 1);
    assert_near(tr__reached_share(none.memory), 1, 0);
    assert_near(tr__reached_power(&none, 100), 1, 0);
    assert_near(tr__reached_attention(&none, 8, 8), 1, 0);
}

// 20 tiles are two waves; 21 are three; a tile of half its columns takes three quarters
// of its time. (Terms as many as a tile takes besides: else it would be cut.)
static void test_waves(void **state) {
    (void)state;
    tr_reached r = ten_processors();
    r.products.depth = 100;
    assert_shape(&r, product(64 * 20, 64, 100), 0.5);
    assert_shape(&r, product(64 * 5, 64 * 4, 100), 0.5);
    assert_shape(&r, product(64 * 21, 64, 100), 21.0 / 30 / 2);
    assert_near(tr__reached_shape(
                    &r, 10, &(tr_cost){.rows = 64 * 20, .columns = 32, .depth = 100}),
                0.5 / 1.5, 1e-4);
    assert_shape(&r, product(64 * 19 + 1, 64, 100), (64.0 * 19 + 1) / (64 * 20) / 2);
}

// A tile's beginning and end: `depth` terms in all but those of the product.
static void test_depth(void **state) {
    (void)state;
    tr_reached r = ten_processors();
    r.products.depth = 50;
    assert_shape(&r, product(64 * 20, 64, 150), 0.75);
    assert_shape(&r, product(64 * 20, 64, 50), 0.5);
}

// One tile of great depth is cut along it: ten processors do a part each, as far as
// cuts go in powers of two.
static void test_splits(void **state) {
    (void)state;
    tr_reached r = ten_processors();
    assert_shape(&r, product(64, 64, 1 << 20), 0.8);
    r.products.depth = 1 << 17; // a cut takes as long as what it saves
    assert_shape(&r, product(64, 64, 1 << 20), 8.0 / 20);
}

// Smaller tiles waste less, and take longer by their edges.
static void test_smaller_tiles(void **state) {
    (void)state;
    tr_reached r = ten_processors();
    r.products.edge = 0;
    assert_shape(&r, product(64 * 20, 32, 1000), 1);
    r.products.edge = 64;
    double edges = (1 + 64 * (1 / 64.0 + 1 / 32.0)) / (1 + 64 * (2 / 64.0));
    assert_shape(&r, product(64 * 20, 32, 1000), 1 / edges);
}

// More rows never take less time, and no shape reaches more than all.
static void test_more_takes_longer(void **state) {
    (void)state;
    tr_reached r = ten_processors();
    r.products.edge = 16;
    r.products.depth = 20;
    double before = 0;
    for (int rows = 1; rows < 2000; rows += 7) {
        tr_cost p = product(rows, 200, 300);
        double part = tr__reached_shape(&r, r.products.processors, &p);
        assert_true(part > 0 && part <= 1);
        assert_true(rows / part >= before * (1 - nearly));
        before = rows / part;
    }
}

static void test_attention(void **state) {
    (void)state;
    tr_reached r = {.attention = {.context = 128, .depth = 64}};
    assert_near(tr__reached_attention(&r, 128, 64), 0.25, nearly);
    assert_near(tr__reached_attention(&r, 384, 192), 0.75 * 0.75, nearly);
}

static void test_power(void **state) {
    (void)state;
    tr_reached r = {.power = {.sheet = 500, .idle = 100, .exponent = 0.5}};
    assert_near(tr__reached_power(&r, 0), 1, 0);
    assert_near(tr__reached_power(&r, 500), 1, 0);
    assert_near(tr__reached_power(&r, 700), 1, 0);
    assert_near(tr__reached_power(&r, 200), 0.5, nearly);
    assert_true(tr__reached_power(&r, 50) > 0);
}

// Against the means of the largest of 2, 10 and 1,000 normal values.
static void test_slowest(void **state) {
    (void)state;
    assert_near(tr__reached_slowest(1), 0, 0);
    assert_near(tr__reached_slowest(2), 0.5642, 0.03);
    assert_near(tr__reached_slowest(10), 1.5388, 0.02);
    assert_near(tr__reached_slowest(1000), 3.2414, 0.02);
}

static const char cluster[] =
    "{\"name\": \"m\", \"ranks_per_node\": 4, \"compute\": {\"flops\": 1e30, "
    "\"bytes\": 1e30}, \"link\": {\"exchange\": \"nccl\", \"inside\": "
    "{\"bytes\": 1000}, \"between\": {\"bytes\": 100}}, \"reached\": {\"link\": "
    "{\"inside\": {\"share\": 0.5, \"half\": 1000}, \"between\": {\"half\": 1e6}}}}";

// Four ranks of a node: messages of a quarter go three times around; where they are
// short, two longer ones are quicker.
static void test_messages(void **state) {
    (void)state;
    tr_machine *m = test_machine(cluster);
    tr_share share = tr__machine_share(m, 4, 1);
    tr_transfer t = {
        .count = 4000, .shard = 1000, .bytes = 1, .members = 4, .stride = 1};
    double message = 1500, sent = 3000;
    assert_near(tr__transfer_seconds(&share, &t),
                sent / (500 * message / (message + 1000)), 1e-9);
    share = tr__machine_share(m, 8, 1);
    t.members = 8; // two nodes: a quarter of it, half of which each sends to the other
    assert_near(tr__transfer_seconds(&share, &t), 500 / (100 * 500 / (500 + 1e6)),
                1e-6);
    tr_machine_close(m);
}

// A larger message never has a lower rate.
static void test_larger_messages(void **state) {
    (void)state;
    tr_machine *m = test_machine(cluster);
    tr_share share = tr__machine_share(m, 8, 1);
    double before = 0;
    for (int64_t count = 8; count < 1 << 24; count *= 2) {
        tr_transfer t = {
            .count = count, .shard = count / 8, .bytes = 4, .members = 8, .stride = 1};
        double rate = (double)count / tr__transfer_seconds(&share, &t);
        assert_true(rate > before);
        before = rate;
    }
    tr_machine_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_said),
        cmocka_unit_test(test_waves),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_smaller_tiles),
        cmocka_unit_test(test_more_takes_longer),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_slowest),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_larger_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
