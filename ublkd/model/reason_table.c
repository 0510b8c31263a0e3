/* SPDX-License-Identifier: MIT */
/* Name, properties and explanation of each reason. docs/reasons.md is generated from this table. */
#include "ublkd/model/reason_table.h"

#include "ublkd/base/cleanup.h"

#include <assert.h>

/* clang-format off */
const struct reason_info reason_table[] = {
        [REASON_NONE] = { "", .meaning = "", .advice = "" },

        [REASON_PENDING] = { "Pending",
                .meaning = "ublkd has not looked at the new device yet.",
                .advice = "Nothing; wait." },
        [REASON_NOT_YET_KNOWN] = { "NotYetKnown",
                .meaning = "ublkd has started and has not looked at the device yet; whether it has a disk is "
                           "unknown.",
                .advice = "Nothing; wait." },
        [REASON_HOST_NOT_READY] = { "HostNotReady", .of_host = true,
                .meaning = "ublkd cannot serve devices on this machine: the ublk driver is missing or "
                           "unusable.",
                .advice = "Read 'ublkctl host' (GET /host), which names the problem and what to do; ublkd "
                          "tries again every few seconds." },
        [REASON_STARTING] = { "Starting", .step = true,
                .meaning = "ublkd is creating the disk.",
                .advice = "Nothing; wait." },
        [REASON_LIVE] = { "Live",
                .meaning = "The disk exists and a worker serves it.",
                .advice = "Nothing." },
        [REASON_GROWING] = { "Growing", .step = true,
                .meaning = "The disk is served, and is growing to the size in the spec.",
                .advice = "Nothing; wait." },
        [REASON_CANNOT_GROW] = { "CannotGrow", .weight = REASON_ALARMING,
                .meaning = "The disk is served with its old size, because it cannot grow to the one in "
                           "the spec.",
                .advice = "Do what the message says (make the backing store larger, as a rule), or set "
                          "the size back to the old one." },
        [REASON_RESTARTING] = { "Restarting", .step = true, .weight = REASON_INTENDED,
                .meaning = "Another worker takes over the disk.",
                .advice = "Nothing; wait." },
        [REASON_CANNOT_RESTART] = { "CannotRestart",
                .meaning = "ublkd refused the restart because the next worker could not take over; the old "
                           "worker continues to serve.",
                .advice = "Correct what the message names, and ask for the restart again." },
        [REASON_RECOVERING] = { "Recovering", .step = true,
                .meaning = "The worker is gone, and another one takes over the disk; I/O waits or fails "
                           "as recovery.onCrash says.",
                .advice = "Nothing; wait." },
        [REASON_RECOVERED] = { "Recovered",
                .meaning = "The disk is served again after its worker had died.",
                .advice = "Nothing; if it happens often, read the WorkerDied events." },
        [REASON_WAITS_FOR_RECOVER] = { "WaitsForRecover",
                .meaning = "The worker is gone, and recovery.trigger is \"manual\".",
                .advice = "Run 'ublkctl recover NAME' (POST /devices/NAME/recover)." },
        [REASON_GAVE_UP] = { "GaveUp", .weight = REASON_ALARMING,
                .meaning = "I/O has waited for as long as recovery.giveUpAfter allows; ublkd fails it and "
                           "removes the disk.",
                .advice = "Find out from the events why no worker could take over." },
        [REASON_DELETING] = { "Deleting", .step = true,
                .meaning = "ublkd is removing the disk and the record.",
                .advice = "Nothing; wait." },
        [REASON_DISABLING] = { "Disabling", .step = true,
                .meaning = "ublkd is removing the disk; it keeps the record.",
                .advice = "Nothing; wait." },
        [REASON_DISABLED] = { "Disabled",
                .meaning = "ublkd keeps the record; there is no disk.",
                .advice = "Nothing; 'ublkctl enable NAME' creates the disk again." },
        [REASON_STOPPED] = { "Stopped",
                .meaning = "A client has stopped the disk until the next boot; ublkd keeps the record.",
                .advice = "Nothing; 'ublkctl start NAME' creates the disk again." },
        [REASON_REPLACING] = { "Replacing", .step = true,
                .meaning = "ublkd is removing the old disk; then it creates one from the new spec.",
                .advice = "Nothing; wait." },
        [REASON_QUARANTINED] = { "Quarantined",
                .meaning = "The stored record cannot be read; ublkd does nothing with the device.",
                .advice = "Replace the record with a good spec (PUT /devices/NAME)." },
        [REASON_RECORD_REMOVED] = { "RecordRemoved",
                .meaning = "The database is an older copy: the device was removed after that copy was "
                           "made.",
                .advice = "Leave it as it is, or start the device again with 'ublkctl adopt NAME'." },
        [REASON_RECORD_OUTDATED] = { "RecordOutdated",
                .meaning = "The database is an older copy: the runtime directory has a newer record of "
                           "the device.",
                .advice = "Take the newer record over with 'ublkctl adopt NAME'." },
        [REASON_RECORD_NOT_KEPT] = { "RecordNotKept",
                .meaning = "The copy of the record cannot be written to the runtime directory.",
                .advice = "Make room in the runtime directory, or correct its permissions; ublkd tries "
                          "again." },
        [REASON_NOT_STORED] = { "NotStored",
                .meaning = "A value of the device cannot be written to the database.",
                .advice = "Make room where the state directory of ublkd is; ublkd tries again." },
        [REASON_STORE_FAILED] = { "StoreFailed", .transient = true,
                .meaning = "The kernel number of the device cannot be chosen or written to the database.",
                .advice = "Make room where the state directory of ublkd is; ublkd tries again." },
        [REASON_RUNTIME_DIRECTORY] = { "RuntimeDirectory", .transient = true,
                .meaning = "The runtime directory cannot be written.",
                .advice = "Make room there, or correct its permissions; ublkd tries again." },
        [REASON_RUNTIME_DIRECTORY_GONE] = { "RuntimeDirectoryGone",
                .meaning = "The runtime directory, or files of the worker in it, were removed while ublkd "
                           "ran; the disk is served on, but its statistics are lost, and a ublkd that is "
                           "restarted cannot adopt its worker.",
                .advice = "Replace the worker with 'ublkctl restart NAME', before ublkd is restarted." },
        [REASON_WORKER_DIED] = { "WorkerDied", .transient = true,
                .meaning = "The worker exited by itself, or another process killed it.",
                .advice = "Read the log of ublkd-worker for this device; ublkd starts another "
                          "worker." },
        [REASON_WORKER_OUT_OF_MEMORY] = { "WorkerOutOfMemory", .transient = true,
                .meaning = "The kernel's OOM killer killed the worker: the machine had no memory left, or the worker "
                           "used more than resources.memoryMax.",
                .advice = "Free memory, raise resources.memoryMax, or use fewer or shorter queues; ublkd starts another "
                          "worker." },
        [REASON_WORKER_BROKE_PROTOCOL] = { "WorkerBrokeProtocol", .transient = true,
                .meaning = "The worker sent what no worker sends, or too much of it, or closed its socket and lived on; "
                           "ublkd killed it. It may have been taken over.",
                .advice = "Find out from the events what it did, and whether an attacker can reach the disk or its "
                          "backing store; ublkd starts another worker after a back-off." },
        [REASON_WORKER_HANGS] = { "WorkerHangs", .transient = true,
                .meaning = "The worker did not finish a step in time, and ublkd killed it.",
                .advice = "Check whether the backing store answers; ublkd starts another worker." },
        [REASON_WORKER_HUNG] = { "WorkerHung", .transient = true,
                .meaning = "The worker was stopped for recovery.hangAfter, or requests did not end for so long "
                           "because it spun or did not know of them.",
                .advice = "Check what stopped the worker, a debugger perhaps; ublkd starts another worker where the "
                          "spec lets that cost nothing, else the condition Progress says what to do." },
        [REASON_WORKER_STARVED] = { "WorkerStarved",
                .meaning = "Requests of the disk have not ended for recovery.hangAfter, because its worker gets no "
                           "CPU.",
                .advice = "Check the load of the machine, and limits on the CPU time of the service; the disk goes on "
                          "by itself." },
        [REASON_WORKER_KILLED] = { "WorkerKilled", .transient = true, .handover = true,
                .meaning = "The worker did not exit when ublkd asked it to, and ublkd killed it.",
                .advice = "Check whether the backing store answers; ublkd starts another worker." },
        [REASON_WORKER_RETIRED] = { "WorkerRetired", .handover = true,
                .meaning = "The worker exited because another one replaces it.",
                .advice = "Nothing." },
        [REASON_OTHER_VERSION] = { "OtherVersion",
                .meaning = "The worker runs another version of its program than ublkd starts now: ublkd was "
                           "upgraded or downgraded meanwhile.",
                .advice = "Replace the worker with 'ublkctl restart NAME' when it suits, or set "
                          "UpgradeWorkers=replace." },
        [REASON_WORKER_UPGRADE] = { "WorkerUpgrade",
                .meaning = "Another worker takes over the disk, because the old one runs another version of "
                           "its program and UpgradeWorkers is \"replace\".",
                .advice = "Nothing." },
        [REASON_UPGRADE_STOPPED] = { "UpgradeStopped",
                .meaning = "ublkd was replacing workers of another version, and stopped, because the "
                           "replacement of this one failed. The other workers serve on.",
                .advice = "Correct what the message names, then reload ublkd: it continues. Or replace each "
                          "worker with 'ublkctl restart NAME'." },
        [REASON_UPGRADE_PASSED_OVER] = { "UpgradePassedOver",
                .meaning = "The device is on a file of a tenant, and its worker could not be replaced by one of the "
                           "present version. The worker serves on, and ublkd has gone on with others.",
                .advice = "Correct what the message names, then 'ublkctl restart NAME'; a reload of ublkd tries again, too." },
        [REASON_WORKER_NOT_STARTED] = { "WorkerNotStarted", .transient = true,
                .meaning = "The program of the worker cannot be started.",
                .advice = "Check that ublkd-worker is installed, that memory for a process is free, and that "
                          "TasksMax of the service is not reached; ublkd tries again." },
        [REASON_NO_WORKER_UID] = { "NoWorkerUid",
                .meaning = "The number of the disk is beyond the range of uids that ublkd has for workers.",
                .advice = "Start ublkd with --worker-uids for a larger range." },
        [REASON_WORKER_UNREACHABLE] = { "WorkerUnreachable", .transient = true,
                .meaning = "The worker is alive, but does not receive messages from ublkd.",
                .advice = "Check whether the worker is stopped or hangs; ublkd tries again." },
        [REASON_OUT_OF_RESOURCES] = { "OutOfResources",
                .meaning = "The worker lacks memory or descriptors for its queues.",
                .advice = "Free memory, raise the limits of the service, or use fewer or shorter queues." },
        [REASON_RESOURCES_IN_FORCE] = { "ResourcesInForce",
                .meaning = "All limits in resources are in force.",
                .advice = "Nothing." },
        [REASON_RESOURCES_NOT_IN_FORCE] = { "ResourcesNotInForce",
                .meaning = "The disk is served, but not all limits in resources are in force.",
                .advice = "Read the message; under systemd, check that ublkd-workers.service is active." },
        [REASON_RESOURCES_PENDING] = { "ResourcesPending",
                .meaning = "The limits in resources are not in force yet: the disk is not served, or was not a moment "
                           "ago.",
                .advice = "Nothing; wait until the disk is Live." },
        [REASON_CPUS_INVALID] = { "CpusInvalid",
                .meaning = "The worker cannot read \"cpus\" of the spec.",
                .advice = "Correct \"cpus\"." },
        [REASON_CPUS_UNAVAILABLE] = { "CpusUnavailable",
                .meaning = "The worker may not use any of the CPUs in \"cpus\".",
                .advice = "Correct \"cpus\", or allow the service more CPUs." },
        [REASON_MALFORMED_SPEC] = { "MalformedSpec",
                .meaning = "The worker cannot read the spec; it may be of another version.",
                .advice = "Install ublkd and ublkd-worker of one version." },
        [REASON_UNKNOWN_TARGET] = { "UnknownTarget",
                .meaning = "The worker does not know the target of the spec; it may be of another version.",
                .advice = "Install ublkd and ublkd-worker of one version." },
        [REASON_TARGET_NOT_OPENED] = { "TargetNotOpened",
                .meaning = "The target could not be opened, and gave no reason.",
                .advice = "Read the log of ublkd-worker for this device." },
        [REASON_DATA_PATH_UNSUPPORTED] = { "DataPathUnsupported",
                .meaning = "The worker cannot serve the data path that the disk has.",
                .advice = "Set \"dataPath\" to \"auto\"." },
        [REASON_DEVICE_NOT_OPENED] = { "DeviceNotOpened",
                .meaning = "The worker cannot open the character device of the disk.",
                .advice = "Check whether another process has /dev/ublkcN open, and check its permissions." },
        [REASON_NO_DEVICE_FOLDER] = { "NoDeviceFolder",
                .meaning = "The worker cannot open /dev.",
                .advice = "Check whether /dev is mounted for the service." },
        [REASON_NOT_STARTED_BY_UBLKD] = { "NotStartedByUblkd",
                .meaning = "ublkd-worker was started by hand.",
                .advice = "Leave it to ublkd to start workers." },
        [REASON_SANDBOX_INCOMPLETE] = { "SandboxIncomplete",
                .meaning = "The worker could not give up all that it does not need, and refuses to serve with it.",
                .advice = "Allow it where ublkd runs, which may be a container; --sandbox best-effort serves "
                          "without it." },
        [REASON_QUEUE_FAILED] = { "QueueFailed",
                .meaning = "A queue of the worker failed.",
                .advice = "Read the logs of ublkd-worker and of the kernel; ublkd starts another "
                          "worker." },
        [REASON_REGION_UNUSABLE] = { "RegionUnusable",
                .meaning = "The region that outlives workers cannot be created or used.",
                .advice = "Make room in the runtime directory; ublkd tries again." },
        [REASON_CONTROL_PLANE] = { "ControlPlane", .transient = true, .obstacle = true,
                .meaning = "A command to the ublk driver failed.",
                .advice = "Read the error in the message and the log of the kernel; ublkd tries again." },
        [REASON_CONTROL_PLANE_HANGS] = { "ControlPlaneHangs", .transient = true, .obstacle = true,
                .meaning = "The ublk driver did not answer a command in time.",
                .advice = "Read the log of the kernel; ublkd asks again after the call has returned." },
        [REASON_REQUESTS_UNDER_WAY] = { "RequestsUnderWay",
                .meaning = "The worker is dead, but the backing store has not completed its last "
                           "requests.",
                .advice = "Check whether the backing store answers; ublkd recovers the disk when the requests "
                          "are complete." },
        [REASON_NUMBER_TAKEN] = { "NumberTaken",
                .meaning = "Another disk has the kernel number of the device, or the kernel is still "
                           "releasing it.",
                .advice = "Give the device another \"id\", or wait until that disk is removed." },
        [REASON_NUMBER_UNSURE] = { "NumberUnsure",
                .meaning = "The kernel has not answered whether it creates a disk with this number.",
                .advice = "Nothing; wait." },
        [REASON_NOT_SUPPORTED] = { "NotSupported",
                .meaning = "This kernel or this target does not support what the spec asks for.",
                .advice = "Compare the spec with 'ublkctl host' and 'ublkctl targets', and change it or "
                          "use a newer kernel." },
        [REASON_TEST_TARGET_NOT_ALLOWED] = { "TestTargetNotAllowed",
                .meaning = "The target of the device is for tests, and this ublkd does not allow it "
                           "(AllowFaultTarget=no).",
                .advice = "Give the device another target, or remove it; set AllowFaultTarget=yes only on a "
                          "machine for tests." },
        [REASON_IN_USE] = { "InUse", .obstacle = true,
                .meaning = "ublkd cannot remove the disk: a process has it open, or a file system on it "
                           "is mounted.",
                .advice = "Unmount it, or end the processes that the message names." },
        [REASON_STILL_HELD] = { "StillHeld", .obstacle = true,
                .meaning = "The kernel is deleting the disk, and waits until the last opener closes it.",
                .advice = "End the processes that the message names." },
        [REASON_DISK_OF_NO_DEVICE] = { "DiskOfNoDevice",
                .meaning = "A ublkd created this disk, and there is no record of it.",
                .advice = "Take it over with 'ublkctl adopt', if 'ublkctl host' offers that." },
        [REASON_QUEUES_ANYWHERE] = { "QueuesAnywhere",
                .meaning = "The kernel does not report the CPUs of the queues; they run on any CPU.",
                .advice = "Nothing; set \"cpus\" to choose them." },
        [REASON_QUEUES_LOST] = { "QueuesLost",
                .meaning = "The disk went live after its queues were taken from the worker: another program stopped or "
                           "deleted it, or the worker died right then. The driver (6.12) never notices that, no "
                           "recovery can begin, and ublkd makes the disk again.",
                .advice = "Check a file system that was mounted from it: what had not been written yet is lost. "
                          "Leave stopping and deleting disks to ublkd." },
        [REASON_TIMEOUT_NOT_SET] = { "TimeoutNotSet",
                .meaning = "The I/O timeout of the disk cannot be shortened, and a recovery may take 30 "
                           "s on this kernel.",
                .advice = "Check that /sys is writable for the service." },
        [REASON_NODE_NOT_SET] = { "NodeNotSet",
                .meaning = "ublkd cannot set owner, mode or link of the disk's node; the disk is served "
                           "nevertheless.",
                .advice = "Check that udev runs and that /dev is writable for the service." },
        [REASON_PRIVATE_NODE_NOT_MADE] = { "PrivateNodeNotMade",
                .meaning = "ublkd cannot make the private node of the disk, so its owner cannot open it; the "
                           "disk is served nevertheless.",
                .advice = "Check that /dev is a devtmpfs which the service may write to, and that the service "
                          "has CAP_MKNOD; ublkd tries again." },
        [REASON_PRIVATE_NODE_NOT_REMOVED] = { "PrivateNodeNotRemoved", .obstacle = true,
                .meaning = "ublkd cannot remove the private node of the disk, and keeps the disk: the node "
                           "would open the next disk that gets the number.",
                .advice = "Check that /dev is writable for the service; ublkd tries again." },
        [REASON_CDI_SPEC_NOT_WRITTEN] = { "CdiSpecNotWritten",
                .meaning = "ublkd cannot write the description of the disk for container engines; the disk is served "
                           "nevertheless.",
                .advice = "Check that CdiDirectory= is on a file system with trusted extended attributes and "
                          "access control lists, such as /run, that the service may write to it, and that no file "
                          "of another program has the name; ublkd tries again." },
        [REASON_CDI_SPEC_NOT_REMOVED] = { "CdiSpecNotRemoved", .obstacle = true,
                .meaning = "ublkd cannot remove the description of the disk for container engines, and keeps the "
                           "disk: a container would get the next disk that has the number.",
                .advice = "Check that CdiDirectory= is writable for the service; ublkd tries again." },
        [REASON_UDEV_LATE] = { "UdevLate",
                .meaning = "The rules of udev have not run for a new disk in time; links to it may be "
                           "missing.",
                .advice = "See what udev does: systemctl status systemd-udevd, udevadm settle." },
        [REASON_LINK_NOT_REMOVED] = { "LinkNotRemoved",
                .meaning = "The link of a removed disk cannot be removed from /dev/ublk/by-name.",
                .advice = "Remove the link by hand." },
        [REASON_PARTITIONS_UNKNOWN] = { "PartitionsUnknown",
                .meaning = "The partition table of the disk could not be read, or its partitions could not be "
                           "changed; the disk is served nevertheless, with the partitions that it had, or "
                           "with some of them.",
                .advice = "Find out why the disk does not answer; ublkd tries again, every 5 minutes at last." },
        [REASON_PARTITION_INVALID] = { "PartitionInvalid",
                .meaning = "An entry of the partition table is not shown: it lies beyond the end of the disk, "
                           "overlaps another one, or does not fit its blocks.",
                .advice = "Look at the table ('sfdisk --verify') and correct it, or make the disk as large as "
                          "it was." },
        [REASON_PARTITION_IN_USE] = { "PartitionInUse",
                .meaning = "The partition table has changed, or \"partitions\" is false now, and the kernel "
                           "keeps a partition as it was because it is in use.",
                .advice = "Unmount or close the partition; ublkd tries again, every 5 minutes at last, or run "
                          "'partx --update' at once." },
        [REASON_LIMITS_NOT_SET] = { "LimitsNotSet",
                .meaning = "New limits cannot be passed to the worker.",
                .advice = "Make room in the runtime directory; the next change of the device tries "
                          "again." },
        [REASON_LIMITS_NOT_LIFTED] = { "LimitsNotLifted",
                .meaning = "ublkd cannot lift the limits before it stops the disk, so stopping takes "
                           "longer.",
                .advice = "Nothing; wait." },
        [REASON_ON_FULL_NOT_SET] = { "OnFullNotSet",
                .meaning = "A new \"onFull\" cannot be passed to the worker.",
                .advice = "Make room in the runtime directory; the next change of the device tries "
                          "again." },
        [REASON_BACKING_FILE_MISSING] = { "BackingFileMissing",
                .meaning = "There is nothing at the path of the spec.",
                .advice = "Mount its file system, or correct the path; ublkd tries again. If there was a disk on the "
                          "file before, put the file back, or restore it from a copy: only a new disk needs a new "
                          "file." },
        [REASON_BACKING_FILE_NOT_PERMITTED] = { "BackingFileNotPermitted",
                .meaning = "The worker is not permitted to open the backing store.",
                .advice = "Correct the permissions of the file and of the directories on the way." },
        [REASON_BACKING_FILE_READ_ONLY] = { "BackingFileReadOnly",
                .meaning = "The backing store cannot be written, and the spec does not say \"readOnly\".",
                .advice = "Make it writable, or set \"readOnly\"." },
        [REASON_BACKING_FILE_BUSY] = { "BackingFileBusy",
                .meaning = "Another user of the backing store keeps the worker from opening it.",
                .advice = "End the process that uses it, or unmount it." },
        [REASON_BACKING_FILE_EMPTY] = { "BackingFileEmpty",
                .meaning = "The backing file is empty.",
                .advice = "If there was a disk on the file before, restore the file from a copy: what is only given its "
                          "size reads as zeroes. Only for a new disk, give the file its size (truncate or "
                          "fallocate)." },
        [REASON_BACKING_FILE_UNSUITABLE] = { "BackingFileUnsuitable",
                .meaning = "The path does not lead to a regular file or a block device.",
                .advice = "Let the path name a regular file or a block device." },
        [REASON_BACKING_FILE_UNUSABLE] = { "BackingFileUnusable",
                .meaning = "The backing store cannot be opened.",
                .advice = "Read the error in the message and the log of the kernel." },
        [REASON_BACKING_UNREADABLE] = { "BackingUnreadable",
                .meaning = "The backing store cannot be read.",
                .advice = "Read the error in the message and the log of the kernel." },
        [REASON_BACKING_TOO_SMALL] = { "BackingTooSmall",
                .meaning = "The backing store is smaller than the disk.",
                .advice = "If the disk was as large before, restore the backing store from a copy: what is only grown "
                          "reads as zeroes. Only for a new disk, or one that grows, make the backing store "
                          "larger, or the \"size\" smaller." },
        [REASON_BACKING_BLOCK_SIZE_UNSUPPORTED] = { "BackingBlockSizeUnsupported",
                .meaning = "A ublk disk cannot have the block size of the backing store.",
                .advice = "Use another backing store." },
        [REASON_BACKING_IN_USE] = { "BackingInUse",
                .meaning = "Another device or process writes to the backing store; two writers would "
                           "destroy its data.",
                .advice = "End the other one first, use another store or range, or make both read-only." },
        [REASON_BACKING_SHARE_UNKNOWN] = { "BackingShareUnknown",
                .meaning = "ublkd cannot check whether another process writes to the backing store.",
                .advice = "Read the message; remove what keeps ublkd from checking." },
        [REASON_BACKING_STACK_UNREADABLE] = { "BackingStackUnreadable",
                .meaning = "ublkd cannot find the disks that hold the backing store.",
                .advice = "Check that /sys is readable for the service." },
        [REASON_POOL_UNAVAILABLE] = { "PoolUnavailable",
                .meaning = "ublkd cannot make or grow the image of the disk in its pool.",
                .advice = "Read the message, and correct the directory of the pool; ublkd tries again." },
        [REASON_POOL_FULL] = { "PoolFull",
                .meaning = "The file system of the pool has no room for the image of the disk.",
                .advice = "Make room there; ublkd tries again." },
        [REASON_IMAGE_CREATED] = { "ImageCreated",
                .meaning = "ublkd has made the image of the disk in its pool.",
                .advice = "Nothing." },
        [REASON_FILE_SYSTEM_BEGUN] = { "FileSystemBegun",
                .meaning = "A client asked for a file system on the blank disk, and a program makes it.",
                .advice = "Wait for FileSystemMade; without it, ask again: POST /devices/NAME/filesystem." },
        [REASON_FILE_SYSTEM_MADE] = { "FileSystemMade",
                .meaning = "The file system that a client asked for is on the disk.",
                .advice = "Nothing." },
        [REASON_IMAGE_KEPT] = { "ImageKept",
                .meaning = "The device was removed, and its image stays, because target.keep is true.",
                .advice = "Nothing; the message names the image." },
        [REASON_IMAGE_DELETED] = { "ImageDeleted",
                .meaning = "The device was removed, and ublkd has deleted its image.",
                .advice = "Nothing." },
        [REASON_IMAGE_NOT_DELETED] = { "ImageNotDeleted", .weight = REASON_ALARMING, .obstacle = true,
                .meaning = "The disk is gone, but ublkd cannot delete its image; so the record of the device stays.",
                .advice = "Read the message, and correct the directory of the pool; ublkd tries again." },
        [REASON_BACKING_READ] = { "BackingRead",
                .meaning = "Another process reads the backing store while the disk writes to it.",
                .advice = "Nothing, if that process tolerates changes; else end it." },
        [REASON_BACKING_CHANGED] = { "BackingChanged",
                .meaning = "The path does not lead to the store that the disk was created on, or the store can do "
                           "less than before.",
                .advice = "Put the old store back; or, after checking that the new one is right, run 'ublkctl "
                          "recover --accept-backing'." },
        [REASON_BACKING_TRUNCATED] = { "BackingTruncated",
                .meaning = "The backing store was cut off under the disk, and acknowledged data is lost; "
                           "all I/O fails.",
                .advice = "Restore the store in place to its full size, from a copy if there is one; unmount "
                          "the disk; then run 'ublkctl restart --accept-write-errors=TOKEN NAME', with the "
                          "token in its status.writeErrors." },
        [REASON_FLUSH_FAILED] = { "FlushFailed",
                .meaning = "The backing store failed a flush, and acknowledged data may be lost; flushes "
                           "and writes with FUA fail.",
                .advice = "Check the store and the data on the disk; then run 'ublkctl restart "
                          "--accept-write-errors=TOKEN NAME', with the token in its status.writeErrors." },
        [REASON_KEPT_MEMORY_LOST] = { "KeptMemoryLost", .weight = REASON_ALARMING,
                .meaning = "The memory that the target kept for the disk is gone, or does not fit the program of "
                           "the worker, and acknowledged data that lay only there is lost.",
                .advice = "Check the data on the disk; then accept the loss as that of a failed flush (FlushFailed)." },
        [REASON_BACKING_SLOW] = { "BackingSlow",
                .meaning = "Requests of the disk have not ended for recovery.hangAfter, because the worker waits for "
                           "the backing store.",
                .advice = "Check whether the backing store answers: its disk, its file system, its server; the disk "
                          "goes on by itself." },
        [REASON_PROGRESS_RESUMED] = { "ProgressResumed",
                .meaning = "Requests of the disk end again.",
                .advice = "Nothing." },
        [REASON_STORE_FULL] = { "StoreFull",
                .meaning = "The backing store has no room for a write.",
                .advice = "Make room on the file system of the backing store; the condition ends with the next "
                          "write that succeeds." },
        [REASON_STORE_HAS_ROOM] = { "StoreHasRoom",
                .meaning = "The backing store has room for writes again.",
                .advice = "Nothing." },
        [REASON_STORE_LOW] = { "StoreLow",
                .meaning = "The file system of the backing file has little space left, and less than the disk may "
                           "still need.",
                .advice = "Make room on that file system, or discard what the disk does not need (fstrim), before "
                          "a write finds no room." },
        [REASON_STORE_NOT_LOW] = { "StoreNotLow",
                .meaning = "The file system of the backing file has enough space again.",
                .advice = "Nothing." },
        [REASON_READ_FAILED] = { "ReadFailed",
                .meaning = "A read of the disk failed in the last 24 hours.",
                .advice = "Read the error in the message and the log of the kernel, and check the backing store; "
                          "status.ioErrors has the newest errors." },
        [REASON_WRITE_FAILED] = { "WriteFailed",
                .meaning = "A write to the disk failed in the last 24 hours.",
                .advice = "Read the error in the message (ENOSPC: make room; else check the backing store and the "
                          "log of the kernel), and check what wrote: a file system on the disk may be read-only "
                          "now." },
        [REASON_DISCARD_FAILED] = { "DiscardFailed",
                .meaning = "A discard failed in the last 24 hours; no data is lost by that.",
                .advice = "Read the error in the message, and check the backing store." },
        [REASON_REQUEST_FAILED] = { "RequestFailed",
                .meaning = "A flush, or a request that is none of reads, writes and discards, failed in the last "
                           "24 hours.",
                .advice = "Read the error in the message, and check the backing store." },
        [REASON_DIRECT_IO_UNAVAILABLE] = { "DirectIoUnavailable",
                .meaning = "The backing store cannot do direct I/O, and the spec asks for it.",
                .advice = "Set \"directIo\" of the target to \"auto\", or use another store." },
        [REASON_OFFSET_BEYOND_END] = { "OffsetBeyondEnd",
                .meaning = "The offset of the target is beyond the end of the backing store.",
                .advice = "If there was a disk at that offset before, restore the backing store from a copy. Only for a "
                          "new disk, correct the offset, or make the backing store larger." },
        [REASON_OFFSET_NOT_A_MULTIPLE] = { "OffsetNotAMultiple",
                .meaning = "The offset of the target is not a multiple of the block size.",
                .advice = "Correct the offset." },
        [REASON_SIZE_MISSING] = { "SizeMissing",
                .meaning = "The target has no size of its own, and the spec gives none.",
                .advice = "Give the spec a \"size\"." },
        [REASON_SIZE_NOT_A_MULTIPLE] = { "SizeNotAMultiple",
                .meaning = "The size is not a multiple of the block size.",
                .advice = "Correct the \"size\"." },
        [REASON_TOO_LARGE] = { "TooLarge",
                .meaning = "The disk would be larger than the maximum of a disk.",
                .advice = "Choose a smaller \"size\"." },
        [REASON_BLOCK_SIZE_TOO_SMALL] = { "BlockSizeTooSmall",
                .meaning = "The block size of the disk is smaller than that of the backing store.",
                .advice = "Of a disk that exists: give it a backing store with its block size again. Of a new "
                          "disk: choose a larger \"blockSize\"." },
        [REASON_BLOCK_SIZE_UNSUPPORTED] = { "BlockSizeUnsupported",
                .meaning = "The disk cannot have the block size of the spec.",
                .advice = "Choose another \"blockSize\"." },
        [REASON_PATH_LEADS_TO_STORE] = { "PathLeadsToStore",
                .meaning = "The path of the spec leads to the store that serves the disk.",
                .advice = "Nothing." },
        [REASON_PATH_LEADS_ELSEWHERE] = { "PathLeadsElsewhere",
                .meaning = "The path of the spec leads to another store than the one that serves the disk.",
                .advice = "Let the path lead to the old store again, or change the path in the spec, "
                          "before the next reboot." },
        [REASON_PATH_GONE] = { "PathGone",
                .meaning = "There is nothing at the path of the spec any more; the disk is still served.",
                .advice = "Put the store back there, or change the path in the spec, before the next "
                          "reboot." },
        [REASON_PATH_UNKNOWN] = { "PathUnknown",
                .meaning = "ublkd cannot find out where the path of the spec leads.",
                .advice = "Check whether the file system answers; ublkd tries again." },
        [REASON_UNSTABLE_PATH] = { "UnstablePath",
                .meaning = "The path of the spec may be another disk after a reboot.",
                .advice = "Use the name in /dev/disk/by-id that the message gives, while the device is not "
                          "in use." },
        [REASON_SWAP_NEEDS_MEMORY] = { "SwapNeedsMemory",
                .meaning = "The disk holds swap, and its data path (copy or user-copy) needs memory to write a "
                           "page: the machine can hang when its memory is exhausted.",
                .advice = "Add swap on a disk that no process serves, and then run swapoff for this one while "
                          "there is memory for all that is in it; or serve the disk with zero-copy (Linux 6.16)." },
        [REASON_CREATED] = { "Created",
                .meaning = "ublkd stored the new device.",
                .advice = "Nothing." },
        [REASON_SPEC_CHANGED] = { "SpecChanged",
                .meaning = "A client changed the spec.",
                .advice = "Nothing." },
        [REASON_DELETE_REQUESTED] = { "DeleteRequested",
                .meaning = "A client asked for the removal.",
                .advice = "Nothing." },
        [REASON_BOOT_OVER] = { "BootOver",
                .meaning = "The device is temporary, and was stored in a boot before this one; ublkd removes it.",
                .advice = "Nothing; attach the file again." },
        [REASON_REMOVED] = { "Removed",
                .meaning = "The disk and its record are gone.",
                .advice = "Nothing." },
        [REASON_RECOVER_REQUESTED] = { "RecoverRequested",
                .meaning = "A client asked for a recovery.",
                .advice = "Nothing." },
        [REASON_RESTART_REQUESTED] = { "RestartRequested",
                .meaning = "A client asked for another worker.",
                .advice = "Nothing." },
        [REASON_STOP_REQUESTED] = { "StopRequested",
                .meaning = "A client asked ublkd to take the disk down until the next boot.",
                .advice = "Nothing; 'ublkctl start NAME' creates the disk again." },
        [REASON_START_REQUESTED] = { "StartRequested",
                .meaning = "A client asked for the disk of a stopped device.",
                .advice = "Nothing." },
        [REASON_WRITE_ERRORS_ACCEPTED] = { "WriteErrorsAccepted",
                .meaning = "A client accepted the loss of acknowledged data.",
                .advice = "Nothing." },
        [REASON_BACKING_ACCEPTED] = { "BackingAccepted",
                .meaning = "A client accepted another backing store in place of the old one.",
                .advice = "Nothing." },
        [REASON_NUMBER_RELEASED] = { "NumberReleased",
                .meaning = "The kernel number belongs to the disk of an adopted device; this device gets "
                           "another one.",
                .advice = "Nothing." },
        [REASON_ADOPTED] = { "Adopted",
                .meaning = "ublkd took the record from the runtime directory, and manages the device from now on.",
                .advice = "Nothing." },

        [REASON_OWNED_BY_FILE] = { "OwnedByFile",
                .meaning = "A file in a directory devices.d describes the device, and the API does not change it.",
                .advice = "To change the device, edit the file that the message names, and run 'systemctl reload "
                          "ublkd'." },
        [REASON_FILE_INVALID] = { "FileInvalid", .weight = REASON_ALARMING,
                .meaning = "The file that describes the device cannot be read or is invalid; the device keeps its "
                           "last good spec.",
                .advice = "Correct the file at the line that the message names, and run 'systemctl reload ublkd'." },
        [REASON_FILE_REFUSED] = { "FileRefused", .weight = REASON_ALARMING,
                .meaning = "The file that describes the device has another spec, which cannot be applied now.",
                .advice = "Do what the message says, and run 'systemctl reload ublkd'; or put the old spec back into "
                          "the file." },
        [REASON_FILE_GONE] = { "FileGone", .weight = REASON_ALARMING,
                .meaning = "The file that described the device is gone. The disk stays: it is in use, or ublkd has "
                           "just started.",
                .advice = "To keep the device, put the file back; else unmount the disk and run 'systemctl reload "
                          "ublkd', which removes the device." },

        [REASON_OTHER] = { "Other",
                .meaning = "Another version of ublkd or of its worker gave a reason that this version does not know.",
                .advice = "Read the message." },
};
/* clang-format on */
static_assert(ARRAY_SIZE(reason_table) == _REASON_MAX, "every reason has a row");
