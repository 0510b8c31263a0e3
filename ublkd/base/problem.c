/* SPDX-License-Identifier: MIT */
/* What is wrong, in words meant for a user. */
#include "ublkd/base/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void problem_clear(struct problem *problem)
{
        free(problem->pointer);
        free(problem->reason);
        free(problem->detail);
        *problem = (struct problem){};
}

/* Takes over the strings of `problem`, also on failure. */
static int list_push(struct problem_list *list, struct problem problem)
{
        struct problem *items;

        if (!problem.pointer || !problem.reason || !problem.detail) {
                problem_clear(&problem);
                return -ENOMEM;
        }
        if (list->count == PROBLEM_LIST_MAX) {
                problem_clear(&problem);
                list->dropped++;
                return 0;
        }
        items = reallocarray(list->items, list->count + 1, sizeof(*items));
        if (!items) {
                problem_clear(&problem);
                return -ENOMEM;
        }
        list->items = items;
        list->items[list->count++] = problem;
        return 0;
}

int problem_add(struct problem_list *list, int error, const char *pointer, const char *reason,
        const char *format, ...)
{
        struct problem problem = {.error = error};
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&problem.detail, format, arguments) < 0)
                problem.detail = NULL;
        va_end(arguments);
        problem.pointer = strdup(pointer ? pointer : "");
        problem.reason = strdup(reason);
        return list_push(list, problem);
}

int problem_list_append(struct problem_list *list, const struct problem_list *from)
{
        for (size_t i = 0; i < from->count; i++) {
                const struct problem *problem = &from->items[i];
                int r = list_push(list, (struct problem){.error = problem->error,
                                                .pointer = strdup(problem->pointer),
                                                .reason = strdup(problem->reason),
                                                .detail = strdup(problem->detail)});

                if (r < 0)
                        return r;
        }
        list->dropped += from->dropped;
        return 0;
}

void problem_list_clear(struct problem_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                problem_clear(&list->items[i]);
        free(list->items);
        *list = (struct problem_list){};
}

const char *pointer_rest(const char *pointer, const char *outer)
{
        const char *rest = pointer + strlen(outer);

        if (strncmp(pointer, outer, strlen(outer)) != 0 || (*rest != '\0' && *rest != '/'))
                return NULL;
        return rest;
}
