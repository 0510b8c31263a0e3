/* SPDX-License-Identifier: MIT */
/* Runs a fuzzer once over every file of its corpus: what was found once stays fixed, with any compiler. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/base/cleanup.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static void replay(const char *directory, const char *name)
{
        char path[512];
        FILE *file;
        static uint8_t data[1 << 20];
        size_t size;

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        file = fopen(path, "re");
        FUZZ_CHECK(file);
        size = fread(data, 1, sizeof(data), file);
        (void)fclose(file);
        (void)LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char *argv[])
{
        DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
        struct dirent *entry;
        unsigned count = 0;

        FUZZ_CHECK(directory);
        while ((entry = readdir(directory)))
                if (entry->d_name[0] != '.') {
                        replay(argv[1], entry->d_name);
                        count++;
                }
        (void)closedir(directory);
        FUZZ_CHECK(count > 0);
        return EXIT_SUCCESS;
}
