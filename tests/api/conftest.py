from server_fixture import server  # noqa: F401 (pytest finds it by its name)
