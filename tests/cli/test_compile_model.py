"""The command ``compile``: what is written for a board."""

from tests.cli.test_app import invoke, refused


def test_baremetal_project(tmp_path):
    project = tmp_path / "project"
    invoke("compile", "lenet5", "--machine", "nano", "--target", "baremetal", "-o", str(project))
    names = {each.name for each in project.iterdir()}
    assert {"model.h", "model.c", "port.h", "main.c", "link.ld", "Makefile", "CMakeLists.txt", "README.md"} <= names
    assert "int tilewright_run(" in (project / "model.h").read_text()


def test_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes").write_text("mine")
    refused(2, "compile", "lenet5", "--machine", "nano", "--target", "baremetal", "-o", str(tmp_path))
