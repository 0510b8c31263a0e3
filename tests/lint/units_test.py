# SPDX-License-Identifier: MIT
"""The units fit into a boot, without a cycle where /var is a file system of its own and a disk of ours is in fstab;
and the service has no limit that keeps a dead worker from being replaced."""

import pathlib
import re
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


def _want(folder, target, unit):
    wants = folder / f"{target}.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit).symlink_to(folder / unit)


@pytest.mark.skipif(
    not shutil.which("systemd-analyze") or not (SYSTEM / "sysinit.target").exists(), reason="needs systemd"
)
def test_the_order_of_a_boot_has_no_cycle(tmp_path):
    service = (ROOT / "units/ublkd.service.in").read_text()
    service = "\n".join("ExecStart=/bin/true" if line.startswith("ExecStart=") else line for line in service.split("\n"))
    (tmp_path / "ublkd.service").write_text(service)
    shutil.copy(ROOT / "units/ublkd.socket", tmp_path)
    (tmp_path / "var.mount").write_text(MOUNT.format(where="/var", after=""))
    (tmp_path / "data.mount").write_text(MOUNT.format(where="/data", after="ublkd.service"))
    _want(tmp_path, "multi-user.target", "ublkd.service")
    _want(tmp_path, "sockets.target", "ublkd.socket")
    _want(tmp_path, "local-fs.target", "var.mount")
    _want(tmp_path, "local-fs.target", "data.mount")
    run = subprocess.run(
        ["systemd-analyze", "verify", "multi-user.target"],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:{SYSTEM}", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )
    assert "cycle" not in run.stderr, run.stderr


@pytest.mark.parametrize("setting", ["TasksMax=infinity", "LimitMEMLOCK=infinity", "KillMode=process"])
def test_a_dead_worker_can_be_replaced(setting):
    service = (ROOT / "units/ublkd.service.in").read_text()
    (found,) = re.findall(rf"^{setting.partition('=')[0]}=.*$", service, re.MULTILINE)
    assert found == setting
