// Images in files of rows: where a value of a sample goes, and what becomes of it.
#ifndef TR_DATA_SOURCES_IMAGE_H
#define TR_DATA_SOURCES_IMAGE_H

#include <tranche/data.h>

enum { TR_IMAGE_CHANNELS_MAX = 64 }; // that have a mean and a deviation of their own

typedef struct tr_image {
    int64_t height, width, channels; // 0: rows of features, as they are
    bool channels_first;             // in the file
    float mean[TR_IMAGE_CHANNELS_MAX], scale[TR_IMAGE_CHANNELS_MAX];
    bool by_channel; // else mean[0] and scale[0] are of all
} tr_image;

// How samples of sides dim [rank] lie in the file `path`. TR_USAGE, TR_DATA: they are
// no images of the size that the options say.
tr_status tr__image_layout(const tr_data_options *options, const int64_t *dim, int rank,
                           const char *path, tr_image *out, tr_error *err);

// Puts value `at` of a sample of the file in its place in row: [height, width,
// channels]
static inline void tr__image_put(const tr_image *image, int64_t at, float value,
                                 float *row) {
    if (image->height == 0) {
        row[at] = value;
        return;
    }
    int64_t pixels = image->height * image->width;
    int64_t channel = image->channels_first ? at / pixels : at % image->channels;
    int64_t pixel = image->channels_first ? at % pixels : at / image->channels;
    int64_t of = image->by_channel ? channel : 0;
    row[pixel * image->channels + channel] =
        (value - image->mean[of]) * image->scale[of];
}

#endif
