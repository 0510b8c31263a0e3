/* SPDX-License-Identifier: MIT */
/* What the supervisor keeps of one device beside its record, in parts. Each part belongs to one file: X_part.h has the
 * struct of X.c in backing/, disk/ or worker/, and X.h that of X.c beside it. The comment of the struct says which other
 * files may read or write it (tests/lint/rules.py checks that). */
#pragma once

#include "ublkd/model/daemon_counters.h"
#include "ublkd/plan/attempt.h"
#include "ublkd/reconcile/parts/device_action_part.h"
#include "ublkd/reconcile/parts/device_backing_part.h"
#include "ublkd/reconcile/parts/device_cdi_part.h"
#include "ublkd/reconcile/parts/device_claim_lost_part.h"
#include "ublkd/reconcile/parts/device_claim_part.h"
#include "ublkd/reconcile/parts/device_cpus_part.h"
#include "ublkd/reconcile/parts/device_errors_part.h"
#include "ublkd/reconcile/parts/device_faults_part.h"
#include "ublkd/reconcile/parts/device_group_part.h"
#include "ublkd/reconcile/parts/device_handled.h"
#include "ublkd/reconcile/parts/device_image_part.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/device_node_part.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/device_openers.h"
#include "ublkd/reconcile/parts/device_partitions_part.h"
#include "ublkd/reconcile/parts/device_path_part.h"
#include "ublkd/reconcile/parts/device_preflight_part.h"
#include "ublkd/reconcile/parts/device_private_part.h"
#include "ublkd/reconcile/parts/device_program_part.h"
#include "ublkd/reconcile/parts/device_progress_part.h"
#include "ublkd/reconcile/parts/device_release_part.h"
#include "ublkd/reconcile/parts/device_shared_part.h"
#include "ublkd/reconcile/parts/device_space_part.h"
#include "ublkd/reconcile/parts/device_step.h"
#include "ublkd/reconcile/parts/device_timeout_part.h"
#include "ublkd/reconcile/parts/device_words_part.h"
#include "ublkd/reconcile/parts/device_worker_part.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/parts/surroundings.h"
#include "ublkd/reconcile/view/turn_view.h"

struct managed_device {
        struct reconciler *reconciler;
        const struct surroundings *env;
        struct device_identity id;
        struct device_keys keys;

        struct device_turn turn;
        struct first_pass first;
        struct handled_requests handled;
        struct turn_view view;
        struct attempt attempt; /* others report events to it by the functions of attempt.h */
        struct device_step step;
        struct failure_note note; /* the last failure */

        struct device_process process;
        struct device_words words;
        struct device_progress progress;
        struct device_group group;
        struct device_acting action;
        struct restart_preflight preflight;
        struct spec_preflight *spec_preflight; /* NULL: none is under way; see spec_preflight.h */

        struct device_claim claim;
        struct device_backing backing;
        struct device_path path;
        struct device_faults_seen faults;
        struct device_image image;
        struct device_space space;
        struct device_errors errors;
        struct device_shared shared;
        struct device_cpus cpus;
        struct device_openers openers;
        struct device_node node;
        struct device_private private;
        struct device_cdi cdi;
        struct device_partitions partitions;
        struct device_release release;
        struct device_timeout timeout;
};

struct reconciler {
        struct surroundings env;
        struct tree devices;       /* by name; private to reconciler_devices.c */
        struct device_index index; /* by other keys; private to device_keys.c */
        struct turn_queue queue;
        struct claim_table claims;
        struct lost_claims lost;
        struct worker_program program;
        size_t boot_pass_left;           /* devices in the store at the start without their first pass */
        bool boot_pass_done;             /* the first pass has ended, and config.boot_pass_done was called */
        struct daemon_counters counters; /* steps by enum plan_action */
        struct event_journal *journal;
};
