# SPDX-License-Identifier: MIT
"""Each rule finds what it is there to find, and nothing else."""

import circles
import pytest
import rules

HEAD = rules.LICENCE + "/* A file for a test. */\n"

GOOD = [
    ("ublkd/base/log.c", '#include "ublkd/base/log.h"\n#include <stdio.h>\n'),
    ("ublkd/proto/worker_msg.c", '#include "ublkd/base/problem.h"\n'),
    ("ublkd/plan/plan.c", '#include "ublkd/plan/plan.h"\n#include <stddef.h>\n'),
    ("ublkd/driver/ublk_ctl_helper.c", '#include "ublkd/kernel/ublk_uapi.h"\n'),
    ("targets/worker/queue/ublk_queue.c", '#include "ublkd/kernel/ublk_uapi.h"\n#include "targets/target.h"\n'),
    ("targets/loop/loop.c", '#include "targets/target.h"\n#include "targets/loop/loop.h"\n'),
    ("api/resources/devices.c", '#include "ublkd/store/device_store.h"\n#include "api/http/respond.h"\n'),
    ("api/metrics/metrics_daemon.c", '#include "api/held/watch.h"\n#include "api/http/reply_counts.h"\n'),
    ("api/api.c", '#include "api/held/wait.h"\n#include "api/resources/handlers.h"\n'),
    ("ublkctl/verbs/change/apply.c", '#include "ublkctl/client/call.h"\n#include "ublkd/values/quantity.h"\n'),
    ("ublkd/reconcile/reconciler.c", 'static void f(void)\n{\n        log_error(NULL, "x");\n}\n'),
    ("ublkd/reconcile/view/path_condition.c", "#include <stdio.h>\n#include <sys/sysmacros.h>\n"),
    ("ublkd/tasks/config_reload.c", '#include "api/api.h"\n#include "ublkd/tasks/access_groups.h"\n'),
    ("ublkd/reconcile/view/observe.c", "/* It never sleeps: sleep(1) would be wrong, log_error() as well. */\n"),
    ("api/resources/devices.c", 'const char *text = "usleep(3)";\n'),
    ("targets/loop/loop.c", "int r = await_sleep(io, 5);\n"),
    ("targets/loop/loop.c", "int loop_open(void)\n{\n        static int open(int x);\n        return open(1);\n}\nstatic int open(int x);\n"),
    ("targets/loop/loop.h", "extern const struct target loop_target;\n"),
    ("tests/target/null_test.c", "int __real_open(const char *path, int flags, ...);\n"),
    ("bench/recovery_probe.c", "extern char **environ;\n"),
    ("tests/kernel/helper.c", "usleep(3);\n"),
    ("ublkd/host/host.c", "group = fgetgrent(file);\n"),
    ("ublkd/base/log.c", "/* There is no room, and it is no longer needed. */\n"),
    ("ublkd/host/host.c", '/* As "/proc/PID/comm" has it. */\n'),
    ("api/metrics/metrics_process.c", 'fopen("/proc/self/stat", "re");\n'),
    ("api/metrics/metrics.c", "FILE *out = open_memstream(&text, &size); /* no stat() */\n"),
    ("targets/worker/main.c", 'open("/proc/self/pagemap", O_RDONLY);\n'),
    ("tests/unit/observe_test.c", "int x;\n" * 599),
    ("ublkd/reconcile/disk/device_node.c", "device->node.shown_generation = 0;\n"),
    ("ublkd/reconcile/backing/device_image.c", "struct device_image *image = &device->image;\n"),
    ("ublkd/reconcile/backing/device_image.h", '#include "ublkd/reconcile/parts/device_image_part.h"\n'),
    ("ublkd/reconcile/device_turn.c", "waiting = device->reconciler->queue.waiting;\n"),
    ("ublkd/reconcile/device_steps.c", "if (device->process.state == WORKER_DEAD)\n"),
    ("ublkd/reconcile/device_turn.c", "if (device->attempt.tries == 0 && !device->cpus.text)\n"),
    ("ublkd/reconcile/device_add.c", "device->step.candidate++;\n"),
    ("ublkd/base/tree.h", "/* As a set is: always sorted. Return its size. */\nsize_t tree_size(const struct tree *tree);\n"),
    ("ublkd/base/tree.h", "/* Owns its nodes. */\nstruct tree {\n        int (*compare)(void);\n};\n"),
    ("ublkd/base/tree.h", "/* Returns 0. */\ntypedef int (*tree_each)(void);\n\n/* Frees all. */\n#define FREE(x) free(x)\n"),
    ("ublkd/base/tree.c", "/* Returns 0. */\nint one(void)\n{\n        return 0;\n}\n"),
    ("tests/unit/check.h", "/* Returns 0. */\nint one(void);\n"),
    ("ublkd/reconcile/backing/device_claim.c", "same = sentence_equal(last->detail, problem->detail);\n"),
    ("ublkd/reconcile/backing/device_claim.c", "if (strcmp(claim->key, /* no message */ other->key) == 0) reason = REASON_LIVE;\n"),
    ("ublkd/base/sentence.c", "return strcmp(one->message, other) == 0;\n"),
    ("targets/worker/disk/lock_holder.c", "return strcmp(command, holders[i].command) == 0;\n"),
    ("ublkctl/verbs/change/growth.c", 'return strcmp(reason, "CannotGrow") == 0;\n'),
    ("tests/unit/observe_test.c", "CHECK(strstr(status->message, word));\n"),
]

