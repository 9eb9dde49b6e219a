#include "data/sources/image.h"

#include <math.h>
#include <string.h>

// Do the sides spell (a, b, c)? What is of one channel may leave it out, and all may be
// one side.
static bool are(const int64_t *dim, int rank, int64_t a, int64_t b, int64_t c,
                int64_t channels) {
    if (rank == 1) {
        return dim[0] == a * b * c;
    }
    if (rank == 2 && channels == 1) {
        return dim[0] * dim[1] == a * b * c && (dim[0] == a || dim[0] == b);
    }
    return rank == 3 && dim[0] == a && dim[1] == b && dim[2] == c;
}

static tr_status choose_layout(const tr_data_options *o, const int64_t *dim, int rank,
                               const char *path, tr_image *out, tr_error *err) {
    int64_t h = o->image_height, w = o->image_width, c = o->image_channels;
    bool first = are(dim, rank, c, h, w, c), last = are(dim, rank, h, w, c, c);
    const char *given = o->image_layout;
    bool wants_first = !given || strcmp(given, "channels_first") == 0;
    bool wants_last = !given || strcmp(given, "channels_last") == 0;
    if (!wants_first && !wants_last) {
        return tr_fail(err, TR_USAGE,
                       "data.image_layout: '%s' is not known; it is channels_first or "
                       "channels_last",
                       given);
    }
    if (!(first && wants_first) && !(last && wants_last)) {
        return tr_fail(err, TR_DATA,
                       "%s: its samples have %d dimensions and are not images of %lld "
                       "channels, %lld x %lld, %s: change the model's image_size or "
                       "num_channels, or the data",
                       path, rank, (long long)c, (long long)h, (long long)w,
                       given ? given : "channels first or last");
    }
    out->channels_first = first && wants_first;
    return TR_OK;
}

// values: [count], for all channels or one for each; `fallback` where there are none.
static tr_status read_values(const char *key, const double *values, size_t count,
                             int64_t channels, double fallback,
                             float to[TR_IMAGE_CHANNELS_MAX], tr_error *err) {
    if (count > 1 && ((int64_t)count != channels || count > TR_IMAGE_CHANNELS_MAX)) {
        return tr_fail(err, TR_USAGE,
                       "%s: %zu numbers for %lld channels; give one, or one for each "
                       "(at most %d)",
                       key, count, (long long)channels, TR_IMAGE_CHANNELS_MAX);
    }
    for (int i = 0; i < TR_IMAGE_CHANNELS_MAX; i++) {
        size_t from = count > 1 ? (size_t)i : 0;
        double value = from < count ? values[from] : fallback;
        if (!isfinite(value)) {
            return tr_fail(err, TR_USAGE, "%s: a number is not finite", key);
        }
        to[i] = (float)value;
    }
    return TR_OK;
}

tr_status tr__image_layout(const tr_data_options *o, const int64_t *dim, int rank,
                           const char *path, tr_image *out, tr_error *err) {
    float deviation[TR_IMAGE_CHANNELS_MAX];
    *out = (tr_image){0};
    if (o->image_height == 0) {
        bool asks = o->image_layout || o->image_mean_count || o->image_std_count;
        return asks ? tr_fail(err, TR_USAGE,
                              "data.image_layout, image_mean and image_std have a "
                              "meaning for models of images alone; remove them")
                    : TR_OK;
    }
    out->height = o->image_height;
    out->width = o->image_width;
    out->channels = o->image_channels;
    out->by_channel = o->image_mean_count > 1 || o->image_std_count > 1;
    tr_status status = choose_layout(o, dim, rank, path, out, err);
    if (status == TR_OK) {
        status = read_values("data.image_mean", o->image_mean, o->image_mean_count,
                             out->channels, 0, out->mean, err);
    }
    if (status == TR_OK) {
        status = read_values("data.image_std", o->image_std, o->image_std_count,
                             out->channels, 1, deviation, err);
    }
    for (int i = 0; i < TR_IMAGE_CHANNELS_MAX && status == TR_OK; i++) {
        if (deviation[i] == 0) {
            return tr_fail(err, TR_USAGE, "data.image_std: must not be 0");
        }
        out->scale[i] = 1 / deviation[i];
    }
    return status;
}
