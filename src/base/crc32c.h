// CRC-32C, by the polynomial of Castagnoli (RFC 3720, appendix B.4).
#ifndef TR_BASE_CRC32C_H
#define TR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef struct tr_crc32c {
    uint32_t table[256];
} tr_crc32c;

tr_crc32c tr__crc32c_begin(void);
uint32_t tr__crc32c(const tr_crc32c *crc, const void *data, size_t bytes);

#endif