BAD = [
    ("ublkd/base/log.c", '#include "ublkd/proto/worker_msg.h"\n', "may not include"),
    ("ublkd/base/log.c", '#include "ublkd/values/quantity.h"\n', "may not include"),
    ("ublkd/values/json_time.c", '#include "ublkd/kernel/kernel_feature.h"\n', "may not include"),
    ("ublkd/backing/backing.c", '#include "ublkd/kernel/mount_line.h"\n', "may not include"),
    ("ublkctl/verbs/change/apply.c", '#include "ublkd/kernel/data_path.h"\n', "may not include"),
    ("ublkd/proto/worker_msg.c", '#include "ublkd/plan/plan.h"\n', "may not include"),
    ("ublkd/reconcile/reconciler.c", '#include "api/api.h"\n', "may not include"),
    ("ublkd/model/device_status.c", '#include "ublkd/store/device_store.h"\n', "may not include"),
    ("ublkd/store/device_store.c", '#include "ublkd/reconcile/reconciler.h"\n', "may not include"),
    ("ublkd/workers/worker_proc.c", '#include "ublkd/store/device_store.h"\n', "may not include"),
    ("ublkd/driver/ublk_ctl.c", '#include "ublkd/workers/worker_proc.h"\n', "may not include"),
    ("ublkd/plan/claims.c", '#include "ublkd/plan/plan.h"\n', "may not include"),
    ("targets/worker/io/co.c", '#include "targets/worker/queue/perform.h"\n', "may not include"),
    ("targets/worker/disk/disk.c", '#include "targets/worker/queue/perform.h"\n', "may not include"),
    ("ublkctl/client/call.c", '#include "ublkctl/verbs.h"\n', "may not include"),
    ("ublkctl/verbs/show/show.c", '#include "ublkctl/verbs/change/remove.h"\n', "may not include"),
    ("ublkd/reconcile/reconciler.c", '#include "targets/worker/disk/disk.h"\n', "may not include"),
    ("ublkd/reconcile/parts/managed_device.h", '#include "ublkd/reconcile/disk/device_node.h"\n', "may not include"),
    ("api/resources/devices.c", '#include "ublkd/reconcile/reconciler.h"\n', "may not include"),
    ("api/resources/devices.c", '#include "ublkd/workers/worker_proc.h"\n', "may not include"),
    ("api/resources/devices.c", '#include "ublkd/driver/ublk_ctl.h"\n', "may not include"),
    ("api/resources/devices.c", '#include "ublkd/plan/plan.h"\n', "may not include"),
    ("api/http/request.c", '#include "api/held/wait.h"\n', "may not include"),
    ("api/http/http_server.c", '#include "api/metrics/metrics.h"\n', "may not include"),
    ("api/http/request.h", '#include "api/route_table.h"\n', "may not include"),
    ("api/held/wait.c", '#include "api/resources/host.h"\n', "may not include"),
    ("api/held/watch.c", '#include "api/metrics/metrics.h"\n', "may not include"),
    ("api/metrics/metrics.c", '#include "api/resources/handlers.h"\n', "may not include"),
    ("api/resources/host.c", '#include "api/metrics/metrics.h"\n', "may not include"),
    ("api/resources/deliver.c", "reply(request, record->status.message);\n", "device_status_message"),
    ("api/held/wait.c", "const char *message = status->message;\n", "device_status_message"),
    ("targets/worker/main.c", '#include "ublkd/model/device_spec.h"\n', "may not include"),
    ("targets/loop/loop.c", '#include "targets/worker/io/await.h"\n', "may not include"),
    ("targets/loop/loop.c", '#include "targets/null/null.h"\n', "may not include"),
    ("targets/loop/loop.c", '#include "ublkd/proto/worker_msg.h"\n', "may not include"),
    ("ublkctl/verbs/change/apply.c", '#include "ublkd/model/device_spec.h"\n', "may not include"),
    ("ublkctl/verbs/change/apply.c", '#include "ublkd/proto/worker_msg.h"\n', "may not include"),
    ("ublkctl/verbs/change/apply.c", '#include "api/api.h"\n', "may not include"),
    ("ublkctl/verbs/show/await.c", "sleep(1);\n", "sleeps"),
    ("targets/known/known_targets.c", "extern const struct target_desc loop_desc;\n", "include the header"),
    ("targets/loop/loop.c", "int x;\nextern int\n        await_all(void);\n", "include the header"),
    ("targets/loop/loop.c", "const struct target_desc *known_target_find(\n        const char *name);\n", "include the header"),
    ("tests/kernel/probing/probing.c", "extern const struct target_desc null_desc;\n", "include the header"),
    ("ublkd/plan/plan.c", "#include <unistd.h>\n", "is pure"),
    ("ublkd/plan/attempt.c", "#  include <time.h>\n", "is pure"),
    ("ublkd/plan/plan.c", "#include <stdio.h>\n", "is pure"),
    ("ublkd/reconcile/view/observe.c", "#include <fcntl.h>\n", "is pure"),
    ("ublkd/reconcile/view/observe.c", '#include "ublkd/base/file_io.h"\n', "is pure"),
    ("ublkd/reconcile/view/turn_view.c", 'file = fopen(path, "re");\n', "is pure and calls"),
    ("ublkd/tasks/service_state.c", '#include "ublkd/store/device_store.h"\n', "may not include"),
    ("ublkd/tasks/disk_marks.c", '#include "ublkd/manager.h"\n', "may not include"),
    ("ublkd/tasks/region_stats.c", '#include "api/api.h"\n', "may not include"),
    ("ublkd/main.c", '#include "api/api.h"\n', "may not include"),
    ("units/follow/follow.c", '#include "ublkd/runtime/runtime_dir.h"\n', "may not include"),
    ("units/follow/follow.c", "sleep(1);\n", "sleeps"),
    ("ublkd/plan/plan.c", '#include "ublkd/base/cleanup.h"\n', "may not include"),
    ("ublkd/reconcile/view/observe.c", '#include "ublkd/kernel/ublk_uapi.h"\n', "UAPI"),
    ("api/resources/host.c", "#include <linux/ublk_cmd.h>\n", "UAPI"),
    ("targets/loop/loop.c", '#include "ublkd/kernel/ublk_uapi.h"\n', "UAPI"),
    ("ublkd/reconcile/view/observe.c", "int x;\n" * 600, "601 lines"),
    ("tests/unit/observe_test.c", "int x;\n" * 600, "601 lines"),
    ("ublkd/reconcile/view/observe.c", "int x;" + " " * 134 + "\n\nint " + "y" * 136 + ";\n", "141 columns"),
    ("ublkd/reconcile/view/observe.c", 'log_error(NULL, "x");\n', "logs"),
    ("targets/loop/loop.c", 'log_debug (NULL, "x");\n', "logs"),
    ("ublkd/reconcile/view/observe.c", "sleep(1);\n", "sleeps"),
    ("targets/worker/disk/disk.c", "usleep (1);\n", "sleeps"),
    ("api/held/wait.c", "nanosleep(&t, NULL);\n", "sleeps"),
    ("ublkd/disks/disk_node.c", 'struct group *group = getgrnam("disk");\n', "name service"),
    ("ublkd/workers/worker_proc.c", 'snprintf(path, sizeof(path), "/proc/%d/stat", pid);\n', "names /proc"),
    ("api/resources/host.c", 'opendir("/proc");\n', "names /proc"),
    ("api/metrics/metrics_daemon.c", "stat(path, &info);\n", "calls the file system"),
    ("api/metrics/metrics_daemon.c", "statx(fd, path, 0, 0, &info);\n", "calls the file system"),
    ("api/metrics/metrics_devices.c", "openat(fd, path, O_RDONLY);\n", "calls the file system"),
    ("api/metrics/metrics_daemon.c", "host_read_sizes(directory, sizes);\n", "calls the file system"),
    ("api/metrics/metrics_daemon.c", "host_read_room(directory, &room);\n", "calls the file system"),
    ("api/metrics/metrics_daemon.c", "r = device_store_check(store);\n", "calls the file system"),
    ("api/metrics/metrics_devices.c", "r = read_text_at(fd, path, text, sizeof(text));\n", "calls the file system"),
    ("api/metrics/metrics_devices.c", "r = read_line_at(fd, path, &line);\n", "calls the file system"),
    ("api/metrics/metrics_devices.c", "r = read_number_at(fd, path, &number);\n", "calls the file system"),
    ("api/http/access.c", "r = getpwuid_r(uid, &user);\n", "name service"),
    ("ublkd/base/log.c", "/* Nobody is there. */\n", "name the actor"),
    ("ublkd/driver/ublk_ctl.c", "/* The supervisor is told. */\n", "name the actor"),
    ("ublkd/driver/ublk_ctl.c", "/* It tells the supervisor what the worker has said. */\n", "tells"),
    ("ublkd/driver/ublk_ctl.c", "/* An error that was said. */\n", "said"),
    ("ublkd/driver/ublk_ctl.c", "/* EBUSY while somebody has it open. */\n", "somebody"),
    ("tests/unit/a_test.c", "static void who_is_told(void)\n", "told"),
    ("ublkctl/client/call.c", "void say(const char *text);\n", "say("),
    ("ublkd/plan/attempt.h", "bool attempt_says_go(int result);\n", "attempt_says_go"),
    ("ublkd/plan/plan.c", "/* The kernel hears of it. */\n", "name the actor"),
    ("tests/unit/ublkd/plan/plan_test.c", "static void test_a_size_is_believed(void);\n", "name the actor"),
    ("tests/unit/ublkd/plan/plan_test.c", "static void test_nobody_is_there(void);\n", "name the actor"),
    ("ublkd/plan/plan.c", "/* Forget the disk. */\n", "name the actor"),
    ("ublkd/base/tree.h", "/* Frees a tree. */\nvoid tree_clear(struct tree *tree);\n", 'says "Frees" above'),
    ("ublkd/base/tree.h", "/*\n * Is called\n * last. */\nstatic inline int f(int x)\n{\n}\n", 'says "Is" above'),
    ("ublkd/base/tree.h", "/* Find it.\n * Returns NULL. */\nstruct node *\ntree_find(void);\n", 'says "Returns" above'),
    ("ublkd/reconcile/device_steps.c", "device->node.shown_generation = 0;\n", "private to device_node.c"),
    ("ublkd/reconcile/device_steps.c", "device->process.died_at = now;\n", "device_worker.c does that"),
    ("ublkd/reconcile/device_turn.c", "device->attempt.tries = 0;\n", "ublkd/plan/attempt.c does that"),
    ("ublkd/reconcile/device_steps.c", "device->cpus.text = NULL;\n", "device_cpus.c does that"),
    ("ublkd/reconcile/disk/device_node.c", "device->step.candidate++;\n", "device_step.c does that"),
    ("ublkd/reconcile/device_turn.c", "same = *reconciler->program.version;\n", "private to device_program.c"),
    ("ublkd/reconcile/device_turn.c", "tree = &reconciler->index.by_pid;\n", "private to parts/device_keys.c"),
    ("ublkd/reconcile/device_turn.c", "first = TAILQ_FIRST(&reconciler->lost.uids);\n", "private to backing/device_claim_lost.c"),
    ("ublkd/reconcile/device_steps.c", "struct device_image *image = &device->image;\n", "private to device_image.c"),
    ("ublkd/reconcile/device_steps.c", '#include "ublkd/reconcile/parts/device_image_part.h"\n', "include device_image.h"),
    ("ublkd/reconcile/backing/device_claim.c", "if (strstr(problem->detail, process))\n", "meant for people"),
    ("ublkd/reconcile/worker/device_worker.c", 'x = strcmp(device->note.reason, "BackingInUse");\n', "meant for people"),
    ("ublkd/reconcile/device_log.c", "if (strcmp(steps[i], reason) == 0)\n", "meant for people"),
    ("api/held/wait.c", "strncmp (f(1, 2),\n   status->message, 3);\n", "meant for people"),
    ("ublkctl/verbs/show/await.c", "found = strstr(message, tries[i]);\n", "meant for people"),
    ("targets/worker/disk/backing_lock.c", 'return strcmp(holder->name, "ublkd") == 0;\n', "meant for people"),
    ("targets/worker/disk/lock_holder.c", "return strncmp(lock_holder.name, worker, strlen(worker));\n", "meant for people"),
]


