/* SPDX-License-Identifier: MIT */
/* What the fuzzers share. Each is one file with LLVMFuzzerTestOneInput(), for clang's libFuzzer. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy with a NUL behind it, to be freed. */
char *fuzz_text(const uint8_t *data, size_t size);

/* The JSON that the API would take for a body, or NULL. */
cJSON *fuzz_json(const char *text, size_t size);

/* Ends the program, which is a finding, if `truth` is false. */
#define FUZZ_CHECK(truth)                                                                                    \
        do {                                                                                                 \
                if (!(truth))                                                                                \
                        fuzz_found(__FILE__, __LINE__, #truth);                                              \
        } while (0)
void fuzz_found(const char *file, int line, const char *truth) __attribute__((noreturn));
