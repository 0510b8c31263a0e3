# SPDX-License-Identifier: MIT
"""The curves of figures by number of disks: an SVG that can be read, with each value at its place."""

import os
import sys
import xml.etree.ElementTree

_BENCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench")
sys.path.insert(0, _BENCH)

# pylint: disable=wrong-import-position
import curve

_SPACE = "{http://www.w3.org/2000/svg}"


def drawn(tmp_path, panels):
    curve.draw(tmp_path / "curve.svg", "a < b", panels)
    return xml.etree.ElementTree.parse(tmp_path / "curve.svg").getroot()


def points_of(root):
    lines = [line.get("points").split() for line in root.iter(f"{_SPACE}polyline")]
    return [[tuple(map(float, point.split(","))) for point in line] for line in lines]


def test_equal_factors_are_equal_distances(tmp_path):
    line = points_of(drawn(tmp_path, [("seconds", [("make", [(1, 0.1), (10, 1), (100, 10)])])]))[0]
    (left, low), (middle, half), (right, high) = line
    assert left < middle < right and low > half > high
    assert abs((middle - left) - (right - middle)) < 0.2 and abs((low - half) - (half - high)) < 0.2


def test_values_that_are_missing_are_left_out(tmp_path):
    root = drawn(tmp_path, [("none", [("a", []), ("b", [(1, None)])]), ("some", [("a", [(1, 0), (10, 5)]), ("b", [(1, 7)])])])
    assert [len(line) for line in points_of(root)] == [1, 1]
    texts = [text.text for text in root.iter(f"{_SPACE}text")]
    assert "none" not in texts and "some" in texts and "a < b" in texts


def test_one_value_alone_has_a_scale(tmp_path):
    assert len(points_of(drawn(tmp_path, [("one", [("a", [(1, 1)])])]))[0]) == 1