@pytest.mark.parametrize("path,text", GOOD)
def test_good(path, text):
    assert rules.check_text(path, HEAD + text) == []


@pytest.mark.parametrize("path,text,words", BAD)
def test_bad(path, text, words):
    faults = rules.check_text(path, HEAD + text)
    assert any(words in fault and fault.startswith(path + ":") for fault in faults)


@pytest.mark.parametrize("text", ["#pragma once\n", "\n/* late */\n", "/* */\n", ""])
def test_a_purpose_is_missing(text):
    assert rules.check_text("ublkd/reconcile/view/observe.c", text, [rules.says_its_purpose])
    assert rules.check_text("ublkd/reconcile/view/observe.c", rules.LICENCE + text, [rules.says_its_purpose])


def test_a_licence_is_missing():
    assert rules.check_text("api/http/query.c", "/* Purpose. */\n", [rules.names_its_licence])


def test_a_fault_names_its_line():
    text = HEAD + '\n#include "ublkd/reconcile/reconciler.h"\n'
    assert rules.check_text("api/resources/devices.c", text)[0].startswith("api/resources/devices.c:4: ")


def test_a_tree_without_git(tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "devices.c").write_text(rules.LICENCE + "int x;\n", encoding="utf-8")
    assert len(rules.check_tree(tmp_path)) == 1


