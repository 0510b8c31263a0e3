/* SPDX-License-Identifier: MIT */
/* Loads the program with libbpf, whose version 1.1 knows neither links of struct_ops nor programs of it that may sleep. */
#include "bench/inkernel/attach.h"
#include "inkernel.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FLAG_LINK = 1 << 13, ATTACH_STRUCT_OPS = 44 }; /* BPF_F_LINK, BPF_STRUCT_OPS: newer than Debian 12 */

struct attached {
        struct inkernel_bpf *skeleton;
        struct bpf_link *value;
        int link;
};

int attached_load(const struct queue *queue, struct attached **ret)
{
        struct attached *attached = calloc(1, sizeof(*attached));
        struct inkernel_bpf *skeleton = inkernel_bpf__open();
        int r;

        if (!attached || !skeleton)
                return -ENOMEM;
        *attached = (struct attached){.skeleton = skeleton, .link = -1};
        skeleton->rodata->settings = queue->settings;
        (void)bpf_program__set_flags(skeleton->progs.queue_loop, BPF_F_SLEEPABLE);
        (void)bpf_map__set_map_flags(skeleton->maps.queue_ops, FLAG_LINK);
        r = inkernel_bpf__load(skeleton);
        *ret = attached;
        return r;
}

/* libbpf 1.1 fills in the value of the map, but makes no link, which only the kernel then frees with its ring. */
int attached_install(struct attached *attached, const struct state *state)
{
        union bpf_attr attributes = {};

        attached->skeleton->bss->state = *state;
        attached->value = bpf_map__attach_struct_ops(attached->skeleton->maps.queue_ops);
        if (!attached->value)
                return -errno;
#if LIBBPF_MAJOR_VERSION == 1 && LIBBPF_MINOR_VERSION < 2
        attributes.link_create.prog_fd = (unsigned)bpf_map__fd(attached->skeleton->maps.queue_ops);
        attributes.link_create.attach_type = ATTACH_STRUCT_OPS;
        attached->link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
        return attached->link < 0 ? -errno : 0;
#else
        (void)attributes;
        attached->link = bpf_link__fd(attached->value);
        return 0;
#endif
}

volatile struct state *attached_state(struct attached *attached)
{
        return &attached->skeleton->bss->state;
}

void attached_remove(struct attached *attached)
{
        (void)close(attached->link);
}
