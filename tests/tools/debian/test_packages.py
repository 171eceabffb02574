"""Packages are fetched once and whole, read within bounds, and never run."""

import io
import os
import shutil
import stat
import tarfile

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from tests.tools.debian.packages import FolderApt, build, package
from tools.debian import packages as bounds
from tools.debian.packages import Apt, download, read_packages, read_tar

QUIET = Progress(quiet=True)
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not on this machine")


# ---- the machine's apt ----

SCRIPT = """#!/bin/sh
case "$*" in
  *broken*) echo "E: Could not open lock file" >&2; exit 100;;
esac
for word in "$@"; do case "$word" in nope*) echo "E: Unable to locate package $word" >&2; bad=1;;
  virtual) echo "E: Can't select candidate version from package virtual as it has no candidate" >&2; bad=1;; esac; done
[ "$bad" ] && exit 100
for word in "$@"; do case "$word" in -*|download) ;; *)
  echo "'http://x/$word.deb' ${word}_1%3a2.0-1_all.deb 1234 SHA256:abcdef";; esac; done
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose apt-get is the script above."""
    for name in ("apt-get", "dpkg-deb"):
        (tmp_path / name).write_text(SCRIPT)
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_packages_that_a_release_does_not_have_are_left_out(machine):
    found = Apt().find(["alpha", "nope-1", "beta", "virtual", "nope-2"])
    assert list(found) == ["alpha", "beta"]
    assert (found["alpha"].version, found["alpha"].bytes) == ("1:2.0-1", 1234)
    assert (found["alpha"].kind, found["alpha"].digest) == ("SHA256", "abcdef")
    assert Apt().find(["nope"]) == {}


def test_other_troubles_of_apt_are_told(machine, tmp_path):
    with pytest.raises(DocnmtError, match=r"Could not open lock file\n  Run `apt-get update`"):
        Apt().find(["broken"])
    with pytest.raises(DocnmtError, match=r"could not download nope: E: Unable to locate.*\n  Check the network"):
        Apt().fetch([package(build_nothing(tmp_path))], tmp_path)


def build_nothing(folder):
    (folder / "nope_1_all.deb").write_bytes(b"")
    return folder / "nope_1_all.deb"


def test_where_apt_is_absent_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DocnmtError, match=r"apt-get, which is not on this machine\n  Run this on Debian or Ubuntu"):
        Apt()


# ---- fetching ----


@pytest.fixture
def shelf(tmp_path):
    """Three files that pass for packages: fetching does not look into them."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / f"{name}_1_all.deb").write_bytes(name.encode() * 100)
    return FolderApt(folder)


def test_what_is_there_is_not_fetched_again(shelf, tmp_path):
    wanted = shelf.find(["one", "two", "three"])
    first = download(shelf, wanted, tmp_path / "cache", QUIET)
    assert {name: path.read_bytes() for name, path in first.items()} == {n: n.encode() * 100 for n in wanted}
    assert download(shelf, wanted, tmp_path / "cache", QUIET) == first
    assert shelf.fetched == [["one", "two", "three"]]
    first["two"].write_bytes(b"cut")
    download(shelf, wanted, tmp_path / "cache", QUIET)
    assert shelf.fetched[1:] == [["two"]]


def test_an_interrupted_download_goes_on(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr("tools.debian.packages._BATCH_PACKAGES", 1)
    wanted = shelf.find(["one", "two", "three"])
    shelf.fails_at = "two"
    with pytest.raises(DocnmtError, match="the network is gone"):
        download(shelf, wanted, tmp_path / "cache", QUIET)
    assert not (tmp_path / "cache" / "two_1_all.deb").exists()  # what is half never has the name of the whole
    shelf.fails_at = ""
    found = download(shelf, wanted, tmp_path / "cache", QUIET)
    assert shelf.fetched == [["one"], ["two"], ["two"], ["three"]]
    assert found["two"].read_bytes() == b"two" * 100
    assert not (tmp_path / "cache" / "partial").exists()


def test_a_package_of_another_content_is_refused(shelf, tmp_path):
    wanted = shelf.find(["one"])
    shelf.packages["one"].write_bytes(b"ENO" * 100)
    with pytest.raises(DocnmtError, match=r"one_1_all.deb: does not have the hash.*\n  Run the command again"):
        download(shelf, wanted, tmp_path / "cache", QUIET)
    shelf.packages["one"].write_bytes(b"short")
    with pytest.raises(DocnmtError, match=r"one_1_all.deb: is not whole"):
        download(shelf, wanted, tmp_path / "cache", QUIET)
    assert list((tmp_path / "cache").glob("*.deb")) == []


def test_a_full_disk_is_found_before(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 99, 1))
    with pytest.raises(DocnmtError, match=r"MB free\n  Name another folder with --cache"):
        download(shelf, shelf.find(["one"]), tmp_path / "cache", QUIET)
    assert shelf.fetched == []


# ---- reading ----


def tar(*members: tuple[str, bytes, str]) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content, link in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if link:
                info.type, info.linkname, info.size = tarfile.SYMTYPE, link, 0
            archive.addfile(info, io.BytesIO(content))
    made.seek(0)
    return made


def test_only_wanted_plain_files_are_read():
    stream = tar(("./usr/a.txt", b"A", ""), ("./usr/b.png", b"B", ""), ("./usr/c.txt", b"", "/etc/passwd"))
    files = {}
    assert read_tar(stream, lambda path: path.endswith(".txt"), files, 100, "x.deb") == 1
    assert files == {"usr/a.txt": b"A"}


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "/etc/passwd", "usr/../../x"])
def test_paths_that_leave_the_package_are_refused(name):
    with pytest.raises(DocnmtError, match=r"x.deb: a path that leaves the package: .*\n  Do not trust"):
        read_tar(tar((name, b"A", "")), lambda path: True, {}, 100, "x.deb")


def test_what_is_too_large_is_refused(monkeypatch):
    with pytest.raises(DocnmtError, match=r"x.deb: b is too large \(60 bytes\)"):
        read_tar(tar(("a", b"A" * 60, ""), ("b", b"B" * 60, "")), lambda path: True, {}, 100, "x.deb")
    monkeypatch.setattr(bounds, "MAX_FILE", 50)
    with pytest.raises(DocnmtError, match=r"a is too large"):
        read_tar(tar(("a", b"A" * 60, "")), lambda path: True, {}, 1000, "x.deb")


def test_a_cut_archive_is_refused():
    whole = tar(("a", b"A" * 2000, "")).getvalue()
    with pytest.raises(DocnmtError, match=r"x.deb: not a whole package"):
        read_tar(io.BytesIO(whole[:1000]), lambda path: True, {}, 10_000, "x.deb")


@needs_dpkg
def test_packages_are_read_and_nothing_of_them_is_run(tmp_path):
    paths = [
        build(tmp_path, name, {"usr/share/x.txt": name.encode(), "usr/bin/x": b"no"}) for name in ("first", "second")
    ]
    ticks = []
    files = read_packages(paths, lambda path: path.endswith(".txt"), ticks.append)
    assert files == {"usr/share/x.txt": b"second"} and ticks == [1, 1]
    assert not (tmp_path / "was-run").exists() and not (tmp_path / "usr").exists()


@needs_dpkg
def test_a_broken_package_is_named(tmp_path):
    (tmp_path / "x_1_all.deb").write_bytes(b"!<arch>\nnonsense")
    with pytest.raises(DocnmtError, match=r"x_1_all.deb: not a whole package .*\n  Delete it from the cache"):
        read_packages([tmp_path / "x_1_all.deb"], lambda path: True, lambda count: None)