LOW = {"r/low.h": "int low(int x);\n", "r/low.c": '#include "r/low.h"\nint low(int x)\n{\n        return x;\n}\n'}
HIGH = {
    "r/high.h": "struct s {\n        int (*not_one)(int x);\n};\nstatic inline int one(void)\n{\n        return 1;\n}\nvoid high(void);\n",
    "r/high.c": '#include "r/high.h"\n#include "r/low.h"\nvoid high(void)\n{\n        low(one());\n}\n',
}


def test_a_layered_room():
    assert not list(circles.room_is_layered(LOW | HIGH))


@pytest.mark.parametrize(
    "change,words",
    [
        ({"r/high.c": "void high(void)\n{\n        low(1);\n}\n"}, 'does not include "r/low.h"'),
        ({"r/high.c": '#include "r/low.h"\nvoid other(void)\n{\n        low(1);\n}\n'}, "r/high.c does not define"),
        ({"r/low.c": '#include "r/high.h"\nint low(int x)\n{\n        high();\n}\n'}, "called by a file that it calls"),
    ],
)
def test_a_room_that_is_not_layered(change, words):
    assert any(words in fault for fault in circles.room_is_layered(LOW | HIGH | change))


CIRCLE = {
    "r/a.h": "void a(void);\n",
    "r/a.c": "/* b() is below. */\nvoid a(void)\n{\n        b();\n}\n",
    "r/b.c": "void b(void)\n{\n}\nstatic void a_user(void)\n{\n        b();\n}\n",
    "r/inner.h": "void b(void) __attribute__((noinline));\nstatic inline void one(void)\n{\n        a();\n}\n",
}


