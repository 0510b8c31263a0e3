# SPDX-License-Identifier: MIT
"""The map of the rooms: which file may include which. docs/architecture.md says why, rules.py holds the tree against it."""

CONTRACT = [f"targets/{name}.h" for name in "target target_action target_desc target_locks target_tree target_tree_kept target_wait".split()]


def rooms(top, names):
    return [f"{top}/{name}/*" for name in names.split()]


BASE = rooms("ublkd", "base")
VALUES = rooms("ublkd", "base values")
COMMON = rooms("ublkd", "base values backing kernel")  # both programs may see it
PROTO = rooms("ublkd", "proto")
API_SEES = rooms("ublkd", "values backing kernel model") + [
    "ublkd/authority/authority_answer.h",
    "ublkd/peers/peer_cgroup.h",
    "ublkd/peers/peer_groups.h",
    "ublkd/nodes/delivery_wire.h",
    "ublkd/peers/peer_home.h",
    "ublkd/filesystems/filesystem_maker.h",
    "ublkd/filesystems/filesystem_rule.h",
    "ublkd/peers/peer_path.h",
    "ublkd/policy/policy.h",
    "ublkd/policy/policy_check.h",
    "ublkd/policy/policy_name.h",
    "ublkd/disk_users/disk_search.h",
    "ublkd/host/adoptable.h",
    "ublkd/host/host.h",
    "ublkd/proto/latency_buckets.h",
    "ublkd/pools/pool_spec.h",
    "ublkd/store/device_change.h",
    "ublkd/store/device_store.h",
    "ublkd/store/event_log.h",
    "ublkd/store/store_actions.h",
    "ublkd/store/restart_harm.h",
]
BELOW_RECONCILE = (
    COMMON + PROTO
    + rooms("ublkd", "offload cgroups model plan driver disks nodes disk_users partitions paths runtime store pools host records workers")
)
WORKER = rooms("targets/worker", "io wait queue disk os") + ["targets/worker/*"]

