# SPDX-License-Identifier: MIT
"""ublkd does not remove a disk that is the only way to its data, unless the request names that loss."""
import pytest

from api_server import Answer, check_problem, send, spec

MERGE = {"Content-Type": "application/merge-patch+json"}
UNKNOWN, AT_PATH, ELSEWHERE, UNNAMED = range(4)
HARMLESS = {"onCrash": "none"}  # with it a restart makes another disk

FILE = {"type": "loop", "path": "/srv/data.img"}
GOES = {
    "delete": ("DELETE", "/devices/data", None),
    "disable": ("PATCH", "/devices/data", {"enabled": False}),
}
IS_MADE_AGAIN = {
    "depth": ("PATCH", "/devices/data", {"queueDepth": 64}),
    "put": ("PUT", "/devices/data", {"name": "data", "id": 5, "target": FILE, "recovery": HARMLESS, "queueDepth": 64}),
    "offset": ("PATCH", "/devices/data", {"target": {"offset": 4096}}),
    "restart": ("POST", "/devices/data/restart", None),
}
OTHER_PATH = ("PATCH", "/devices/data", {"target": {"path": "/srv/other.img"}})


@pytest.fixture
def live(server):
    assert server.ask("POST", "/devices?wait=ready", spec(id=5, target=FILE, recovery=HARMLESS)).status == 201
    return server


def ask(server, question, query=""):
    method, path, body = question
    return server.ask(method, path + query, body, MERGE if method == "PATCH" else None)


@pytest.mark.parametrize("question", [*GOES.values(), *IS_MADE_AGAIN.values(), OTHER_PATH], ids=[*GOES, *IS_MADE_AGAIN, "path"])
def test_a_file_without_a_name(live, question):
    live.tell(f"reach {UNNAMED}")
    removal = question[0] == "DELETE"
    for query in ["?drop-last-copy=false"] if removal else ["", "?drop-last-copy=false"]:
        detail = check_problem(ask(live, question, query), 409, "last-copy")["detail"]
        assert "/dev/ublkb5" in detail
    assert live.ask("GET", "/devices/data").json["generation"] == 1
    assert ask(live, question, "?drop-last-copy=true").status in (200, 202)


@pytest.mark.parametrize("dry", ["", "&dryRun=true"])
def test_force_is_about_users_alone(live, dry):
    live.tell(f"reach {UNNAMED}")
    check_problem(live.ask("DELETE", f"/devices/data?drop-last-copy=false&force=true{dry}"), 409, "last-copy")
    assert live.ask("DELETE", "/devices/data?dryRun=true&drop-last-copy=true").json["lastCopy"] is True
    live.tell(f"reach {AT_PATH}")
    assert live.ask("DELETE", "/devices/data?dryRun=true").json["lastCopy"] is False


def test_a_removal_may_drop_the_last_copy(live):
    """A client that does not know about last copies removes what it created."""
    live.tell(f"reach {UNNAMED}")
    assert live.ask("DELETE", "/devices/data?dryRun=true").json["lastCopy"] is True
    assert live.ask("DELETE", "/devices/data").status == 202


@pytest.mark.parametrize("question", [*GOES.values(), *IS_MADE_AGAIN.values()], ids=[*GOES, *IS_MADE_AGAIN])
def test_the_refusal_names_file_and_users(live, question):
    live.tell(f"reach {UNNAMED}")
    live.tell("busy 5 mounted at /mnt and process 4211 (fio)")
    query = "?drop-last-copy=false"
    detail = check_problem(ask(live, question, query), 409, "last-copy")["detail"]
    assert "/srv/data.img" in detail and "/mnt" in detail and "4211 (fio)" in detail
    live.tell("idle")
    detail = check_problem(ask(live, question, query), 409, "last-copy")["detail"]
    assert "/srv/data.img" in detail and "/mnt" not in detail and "4211" not in detail


