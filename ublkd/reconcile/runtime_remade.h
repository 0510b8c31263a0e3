/* SPDX-License-Identifier: MIT */
/* Writes the files of each device again after the runtime directory was removed and recreated. */
#pragma once

struct reconciler;

/* Write claims, backing stores and nodes into the new runtime directory, and queue all devices. */
void reconciler_runtime_remade(struct reconciler *reconciler);
