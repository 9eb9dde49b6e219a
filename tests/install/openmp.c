// A program with loops of its own in OpenMP, around the training of
// examples/classifier.c, whose main() it calls.
#include <stdio.h>

enum { COUNT = 1 << 20 };

int train_classifier(void);

static double sum(void) {
    double all = 0;
#pragma omp parallel for reduction(+ : all)
    for (int i = 0; i < COUNT; i++) {
        all += i % 7;
    }
    return all;
}

int main(void) {
    double before = sum();
    int status = train_classifier();
    printf("%s\n", sum() == before && before > COUNT ? "the sums agree" : "WRONG SUMS");
    return status;
}
