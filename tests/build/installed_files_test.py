# SPDX-License-Identifier: MIT
"""Every file is installed, from the build that the other tests use. Where it lies is up to install_test.py."""

import os
import pathlib
import subprocess

import pytest

from install_test import INSTALLED

BUILD = os.environ["UBLKD_BUILD"]


@pytest.fixture(scope="module", name="installed")
def fixture_installed(tmp_path_factory):
    stage = tmp_path_factory.mktemp("stage")
    subprocess.run(["cmake", "--install", BUILD], env={**os.environ, "DESTDIR": str(stage)}, check=True,
                   stdout=subprocess.DEVNULL)
    return [path for path in stage.rglob("*") if path.is_file()]


def test_every_file_is_installed_and_no_other(installed):
    names = sorted(path.name for path in installed if "schemas" not in path.parts)
    assert names == sorted(pathlib.Path(name).name for name in INSTALLED)
    schemas = {path.name for path in installed if "schemas" in path.parts}
    assert schemas >= {"device.schema.json", "policy.schema.json", "loop.schema.json", "openapi.json"}


def test_the_unit_names_the_program(installed):
    (unit,) = [path for path in installed if path.name == "ublkd.service"]
    (program,) = [path for path in installed if path.name == "ublkd"]
    (start,) = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
    assert str(program).endswith(start.split()[0].partition("=")[2])
