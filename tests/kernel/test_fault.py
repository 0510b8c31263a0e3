# SPDX-License-Identifier: MIT
"""The target for tests: what rules ask for reaches the opener of the disk, and what was acknowledged survives it."""

import time

import pytest

from harness.api import condition_of
from harness.disk import Disk, block
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_CHUNK = 16 << 10


@pytest.fixture(name="allowing")
def _allowing(make_daemon):
    return make_daemon(more_options=("--allow-fault-target", "yes")).start()


def _over(path, *rules, **more):
    loop = {"type": "loop", "path": str(path)}
    return {"name": "data", "target": {"type": "fault", "seed": 42, "rules": list(rules), "child": loop}, **more}


def _fired(daemon):
    return [rule["fired"] for rule in daemon.api.ask("GET", "/devices/data/stats", 200)["fault"]["rules"]]


def _change_target(daemon, change):
    daemon.api.ask("PATCH", "/devices/data?wait=ready&timeout=60s", 200, json={"target": change},
                   headers={"Content-Type": "application/merge-patch+json"})


def _set_rules(daemon, *rules):
    _change_target(daemon, {"rules": list(rules)})


def _bytes_of(path, offset, length):
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def test_an_opener_sees_the_error_of_a_rule(file_of, allowing):
    errors = ["EIO", "ENODATA", "EILSEQ", "ETIMEDOUT"]
    path = file_of(size=16 * _MIB)
    before = _bytes_of(path, 0, len(errors) * 4096)
    rules = [{"action": "error", "op": "write", "from": number * 4096, "to": (number + 1) * 4096, "error": error}
             for number, error in enumerate(errors)]
    disk = Disk(allowing.api.create(_over(path, *rules))["status"]["id"])
    assert [disk.write_later(number * 4096, block("a")).result() for number in range(len(errors))] == errors
    assert _bytes_of(path, 0, len(errors) * 4096) == before
    assert disk.write_later(len(errors) * 4096, block("b")).result() is None
    assert _bytes_of(path, len(errors) * 4096, 4096) == block("b")
    assert _fired(allowing) == [1] * len(errors)


def _bits_that_differ(one, other):
    assert len(one) == len(other)
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()


def test_short_corrupt_and_late_requests(file_of, allowing):
    """What the opener gets, and what is in the file: each rule is for a MiB of its own, far from what a kernel looks at."""
    length, delay = 16 << 10, 0.4
    short_write, short_read, corrupt_write, corrupt_read, late = places = [number * _MIB for number in range(8, 13)]
    original, path = block("o", length), file_of(size=16 * _MIB)
    path.write_bytes(block("o", 16 * _MIB))
    kinds = [{"action": "short", "op": "write", "bytes": 3 * 4096 + 100}, {"action": "short", "op": "read", "bytes": 4096},
             {"action": "corrupt", "op": "write"}, {"action": "corrupt", "op": "read"},
             {"action": "delay", "op": "write", "delay": f"{int(delay * 1000)}ms"}]
    rules = [{**kind, "from": place, "to": place + length} for kind, place in zip(kinds, places)]
    disk = Disk(allowing.api.create(_over(path, *rules))["status"]["id"])

    def left(offset):
        return _bytes_of(path, offset, length)

    assert disk.write_later(short_write, block("s", length)).result() == "EIO"
    assert left(short_write) == block("s", 3 * 4096) + original[3 * 4096:]
    assert disk.read_later(short_read, length).result() == "EIO"
    disk.write(corrupt_write, block("c", length))
    assert _bits_that_differ(left(corrupt_write), block("c", length)) == 1
    assert disk.read(corrupt_write, length) == left(corrupt_write)
    assert _bits_that_differ(disk.read(corrupt_read, length), original) == 1
    assert left(corrupt_read) == original
    begin = time.monotonic()
    disk.write(late, block("l", length))
    assert time.monotonic() - begin >= delay
    assert left(late) == block("l", length)
    assert _fired(allowing) == [1] * len(places)


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_death_at_the_nth_request_loses_nothing_that_was_acknowledged(file_of, allowing, moment):
    path = file_of(size=16 * _MIB)
    rule = {"action": "die", "op": "write", "nth": 7, "times": 3, "moment": moment}
    disk = Disk(allowing.api.create(_over(path, rule, recovery={"onCrash": "reissue"}))["status"]["id"])
    blocks = [block(chr(ord("a") + number % 26)) for number in range(40)]
    for number, data in enumerate(blocks):
        disk.write(number * 4096, data)
        assert disk.read(number * 4096, 4096) == data
    wait_until(lambda: _fired(allowing) == [3], "three workers have died")
    assert _bytes_of(path, 0, len(blocks) * 4096) == b"".join(blocks)


