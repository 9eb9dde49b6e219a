// What a machine reaches of what its data sheet says (docs/simulate.md). Shares are
// parts of the sheet's figures (compute.*, link.*, ...): a machine of the same kind
// with other figures reaches the same parts of them. 0 means that the file says
// nothing: all of it is reached.
#ifndef TR_SIM_REACHED_H
#define TR_SIM_REACHED_H

#include "base/json_writer.h"
#include "config/keys.h"
#include "sim/way.h"

#include <tranche/extend/op.h>

typedef struct tr_reached {
    // Products of matrices. Tiles of [rows, columns] are spread over the processors, in
    // whole waves of them. A tile takes the time of `depth` terms besides its own, and
    // a smaller tile is slower by its longer edges: as 1 + edge (1/rows + 1/columns).
    struct {
        double share, fp8; // of compute.flops or .half, and of compute.fp8
        double processors, rows, columns, edge, depth;
    } products;
    // Attention: shares of compute.half or .flops. With so many keys, and with heads of
    // so many columns, half of that is reached.
    struct {
        double forward, backward, context, depth;
    } attention;
    double memory; // of compute.bytes
    // Watts of the data sheet, and those that no work takes. The rates of products and
    // attention go as a power of the watts between them that a rank may draw.
    struct {
        double sheet, idle, exponent;
    } power;
    double issue; // seconds that the host takes to issue a kernel
    // The time of a kernel varies, from rank to rank and from one time to the next: its
    // standard deviation, as a part of its mean.
    double spread;
    // Of the way's rate; `half`: bytes of a message that reaches half of that.
    struct {
        double share, half;
    } way[TR_WAYS];
} tr_reached;

enum { TR_REACHED_KEYS_MAX = 32 + 2 * TR_WAYS, TR_REACHED_PATH = 64 };

// The keys of a machine file that say so: their values' places are in a tr_reached, at
// `base` of the struct that is read. `paths`: room for names. Returns their number.
size_t tr__reached_keys(tr_key keys[TR_REACHED_KEYS_MAX],
                        char paths[TR_REACHED_KEYS_MAX][TR_REACHED_PATH], size_t base);
// What differs from 0, as the object "reached"; nothing if all is 0.
void tr__reached_print(const tr_reached *reached, tr_json_writer *to);

// The share, or all where nothing is said.
static inline double tr__reached_share(double share) {
    return share > 0 ? share : 1;
}

// Of a product's time, the part that `flops / rate` would take with the rate of large
// ones: by its tiles and their waves over `processors`. 1 where no processors are said.
double tr__reached_shape(const tr_reached *reached, double processors,
                         const tr_cost *product);
// The part of attention's share that a head of `depth` columns with so many keys
// reaches.
double tr__reached_attention(const tr_reached *reached, double context, double depth);
// By how many standard deviations the slowest of so many ranks is expected to take
// longer than their mean.
double tr__reached_slowest(int64_t ranks);
// The part of the rates that `watts` allow; 0 watts: those of the data sheet.
double tr__reached_power(const tr_reached *reached, double watts);

#endif
