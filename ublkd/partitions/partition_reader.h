/* SPDX-License-Identifier: MIT */
/* The program of the process that reads a partition table: ublkd, executed again with PARTITION_READER_OPTION, so that
 * it has none of the memory of the supervisor. */
#pragma once

/* Raise the walls, read the table of the disk at one descriptor, write its entries and an end to the other
 * (partition_wire.h). Return the exit status. */
int partition_reader_main(int answer, int disk);
