# SPDX-License-Identifier: MIT
"""What tests rely on in a guest, on both kernels."""

import pytest
from vm import vm

KERNELS = ["6.12", "7"]

MODULES = "ublk_drv loop nbd null_blk dm-mod dm-delay dm-flakey dm-thin-pool zonefs scsi_debug tcm_loop xfs btrfs"

LOOPBACK = """
ping -c1 -W2 127.0.0.1 >/dev/null 2>&1 || ip address show dev lo | grep -q 'inet 127.0.0.1'
python3 - <<'END'
import socket, threading
server = socket.socket(socket.AF_UNIX)
server.bind("/run/test.socket")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("/run/test.socket")
server.accept()[0].sendall(b"hello")
assert client.recv(5) == b"hello"
END
"""

FILE_SYSTEMS = """
truncate -s 512M /tmp/disk
for type in ext4 xfs; do
	mkfs.$type -q /tmp/disk
	mount -o loop /tmp/disk /mnt
	cp /bin/bash /mnt
	cmp /bin/bash /mnt/bash
	umount /mnt
	wipefs -qa /tmp/disk
done
"""

NBD = """
modprobe nbd
nbdkit memory 64M
nbd-client -N '' 127.0.0.1 10809 /dev/nbd0 >&2
[ "$(blockdev --getsize64 /dev/nbd0)" = 67108864 ]
fio --name=job --filename=/dev/nbd0 --rw=randwrite --bs=4k --size=4M --direct=1 \
	--ioengine=io_uring --iodepth=8 --verify=crc32c --output=/dev/null
nbd-client -d /dev/nbd0 >&2
"""

UDEV = """
modprobe null_blk nr_devices=1 gb=1
udevadm settle
udevadm info /dev/nullb0 | grep -q DEVNAME=/dev/nullb0
mkdir -p /etc/udev/rules.d
echo 'SUBSYSTEM=="block", KERNEL=="nullb0", SYMLINK+="test/link"' >/etc/udev/rules.d/99-test.rules
udevadm control --reload
udevadm trigger --settle /dev/nullb0
[ "$(readlink -f /dev/test/link)" = /dev/nullb0 ]
"""


def check(script, kernel, *options):
    done = vm("--kernel", kernel, *options, shell=script)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_is_the_one_asked_for(kernel):
    assert check("uname -r", kernel).startswith(f"{kernel}.")


@pytest.mark.parametrize("kernel", KERNELS)
def test_modules_load(kernel):
    check(f"for module in {MODULES}; do modprobe $module; done; ls /dev/ublk-control", kernel)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "script", [LOOPBACK, FILE_SYSTEMS, NBD, UDEV], ids=["loopback", "file systems", "nbd", "udev"]
)
def test_tools_work(kernel, script):
    check(script, kernel)


@pytest.mark.parametrize("kernel", KERNELS)
def test_mounts_are_fresh(kernel):
    script = """
	[ "$(stat -f -c %T /tmp)" = tmpfs ]
	[ "$(stat -f -c %T /run)" = tmpfs ]
	[ "$(stat -f -c %T /dev/shm)" = tmpfs ]
	[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]
	[ -z "$(find /dev/shm -mindepth 1)" ]
	mkdir /sys/fs/cgroup/test
	"""
    check(script, kernel)


SYSTEMD = """
[ "$(cat /proc/1/comm)" = systemd ]
cat >/etc/systemd/system/test.service <<'END'
[Service]
Type=notify
NotifyAccess=all
ExecStart=sh -c 'systemd-notify --ready; echo in the journal; exec sleep 1000'
END
systemctl daemon-reload
systemctl start test.service
systemctl is-active test.service
journalctl --sync
journalctl -u test.service | grep 'in the journal'
systemd-run --wait --quiet true
! systemd-run --wait --quiet false
systemctl --failed --no-legend
modprobe null_blk
udevadm settle
udevadm info /dev/nullb0 | grep -q DEVNAME=/dev/nullb0
"""


@pytest.mark.parametrize("kernel", KERNELS)
def test_systemd_runs_services(kernel):
    check(SYSTEMD, kernel, "--systemd")