def test_a_room_without_a_circle():
    assert not list(circles.room_has_no_circle(CIRCLE))


def test_a_room_with_a_circle():
    back = CIRCLE | {"r/b.c": "void b(void)\n{\n        a();\n}\n", "r/inner.h": "void b(void);\n"}
    faults = list(circles.room_has_no_circle(back))
    assert len(faults) == 1 and "r/a → r/b → r/a" in faults[0]


def test_a_room_with_a_circle_through_an_object():
    table = {
        "r/way.h": "struct way {\n        int (*go)(void);\n};\nextern const struct way plain, ways[2];\nvoid choose(void);\nint send(int x);\n",
        "r/way.c": "const struct way plain = {\n        .go = NULL,\n};\nvoid choose(void)\n{\n        take(&ways[1]);\n}\nint send(int x)\n{\n        return x;\n}\n",
        "r/ways.c": "/* choose() takes one. */\nstatic struct choose *all;\nconst struct way ways[2] = {\n        {go},\n};\n",
    }
    assert not list(circles.room_has_no_circle(table))
    back = table | {"r/ways.c": table["r/ways.c"] + "static int go(void)\n{\n        return send(1);\n}\n"}
    faults = list(circles.room_has_no_circle(back))
    assert len(faults) == 1 and "r/way → r/ways → r/way" in faults[0]