def test_a_request_that_hangs_goes_on_when_the_rules_change(file_of, allowing):
    path = file_of(size=16 * _MIB)
    disk = Disk(allowing.api.create(_over(path))["status"]["id"])
    pid = allowing.worker_pid("data")
    _set_rules(allowing, {"action": "hang", "op": "write"})
    assert _fired(allowing) == [0]
    write = disk.write_later(0, block("h"))
    wait_until(lambda: _fired(allowing) == [1], "the write hangs")
    assert not write.done
    _set_rules(allowing)
    assert write.result() is None
    assert _bytes_of(path, 0, 4096) == block("h")
    assert allowing.worker_pid("data") == pid


@pytest.mark.parametrize("start", [pytest.param(0, id="outermost"), pytest.param(_MIB, id="below")])
def test_a_power_cut_keeps_what_was_flushed_and_loses_a_part_of_the_rest(file_of, allowing, start):
    path = file_of(size=16 * _MIB)
    count = 64
    spec = _over(path, recovery={"onCrash": "reissue"})
    spec["target"]["volatileCache"] = True
    if start > 0:
        spec["target"] = {"type": "linear", "offset": start, "child": spec["target"]}
        spec["size"] = 14 * _MIB
    disk = Disk(allowing.api.create(spec)["status"]["id"])
    assert disk.queue("write_cache") == "write back"
    before = _bytes_of(path, start, count * 4096)
    for number in range(count):
        disk.write(number * 4096, block("f"))
    assert _bytes_of(path, start, count * 4096) == before
    disk.flush()
    assert _bytes_of(path, start, count * 4096) == block("f") * count
    for number in range(count):
        disk.write(number * 4096, block("u"))
    pid = allowing.worker_pid("data")
    allowing.api.restart("data")  # no power cut: nothing is lost
    allowing.api.wait_other_worker("data", pid)
    assert disk.read(0, count * 4096) == block("u") * count
    rules = {"rules": [{"action": "powercut", "op": "write", "from": 8 * _MIB, "times": 1}]}
    _change_target(allowing, {"child": rules} if start > 0 else rules)
    disk.write(8 * _MIB, block("z"))
    assert _fired(allowing) == [1]
    left = disk.read(0, count * 4096)
    sectors = [left[offset:offset + 512] for offset in range(0, len(left), 512)]
    assert {sector for sector in sectors} == {block("f")[:512], block("u")[:512]}
    assert _bytes_of(path, start, count * 4096) == left


def _wait_ended(daemon, action):
    """Wait for the end of an action; return what it is then."""
    done = {}

    def has_ended():
        done.update(daemon.api.ask("GET", f"/devices/data/actions/{action['id']}", 200))
        return done["state"] not in ("Pending", "Running")

    wait_until(has_ended, "the action to end", 60)
    return done