def test_the_search_for_users_follows_the_check_of_the_last_copy(live):
    live.tell(f"reach {UNNAMED}")
    live.tell("busy 5 process 4211 (fio)")
    check_problem(live.ask("DELETE", "/devices/data?drop-last-copy=true"), 409, "in-use")


@pytest.mark.parametrize("question", IS_MADE_AGAIN)
def test_a_new_disk_is_not_made_on_another_store(live, question):
    live.tell(f"reach {ELSEWHERE}")
    detail = check_problem(ask(live, IS_MADE_AGAIN[question]), 409, "path-elsewhere")["detail"]
    assert "/srv/data.img" in detail
    assert live.ask("GET", "/devices/data").json["generation"] == 1
    live.tell(f"reach {AT_PATH}")
    assert ask(live, IS_MADE_AGAIN[question]).status in (200, 202)


def test_a_path_that_stays_beside_a_new_one(live):
    """{A} -> {A, C}: the new disk would have what is at A now, however many stores it has."""
    live.tell(f"reach {ELSEWHERE}")

    def put(path):
        target = {"type": "stripe", "children": [{"type": "loop", "path": path}, {"type": "loop", "path": "/srv/c.img"}]}
        return live.ask("PUT", "/devices/data", {"name": "data", "id": 5, "target": target, "recovery": HARMLESS})

    check_problem(put(FILE["path"]), 409, "path-elsewhere")
    assert live.ask("GET", "/devices/data").json["generation"] == 1
    assert put("/srv/other.img").status == 200


@pytest.mark.parametrize("question", [*GOES.values(), OTHER_PATH, ("PATCH", "/devices/data", {"labels": {"a": "b"}})])
def test_changes_without_a_new_disk_there(live, question):
    live.tell(f"reach {ELSEWHERE}")
    assert ask(live, question).status in (200, 202)


@pytest.mark.parametrize("reach", [UNKNOWN, AT_PATH])
def test_a_store_that_is_reachable_changes_nothing(live, reach):
    live.tell(f"reach {reach}")
    assert ask(live, IS_MADE_AGAIN["depth"]).status == 200
    assert ask(live, GOES["delete"]).status == 202


def test_a_disk_stays_if_the_new_one_cannot_be_created(live):
    """ublkd tries to open the new store before it removes the old disk."""
    cause = "/srv/typo.img is not there."
    live.tell(f"preflight {cause}")
    answer = ask(live, ("PATCH", "/devices/data", {"target": {"path": "/srv/typo.img"}}))
    detail = check_problem(answer, 422, "cannot-start")["detail"]
    assert cause in detail and "/dev/ublkb5" in detail
    assert live.ask("GET", "/devices/data").json["generation"] == 1
    check_problem(ask(live, IS_MADE_AGAIN["put"], "?wait=ready"), 422, "cannot-start")
    assert live.tell("preflights") == 2
    live.tell("preflight")
    assert ask(live, OTHER_PATH).status == 200 and live.tell("preflights") == 3


def test_a_change_that_keeps_the_disk_has_no_preflight(live):
    live.tell("preflight no.")
    assert ask(live, ("PATCH", "/devices/data", {"labels": {"a": "b"}})).status == 200
    assert ask(live, GOES["disable"]).status == 200
    assert ask(live, OTHER_PATH).status == 200, "without a disk the file may yet come"
    assert live.tell("preflights") == 0


def test_the_result_of_a_preflight_is_about_its_generation(live):
    """The search for users follows the preflight, and the device has changed by then."""
    live.tell("stop on")
    connection = live.connect()
    send(connection, "PATCH", "/devices/data", {"queueDepth": 64}, MERGE)
    live.until("searches", 1)
    assert live.tell("preflights") == 1
    assert live.ask("PATCH", "/devices/data", {"labels": {"a": "b"}}, MERGE).status == 200
    live.tell("stop off")
    assert Answer(connection.getresponse()).status in (200, 409)
    assert live.tell("preflights") == 2