# The first row whose pattern fits a file says what it may include with quotes, beside its own folder ("!": without
# its own folder). The libraries of CMake link the same.
QUOTED = [
    # the supervisor, from the ground up
    ("ublkd/base/*", []),
    ("ublkd/values/*", BASE),
    ("ublkd/backing/*", BASE),
    ("ublkd/kernel/*", VALUES),
    ("ublkd/proto/*", COMMON),
    ("ublkd/config/*", VALUES + rooms("ublkd", "kernel")),
    ("ublkd/offload/*", BASE),
    ("ublkd/peers/*", BASE + rooms("ublkd", "kernel offload") + ["ublkd/values/path_text.h"]),
    ("ublkd/authority/*", BASE + rooms("ublkd", "peers")),
    ("ublkd/cgroups/*", BASE + rooms("ublkd", "offload")),
    ("ublkd/model/*", COMMON + PROTO + ["targets/known/*", "targets/target_desc.h", "targets/target_tree.h", "targets/target_tree_kept.h"]),
    ("ublkd/policy/*", VALUES + rooms("ublkd", "kernel model") + ["targets/known/known_targets.h"]),
    ("ublkd/plan/plan.[ch]", ["!", "ublkd/plan/plan.h"]),
    ("ublkd/plan/backoff.[ch]", ["!", "ublkd/plan/backoff.h"]),
    ("ublkd/plan/attempt.[ch]", ["!", "ublkd/plan/plan.h", "ublkd/plan/backoff.h", "ublkd/plan/attempt.h"]),
    ("ublkd/plan/claims.[ch]", ["!", "ublkd/plan/claims.h", "ublkd/backing/backing_claims.h", "ublkd/base/tree.h"]),
    ("ublkd/plan/*", BASE + PROTO),
    ("ublkd/driver/*", BASE + PROTO + rooms("ublkd", "kernel offload")),
    ("ublkd/disks/*", BASE + rooms("ublkd", "offload")),
    ("ublkd/nodes/*", BASE + rooms("ublkd", "kernel offload peers")),
    ("ublkd/partitions/*", BASE + rooms("ublkd", "kernel offload")),
    ("ublkd/disk_users/*", VALUES + rooms("ublkd", "kernel disks offload")),
    ("ublkd/paths/path_process.[ch]", BASE + rooms("ublkd", "offload")),
    ("ublkd/paths/*", BASE + rooms("ublkd", "kernel")),
    ("ublkd/runtime/*", BASE + PROTO + rooms("ublkd", "backing offload")),
    ("ublkd/store/*", COMMON + rooms("ublkd", "model")),
    ("ublkd/pools/*", COMMON + rooms("ublkd", "model policy store")),
    ("ublkd/filesystems/*", COMMON + rooms("ublkd", "offload model store") + ["ublkd/nodes/mount_users.h", "ublkd/nodes/recall_process.h"]),
    ("ublkd/host/*", BASE + rooms("ublkd", "kernel offload model driver store")),
    ("ublkd/records/*", BASE + rooms("ublkd", "model store host runtime")),
    ("ublkd/declared/declared_plan.[ch]", ["!", "ublkd/declared/declared_plan.h"]),
    ("ublkd/declared/*", VALUES + rooms("ublkd", "kernel offload model policy disk_users store pools")),
    ("ublkd/workers/*", BASE + PROTO + rooms("ublkd", "offload cgroups plan runtime")),
    ("ublkd/reconcile/view/*", COMMON + PROTO + rooms("ublkd", "cgroups model plan driver paths store workers")),
    ("ublkd/reconcile/parts/*", BELOW_RECONCILE + rooms("ublkd/reconcile", "view")),
    ("ublkd/reconcile/disk/*", BELOW_RECONCILE + rooms("ublkd/reconcile", "view parts")),
    ("ublkd/reconcile/backing/*", BELOW_RECONCILE + rooms("ublkd/reconcile", "view parts")),
    ("ublkd/reconcile/worker/*", BELOW_RECONCILE + rooms("ublkd/reconcile", "view parts backing")),
    ("ublkd/reconcile/*", BELOW_RECONCILE + rooms("ublkd/reconcile", "view parts disk backing worker")),
    # the manager and main put the parts together; what else is here is one task of the manager, and sees the rooms of it
    ("ublkd/tasks/event_loop.[ch]", ["!", "ublkd/tasks/event_loop.h"] + BASE),
    ("ublkd/tasks/service_state.[ch]", ["!", "ublkd/tasks/service_state.h"] + BASE),
    (
        "ublkd/tasks/worker_upgrade.[ch]",
        ["!", "ublkd/tasks/worker_upgrade.h", "ublkd/tasks/upgrade_queue.h", "ublkd/tasks/service_line.h"] + BASE + rooms("ublkd", "host store"),
    ),
    ("ublkd/tasks/upgrade_queue.[ch]", ["!", "ublkd/tasks/upgrade_queue.h"] + BASE + rooms("ublkd", "store")),
    ("ublkd/tasks/program_choice.[ch]", ["!", "ublkd/tasks/program_choice.h"] + BASE),
    ("ublkd/tasks/service_line.[ch]", ["!", "ublkd/tasks/service_line.h"] + BASE + rooms("ublkd", "host store")),
    ("ublkd/tasks/disk_marks.[ch]", ["!", "ublkd/tasks/disk_marks.h"] + BASE + rooms("ublkd", "runtime store")),
    ("ublkd/tasks/region_stats.[ch]", ["!", "ublkd/tasks/region_stats.h"] + BASE + rooms("ublkd", "model runtime store")),
    ("ublkd/tasks/driver_keeper.[ch]", ["!", "ublkd/tasks/driver_keeper.h"] + BASE + rooms("ublkd", "driver host")),
    ("ublkd/tasks/declared_devices.[ch]", ["!", "ublkd/tasks/declared_devices.h"] + BASE + rooms("ublkd", "declared host records")),
    ("ublkd/tasks/manager_reports.[ch]", ["!", "ublkd/tasks/manager_reports.h", "ublkd/tasks/service_state.h"] + BASE + rooms("ublkd", "host store")),
    ("ublkd/tasks/subuid_watch.[ch]", ["!", "ublkd/tasks/subuid_watch.h"] + BASE),
    ("ublkd/tasks/tenant_policy.[ch]", ["!", "ublkd/tasks/tenant_policy.h"] + BASE + rooms("ublkd", "policy values")),
    (
        "ublkd/tasks/runtime_guard.[ch]",
        ["!", "ublkd/tasks/runtime_guard.h", "ublkd/tasks/disk_marks.h"] + BASE + rooms("ublkd", "host records runtime"),
    ),
    (
        "ublkd/tasks/optional_parts.[ch]",
        ["!", "ublkd/tasks/optional_parts.h", "ublkd/tasks/disk_marks.h"] + BASE + rooms("ublkd", "cgroups disks nodes partitions runtime store"),
    ),
    # these, the manager and main are the only ones that know the API
    ("ublkd/tasks/access_groups.[ch]", ["!", "ublkd/tasks/access_groups.h", "api/api.h"] + BASE + rooms("ublkd", "config host")),
    (
        "ublkd/tasks/config_reload.[ch]",
        ["!", "ublkd/tasks/config_reload.h", "ublkd/tasks/access_groups.h", "ublkd/tasks/tenant_policy.h", "api/api.h"]
        + BASE + rooms("ublkd", "config host offload policy"),
    ),
    (
        "ublkd/manager_looks.[ch]",
        ["!"]
        + [f"ublkd/{name}.h" for name in "manager_internal manager_looks tasks/manager_reports tasks/runtime_guard tasks/service_line".split()]
        + BASE + rooms("ublkd", "host records store") + ["api/api.h"],
    ),
    (
        "ublkd/manager_api.[ch]",
        ["!"]
        + [f"ublkd/{name}.h" for name in "manager manager_api manager_internal manager_looks tasks/manager_reports tasks/region_stats".split()]
        + BASE + rooms("ublkd", "authority backing model reconcile") + ["api/api.h"],
    ),
    ("ublkd/manager_internal.h", ["ublkd/*/*"]),
    ("ublkd/manager.[ch]", ["ublkd/*/*", "api/api.h"]),
    ("ublkd/main.c", ["ublkd/*/*"]),
    # the program of its processes
    ("ublkd/helper.c", BASE + rooms("ublkd", "driver filesystems nodes offload partitions paths")),
    # what systemd runs beside it
    ("units/follow/*", BASE + ["ublkd/runtime/runtime_names.h"]),
    # the API sees what is stored, and asks who uses a disk; never who carries it out
    ("api/http/*", BASE + API_SEES),
    ("api/held/*", BASE + API_SEES + rooms("api", "http")),
    ("api/metrics/*", BASE + API_SEES + rooms("api", "http held")),
    (
        "api/resources/*",
        BASE + API_SEES + rooms("api", "http held") + ["targets/known/known_targets.h", "schemas/schema_texts.h"],
    ),
    ("api/*", BASE + API_SEES + ["api/*/*"]),
    # a client knows the API and no more, but for a dry run what a good spec is
    ("ublkctl/text/*", BASE),
    ("ublkctl/client/*", VALUES + rooms("ublkctl", "text")),
    ("ublkctl/verbs/change/dry_run.c", VALUES + rooms("ublkctl", "text client spec verbs/show") + ["ublkd/model/device_spec.h"]),
    ("ublkctl/spec/assignments.c", VALUES + rooms("ublkctl", "text client") + ["schemas/spec_fields.h"]),
    ("ublkctl/spec/place.c", VALUES + rooms("ublkctl", "text client") + ["ublkd/model/tenant.h"]),
    ("ublkctl/spec/*", VALUES + rooms("ublkctl", "text client")),
    ("ublkctl/verbs/show/export.c", VALUES + rooms("ublkctl", "text client spec") + ["ublkctl/verbs.h", "ublkd/model/tenant.h"]),
    ("ublkctl/verbs/show/*", VALUES + rooms("ublkctl", "text client spec") + ["ublkctl/verbs.h"]),
    ("ublkctl/verbs/change/*", VALUES + rooms("ublkctl", "text client spec verbs/show") + ["ublkctl/verbs.h"]),
    ("ublkctl/completion.c", VALUES + ["ublkctl/*/*", "schemas/spec_fields.h"]),
    ("ublkctl/*", VALUES + ["ublkctl/*/*"]),
    # another client of the API
    ("volumes/*", BASE + rooms("ublkd", "peers") + ["ublkd/values/json_util.h"]),
    # the worker, from the ground up
    ("targets/worker/io/*", COMMON + CONTRACT),
    ("targets/worker/wait/*", COMMON + CONTRACT + rooms("targets/worker", "io")),
    ("targets/worker/os/*", VALUES + rooms("ublkd", "kernel")),
    ("targets/worker/disk/registry.c", ["!", "targets/worker/disk/registry.h", "targets/*/*.h"]),
    ("targets/worker/disk/*", VALUES + PROTO + CONTRACT + rooms("targets", "known")),
    ("targets/worker/queue/*", COMMON + PROTO + CONTRACT + rooms("targets/worker", "io wait os disk")),
    ("targets/worker/*", BASE + PROTO + CONTRACT + WORKER),
    ("targets/known/known_targets.c", ["!", "targets/known/known_targets.h", "targets/*/*_desc.h"]),
    ("targets/known/*", COMMON + CONTRACT),
    ("targets/kept/*", BASE),
    ("targets/scrub/*", COMMON + CONTRACT),
    ("targets/*/*", COMMON + CONTRACT + ["targets/kept/record_log.h", "targets/scrub/scrub.h", "targets/scrub/scrub_desc.h"]),
    ("targets/*", COMMON + CONTRACT),
]