def test_a_power_cut_as_an_action(file_of, allowing):
    """It has succeeded although its worker is dead, and what it says is lost is what is lost."""
    path = file_of(size=16 * _MIB)
    count = 64
    spec = _over(path, recovery={"onCrash": "reissue"})
    spec["target"]["volatileCache"] = True
    disk = Disk(allowing.api.create(spec)["status"]["id"])
    for letter in "fu":
        for number in range(count):
            disk.write(number * 4096, block(letter))
        if letter == "f":
            disk.flush()
    pid = allowing.worker_pid("data")
    action = allowing.api.ask("POST", "/devices/data/actions/powercut", 202, json={"seed": 7})
    allowing.api.wait_other_worker("data", pid)
    done = _wait_ended(allowing, action)
    assert (done["state"], done["result"]["seed"]) == ("Succeeded", 7), done
    left = disk.read(0, count * 4096)
    lost = [offset for offset in range(0, len(left), 512) if left[offset:offset + 512] == block("f")[:512]]
    assert 0 < len(lost) < len(left) // 512
    assert done["result"]["lost"]["bytes"] == 512 * len(lost)
    first = done["result"]["lost"]["ranges"][0]
    assert lost[0] == first["offset"]
    assert done["result"]["bytesWritten"] == len(left) - 512 * len(lost)
    assert _bytes_of(path, 0, count * 4096) == left


@pytest.mark.parametrize("moment", ["suspended", "resumed"])
def test_a_death_at_each_await_of_a_flush(file_of, allowing, moment):
    """Three blocks in the cache: a flush waits four times. The worker that follows a death flushes what is left."""
    path = file_of(size=16 * _MIB)
    spec = _over(path, recovery={"onCrash": "reissue"})
    spec["target"]["volatileCache"] = True
    disk = Disk(allowing.api.create(spec)["status"]["id"])
    size = int(disk.queue("logical_block_size"))
    for await_number in range(1, 6):
        data = block("abcde"[await_number - 1])[:size]
        for number in range(3):
            disk.write(number * size, data)
        _set_rules(allowing, {"action": "die", "op": "flush", "times": 1, "moment": moment, "await": await_number})
        pid = allowing.worker_pid("data")
        disk.flush()
        if await_number <= 4:
            allowing.api.wait_other_worker("data", pid)
        else:
            assert allowing.worker_pid("data") == pid
        assert _bytes_of(path, 0, 3 * size) == data * 3


@pytest.fixture(name="legs")
def _legs(file_of):
    """Two files, of a stripe of which only the second one is below rules."""
    return [file_of(f"{letter}.img", size=8 * _MIB) for letter in "ab"]


def _stripe_with_a_leg(legs, *rules, cache=False, **more):
    loops = [{"type": "loop", "path": str(path)} for path in legs]
    leg = {"type": "fault", "seed": 42, "volatileCache": cache, "rules": list(rules), "child": loops[1]}
    target = {"type": "stripe", "chunk": _CHUNK, "children": [loops[0], leg]}
    return {"name": "data", "target": target, "recovery": {"onCrash": "reissue"}, **more}


def _set_rules_of_leg(daemon, legs, *rules):
    _change_target(daemon, {"children": _stripe_with_a_leg(legs, *rules)["target"]["children"]})


def test_the_error_of_a_leg_reaches_the_opener(legs, allowing):
    """The rule is for bytes of that leg. The other parts of the request are performed all the same."""
    rules = [{"action": "error", "op": op, "from": 4096, "to": 8192, "error": error}
             for op, error in (("write", "EILSEQ"), ("read", "ENODATA"))]
    disk = Disk(allowing.api.create(_stripe_with_a_leg(legs, *rules))["status"]["id"])
    before = _bytes_of(legs[1], 0, _CHUNK)
    chunks = [block(letter, _CHUNK) for letter in "wxyz"]
    assert disk.write_later(0, b"".join(chunks)).result() == "EILSEQ"
    assert _bytes_of(legs[0], 0, 2 * _CHUNK) == chunks[0] + chunks[2]
    assert _bytes_of(legs[1], 0, 2 * _CHUNK) == before + chunks[3]
    assert disk.read_later(0, 4 * _CHUNK).result() == "ENODATA"
    assert disk.read(0, _CHUNK) == chunks[0] and disk.read(2 * _CHUNK, 2 * _CHUNK) == chunks[2] + chunks[3]
    disk.write(_CHUNK, block("n"))  # of the same chunk: the block before that of the rule
    assert _bytes_of(legs[1], 0, 4096) == block("n")
    assert _fired(allowing) == [1, 1]


