# SPDX-License-Identifier: MIT
"""list and get: names, aliases, columns, the order of rows, labels."""
import pytest
from ctl import NOT_FOUND, USAGE, Ctl

NULL = ["target.type=null"]


@pytest.fixture
def three(ctl):
    """Devices whose order differs by name, by size and by the text of the size."""
    ctl("create", "b", *NULL, "size=2MiB", "labels.app=db")
    ctl("create", "a", *NULL, "size=1GiB", "labels.app=web")
    ctl("create", "c", *NULL, "size=512KiB")
    return ctl


def names(run):
    return [row[0] for row in run.rows]


def test_ls_is_list(three):
    assert names(three("ls")) == names(three("list")) == ["a", "b", "c"]
    assert three("ls", "-o", "name").lines == ["a", "b", "c"]
    assert three("ls", "--help").out == three("list", "--help").out == three("help", "ls").out


@pytest.mark.parametrize("word, meant", [("remove", "delete"), ("rm", "delete"), ("del", "delete"), ("show", "describe"),
                                         ("info", "describe"), ("status", "describe")])
def test_a_verb_of_other_programs_gets_the_verb_that_was_meant(word, meant):
    assert f"unknown verb '{word}'; did you mean '{meant}'?" in Ctl("/nowhere")(word, status=USAGE).err


@pytest.mark.parametrize("word, meant", [("attch", "attach"), ("lst", "list"), ("descrbe", "describe"), ("DELETE", "delete"),
                                         ("creat", "create"), ("resart", "restart"), ("evnets", "events")])
def test_a_mistyped_verb_gets_the_verb_that_was_meant(word, meant):
    for arguments in ([word], ["help", word]):
        assert f"unknown verb '{word}'; did you mean '{meant}'?" in Ctl("/nowhere")(*arguments, status=USAGE).err


@pytest.mark.parametrize("word", ["bogus", "x", "manuel", "\x1b[31m"])
def test_a_word_like_no_verb_gets_no_guess(word):
    error = Ctl("/nowhere")(word, status=USAGE).err
    assert "did you mean" not in error and "\x1b" not in error


def test_get_without_a_name_lists(three):
    assert names(three("get")) == ["a", "b", "c"] and three("get").lines[0].startswith("NAME ")
    assert three("get", "-o", "json").json == three("list", "-o", "json").json
    assert three("get", "-l", "app=db", "-o", "name").lines == ["b"]
    assert three("get", "a").json["name"] == "a"


def test_list_takes_names(three):
    assert names(three("list", "c", "a")) == ["c", "a"]
    run = three("list", "a", "nope", status=NOT_FOUND)
    assert names(run) == ["a"] and "ublkctl: nope: " in run.err
    assert "not both" in three("list", "a", "-l", "app=db", status=USAGE).err


def test_columns_by_choice(three):
    run = three("list", "--columns", "age,NAME,labels")
    assert run.lines[0].split() == ["AGE", "NAME", "LABELS"]
    assert [row[1:] for row in run.rows] == [["a", "app=web"], ["b", "app=db"], ["c", "-"]]
    assert three("get", "a", "-c", "NAME,SIZE").rows == [["a", "1GiB"]]


def test_columns_in_addition(three):
    usual = three("list").lines[0].split()
    assert three("list", "-c", "+UID,name").lines[0].split() == [*usual, "UID"]
    wide = three("list", "-o", "wide").lines[0].split()
    assert three("list", "-o", "wide", "-c", "+GENERATION").lines[0].split() == [*wide, "GENERATION"]


@pytest.mark.parametrize("arguments", [["-c", "NAME,AGES"], ["-c", ""], ["-c", "NAME,"], ["-c", "+"], ["-S", "AGES"], ["-S", "-"]])
def test_an_unknown_column_is_an_error_that_names_all(three, arguments):
    run = three("list", *arguments, status=USAGE)
    assert run.out == "" and "there is no column" in run.err
    for column in three("list", "-o", "wide", "-c", "+UID,GENERATION").lines[0].split():
        assert column in run.err


@pytest.mark.parametrize("output", ["json", "yaml", "name"])
@pytest.mark.parametrize("arguments", [["list"], ["get"], ["get", "a"]])
def test_columns_without_a_table_are_refused(three, arguments, output):
    run = three(*arguments, "-o", output, "--columns", "NAME", status=USAGE)
    assert run.out == "" and "--columns" in run.err and "table" in run.err


def test_sort_by_value_and_not_by_text(three):
    assert three("list", "--sort", "size", "-o", "name").lines == ["c", "b", "a"]
    assert three("list", "-S", "-SIZE", "-o", "name").lines == ["a", "b", "c"]
    assert names(three("list", "-S", "labels", "-c", "NAME")) == ["c", "b", "a"]
    assert [item["name"] for item in three("list", "-S", "SIZE", "-o", "json").json["items"]] == ["c", "b", "a"]


def test_equal_rows_keep_their_order(three):
    assert three("list", "-S", "target", "-o", "name").lines == ["a", "b", "c"]
    assert three("list", "-S", "-target", "-o", "name").lines == ["a", "b", "c"]


def test_age(three):
    ages = [row[0] for row in three("list", "-c", "AGE").rows]
    assert len(ages) == 3 and all(age.endswith("s") and age[:-1].isdigit() for age in ages), ages
    created = {item["name"]: item["createdAt"] for item in three("list", "-o", "json").json["items"]}
    oldest_first = three("list", "-S", "-AGE", "-o", "name").lines
    assert [created[name][:19] for name in oldest_first] == sorted(time[:19] for time in created.values())


def test_labels_that_are_not_equal(three):
    assert three("list", "-l", "app!=db", "-o", "name").lines == ["a", "c"]
    assert three("list", "-l", "app!=db", "-l", "app=web", "-o", "name").lines == ["a"]
    assert three("list", "-l", "app!=", "-o", "name").lines == ["a", "b", "c"]
    assert [spec["name"] for spec in three("export", "-l", "app!=db").json] == ["a", "c"]


@pytest.mark.parametrize("selector", ["app", "app>db", "!=db", "app in (db)", "=db"])
def test_a_selector_that_is_none_is_an_error(three, selector):
    assert "is not KEY=VALUE or KEY!=VALUE" in three("list", "-l", selector, status=USAGE).err


def test_what_changes_devices_takes_equal_labels_only(three, tmp_path):
    (tmp_path / "empty.json").write_text("[]")
    assert "is not KEY=VALUE;" in three("apply", "-f", "empty.json", "--prune", "-l", "app!=db", status=USAGE).err
    assert three("list", "-o", "name").lines == ["a", "b", "c"]
    assert three.run("attach", "x", "-l", "a!=b").status == USAGE


def test_create_of_a_file_with_several_specs_names_apply(three, tmp_path):
    (tmp_path / "all.json").write_text(three("list", "-o", "json").out)
    assert "'ublkctl apply -f all.json'" in three("create", "-f", "all.json", status=USAGE).err
    (tmp_path / "one.json").write_text(three("get", "a").out)
    three("delete", "a")
    assert three("create", "-f", "one.json").out.startswith("a created"), "a device in the form of the API"
