/* SPDX-License-Identifier: MIT */
/* Reads and writes the messages of a start once, without a device.
 *
 * Most of the time that a new process takes for them goes into pages: of the program and its libraries that nothing
 * has touched yet, and of a heap that has to grow. A recovery waits for the worker that it takes from the spare, and
 * nothing waits for the spare. */
#include "targets/worker/disk/config.h"
#include "targets/worker/worker.h"
#include "ublkd/base/cleanup.h"

#include <string.h>

/* A target with options, as the loop has them: they are read, and nothing is opened. */
static char spec[] =
        "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/dev/null\"},"
        "\"size\":1048576,\"blockSize\":4096,\"readOnly\":false,\"queues\":1,\"queueDepth\":128}";
static char name[] = "data", uid[] = "00000000-0000-0000-0000-000000000000", empty[] = "";

static const struct worker_msg config = {
        .type = WORKER_MSG_CONFIG,
        .config = {.name = name,
                   .uid = uid,
                   .spec = spec,
                   .expected_boot = empty,
                   .expected_lasting = empty,
                   .queues = 1,
                   .queue_depth = 128,
                   .max_io_size = 1 << 20,
                   .exists = true}
};
static const struct worker_msg backing = {
        .type = WORKER_MSG_BACKING, .backing = {.boot = uid, .lasting = uid}
};
static const struct worker_msg params = {
        .type = WORKER_MSG_PARAMS, .params = {.size = 1 << 20, .logical_block_size = 4096}
};
static const struct worker_msg go = {.type = WORKER_MSG_GO, .go = {.queue_cpus = name}};

/* Whatever fails here fails again where it matters. */
static void rehearse(const struct worker_msg *msg)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_worker_msg_ struct worker_msg read = {};
        struct worker_config read_config = {};
        _cleanup_free_ char *text = NULL;

        if (worker_msg_encode(msg, &text) < 0 || worker_msg_decode(text, strlen(text), &read) < 0
                || read.type != WORKER_MSG_CONFIG)
                return;
        (void)worker_config_parse(&read, &read_config, &problems);
        worker_config_clear(&read_config);
}

void worker_rehearse(void)
{
        rehearse(&config);
        rehearse(&backing);
        rehearse(&params);
        rehearse(&go);
}
