// The reading thread: fills a ring of micro-batch slots ahead of the step. Where the
// data set is to be asked on the caller's thread, there is none: a slot is filled when
// it is acquired.
//
// The ring's memory is the caller's (a planned arena). A slot holds the tensors of one
// micro-batch, rows [m, ...] each, as the model's list says (base/batch.h).
// Micro-batches come in the order of the steps: of a step's rows [first, first + count)
// micro-batch j holds [j * m, j * m + m). Rows past `count` are padded, inputs 0 and no
// target, so that they weigh nothing; a micro-batch may be padding alone. A step that
// goes through its micro-batches several times gets all of them anew in each round.
#ifndef TR_DATA_ORDER_FEED_H
#define TR_DATA_ORDER_FEED_H

#include "data/order/batcher.h"
#include "data/order/order.h"

#include <tranche/data.h>
#include <tranche/model.h>

typedef struct tr_feed tr_feed;

typedef struct tr_feed_options {
    tr_dataset *dataset; // not owned; the feed is its only reader while it lives
    const tr_batch_tensors *batch; // what the slots hold: those of the data set, in the
                                   // model's order; copied. NULL: the data set's own
    const tr_model *model;         // bounds ids that the data set does not; NULL: none
    tr_order order;                // samples as the dataset has
    tr_batcher batcher;  // at most the dataset's samples: the first ones of the order
    int64_t cursor;      // where the first step starts
    int64_t steps;       // how many steps to feed; 0: without end
    int64_t micro_batch; // m, rows of a slot
    int64_t first_micro; // of a step, the micro-batches [first_micro, first_micro +
    int64_t micros;      // micros) are fed: those of one rank
    int64_t rounds;      // of a step; 0: one
    bool weigh_whole;    // a second loss weighs the same in all steps, which are parts
                         // of one evaluation (data/order/loss_weights.h)
    int64_t slots;       // of the ring, > 0; as many may be held at once
    void *memory;        // [slots * bytes of a slot], aligned as a slot
} tr_feed_options;

// One filled slot, valid until it is released.
typedef struct tr_feed_micro {
    const void *data; // the slot
    int64_t sample;   // global sample index of row 0
    int64_t rows;     // rows present, 0..m
    tr_batch batch;   // the step it belongs to
} tr_feed_micro;

typedef struct tr_feed_waits {
    int64_t count;  // calls of acquire that found nothing filled
    double seconds; // spent so
} tr_feed_waits;

// Starts the thread, if there is to be one. TR_USAGE: options that make no sense;
// TR_MEMORY; TR_INTERNAL: no thread to be had.
tr_status tr__feed_create(const tr_feed_options *options, tr_feed **out, tr_error *err);
// Stops and joins the thread: at most the read under way (up to 16 samples) is awaited.
// NULL-safe.
void tr__feed_destroy(tr_feed *feed);

// Waits for the next micro-batch. An error of the thread comes here, in the place of
// the micro-batch it concerns, and at every later call. TR_INTERNAL: past the last
// step, or all slots held. No allocation.
tr_status tr__feed_acquire(tr_feed *feed, tr_feed_micro *out, tr_error *err);
// Gives the slot acquired longest ago back to the thread.
void tr__feed_release(tr_feed *feed);

// From the thread that acquires.
tr_feed_waits tr__feed_waits(const tr_feed *feed);

#endif
