"""The guest's root file system: programs of this machine, modules of the guest's kernel.

The base (everything but the run's own files) is cached by a hash of all that goes into it.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import cache, modules
from .cpio import Archive
from .errors import Unavailable
from .kernels import Kernel
from .libraries import is_elf, needed

HERE = Path(__file__).resolve().parent
PYTHON = Path("/usr/bin/python3")


@dataclass(frozen=True)
class Program:
    name: str
    package: str
    required: bool = True


PROGRAMS = (
    Program("bash", "bash"),
    Program("dash", "dash"),
    Program("kmod", "kmod"),
    Program("ip", "iproute2"),
    Program("ss", "iproute2"),
    Program("tc", "iproute2"),
    Program("bridge", "iproute2"),
    Program("nstat", "iproute2"),
    Program("wg", "wireguard-tools"),
    Program("nft", "nftables"),
    Program("ping", "iputils-ping"),
    Program("iperf3", "iperf3"),
    Program("nginx", "nginx-light"),
    Program("curl", "curl"),
    Program("ethtool", "ethtool"),
    Program("conntrack", "conntrack"),
    Program("ps", "procps"),
    # These start other programs; busybox would start its own applets in their place.
    *(Program(name, "coreutils") for name in ("chroot", "env", "nice", "nohup", "timeout")),
    *(Program(name, "findutils") for name in ("find", "xargs")),
    *(Program(name, "util-linux") for name in ("nsenter", "setpriv", "setsid", "unshare")),
    Program("wireguard-go", "wireguard-go", required=False),
)
# For a person at the guest's shell; they would lengthen every boot.
DEBUGGING = (
    Program("tcpdump", "tcpdump", required=False),
    Program("strace", "strace", required=False),
    Program("gdbserver", "gdbserver", required=False),
    Program("less", "less", required=False),
)
# Copied when they exist: names of protocols, terminals, what iproute2 calls its tables.
FILES = (
    "/etc/protocols",
    "/etc/services",
    "/etc/iproute2/*",
    "/usr/share/iproute2/*",
    "/etc/nginx/mime.types",
    "/lib/terminfo/l/linux",
    "/lib/terminfo/v/vt220",
    "/lib/terminfo/x/xterm*",
    "/lib/terminfo/s/screen*",
)
# Loaded by name and not seen by ldd.
LIBRARIES = (
    "/lib/x86_64-linux-gnu/libgcc_s.so.1",
    "/lib/x86_64-linux-gnu/libnss_dns.so.2",
    "/lib/x86_64-linux-gnu/libnss_files.so.2",
)
# Parts of Python's library that no test needs: folders, then the beginnings of file names.
PYTHON_WITHOUT = {
    *("test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "pydoc_data"),
    *("distutils", "venv", "dist-packages", "site-packages", "curses", "sqlite3", "dbm", "wsgiref"),
    *("asyncio", "unittest", "xmlrpc", "multiprocessing", "html", "msilib", "zoneinfo"),
}
PYTHON_WITHOUT_FILES = (
    *("_codecs_", "_test", "_xx", "xx", "_pydecimal", "_pyio", "turtle", "pydoc", "doctest"),
    *("audio", "imaplib", "nntplib", "mailbox", "smtp", "telnetlib", "tarfile", "zipfile"),
    *("pickletools", "pdb", "optparse", "_tkinter", "_sqlite3", "_dbm", "_gdbm", "_curses", "aifc"),
)
ACCOUNTS = (
    ("root", 0, "/root", "/bin/bash"),
    ("www-data", 33, "/var/www", "/usr/sbin/nologin"),
    ("adit", 990, "/nonexistent", "/usr/sbin/nologin"),
    ("nobody", 65534, "/nonexistent", "/usr/sbin/nologin"),
)
NGINX = """user www-data;
pid /run/nginx.pid;
events { worker_connections 256; }
http {
  include /etc/nginx/mime.types;
  server { listen 80 default_server; root /var/www/html; }
}
"""
TEXTS = {
    "/etc/hostname": "vm\n",
    "/etc/hosts": "127.0.0.1 localhost vm\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nprotocols: files\n",
    "/etc/resolv.conf": "",
    "/etc/passwd": "".join(f"{n}:x:{i}:{i}:{n}:{home}:{sh}\n" for n, i, home, sh in ACCOUNTS),
    "/etc/group": "".join(f"{name}:x:{number}:\n" for name, number, _, _ in ACCOUNTS)
    + "tty:x:5:\nnogroup:x:65533:\n",
    "/etc/shells": "/bin/sh\n/bin/bash\n",
    "/etc/nginx/nginx.conf": NGINX,
    "/var/www/html/index.html": "served by the guest\n",
    "/root/.inputrc": "set enable-bracketed-paste off\n",
    "/root/.bashrc": "PS1='vm:\\w# '\nalias ll='ls -la'\n",
}
FOLDERS = (
    *("/proc", "/sys", "/dev", "/run", "/mnt", "/root", "/usr/sbin", "/usr/lib64", "/vm"),
    *("/var/lib/nginx", "/var/log/nginx", "/var/lib/adit", "/etc/adit", "/etc/netns"),
)


class Image:
    """Collects host files, and the libraries of those that are programs.

    below: an archive that the guest unpacks before this one; its libraries need not come again.
    """

    def __init__(self, below: Archive | None = None) -> None:
        self.archive = Archive()
        self._below = below or Archive()
        self._binaries: list[Path] = []

    def add(self, source: Path, guest: str | None = None) -> None:
        """A host file under its own path or another; an ELF file brings its libraries along."""
        self.archive.copy(guest or str(source), source)
        if is_elf(source):
            self._binaries.append(source)

    def finish(self) -> Archive:
        for library in needed(self._binaries):
            if str(library) not in self.archive and str(library) not in self._below:
                self.archive.copy(str(library), library)
        return self.archive


def find_program(name: str) -> Path | None:
    path = shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    return Path(path) if path else None


def _programs(image: Image, debugging: bool) -> None:
    missing = []
    for program in (*PROGRAMS, *(DEBUGGING if debugging else ())):
        path = find_program(program.name)
        if path is not None:
            image.add(path.resolve(), str(path))
        elif program.required:
            missing.append(program.package)
    if find_program("busybox") is None:
        missing.append("busybox-static")
    if not PYTHON.exists():
        missing.append("python3")
    if missing:
        names = " ".join(dict.fromkeys(missing))
        raise Unavailable(f"the guest needs programs of these packages: apt-get install {names}")
    # Not modprobe: guest-init makes that link, since the kernel's built-in parts would load modules
    # while they start, one after the other and each with a process of its own, for seconds.
    for name in ("insmod", "rmmod", "lsmod", "modinfo", "depmod"):
        image.archive.symlink(f"/usr/sbin/{name}", "../bin/kmod")
    image.archive.symlink("/usr/bin/sh", "dash")


def _busybox(image: Image) -> None:
    """Every applet that no real program stands for."""
    path = find_program("busybox")
    assert path is not None
    image.add(path.resolve(), "/usr/bin/busybox")
    listing = subprocess.run([path, "--list"], capture_output=True, text=True, check=True)
    for applet in listing.stdout.split():
        places = [f"/usr/{folder}/{applet}" for folder in ("bin", "sbin")]
        if applet != "modprobe" and not any(place in image.archive for place in places):
            image.archive.symlink(places[0], "busybox")


def _python(image: Image) -> None:
    """Debian's Python with its compiled standard library."""
    script = "import sysconfig, json; print(json.dumps(sysconfig.get_path('stdlib')))"
    done = subprocess.run([PYTHON, "-Ic", script], capture_output=True, text=True, check=True)
    library = Path(json.loads(done.stdout))
    real = PYTHON.resolve()
    image.add(real)
    image.archive.symlink(str(PYTHON), real.name)
    for folder, folders, files in os.walk(library):
        folders[:] = [
            name
            for name in folders
            if name not in PYTHON_WITHOUT and not name.startswith("config-")
        ]
        for name in files:
            path = Path(folder, name)
            unwanted = name.startswith(PYTHON_WITHOUT_FILES) or ".opt-" in name
            if path.suffix in (".py", ".pyc", ".so") and path.is_file() and not unwanted:
                image.add(path)


