# SPDX-License-Identifier: MIT
"""The specs of examples/ can be applied as they are, and examples/README.md lists them all."""
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NO_SPECS = {"containers", "monitoring", "policy"}  # test_container_examples.py, api_monitoring_test.py, daemon_config_test.py
SOURCES = sorted(path for path in EXAMPLES.iterdir() if (path.is_dir() and path.name not in NO_SPECS) or path.suffix == ".json")


def names_in(source):
    files = sorted(source.glob("*.json")) if source.is_dir() else [source]
    for path in files:
        document = json.loads(path.read_text())
        for spec in document if isinstance(document, list) else [document]:
            yield spec["name"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_an_example_can_be_applied(ctl, source):
    names = sorted(names_in(source))

    def apply(*options):
        return sorted(line for line in ctl("apply", "-f", str(source), *options).lines if not line.startswith(" "))

    assert apply("--dry-run") == [f"{name} would be created" for name in names]
    assert apply("--wait") == [f"{name} created" for name in names]
    assert apply() == [f"{name} unchanged" for name in names]


def test_all_examples_can_be_applied_together(ctl):
    names = [name for source in SOURCES for name in names_in(source)]
    assert len(names) == len(set(names)) >= 12
    arguments = [word for source in SOURCES for word in ("-f", str(source))]
    assert len(ctl("apply", *arguments).lines) == len(names)


def test_the_folder_can_be_pruned_by_its_label(ctl):
    for path in (EXAMPLES / "apply").glob("*.json"):
        assert json.loads(path.read_text())["labels"]["app"] == "db", path


def test_the_readme_lists_every_example():
    listed = set(re.findall(r"^\| \[([^]]+)\]", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    assert listed == {path.name + ("/" if path.is_dir() else "") for path in SOURCES} | {name + "/" for name in NO_SPECS}