def test_headers_in_a_circle():
    texts = {"a/a.h": '#include "b/b.h"\n', "b/b.h": "#include <stdio.h>\n", "b/b.c": '#include "a/a.h"\n'}
    assert not list(circles.headers_have_no_circle(texts))
    faults = list(circles.headers_have_no_circle(texts | {"b/b.h": '#include "a/a.h"\n'}))
    assert len(faults) == 1 and "a/a.h → b/b.h → a/a.h" in faults[0]


def test_folders_in_a_circle():
    below = {"r/a.c": '#include "r/a.h"\n#include "r/in/b.h"\n', "r/in/b.h": "#include <stdio.h>\n"}
    assert not list(circles.folders_have_no_circle(below))
    faults = list(circles.folders_have_no_circle(below | {"r/in/b.h": '#include "r/a.h"\n'}))
    assert len(faults) == 1 and faults[0].startswith("r/in/b.h:1: includes") and "r → r/in → r" in faults[0]


def test_a_unit_test_in_a_folder_of_its_own():
    paths = ["ublkd/plan/plan.c", "tests/unit/ublkd/plan/plan_test.c", "tests/unit/ublkd/helper.c"]
    stray = ["tests/unit/ublkd/planning/plan_test.c", "tests/unit/plan_test.c"]
    assert rules.unit_tests_elsewhere(paths + stray) == stray
