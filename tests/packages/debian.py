"""Fresh Debian 12 trees, the packages of this tree, and machines that systemd runs in such a tree."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

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


def build(folder: Path, release: int) -> dict[str, Path]:
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

    def __init__(self, folder: Path, copied: Tree | None = None):
        self.folder = folder
        if copied:
            run("cp", "-a", str(copied.folder), str(folder))
        else:
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


class Machine:
    """A tree that is up: systemd is its first process, in namespaces of its own."""

    #: /run and /dev are its own; what else a container gets from who starts it.
    BOOT = """mount --make-rprivate / && mount --bind "$0" "$0" && cd "$0"
        mount -t proc proc proc && mount -t sysfs sysfs sys && mount -t cgroup2 none sys/fs/cgroup
        mount -t tmpfs tmpfs run && mount -t tmpfs tmpfs dev && mkdir -p dev/pts dev/shm dev/net
        for name in null zero full random urandom tty; do
          mknod -m 666 "dev/$name" c $(stat -c '0x%t 0x%T' "/dev/$name")
        done
        mknod -m 600 dev/net/tun c 10 200
        mount -t devpts devpts dev/pts && ln -s pts/ptmx dev/ptmx
        exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
          chroot . /lib/systemd/systemd --unit=multi-user.target --show-status=0"""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.group = self._group()
        command = ("unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--fork",
                   "--kill-child", "bash", "-ec", self.BOOT, str(tree.folder))
        self.process = subprocess.Popen(
            ("sh", "-c", f'echo $$ >{self.group}/cgroup.procs && exec "$@"', "sh", *command),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.pid = int(until(lambda: children.read_text().split(), "systemd is started")[0])
        until(lambda: self.run("systemctl is-system-running", check=False).stdout.strip()
              in ("running", "degraded"), "the machine is up")

    @staticmethod
    def _group() -> Path:
        """A control group for it: systemd wants to be at the root of a tree of them."""
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        root = next(Path(mount[1]) for mount in mounts if mount[2] == "cgroup2")
        return Path(tempfile.mkdtemp(prefix="adit-machine-", dir=root))

    def enter(self, *command: str) -> tuple[str, ...]:
        return ("nsenter", "--target", str(self.pid), "--mount", "--pid", "--uts", "--ipc", "--net",
                "--cgroup", f"--root=/proc/{self.pid}/root", "--wdns=/", "env", "-i", "LC_ALL=C",
                "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command)

    def run(self, script: str, user: str = "root", check: bool = True
            ) -> subprocess.CompletedProcess[str]:
        command = self.enter("runuser", "-u", user, "--", "sh", "-ec", script)
        done = subprocess.run(command, text=True, capture_output=True, timeout=120)
        if check and done.returncode:
            raise AssertionError(f"{script}: {done.returncode}\n{done.stdout}{done.stderr}\n"
                                 + self.journal())
        return done

    def journal(self) -> str:
        command = self.enter("journalctl", "--no-pager", "-o", "cat", "-n", "60", "-u", "adit*@*")
        return subprocess.run(command, text=True, capture_output=True).stdout

    def property(self, unit: str, name: str) -> str:
        return self.run(f"systemctl show -P {name} {unit}").stdout.strip()

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
        until(lambda: "populated 0" in (self.group / "cgroup.events").read_text(), "all is gone")
        for folder, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(folder)


Said = TypeVar("Said")


def until(condition: Callable[[], Said], what: str, seconds: float = 30) -> Said:
    """Waits for the condition and returns what it said."""
    end = time.monotonic() + seconds
    while not (said := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return said


@functools.cache
def packages(release: int) -> dict[str, Path]:
    """Of this tree, as revision `release`; built once."""
    return build(scratch() / str(release), release)


@functools.cache
def installed() -> Tree:
    """To be copied: a tree with the package, revision 1."""
    tree = Tree(scratch() / "installed")
    tree.install(packages(1)["adit"])
    return tree


@functools.cache
def scratch() -> Path:
    """Of the whole run."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="adit-packages-"))
    atexit.register(shutil.rmtree, folder)
    return folder


class PackageTest(unittest.TestCase):
    def tree(self, copied: Tree | None = None, name: str = "tree") -> Tree:
        folder = scratch() / f"{self._testMethodName}-{name}"
        self.addCleanup(shutil.rmtree, folder)
        return Tree(folder, copied)

    def machine(self, tree: Tree) -> Machine:
        machine = Machine(tree)
        self.addCleanup(machine.stop)
        return machine

    def assertMode(self, path: Path, mode: int) -> None:
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode, path)