def _modules(image: Image, kernel: Kernel) -> None:
    dependencies = modules.parse_dependencies((kernel.modules / "modules.dep").read_text())
    guest = f"/usr/lib/modules/{kernel.release}"
    for path in modules.wanted(dependencies):
        image.archive.copy(f"{guest}/{path}", kernel.modules / path)
    for index in kernel.modules.glob("modules.*"):
        image.archive.copy(f"{guest}/{index.name}", index)


def _skeleton(image: Image) -> None:
    archive = image.archive
    for name in Archive.MERGED:
        archive.symlink(f"/{name}", f"usr/{name}")
    for folder in FOLDERS:
        archive.folder(folder)
    archive.folder("/tmp", 0o1777)
    archive.symlink("/var/run", "/run")
    archive.character_device("/dev/console", 5, 1)
    archive.character_device("/dev/null", 1, 3, 0o666)
    for path, text in TEXTS.items():
        archive.file(path, text)
    for pattern in FILES:
        for name in filter(os.path.isfile, glob.glob(pattern)):
            archive.copy(name, Path(name).resolve())
    for name in LIBRARIES:
        if Path(name).exists():
            archive.copy(name, Path(name).resolve())
    archive.file("/init", (HERE / "guest-init").read_bytes(), 0o755)


def describe(kernel: Kernel, debugging: bool) -> Archive:
    """All that is in the base image; `debugging` adds tools for a person."""
    image = Image()
    _skeleton(image)
    _programs(image, debugging)
    _busybox(image)
    _python(image)
    _modules(image, kernel)
    return image.finish()


def cached(archive: Archive, kernel: Kernel) -> Path:
    """The archive's file; written when anything in it has changed."""
    key = hashlib.sha256("\n".join(archive.listing()).encode()).hexdigest()[:20]
    where = cache.folder("vm")
    path = where / f"base-{kernel.release}-{key}.cpio"
    if not path.exists():
        cache.forget_old("base-*.cpio", where)
        with cache.replacing(path) as out:
            archive.write(out)
    os.utime(path)
    return path
