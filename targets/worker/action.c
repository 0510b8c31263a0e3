/* SPDX-License-Identifier: MIT */
/* Takes an action that the supervisor asks for, and hands it to the first queue. */
#include "targets/worker/queue/action_port.h"
#include "targets/worker/worker.h"
#include "ublkd/proto/device_region.h"
#include "ublkd/proto/region_action.h"

#include <cjson/cJSON.h>

/* The arguments are parsed where order->arguments is, with its size. Return false: the supervisor knows the target in
 * another version, or with options that this worker does not have. */
static bool read_order(
        const struct target_tree *tree, const struct worker_msg *msg, struct action_order *order)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_tree_verb verb;
        cJSON *arguments;
        int r = target_tree_verb(tree, msg->action.verb, &verb);

        if (r < 0)
                return false;
        arguments = cJSON_Parse(msg->action.arguments);
        order->node = verb.node;
        order->verb = verb.number;
        r = arguments ? dispatch(arguments, verb.verb->arguments, "", order->arguments, &problems) : -EINVAL;
        cJSON_Delete(arguments);
        return r >= 0;
}

/* While the queue carries out another action, the region is the queue's: the supervisor sees by the id there that this one
 * was not taken. Else it sees at once that this one was. */
void take_action(struct worker *worker, const struct worker_msg *msg)
{
        struct region_control *control = device_region_control(worker->shared.region);
        struct action_port *port = queue_threads_actions(worker->threads);
        struct action_order order = {.id = msg->action.id, .worker = worker->config.started_at};
        int r = -EOPNOTSUPP;

        if (port && action_port_is_busy(port))
                return;
        if (region_action_id(control) == order.id) /* a supervisor that did not know */
                return;
        if (port && read_order(worker->config.tree, msg, &order))
                r = action_port_give(port, &order);
        else
                region_action_begin(control, order.id, order.worker);
        if (r >= 0)
                return;
        region_action_end(control, REGION_ACTION_FAILED, -r);
        news_send(&worker->news, &worker->shared, &worker->chan);
}