def test_a_death_in_a_leg_loses_nothing_that_was_acknowledged(legs, allowing):
    disk = Disk(allowing.api.create(_stripe_with_a_leg(legs))["status"]["id"])
    for number, moment in enumerate(["before", "during", "after", "suspended", "resumed"]):
        offset, chunks = 8 * number * _CHUNK, [block(letter, _CHUNK) for letter in "klmn"]
        disk.write(offset, block("i", 8 * _CHUNK))
        _set_rules_of_leg(allowing, legs, {"action": "die", "op": "write", "times": 1, "moment": moment})
        pid = allowing.worker_pid("data")
        disk.write(offset, b"".join(chunks))
        allowing.api.wait_other_worker("data", pid)
        assert _fired(allowing) == [1], moment
        assert disk.read(offset, 5 * _CHUNK) == b"".join(chunks) + block("i", _CHUNK), moment
        assert _bytes_of(legs[0], offset // 2, 3 * _CHUNK) == chunks[0] + chunks[2] + block("i", _CHUNK), moment
        assert _bytes_of(legs[1], offset // 2, 3 * _CHUNK) == chunks[1] + chunks[3] + block("i", _CHUNK), moment
        _set_rules_of_leg(allowing, legs)


def test_a_power_cut_of_a_leg(legs, allowing):
    """What it reports are ranges of that leg. The other one, which has no cache, loses nothing."""
    length = 16 * _CHUNK
    disk = Disk(allowing.api.create(_stripe_with_a_leg(legs, cache=True))["status"]["id"])
    disk.write(0, block("f", length))
    disk.flush()
    assert [_bytes_of(path, 0, length // 2) for path in legs] == [block("f", length // 2)] * 2
    disk.write(0, block("u", length))
    assert _bytes_of(legs[0], 0, length // 2) == block("u", length // 2)
    assert _bytes_of(legs[1], 0, length // 2) == block("f", length // 2)
    pid = allowing.worker_pid("data")
    action = allowing.api.ask("POST", "/devices/data/actions/powercut", 202, json={"seed": 7})
    allowing.api.wait_other_worker("data", pid)
    done = _wait_ended(allowing, action)
    assert done["state"] == "Succeeded", done
    left = _bytes_of(legs[1], 0, length // 2)
    lost = [offset for offset in range(0, len(left), 512) if left[offset:offset + 512] == block("f", 512)]
    assert set(left) == set(b"fu") and 0 < len(lost) < len(left) // 512
    assert done["result"]["lost"]["bytes"] == 512 * len(lost)
    assert done["result"]["lost"]["ranges"][0]["offset"] == lost[0]
    assert _bytes_of(legs[0], 0, length // 2) == block("u", length // 2)
    chunks = [left[offset:offset + _CHUNK] for offset in range(0, len(left), _CHUNK)]
    assert disk.read(0, length) == b"".join(block("u", _CHUNK) + chunk for chunk in chunks)


def test_a_record_of_a_test_gets_no_disk_without_the_setting(file_of, allowing):
    path = file_of(size=16 * _MIB)
    allowing.api.create(_over(path))
    allowing.api.ask("POST", "/devices/data/stop?wait&timeout=60s", 200)
    allowing.stop()
    allowing.more_options = ()
    allowing.start()
    problem = allowing.api.create({**_over(path), "name": "other"}, status=422, wait=None)
    assert [fault["reason"] for fault in problem["errors"]] == ["TestTargetNotAllowed"]
    allowing.api.ask("POST", "/devices/data/start", 202)
    refused = allowing.api.wait_for(
        "data", lambda device: (condition_of(device) or {}).get("reason") == "TestTargetNotAllowed", "refused")
    assert refused["status"]["device"] is None
