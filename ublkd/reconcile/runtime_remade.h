/* SPDX-License-Identifier: MIT */
/* What is done for each device when the runtime directory was removed and made again. */
#pragma once

struct reconciler;

/* Write into the new runtime directory what is known, and queue all devices. */
void reconciler_runtime_remade(struct reconciler *reconciler);
