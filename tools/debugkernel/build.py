"""Configures and compiles a debug kernel in the cache.

A build goes on where it was interrupted. The folder counts only once `format` stands in it, and
then is what tools/vm takes as a kernel: `vmlinux`, and `lib/modules/RELEASE` with `build`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from vmlib import cache, modules
from vmlib.errors import Unavailable, VmError

from . import source
from .kinds import Kind, refused, wanted
from .progress import run, say
from .source import Source

# Raised when what is left in a finished folder changes.
FORMAT = "1\n"
SECONDS = 3 * 3600
# What the kernel's Makefiles call, and the packages that hold it.
PROGRAMS = {
    "make": "make",
    "gcc": "gcc-12 gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
}
HEADERS = {"gelf.h": "libelf-dev"}
KEPT_SUBFOLDERS = ("scripts", "tools")


def _check_tools(kind: Kind) -> None:
    missing = [package for name, package in PROGRAMS.items() if shutil.which(name) is None]
    if kind.arch != "um":
        # For objtool, which a kernel for User Mode Linux does without.
        missing += [p for name, p in HEADERS.items() if not Path("/usr/include", name).exists()]
    if missing:
        raise Unavailable(f"to build a kernel: apt-get install {' '.join(missing)}")


def _compiler() -> str:
    try:
        done = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        raise Unavailable("gcc is missing: apt-get install gcc-12 gcc") from None
    return done.stdout.splitlines()[0]


def fingerprint(kind: Kind, compiler: str) -> str:
    """Changes when a kernel that was built before would not be the same now."""
    text = [FORMAT, kind.arch, compiler]
    text += [f"{name}={value}" for name, value in sorted(wanted(kind).items())]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:12]


def folder_of(kind: Kind, origin: Source) -> Path:
    return source.root() / f"{kind.name}-{origin.version}-{fingerprint(kind, _compiler())}"


def complete(folder: Path) -> bool:
    marker = folder / "format"
    return marker.is_file() and marker.read_text() == FORMAT


class Builder:
    def __init__(self, kind: Kind, origin: Source, folder: Path):
        self.kind = kind
        self.origin = origin
        self.folder = folder
        self.output = folder / "build"
        self.log = folder / "build.log"

    def make(self, what: str, *arguments: str, gently: bool = False) -> None:
        """`gently`: everything else on this machine goes first."""
        compiler = ["CC=ccache gcc"] if shutil.which("ccache") else []
        # The same objects in another folder are found again; what is not there is not preprocessed
        # twice.
        environment = {**os.environ, "LC_ALL": "C", "CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1"}
        environment |= {"KBUILD_BUILD_TIMESTAMP": "adit", "KBUILD_BUILD_USER": "adit"}
        environment |= {"KBUILD_BUILD_HOST": "adit"}
        for name in ("KERNELRELEASE", "KDIR", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
            environment.pop(name, None)
        argv = ["nice", "-n", "19"] if gently else []
        argv += ["make", "-C", str(self.output)]
        argv += ["-f", str(self.origin.tree / "Makefile"), f"-j{os.cpu_count()}"]
        argv += [f"ARCH={self.kind.arch}", *compiler, *arguments]
        run(argv, f"{self.kind.name}, {what}", self.log, environment)

    def configure(self) -> None:
        """The smallest configuration there is, and all that the fragments want."""
        text = "".join(path.read_text() for path in self.kind.fragment_files())
        work = self.folder / "wanted.config"
        target = self.output / ".config"
        # Written last: an interrupted attempt leaves none.
        marker = self.folder / "configured"
        if marker.is_file() and marker.read_text() == text:
            return
        marker.unlink(missing_ok=True)
        self.output.mkdir(parents=True, exist_ok=True)
        work.write_text(text)
        # make compiles anew only what an option has changed for.
        self.make("configuration", "tinyconfig")
        argv = [str(self.origin.tree / "scripts/kconfig/merge_config.sh"), "-m"]
        argv += ["-O", str(self.output), str(target), str(work)]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=self.output, check=False)
        if done.returncode != 0:
            raise VmError(f"merge_config.sh failed:\n{done.stdout}{done.stderr}")
        self.make("configuration", "olddefconfig")
        lines = refused(wanted(self.kind), target.read_text())
        if lines:
            raise VmError(f"{self.origin.version} refuses:\n" + "\n".join(lines))
        marker.write_text(text)

    def compile(self) -> None:
        say(f"compiling {self.kind.name} ({self.kind.looks_for}); the log is {self.log}")
        started = time.monotonic()
        # UML's default target makes a copy under another name, so both are named here.
        self.make("compilation", "vmlinux", "modules", gently=True)
        self.make("compilation", "modules_prepare", gently=True)
        say(f"{self.kind.name} was compiled in {time.monotonic() - started:.0f} s")

    def release(self) -> str:
        return (self.output / "include/config/kernel.release").read_text().strip()

    def publish(self) -> None:
        release = self.release()
        place = self.folder / "lib" / "modules" / release
        (place / "kernel").mkdir(parents=True, exist_ok=True)
        for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
            shutil.copy(self.output / name, place / name)
        modules.depmod(self.folder, release)
        (place / "build").unlink(missing_ok=True)
        (place / "build").symlink_to("../../../build")
        # For modules built against it: the architecture that make would guess is the machine's.
        (self.output / "Makefile").write_text(
            f"export ARCH ?= {self.kind.arch}\ninclude {self.origin.tree}/Makefile\n"
        )
        shutil.copy2(self.output / "vmlinux", self.folder / "vmlinux")
        self.forget_objects()
        (self.folder / "format").write_text(FORMAT)

    def forget_objects(self) -> None:
        """Two thirds of the folder, and of no use for building modules."""
        for place, folders, files in os.walk(self.output):
            if Path(place) == self.output:
                folders[:] = [name for name in folders if name not in KEPT_SUBFOLDERS]
            for name in files:
                if name.endswith((".o", ".a", ".o.cmd", ".a.cmd")) or "vmlinux" in name:
                    Path(place, name).unlink()


def forget_others(kind: Kind, current: Path) -> None:
    """Kernels of this kind that no run has used for a week."""
    limit = time.time() - cache.KEEP_DAYS * 86400
    for path in source.root().glob(f"{kind.name}-*"):
        if path.is_dir() and path != current and path.stat().st_mtime < limit:
            say(f"removing {path.name}: unused for {cache.KEEP_DAYS} days")
            shutil.rmtree(path, ignore_errors=True)


def cached(kind: Kind) -> Path | None:
    """The kernel's folder when it needs no building."""
    origin = source.cached()
    folder = folder_of(kind, origin) if origin else None
    return folder if folder and complete(folder) else None


def build(kind: Kind, update: bool = False) -> Path:
    """The kernel's folder, from the cache when it is there."""
    origin = source.get(update)
    folder = folder_of(kind, origin)
    if not complete(folder):
        _check_tools(kind)
        with cache.locked(source.root() / f"{folder.name}.lock", SECONDS):
            if not complete(folder):
                folder.mkdir(exist_ok=True)
                builder = Builder(kind, origin, folder)
                builder.configure()
                builder.compile()
                builder.publish()
                forget_others(kind, folder)
    os.utime(folder)
    return folder
