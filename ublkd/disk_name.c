/* Whether a name is that of a disk or of one of its partitions. */
#include "ublkd/disk_name.h"

#include <string.h>

bool disk_name_matches(const char *disk, const char *name)
{
        size_t length = strlen(disk);
        const char *partition = name + length + 1;

        if (strncmp(name, disk, length) != 0)
                return false;
        return name[length] == '\0'
               || (name[length] == 'p' && *partition && strspn(partition, "0123456789") == strlen(partition));
}

bool disk_name_in_path(const char *disk, const char *path)
{
        static const char deleted[] = " (deleted)";
        const char *slash = strrchr(path, '/');
        char name[64];
        size_t length;

        if (path[0] != '/' || !slash || strlen(slash + 1) >= sizeof(name))
                return false;
        strcpy(name, slash + 1);
        length = strlen(name);
        if (length >= sizeof(deleted) && strcmp(name + length - (sizeof(deleted) - 1), deleted) == 0)
                name[length - (sizeof(deleted) - 1)] = '\0';
        return disk_name_matches(disk, name);
}
