# SPDX-License-Identifier: MIT
"""packaging/removal: which units it stops, and which of them a refusal starts again. Disks, processes and systemctl are
stand-ins here; tests/packages has the real ones."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "removal"
_UNITS = ("ublkd.socket", "ublkd.service", "ublkd-volumes.service")

# Active units are files in a directory. `created`: the disk that comes while ublkd is stopped; `late`: one that comes after all
# stops. A stop of the target takes an unused disk down.
_SYSTEMCTL = """#!/bin/sh
verb=$1
shift
echo "$verb $*" >>DIR/calls
case $verb in
is-active) [ -e "DIR/active/$1" ] && echo active || { echo inactive; exit 3; } ;;
start) for unit; do : >"DIR/active/$unit"; done ;;
stop)
	for unit; do rm -f "DIR/active/$unit"; done
	case $*/$(cat DIR/created) in *ublkd.service*/?*) : >"DIR/block/$(cat DIR/created)" ;; esac
	case $* in *ublkd.target*) rm -f DIR/block/* ;; esac
	;;
reset-failed) [ ! -s DIR/late ] || : >"DIR/block/$(cat DIR/late)" ;;
esac
"""


class Machine:
    """The directories that the script sees, and what it did."""

    def __init__(self, path):
        self.path = path
        for name in ("active", "block", "systemd", "run/disks", "bin"):
            (path / name).mkdir(parents=True)
        (path / "created").touch()
        (path / "late").touch()
        (path / "calls").touch()
        (path / "run/disks/ublkb7").write_text("UBLKD_NAME=data\n")
        systemctl = path / "bin/systemctl"
        systemctl.write_text(_SYSTEMCTL.replace("DIR", str(path)))
        systemctl.chmod(0o755)
        text = _SCRIPT.read_text()
        for place, here in (("/run/systemd/system", "systemd"), ("/sys/block", "block"), ("run=/run/ublkd", "run"),
                            ("worker=/usr/libexec/ublkd/ublkd-worker", "none"), ("manager=/usr/sbin/ublkd", "none"),
                            ("/proc/1/root/", None), ("/dev/ublkc", "dev-ublkc")):
            assert place in text
            name, equals, _ = place.partition("=")
            text = text.replace(place, f"{name}={path / here}" if equals else str(path / here) if here else "/")
        for command, other in (("rmdir /dev/ublk/private", "true"), ("grep -qsx -e ublkd -e ublkd-worker", "false")):
            assert command in text
            text = text.replace(command, other)
        (path / "removal").write_text(text)

    def start(self, units):
        for unit in units:
            (self.path / "active" / unit).touch()

    def active(self):
        return sorted(file.name for file in (self.path / "active").iterdir())

    def started(self):
        return [line for line in (self.path / "calls").read_text().splitlines() if line.startswith("start")]

    @contextlib.contextmanager
    def worker(self, name, number):
        """A process with the program, the command line and the mapping of the worker of a disk."""
        shutil.copy(os.path.realpath(sys.executable), self.path / "none")
        device = self.path / f"dev-ublkc{number}"
        device.write_bytes(bytes(4096))
        (self.path / name).write_text(
            f"import mmap, os\nmapping = mmap.mmap(os.open('{device}', os.O_RDONLY), 4096, prot=mmap.PROT_READ)\nprint(flush=True)\ninput()\n")
        with subprocess.Popen([self.path / "none", name], cwd=self.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "PYTHONHOME": sys.base_prefix}) as process:
            assert process.stdout.readline() == b"\n"
            yield
            process.communicate(b"\n")

    def remove(self):
        environment = {**os.environ, "PATH": f"{self.path / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(["sh", self.path / "removal"], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(name="machine")
def fixture_machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize("units", [(), _UNITS[:1], _UNITS[:2], _UNITS])
def test_a_refusal_for_a_disk_starts_nothing(machine, units):
    machine.start(units)
    (machine.path / "block/ublkb7").touch()
    done = machine.remove()
    assert done.returncode == 1 and "(data)" in done.stderr
    assert machine.active() == sorted(units) and machine.started() == []
    assert ("systemctl start" in done.stderr) == (units == ())


@pytest.mark.parametrize("units", [(), _UNITS[:1], _UNITS[1:2], _UNITS[:2], _UNITS])
def test_a_refusal_for_a_new_disk_starts_what_it_has_stopped(machine, units):
    machine.start(units)
    (machine.path / "created").write_text("ublkb7")
    done = machine.remove()
    assert done.returncode == 1 and "(data)" in done.stderr
    assert machine.active() == sorted(units) and (machine.path / "block/ublkb7").exists()


def test_a_disk_of_a_tenant_without_a_name_refuses_the_removal(machine):
    (machine.path / "run/disks/ublkb7").write_text("UBLKD_UID=1000\nUBLKD_GID=1000\nUBLKD_MODE=0600\n")
    (machine.path / "block/ublkb7").touch()
    done = machine.remove()
    assert done.returncode == 1 and "(/dev/ublkb7 of user 1000)" in done.stderr
    assert (machine.path / "run/disks/ublkb7").exists()


def test_the_live_disk_of_a_tenant_is_named_once(machine):
    (machine.path / "run/disks/ublkb7").write_text("UBLKD_UID=1000\nUBLKD_GID=1000\nUBLKD_MODE=0600\n")
    (machine.path / "block/ublkb7").touch()
    with machine.worker("(tenant)", 7):
        done = machine.remove()
    assert done.returncode == 1 and "disks (/dev/ublkb7 of user 1000);" in done.stderr


@pytest.mark.parametrize("name, shown", [("(tenant)", "/dev/ublkb8 of a tenant"), ("other", "other")])
def test_a_live_disk_that_nothing_announced_is_named(machine, name, shown):
    with machine.worker(name, 8):
        done = machine.remove()
    assert done.returncode == 1 and f"disks ({shown});" in done.stderr


def test_a_disk_that_comes_after_the_stops_keeps_its_records(machine):
    """Of a ublkd from elsewhere with the same directory: what postrm looks for must still be there."""
    machine.start(_UNITS)
    (machine.path / "late").write_text("ublkb7")
    done = machine.remove()
    assert done.returncode == 1 and "(data)" in done.stderr
    assert (machine.path / "run/disks/ublkb7").exists() and machine.active() == sorted(_UNITS)


def test_a_removal_stops_all(machine):
    machine.start((*_UNITS, "ublkd.target"))
    done = machine.remove()
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.active() == [] and machine.started() == []
    assert not (machine.path / "run").exists()


def test_a_removal_leaves_no_failed_unit(machine):
    assert machine.remove().returncode == 0
    last = (machine.path / "calls").read_text().splitlines()[-1].split()
    assert last == ["reset-failed", "ublk-*@*.service", "ublkd*.service"]  # once all are stopped
