// CRCs of 32 bits, by the polynomial that a format names.
#ifndef TR_BASE_CRC32_H
#define TR_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

// Polynomials, their bits in reverse: of zip archives, and of Castagnoli (RFC 3720,
// appendix B.4; CRC-32C).
#define TR_CRC32_ZIP        UINT32_C(0xedb88320)
#define TR_CRC32_CASTAGNOLI UINT32_C(0x82f63b78)

typedef struct tr_crc32 {
    uint32_t table[256];
} tr_crc32;

tr_crc32 tr__crc32_begin(uint32_t polynomial);
// Of bytes behind others whose sum is `sum` (0: there are none).
uint32_t tr__crc32(const tr_crc32 *crc, uint32_t sum, const void *data, size_t bytes);

#endif
