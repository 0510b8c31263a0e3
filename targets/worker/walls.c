/* SPDX-License-Identifier: MIT */
/* When a worker gives up what. */
#include "targets/worker/walls.h"
#include "targets/target_desc.h"
#include "targets/worker/os/call_filter.h"
#include "targets/worker/os/landlock.h"
#include "targets/worker/os/sandbox.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/log.h"

/* The reports of a sanitizer need paths, /proc, calls, and the sight of the memory: under it those walls are missing. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

static void note(struct walls *walls, const char *what, int result)
{
        if (result >= 0 || walls->error < 0)
                return;
        walls->error = result;
        walls->missing = what;
}

void walls_begin(struct walls *walls)
{
        note(walls, "no new privileges", sandbox_begin());
        note(walls, "namespaces of its own", sandbox_leave_host(&walls->network));
        walls->files = SANITIZED ? -1 : sandbox_make_empty_namespace(); /* if it fails, it is made later */
        (void)call_filter_prepare(); /* no wall: without it, the filter takes longer to install */
}

/* The walls that come later leave out what `connects` says. */
void walls_fit_target(struct walls *walls, unsigned needs)
{
        walls->connects = needs & TARGET_NEEDS_NETWORK;
        if (walls->connects)
                note(walls, "the network of its target", sandbox_keep_network(walls->network));
        walls->network = close_fd(walls->network);
}

void walls_leave_files(struct walls *walls)
{
        if (!SANITIZED)
                note(walls, "an empty root directory", sandbox_leave_files(walls->files));
        walls->files = close_fd(walls->files);
}

void walls_close_access(struct walls *walls)
{
        if (!SANITIZED)
                note(walls, "Landlock", landlock_close(walls->connects));
        note(walls, "a user of its own", sandbox_leave_user(walls->user));
}

void walls_note_privileges(struct walls *walls, int result)
{
        if (result >= 0)
                return;
        walls->best_effort = false;
        walls->error = 0; /* this one is the reason, whatever was missing before */
        note(walls, "no privileges", result);
}

void walls_close(struct walls *walls)
{
        walls_note_privileges(walls, sandbox_drop_capabilities());
        if (SANITIZED)
                return;
        note(walls, "memory that is hidden", sandbox_hide_memory());
        note(walls, "a log of its own", log_close_shared());
        note(walls, "a filter of system calls", call_filter_install(walls->connects));
}

/* Any user but root will do. */
void walls_rehearse(struct walls *walls)
{
        walls->user = 65534;
        walls_leave_files(walls);
        walls_close_access(walls);
        walls_close(walls);
}
