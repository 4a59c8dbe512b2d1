#!/usr/bin/env python3
"""The packages in a fresh Debian 12 tree: install, upgrade, remove, purge; lintian; the tarball.

    test_packages.py [NAME...]     all, or the tests named

Needs root and debootstrap. The tree is made once and kept, packed, in the user's cache folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "adit" / "packages"
# What a fresh machine has beyond the minimum: what our packages' scripts may use.
INCLUDED = ("systemd", "kmod", "ca-certificates")
KEY = "QHhCPpgyA2m4cBhGmd2hJKwNSXTZnJGRmUvVTX0WmWM="
CONFIG = f"""[Interface]
PrivateKey = {KEY}
Address = 10.77.0.1/24
"""


def run(*command: str, **named: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, text=True, capture_output=True, **named)  # type: ignore[call-overload]
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def packages(folder: Path, release: int) -> dict[str, Path]:
    """Built from this tree, as revision `release`; by name."""
    env = {**os.environ, "ADIT_PACKAGE_RELEASE": str(release), "ADIT_WERROR": "ON"}
    done = run(str(ROOT / "scripts" / "package"), str(folder), env=env)
    files = [Path(line) for line in done.stdout.split()]
    return {file.name.split("_")[0]: file for file in files}


def fresh_tree(target: Path) -> None:
    """A minimal Debian 12 in `target`."""
    archive = CACHE / "bookworm.tar"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as name:
            run("debootstrap", "--variant=minbase", f"--include={','.join(INCLUDED)}", "bookworm",
                f"{name}/tree", mirror())
            run("tar", "-C", f"{name}/tree", "-cf", f"{name}/tar", ".")
            os.rename(f"{name}/tar", archive)
    target.mkdir()
    run("tar", "-C", str(target), "-xf", str(archive))
    # Packages come from where this machine has them from.
    (target / "etc/apt/sources.list").write_text(f"deb {mirror()} bookworm main\n")
    shutil.copytree("/etc/apt/apt.conf.d", target / "etc/apt/apt.conf.d", dirs_exist_ok=True)
    for path in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(f"/{path}", target / path)


def mirror() -> str:
    """This machine's own for Debian 12, as apt knows it."""
    done = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
               "Label: Debian", "Codename: bookworm")
    return next(iter(done.stdout.split()), "http://deb.debian.org/debian")


