// What of a plan lives on NVMe, and how many bytes its parts take.
#ifndef TR_PLAN_FLOW_RESIDENCY_H
#define TR_PLAN_FLOW_RESIDENCY_H

#include "plan/flow/plan.h"

enum {
    TR_NVME_ALIGNMENT = 4096, // bytes: of offsets, lengths and memory
    TR_EXCHANGE_ELEMENTS = 1 << 20,
};
bool tr__is_on_nvme(const tr_plan *plan, const tr_flat_range *range);
// Does anything of the plan?
bool tr__plan_uses_nvme(const tr_plan *plan);
// The same of a part of a flat buffer, and of any that is trained: all but those whose
// gradients ranks sum where they are made. (The copy is a part of its own in 16 bits
// alone.)
bool tr__flat_part_is_on_nvme(const tr_plan *plan, const tr_flat *flat, tr_part part);
bool tr__part_is_on_nvme(const tr_plan *plan, tr_part part);
// Is what units compute with a part of its own in the file, of this flat buffer?
bool tr__copy_is_in_file(const tr_plan *plan, const tr_flat *flat);
// What is read to be fetched: what the update changes, or its copy in 16 bits.
tr_part tr__used_part(const tr_plan *plan);
// Elements of a part from one possible cut to the next: whole shards' blocks, in memory
// and in the file.
int64_t tr__nvme_elements(const tr_plan *plan, const tr_flat *flat, tr_part part);
// Are states kept in another type than f32?
bool tr__plan_packs(const tr_plan *plan);
// Elements that the exchange has room for, and bytes that each takes in it: f32, and
// behind all of these the copies.
int64_t tr__exchange_elements(const tr_plan *plan);
int64_t tr__exchange_bytes(const tr_plan *plan);
// Bytes that so many elements of a part take in the file: whole blocks.
int64_t tr__nvme_bytes(const tr_plan *plan, const tr_flat *flat, tr_part part,
                       int64_t count);

#endif
