# SPDX-License-Identifier: MIT
"""The guest as its administrator sees it: packages, units, processes and files."""

import json
import os
import pathlib
import signal
from types import SimpleNamespace

from harness import ublk
from harness.api import Api
from harness.processes import processes as by_kind
from harness.shell import output, run
from harness.tenants import User
from harness.wait import wait_until

*_BEFORE, THIS = os.environ["UBLKD_TEST_PACKAGES"].split(":")
OLDER = _BEFORE[0] if _BEFORE else None
STATE = pathlib.Path("/var/lib/ublkd")
CONFFILE = pathlib.Path("/etc/needrestart/conf.d/ublkd.conf")  # a removal keeps it, and a purge does not
RUNTIME = pathlib.Path("/run/ublkd")
TENANT = 1234
_POLICY = pathlib.Path("/etc/ublkd/policy.d/50-tenants.json")
_DPKG_LIMIT = 900  # beside 16 disks under load, and other guests on the host, it has taken more than 300 s


def dpkg(*arguments, check=True):
    """Run dpkg; return its exit status, and what it and the scripts of the package have printed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = run("dpkg", *arguments, check=check, timeout=_DPKG_LIMIT, env=environment)
    print(f"dpkg {' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}")
    return done


def status_of_package():
    """installed, config-files (removed), not-installed, or nothing: dpkg does not know it."""
    return run("dpkg-query", "-W", "-f", "${db:Status-Status}", "ublkd", check=False).stdout.partition("dpkg-query:")[0]


def version_of(package):
    """The version that its programs report."""
    return output("dpkg-deb", "-f", package, "Version").rpartition("-")[0]


def files_of_package():
    """Files and links, without directories. Where /usr is merged, /lib is a link, which is not the package's."""
    return [path for path in map(pathlib.Path, output("dpkg", "-L", "ublkd").splitlines())
            if path.parent != pathlib.Path("/") and (path.is_symlink() or not path.is_dir())]


def ctl(*arguments):
    """Run the ublkctl that is installed; return what it prints."""
    return output("/usr/bin/ublkctl", *arguments)


def api():
    """The API of the service, once it is ready."""
    found = Api(RUNTIME / "ublkd.sock")
    wait_until(found.is_ready, "ublkd ready")
    return found


def create(name, path, size=64 << 20):
    """A loop disk on a new file; return the device."""
    with open(path, "wb") as file:
        file.truncate(size)
    ctl("create", name, "target.type=loop", f"target.path={path}")
    return json.loads(ctl("get", name))


def create_for_tenant(spec):
    """A device of a tenant, whom a policy allows it; return it when it is Live."""
    _POLICY.parent.mkdir(parents=True, exist_ok=True)
    rule = {"name": "tenants", "who": {"users": [TENANT]}, "targets": [spec["target"]["type"]], "devices": 1, "size": "64MiB"}
    _POLICY.write_text(json.dumps({"rules": [rule]}), encoding="utf-8")
    run("systemctl", "reload", "ublkd.service")
    return User(SimpleNamespace(api=api(), runtime=RUNTIME), TENANT).create(spec)


def end_tenant(name):
    """Delete that device, and the policy."""
    api().delete(name, force=True)
    _POLICY.unlink()
    _POLICY.parent.rmdir()
    run("systemctl", "reload", "ublkd.service")


def unit(name, what):
    """A property of a unit."""
    return output("systemctl", "show", "--property", what, "--value", name)


def manager():
    """The pid of the service; 0: it does not run."""
    return int(unit("ublkd.service", "MainPID"))


def is_serving():
    """Whether service and socket are active."""
    return [unit(name, "ActiveState") for name in ("ublkd.service", "ublkd.socket")] == ["active", "active"]


def loaded_units():
    """The units of ours that systemd has, also inactive ones; not what others want and is not there."""
    lines = output("systemctl", "list-units", "--all", "--plain", "--no-legend", "ublk*").splitlines()
    return [line for line in lines if line.split()[1] != "not-found"]


def unit_files():
    """The unit files of ours that systemd finds. systemctl ends with 1 if there are none."""
    return run("systemctl", "list-unit-files", "--no-legend", "ublkd*", check=False).stdout.strip()


def processes():
    """The pids of managers, workers and their helpers."""
    return sorted(sum(by_kind().values(), []))


def kill_all():
    """SIGKILL to every process of ublkd, as the OOM killer could."""
    for pid in processes():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not processes(), "no process of ublkd")


def group_of_readers():
    """The line of the group ublk; empty: there is none."""
    return run("getent", "group", "ublk", check=False).stdout.strip()


def group_of_administrators():
    """The same of the group ublk-admin."""
    return run("getent", "group", "ublk-admin", check=False).stdout.strip()


def _files_below(top):
    for directory, _, names in os.walk(top):
        yield from (os.path.join(directory, name) for name in names)


def traces():
    """What an installation may leave behind: files of the system's configuration and state, and accounts."""
    tops = ("/etc", "/lib/systemd/system", "/lib/udev", "/run/systemd/system", "/var/lib/systemd", STATE, RUNTIME,
            "/dev/ublk")
    found = {path for top in tops for path in _files_below(top)}
    found |= {str(path) for top in ("/run", "/var/lib") for path in pathlib.Path(top).glob("*ublk*")}
    found |= {str(path) for path in pathlib.Path("/dev").glob("ublk") if path.is_dir()}
    # The copies that tools for accounts make of the files before a change, and their lock.
    found = {path for path in found if path not in ("/etc/group-", "/etc/gshadow-", "/etc/.pwd.lock")}
    return found | {pathlib.Path(name).read_text(encoding="utf-8") for name in ("/etc/group", "/etc/gshadow")}


def has_package():
    """Whether dpkg knows it: installed, or removed and not purged."""
    return status_of_package() not in ("", "not-installed")


def has_this_version():
    """Whether this version is installed."""
    installed = run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "ublkd", check=False).stdout
    return installed == f"installed {output('dpkg-deb', '-f', THIS, 'Version')}"


def purge():
    """Leave no trace of the package."""
    if has_package():
        dpkg("--purge", "ublkd")
    assert processes() == []


def clear():
    """Remove all devices; purge what is not an installation of this version that serves."""
    if status_of_package() == "installed":
        run("systemctl", "start", "ublkd.socket", "ublkd.service")
        for name in api().names():
            api().delete(name, force=True, drop_last_copy=True)
    if not has_this_version():
        purge()
    left = ublk.numbers()
    if left:
        kill_all()
    assert left == [], f"disks were left: {left}"
    # virtiofsd has a descriptor for each file that the guest remembers, and may run out of them.
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("2\n", encoding="ascii")
