/* SPDX-License-Identifier: MIT */
/* The verbs: help, completion, the manual and the dispatch of main() are all made from this table. */
#pragma once

#include "ublkctl/client/context.h"

struct verb {
        const char *name;
        const char *arguments;   /* as the help shows them, or "" */
        const char *summary;     /* one clause, without a full stop */
        const char *description; /* sentences, for --help and the manual */
        uint64_t settings;       /* mask of setting_id, beside SETTINGS_COMMON */
        int arguments_min, arguments_max;
        enum completion completion; /* of the arguments */
        const char *const *words;   /* COMPLETE_CHOICE: what the first argument may be, NULL-terminated */
        bool local;                 /* needs no daemon */
        bool hidden;                /* for the build only */
        /* argv holds the arguments alone. Says itself what went wrong. */
        enum exit_status (*run)(struct context *context, int argc, char *argv[]);
};

enum { ARGUMENTS_ANY = 1 << 20 };

/* All verbs, in the order of the help; the count in *ret_count. */
const struct verb *verbs_all(size_t *ret_count);
/* NULL: there is none of this name. */
const struct verb *verb_find(const char *name);

/* The verbs' functions, each in the file that its comment names. */
enum exit_status verb_create(struct context *context, int argc, char *argv[]);     /* change.c */
enum exit_status verb_set(struct context *context, int argc, char *argv[]);        /* change.c */
enum exit_status verb_patch(struct context *context, int argc, char *argv[]);      /* change.c */
enum exit_status verb_resize(struct context *context, int argc, char *argv[]);     /* change.c */
enum exit_status verb_enable(struct context *context, int argc, char *argv[]);     /* change.c */
enum exit_status verb_disable(struct context *context, int argc, char *argv[]);    /* change.c */
enum exit_status verb_apply(struct context *context, int argc, char *argv[]);      /* apply.c */
enum exit_status verb_get(struct context *context, int argc, char *argv[]);        /* show.c */
enum exit_status verb_list(struct context *context, int argc, char *argv[]);       /* show.c */
enum exit_status verb_describe(struct context *context, int argc, char *argv[]);   /* describe.c */
enum exit_status verb_delete(struct context *context, int argc, char *argv[]);     /* remove.c */
enum exit_status verb_wait(struct context *context, int argc, char *argv[]);       /* await.c */
enum exit_status verb_events(struct context *context, int argc, char *argv[]);     /* events.c */
enum exit_status verb_stats(struct context *context, int argc, char *argv[]);      /* stats.c */
enum exit_status verb_top(struct context *context, int argc, char *argv[]);        /* top.c */
enum exit_status verb_recover(struct context *context, int argc, char *argv[]);    /* act.c */
enum exit_status verb_restart(struct context *context, int argc, char *argv[]);    /* act.c */
enum exit_status verb_host(struct context *context, int argc, char *argv[]);       /* host.c */
enum exit_status verb_adopt(struct context *context, int argc, char *argv[]);      /* adopt.c */
enum exit_status verb_export(struct context *context, int argc, char *argv[]);     /* export.c */
enum exit_status verb_targets(struct context *context, int argc, char *argv[]);    /* host.c */
enum exit_status verb_attach(struct context *context, int argc, char *argv[]);     /* attach.c */
enum exit_status verb_detach(struct context *context, int argc, char *argv[]);     /* attach.c */
enum exit_status verb_completion(struct context *context, int argc, char *argv[]); /* completion.c */
enum exit_status verb_help(struct context *context, int argc, char *argv[]);       /* help.c */
enum exit_status verb_manual(struct context *context, int argc, char *argv[]);     /* manual.c */
