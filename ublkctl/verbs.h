/* SPDX-License-Identifier: MIT */
/* The verbs. Help, completion, the manual and the dispatch of main() all come from this table. */
#pragma once

#include "ublkctl/client/context.h"

struct verb {
        const char *name;
        const char *alias;       /* another name; NULL: none */
        const char *arguments;   /* as the help shows them; "": none */
        const char *summary;     /* one clause, without a full stop */
        const char *description; /* sentences, for --help and the manual */
        uint64_t settings;       /* mask of setting_id, beside SETTINGS_COMMON */
        int arguments_min, arguments_max;
        enum completion completion; /* of the arguments */
        bool fields;                /* arguments after the first are FIELD=VALUE */
        bool actions;               /* the second argument is the name of an action; the others are any */
        bool selects;               /* -l may also be KEY!=VALUE */
        const char *const *words;   /* COMPLETE_CHOICE: values of the first argument; NULL-terminated */
        bool local;                 /* needs no daemon */
        bool hidden;                /* for the build only */
        /* Run the verb. argv holds the arguments only. On failure the verb prints the cause on stderr. */
        enum exit_status (*run)(struct context *context, int argc, char *argv[]);
};

enum { ARGUMENTS_ANY = 1 << 20 };

/* Return all verbs, in the order of the help, and their number in *ret_count. */
const struct verb *verbs_all(size_t *ret_count);
/* Return the verb of this name or alias; NULL: unknown. */
const struct verb *verb_find(const char *name);
/* Print that a verb is unknown, and which one was meant. Return STATUS_USAGE. */
enum exit_status verb_refuse(const char *name);

/* Run a verb. The comment beside each names its file. */
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
enum exit_status verb_latency(struct context *context, int argc, char *argv[]);    /* latency.c */
enum exit_status verb_recover(struct context *context, int argc, char *argv[]);    /* act.c */
enum exit_status verb_restart(struct context *context, int argc, char *argv[]);    /* act.c */
enum exit_status verb_stop(struct context *context, int argc, char *argv[]);       /* stop.c */
enum exit_status verb_start(struct context *context, int argc, char *argv[]);      /* stop.c */
enum exit_status verb_host(struct context *context, int argc, char *argv[]);       /* host.c */
enum exit_status verb_adopt(struct context *context, int argc, char *argv[]);      /* adopt.c */
enum exit_status verb_export(struct context *context, int argc, char *argv[]);     /* export.c */
enum exit_status verb_targets(struct context *context, int argc, char *argv[]);    /* host.c */
enum exit_status verb_attach(struct context *context, int argc, char *argv[]);     /* attach.c */
enum exit_status verb_detach(struct context *context, int argc, char *argv[]);     /* detach.c */
enum exit_status verb_mkfs(struct context *context, int argc, char *argv[]);       /* filesystem.c */
enum exit_status verb_mount(struct context *context, int argc, char *argv[]);      /* filesystem.c */
enum exit_status verb_unmount(struct context *context, int argc, char *argv[]);    /* filesystem.c */
enum exit_status verb_deliver(struct context *context, int argc, char *argv[]);    /* filesystem.c */
enum exit_status verb_action(struct context *context, int argc, char *argv[]);     /* action.c */
enum exit_status verb_completion(struct context *context, int argc, char *argv[]); /* completion.c */
enum exit_status verb_help(struct context *context, int argc, char *argv[]);       /* help.c */
enum exit_status verb_manual(struct context *context, int argc, char *argv[]);     /* manual.c */
