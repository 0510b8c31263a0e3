# SPDX-License-Identifier: MIT
"""The units fit into a boot, without a cycle where /var is a file system of its own and a disk of ours is in fstab;
and the service has no limit that keeps a dead worker from being replaced."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEM = pathlib.Path("/lib/systemd/system")
MOUNT = """[Unit]
Wants=local-fs-pre.target
After=local-fs-pre.target {after}
Requires={after}
Before=local-fs.target
[Mount]
What=tmpfs
Where={where}
Type=tmpfs
"""
ENGINE = """[Unit]
Wants=network-online.target
After=network-online.target nss-lookup.target time-set.target
[Service]
ExecStart=/bin/true
"""


def _want(folder, target, unit):
    wants = folder / f"{target}.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit).symlink_to(folder / unit)


@pytest.mark.skipif(
    not shutil.which("systemd-analyze") or not (SYSTEM / "sysinit.target").exists(), reason="needs systemd"
)
def test_the_order_of_a_boot_has_no_cycle(tmp_path):
    service = (ROOT / "units/ublkd.service.in").read_text()
    (tmp_path / "ublkd.service").write_text(service.replace("@UBLKD_PROGRAM_PATH@", "/bin/true"))
    for unit in ("ublkd.socket", "ublkd-workers.service", "ublkd.slice"):
        shutil.copy(ROOT / "units" / unit, tmp_path)
    (tmp_path / "var.mount").write_text(MOUNT.format(where="/var", after=""))
    (tmp_path / "data.mount").write_text(MOUNT.format(where="/data", after="ublkd.service"))
    (tmp_path / "docker.service").write_text(ENGINE)
    _want(tmp_path, "multi-user.target", "ublkd.service")
    _want(tmp_path, "multi-user.target", "docker.service")
    _want(tmp_path, "sockets.target", "ublkd.socket")
    _want(tmp_path, "local-fs.target", "var.mount")
    _want(tmp_path, "local-fs.target", "data.mount")
    run = subprocess.run(
        ["systemd-analyze", "verify", "multi-user.target"],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:{SYSTEM}", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )
    assert "cycle" not in run.stderr, run.stderr


def _setting(unit, name):
    (found,) = re.findall(rf"^{name}=.*$", (ROOT / "units" / unit).read_text().replace("\\\n", " "), re.MULTILINE)
    return found


def test_a_reload_sends_the_signal_that_ublkd_reloads_on():
    assert _setting("ublkd.service.in", "ExecReload") == "ExecReload=/bin/kill -HUP $MAINPID"


@pytest.mark.parametrize("setting", ["TasksMax=infinity", "LimitMEMLOCK=infinity", "MemorySwapMax=0", "KillMode=process"])
def test_a_dead_worker_can_be_replaced(setting):
    assert _setting("ublkd.service.in", setting.partition("=")[0]) == setting


@pytest.mark.parametrize(
    "unit, setting",
    [
        ("ublkd.slice", "DefaultDependencies=no"),
        ("ublkd-workers.service", "DefaultDependencies=no"),
        ("ublkd-workers.service", "KillMode=process"),
        ("ublkd-workers.service", "OOMPolicy=continue"),
        ("ublkd-workers.service", "TasksMax=infinity"),
        ("ublkd-workers.service", "MemorySwapMax=0"),
    ],
)
def test_systemd_ends_no_worker(unit, setting):
    """Neither at shutdown, nor when the unit of their control groups stops, nor when one of them runs out of memory; and
    none waits for a page that was swapped out to its own disk."""
    assert _setting(unit, setting.partition("=")[0]) == setting


@pytest.mark.parametrize("unit", [
    "ublkd.service.in", "ublkd.socket", "ublkd.target", "ublkd-workers.service", "ublk-disk@.service.in", "ublk-disk@.path",
    "ublk-watch@.service"])
def test_a_change_of_the_target_stops_no_disk(unit):
    """As it stops no mount."""
    assert _setting(unit, "IgnoreOnIsolate") == "IgnoreOnIsolate=yes"


def test_the_groups_of_workers_do_not_fail_a_unit():
    """Where a worker or a device has a group, systemd cannot start a process beside it."""
    place = (ROOT / "ublkd/cgroups/group_place.c").read_text()
    (delegated,) = re.findall(r'^#define DELEGATED "(.*)"$', place, re.MULTILINE)
    (start,) = re.findall(r'^#define PREFIX "(.*)"$', (ROOT / "ublkd/cgroups/group_start.c").read_text(), re.MULTILINE)
    unit = (ROOT / "units/ublkd-workers.service").read_text()
    assert re.findall("^ConditionPathExistsGlob=(.*)$", unit, re.MULTILINE) == [
        f"!/sys/fs/cgroup/{delegated}/{prefix}*" for prefix in ("worker-", start)]
    tree = (ROOT / "ublkd/cgroups/group_tree.c").read_text()
    (rest,) = re.findall(r'^#define REST "(.*)"$', tree, re.MULTILINE)
    assert _setting("ublkd-workers.service", "ConditionPathExists") == f"ConditionPathExists=!/sys/fs/cgroup/{delegated}/{rest}"


def test_the_marks_of_disks_are_where_ublkd_makes_them():
    (live,) = re.findall(r'^#define RUNTIME_LIVE_NAME "(.*)"$', (ROOT / "ublkd/runtime/runtime_names.h").read_text(), re.MULTILINE)
    rows = json.loads((ROOT / "ublkd/config/settings.json").read_text())["settings"]
    (place,) = [row["preset"] for row in rows if row["option"] == "runtime-dir"]
    assert _setting("ublk-disk@.path", "PathExists") == f"PathExists={place}/{live}/%i"
    assert _setting("ublk-disk@.service.in", "ExecStart").startswith(f"ExecStart=@UBLKD_FOLLOW_PATH@ {place} %i ")
    assert _setting("ublk-disk@.service.in", "ExecStartPre").startswith(f"ExecStartPre=@UBLKD_START_PATH@ @UBLKD_FOLLOW_PATH@ {place} %i ")
    assert f'"$place/{live}/$name"' in (ROOT / "units/start/ublkd-start").read_text()
    assert _setting("ublk-reason@.service.in", "ConditionPathExists") == f"ConditionPathExists=!{place}/{live}/%I"
    assert _setting("ublk-reason@.service.in", "ExecStart") == (
        f"ExecStart=@UBLKD_REASON_PATH@ @UBLKD_FOLLOW_PATH@ {place} %I @UBLKD_CTL_PATH@ get")


def test_who_waits_for_a_link_has_its_reason():
    """The name of the directory is the beginning of the units of /dev/ublk/by-name/NAME."""
    assert _setting("dev-ublk-.device.d/50-ublkd.conf", "Wants") == "Wants=ublk-reason@%j.service"
    assert 'SYMLINK+="ublk/by-name/' in (ROOT / "units/60-ublkd.rules").read_text()


def test_udev_knows_of_a_disk_of_a_tenant_a_type_that_no_rule_acts_on():
    """The rules of bcache look at a disk themselves if its type is empty; those of LVM, MD and btrfs know their own."""
    rules = (ROOT / "units/60-ublkd.rules").read_text()
    (part,) = re.findall(r'^ENV\{UBLKD_NAME\}!="", GOTO="ublkd_named"$(.*)^LABEL="ublkd_named"$', rules, re.MULTILINE | re.DOTALL)
    known = dict(re.findall(r'ENV\{(\w+)\}="([^"]*)"', part))
    assert known.pop("ID_FS_TYPE") == "ublkd_tenant"
    of_file_system = ("USAGE", "VERSION", "UUID", "UUID_ENC", "UUID_SUB", "UUID_SUB_ENC", "LABEL", "LABEL_ENC", "SIZE",
                      "LASTBLOCK", "BLOCKSIZE", "SYSTEM_ID", "PUBLISHER_ID", "APPLICATION_ID", "BOOT_SYSTEM_ID", "VOLUME_ID",
                      "VOLUME_SET_ID", "LOGICAL_VOLUME_ID", "DATA_PREPARER_ID")
    assert {f"ID_FS_{name}" for name in of_file_system} | {
        "ID_PART_TABLE_UUID", "ID_PART_ENTRY_UUID", "ID_PART_ENTRY_NAME", "ID_PART_ENTRY_TYPE"} <= set(known)
    assert set(known.values()) == {""}


# Asks needrestart's table as needrestart does, with its own entries before ours.
_ASK_NEEDRESTART = r"""
our %nrconf = (defno => 0, blacklist_rc => [], override_rc => {qr(^dbus) => 0, qr(^docker) => 0});
my $file = shift;
eval do { local(@ARGV, $/) = $file; <> };
die $@ if ($@);
foreach my $unit (@ARGV) {
    my @found = grep { $unit =~ /$_/ } keys %{$nrconf{override_rc}};
    print $unit, " ", (@found ? $nrconf{override_rc}->{$found[0]} : !$nrconf{defno}), "\n";
}
"""


def test_needrestart_restarts_no_disk():
    """A restart of the unit of a disk would unmount it and take it down. The manager may be restarted."""
    left = ["ublk-disk@data.service", "ublk-disk@my\\x2ddisk.service", "ublkd-workers.service"]
    restarted = ["ublkd.service", "ublkd-volumes.service", "ublk-disk.service", "other-ublk-disk@data.service", "docker-x.service"]
    answer = subprocess.run(["perl", "-we", _ASK_NEEDRESTART, ROOT / "units/needrestart/ublkd.conf", *left, *restarted],
                            capture_output=True, text=True, check=True)
    assert answer.stderr == ""
    restarted.remove("docker-x.service")
    assert answer.stdout.splitlines() == [f"{unit} 0" for unit in left] + [f"{unit} 1" for unit in restarted] + ["docker-x.service 0"]


def test_a_stop_waits_for_the_processes_that_end_after_ublkd():
    """Not as its failure, where the program is gone or older than the unit."""
    assert _setting("ublkd.service.in", "ExecStopPost") == "ExecStopPost=-@UBLKD_PROGRAM_PATH@ --group-wait"
    assert '"group-wait",' in (ROOT / "ublkd/main.c").read_text()


# As systemctl prints them without a legend: columns, and nothing where there is no job.
_NO_JOB = ""
_JOB = "1234 ublkd.target {} waiting"


@pytest.mark.parametrize("state, job, taken_down", [
    ("running", _NO_JOB, False),
    ("degraded", _NO_JOB, False),
    ("maintenance", _NO_JOB, False),
    ("running", _JOB.format("restart"), False),
    ("running", _JOB.format("start  "), False),
    ("stopping", _NO_JOB, True),
    ("running", _JOB.format("stop"), True),
    ("degraded", _JOB.format("stop   "), True),
    ("stopping", _JOB.format("stop"), True),
    ("", "", False),  # systemctl fails
])
def test_a_shutdown_and_a_stop_of_the_target_alone_take_disks_of_tenants_down(state, job, taken_down, tmp_path):
    """By what the shell of the unit makes of the state of the system and of the job of the target. The target has none at a
    stop or a restart of ublkd, which take none down."""
    program, *arguments = shlex.split(_setting("ublkd.service.in", "ExecStop").removeprefix("ExecStop=-"))
    systemctl = f'case "$*" in is-system-running) echo {state}; exit 1;; "list-jobs "*" ublkd.target") echo "{job}";; esac'
    for name, text in (("systemctl", systemctl), ("ublkctl", 'echo "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    command = [program, *(word.replace("$$", "$").replace("@UBLKD_CTL_PATH@", "ublkctl") for word in arguments)]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split()[:2] == (["stop", "--tenants"] if taken_down else [])


@pytest.mark.parametrize("user", [
    "systemd-user-sessions.service", "containerd.service", "docker.service", "podman-restart.service", "libvirt-guests.service"])
def test_what_uses_disks_of_tenants_ends_before_they_are_stopped(user):
    """A shutdown stops units in the reverse order of their start."""
    orders = re.findall(r"^Before=(.*)$", (ROOT / "units/ublkd.service.in").read_text(), re.MULTILINE)
    assert user in " ".join(orders).split()


def test_nothing_but_the_workers_is_where_controllers_are_passed_on():
    """systemd could not start the next ublkd in a group that passes controllers on."""
    assert "Delegate" not in (ROOT / "units/ublkd.service.in").read_text()
    assert _setting("ublkd-workers.service", "Slice") == "Slice=ublkd.slice"


PAGE = "docs/service-sandbox.md"


def _security(folder, *options):
    service = (ROOT / "units/ublkd.service.in").read_text()
    service = "\n".join("ExecStart=/bin/true" if line.startswith("ExecStart=") else line for line in service.split("\n"))
    (folder / "ublkd.service").write_text(service)
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", *options, str(folder / "ublkd.service")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _section(heading):
    page = (ROOT / PAGE).read_text()
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def _options(text):
    """In the first column of a table."""
    cells = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([A-Z]\w+)=", cell)}


def test_the_capabilities_of_the_service_are_those_of_its_page():
    lines = re.findall(r"^CapabilityBoundingSet=(.*)$", (ROOT / "units/ublkd.service.in").read_text(), re.MULTILINE)
    table = re.findall(r"^\| (`CAP_.*?) \|", _section("Capabilities"), re.MULTILINE)
    assert sorted(" ".join(lines).split()) == sorted(re.findall(r"CAP_\w+", " ".join(table)))


def test_the_service_sets_what_its_page_says():
    documented = _options(_section("What the unit sets"))
    for name in documented:
        assert re.search(rf"^{name}=", (ROOT / "units/ublkd.service.in").read_text(), re.MULTILINE), name
    for name in _options(_section("What it leaves out")) - documented:
        assert not re.search(rf"^{name}=", (ROOT / "units/ublkd.service.in").read_text(), re.MULTILINE), name


def test_no_page_stops_a_unit_that_refuses_it():
    refusing = {unit.name.removesuffix(".in") for unit in (ROOT / "units").glob("*.*")
                if unit.is_file() and re.search(r"^RefuseManualStop=yes", unit.read_text(), re.MULTILINE)}
    assert refusing
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/man").glob("*.in")]:
        for units in re.findall(r"systemctl (?:stop|restart|disable --now) ([^`#|&;\n]*)", page.read_text()):
            assert not refusing & set(units.split()), (page.name, units)


def test_who_stops_the_manager_learns_of_its_socket():
    """The next client starts it again through the socket, also after a disable --now of the service alone."""
    service = "docs/man/ublkd.service.8.in"
    explained = re.sub(r"\s+", " ", (ROOT / service).read_text())
    for command in ("stop", "disable --now"):
        assert f"systemctl {command} ublkd.service" in explained and f"systemctl {command} ublkd.socket ublkd.service" in explained
    assert "With the socket still open the next client starts the manager" in explained
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/man").glob("*.in")]:
        for units in re.findall(r"systemctl (?:stop|disable --now) ([^`#|&;\n]*)", page.read_text()):
            names = units.split()
            if "ublkd.service" in names or "ublkd" in names:
                assert "ublkd.socket" in names or page == ROOT / service, (page.name, units)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_each_option_that_systemd_misses_has_its_reason(tmp_path):
    missed = {row["name"].partition("=")[0] for row in json.loads(_security(tmp_path, "--json=short")) if not row["set"]}
    known = _options(_section("What it leaves out")) | {"CapabilityBoundingSet", "RestrictAddressFamilies"}
    assert missed <= known


def _version():
    """The major version of this systemd, or None."""
    if not shutil.which("systemd-analyze"):
        return None
    text = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"\d+", text).group())


@pytest.mark.skipif(_version() not in (252, 257), reason="the figures are those of systemd 252 and 257")
@pytest.mark.parametrize("page", [PAGE, "docs/security.md"])
def test_the_exposure_is_as_documented(tmp_path, page):
    (figure,) = re.findall(r"Overall exposure level for \S+: (\S+)", _security(tmp_path))
    assert f"{figure} with systemd {_version()}" in re.sub(r"\s+", " ", (ROOT / page).read_text())
