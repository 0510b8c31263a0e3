/* SPDX-License-Identifier: MIT */
/* CPU lists as the kernel writes them: "0-3,8". */
#include "ublkd/values/cpu_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a decimal number below `limit` and moves *text behind it. */
static int take_cpu(const char **text, size_t limit, size_t *ret)
{
        size_t cpu = 0;
        bool beyond = false;

        if (!isdigit((unsigned char)**text))
                return -EINVAL;
        for (; isdigit((unsigned char)**text); (*text)++) {
                cpu = cpu * 10 + (size_t)(**text - '0');
                if (cpu >= limit) {
                        beyond = true;
                        cpu = limit;
                }
        }
        if (beyond)
                return -ERANGE;
        *ret = cpu;
        return 0;
}

/* Reads the list; with a mask it also sets the bits. */
static int walk(const char *text, size_t limit, unsigned char *mask)
{
        for (;; text++) {
                size_t first, last;
                int r = take_cpu(&text, limit, &first);

                if (r < 0)
                        return r;
                last = first;
                if (*text == '-') {
                        text++;
                        r = take_cpu(&text, limit, &last);
                        if (r < 0)
                                return r;
                }
                if (last < first)
                        return -EINVAL;
                for (size_t cpu = first; mask && cpu <= last; cpu++)
                        mask[cpu / 8] |= (unsigned char)(1u << cpu % 8);
                if (*text == '\0')
                        return 0;
                if (*text != ',')
                        return -EINVAL;
        }
}

int parse_cpu_list(const char *text, unsigned char *ret_mask, size_t size)
{
        /* Once to check, so that a bad list leaves the mask as it was. */
        int r = walk(text, size * 8, NULL);

        if (r < 0)
                return r;
        memset(ret_mask, 0, size);
        return walk(text, size * 8, ret_mask);
}

static bool has_cpu(const unsigned char *mask, size_t size, size_t cpu)
{
        return cpu < size * 8 && mask[cpu / 8] & 1u << cpu % 8;
}

int format_cpu_list(const unsigned char *mask, size_t size, char **ret)
{
        char *text = NULL;
        size_t length, last;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        for (size_t cpu = 0; cpu < size * 8; cpu = last + 1) {
                last = cpu;
                if (!has_cpu(mask, size, cpu))
                        continue;
                while (has_cpu(mask, size, last + 1))
                        last++;
                fprintf(out, "%s%zu", ftell(out) > 0 ? "," : "", cpu);
                if (last > cpu)
                        fprintf(out, "-%zu", last);
        }
        if (fclose(out) == 0) {
                *ret = text;
                return 0;
        }
        free(text);
        return -ENOMEM;
}