class Tree:
    """A Debian that commands run in, with a /proc of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        fresh_tree(folder)

    def __truediv__(self, path: str) -> Path:
        return self.folder / path

    def command(self, script: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        inside = ("mount -t proc proc /proc && mount -t tmpfs tmpfs /run && "
                  "export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin;"
                  f"{script}")
        command = ("unshare", "--mount", "--pid", "--fork", "--kill-child",
                   "chroot", str(self.folder), "sh", "-ec", inside)
        done = subprocess.run(command, text=True, capture_output=True, timeout=900)
        if check and done.returncode:
            raise AssertionError(f"{script}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def install(self, *files: Path) -> subprocess.CompletedProcess[str]:
        for file in files:
            shutil.copy(file, self / "tmp")
        return self.command("apt-get -q update && apt-get -q -y install --no-install-recommends "
                            + " ".join(f"/tmp/{file.name}" for file in files))


class Packages(unittest.TestCase):
    scratch: Path
    first: dict[str, Path]
    second: dict[str, Path]

    @classmethod
    def setUpClass(cls) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        cls.scratch = Path(tempfile.mkdtemp(prefix="adit-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.first = packages(cls.scratch / "1", 1)
        cls.second = packages(cls.scratch / "2", 2)

    def tree(self) -> Tree:
        folder = self.scratch / self._testMethodName
        self.addCleanup(shutil.rmtree, folder)
        return Tree(folder)

    def assertMode(self, path: Path, mode: int) -> None:
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode, path)

    def test_lintian_has_no_errors(self) -> None:
        for file in self.second.values():
            done = subprocess.run(
                ["lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", str(file)],
                text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_life_of_the_package(self) -> None:
        """Configuration and keys survive upgrade and removal; purge removes them."""
        tree = self.tree()
        begin = time.monotonic()
        tree.install(self.first["adit"])
        print(f"  installed in {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.assertMode(tree / "etc/adit", 0o700)
        self.assertIn("adit", (tree / "etc/passwd").read_text())
        config, state = tree / "etc/adit/adit0.conf", tree / "var/lib/adit/adit0/timestamp"
        config.write_text(CONFIG)
        config.chmod(0o600)
        state.parent.mkdir(parents=True)
        state.write_text("kept")
        self.assertIn("0.1.0", tree.command("adit version && aditd --version").stdout)
        tree.command("adit check adit0")
        for path in ("usr/lib/systemd/system/adit@.service", "usr/share/man/man8/adit.8.gz",
                     "usr/share/man/man8/aditd.8.gz", "usr/share/man/man5/adit.conf.5.gz",
                     "usr/share/bash-completion/completions/adit",
                     "usr/share/zsh/vendor-completions/_adit",
                     "usr/share/fish/vendor_completions.d/adit.fish",
                     "usr/share/doc/adit/examples/server.conf"):
            self.assertTrue((tree / path).is_file(), path)
        self.assertNotIn("@", (tree / "usr/lib/systemd/system/adit@.service").read_text()
                         .replace("adit@", ""))

        tree.install(self.second["adit"])
        self.assertIn("0.1.0-2", tree.command("dpkg-query -W adit").stdout)
        self.assertEqual(config.read_text(), CONFIG)
        self.assertEqual(state.read_text(), "kept")

        tree.command("apt-get -q -y remove adit")
        self.assertFalse((tree / "usr/bin/adit").exists())
        self.assertEqual(config.read_text(), CONFIG)
        self.assertMode(config, 0o600)
        self.assertTrue(state.exists())

        tree.command("apt-get -q -y purge adit")
        self.assertFalse((tree / "etc/adit").exists())
        self.assertFalse((tree / "var/lib/adit").exists())
        self.assertNotIn("adit", tree.command("dpkg -l").stdout)

    def test_a_module_that_cannot_be_built_breaks_nothing(self) -> None:
        """Case 74: there are no headers of the kernel that runs here."""
        tree = self.tree()
        (tree / "lib/modules" / os.uname().release).mkdir(parents=True)
        done = tree.install(*self.first.values())
        self.assertIn("adit-dkms: there is no module for the kernel that runs", done.stderr)
        self.assertIn(f"linux-headers-{os.uname().release}", done.stderr)
        self.assertIn("ii", tree.command("dpkg -l adit-dkms | tail -1").stdout)
        self.assertIn("adit/0.1.0", tree.command("dkms status").stdout)
        tree.command("apt-get -q -y purge adit-dkms")
        self.assertFalse((tree / "usr/src/adit-0.1.0").exists())
        self.assertFalse((tree / "var/lib/dkms/adit").exists())

    def test_the_tarball(self) -> None:
        """On a system that has none of the libraries, without a package manager's help."""
        done = run(str(ROOT / "scripts" / "package"), "--tarball", str(self.scratch / "tar"),
                   env={**os.environ, "ADIT_WERROR": "ON"})
        archive = Path(done.stdout.strip())
        tree = self.tree()
        shutil.copy(archive, tree / "tmp")
        tree.command(f"cd /tmp && tar -xf {archive.name} && adit-*/install")
        tree.command("/opt/adit/bin/adit version && /opt/adit/sbin/aditd --version")
        (tree / "etc/adit/adit0.conf").write_text(CONFIG)
        tree.command("/opt/adit/bin/adit check adit0; test -x /etc/init.d/adit")
        self.assertNotEqual(tree.command("/tmp/adit-*/install --nonsense", check=False).returncode, 0)
        tree.command("/opt/adit/uninstall")
        self.assertFalse((tree / "opt/adit").exists())
        self.assertTrue((tree / "etc/adit/adit0.conf").exists())


if __name__ == "__main__":
    missing = [name for name in ("debootstrap", "lintian") if not shutil.which(name)]
    if os.geteuid() or missing:
        print(f"needs root, and {' '.join(missing) or 'nothing else'}", file=sys.stderr)
        sys.exit(1 if os.environ.get("ADIT_TEST_SKIP") == "forbidden" else 77)
    unittest.main(verbosity=2)
