/* SPDX-License-Identifier: MIT */
/* The process that unmounts nodes which were taken back: ublkd, executed again with NODE_RECALL_OPTION. */
#pragma once

#define NODE_RECALL_NAME "node-recall"
#define NODE_RECALL_OPTION "--" NODE_RECALL_NAME

enum { RECALL_NODES_FD = 3 /* the directory of the nodes */ };
enum { RECALL_HINDERED = 2 };

/* Look through the mount namespaces of all containers. Return the exit status: 0, also if there was nothing, or a container
 * has covered a mount; EXIT_FAILURE: the search has failed; RECALL_HINDERED: a container has stopped or killed it, or its
 * user has had its time. */
int recall_process_main(void);
