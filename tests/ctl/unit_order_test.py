# SPDX-License-Identifier: MIT
"""ublkd-order, with stand-ins for mountpoint and for systemd: which mounts the unit of a disk is ordered after."""

import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "units" / "order" / "ublkd-order"


@pytest.fixture(name="order")
def _order(tmp_path):
    """Run it for a disk on this file, of which these paths are mount points; return the units that it names. A stand-in has
    `hashed.mount` for each path, as systemd has for a long one; an older systemd has none."""
    (tmp_path / "live").mkdir()
    (tmp_path / "bin").mkdir()

    def stand_in(name, body):
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(file, mounts, hashes=True):
        (tmp_path / "live" / "data").write_text(f"worker 7\n{file}\n", encoding="utf-8")
        (tmp_path / "mounts").write_text("".join(f"{path}\n" for path in mounts), encoding="utf-8")
        stand_in("mountpoint", f'for path; do :; done; grep -qxF -- "$path" {tmp_path}/mounts')
        stand_in("systemctl", f"case $1 in show) {'echo hashed.mount' if hashes else 'exit 1'} ;; esac")
        stand_in("systemd-run", f"printf '%s\\n' \"$@\" >{tmp_path}/called")
        subprocess.run(["sh", SCRIPT, tmp_path, "data"], check=True, timeout=60,
                       env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
        called = tmp_path / "called"
        lines = called.read_text(encoding="utf-8").splitlines() if called.exists() else []
        return [name.strip('"') for line in lines if line.startswith("--property=After=") for name in line.partition("After=")[2].split()]

    return run


def _unit(path):
    return subprocess.run(["systemd-escape", "--path", "--suffix=mount", path], capture_output=True, text=True, check=True).stdout.strip()


def _file(directory):
    directory.mkdir(parents=True)
    (directory / "data.img").touch()
    return directory / "data.img"


def test_the_mounts_above_a_file(order, tmp_path):
    file = _file(tmp_path / "a" / "b")
    assert order(file, [file.parent, file.parent.parent]) == [_unit(file.parent).replace("\\", "\\\\"),
                                                              _unit(file.parent.parent).replace("\\", "\\\\")]


def test_a_mount_on_the_file_itself(order, tmp_path):
    file = _file(tmp_path / "a")
    assert order(file, [file]) == [_unit(file).replace("\\", "\\\\")]


def test_a_mount_with_a_long_path_has_the_name_of_systemd(order, tmp_path):
    file = _file(tmp_path / ("b" * 150) / ("c" * 150))
    assert order(file, [file.parent]) == ["hashed.mount"]


def test_a_long_path_of_which_systemd_has_no_unit(order, tmp_path):
    file = _file(tmp_path / ("b" * 150) / ("c" * 150))
    assert order(file, [file.parent], hashes=False) == []
