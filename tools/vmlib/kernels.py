"""Debian's own kernels and headers: fetched with apt, unpacked into the cache, never installed."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import cache, modules
from .errors import Unavailable, VmError

IMAGES = {
    "6.1": r"^linux-image-6\.1\.0-[0-9]+-amd64-unsigned$",
    "6.12": r"^linux-image-6\.12\.[0-9]+\+deb12-amd64-unsigned$",
}
# Raised when what is taken out of the packages changes.
FORMAT = "1\n"
FETCH_SECONDS = 900
# Subfolders of the modules that may hold something wanted; the rest is 300 MB.
KEPT = re.compile(
    r"kernel/(arch|crypto|lib|net)/|kernel/drivers/(virtio|char|net)/[^/]+$|"
    r"kernel/drivers/net/(wireguard|vxlan)/"
)


def say(text: str) -> None:
    print(f"vm: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Kernel:
    """A folder with `vmlinux` and `lib/modules/RELEASE`."""

    base: Path
    release: str

    @property
    def image(self) -> Path:
        return self.base / "vmlinux"

    @property
    def modules(self) -> Path:
        return self.base / "lib" / "modules" / self.release


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def newest(names: list[str]) -> str | None:
    """The highest version among package or release names, number by number."""
    return max(names, key=_numbers, default=None)


def _run(argv: list[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise Unavailable(f"{argv[0]} is missing: only Debian's kernels are known here") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{' '.join(argv)}: no end after {FETCH_SECONDS} s") from None
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(argv)} failed:\n{done.stderr.strip()}")
    return done.stdout


def _package(series: str) -> str:
    listing = _run(["apt-cache", "search", "--names-only", IMAGES[series]])
    name = newest([line.split()[0] for line in listing.splitlines()])
    if name is None:
        raise Unavailable(
            f"apt knows no kernel {series} ({IMAGES[series]}): run apt-get update; the sources "
            "must hold Debian 12 with bookworm-security"
        )
    return name


def _release(package: str) -> str:
    return package.removeprefix("linux-image-").removesuffix("-unsigned")


def _root() -> Path:
    return cache.folder("kernels")


def _complete(path: Path) -> bool:
    marker = path / "format"
    return marker.is_file() and marker.read_text() == FORMAT


def _build(target: Path, build: Callable[[Path], None]) -> None:
    """Lets `build` fill a folder that gets its name only when it is complete."""
    with cache.locked(target.parent / f"{target.name}.lock", FETCH_SECONDS + 60):
        if _complete(target):
            return
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            work.chmod(0o755)
            build(work)
            (work / "format").write_text(FORMAT)
            shutil.rmtree(target, ignore_errors=True)
            work.rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _download(packages: list[str], into: Path) -> list[Path]:
    into.mkdir()
    # apt drops root for downloads where its own user may write.
    into.chmod(0o777)
    say(f"fetching {' '.join(packages)}")
    _run(["apt-get", "-q", "download", *packages], cwd=into)
    files = sorted(into.glob("*.deb"))
    if len(files) != len(packages):
        raise Unavailable(f"apt-get download left {len(files)} of {len(packages)} packages")
    return files


def payload(bzimage: bytes) -> bytes:
    """The compressed kernel inside a bzImage.

    Source: the kernel's Documentation/arch/x86/boot.rst (setup_sects, payload_offset).
    """
    if bzimage[0x202:0x206] != b"HdrS":
        raise VmError("not a bzImage: no HdrS")
    setup_sectors = bzimage[0x1F1] or 4
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    return bzimage[start : start + length]


def unpack_image(bzimage: bytes) -> bytes:
    """The ELF file in it, which QEMU starts directly: emulation would take 9 s to unpack it."""
    data = payload(bzimage)
    if data.startswith(b"\xfd7zXZ\0"):
        elf = lzma.LZMADecompressor().decompress(data)
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            # The image's length follows the frame: zstd complains of it after the last byte.
            done = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False)
        except FileNotFoundError:
            raise Unavailable("zstd is missing: apt-get install zstd") from None
        elf = done.stdout
    else:
        raise VmError(f"unknown compression of the kernel: it begins with {data[:6].hex()}")
    if not elf.startswith(b"\x7fELF"):
        raise VmError("the kernel's payload is no ELF file")
    return elf


def _keep(name: str, release: str) -> bool:
    inner = name.removeprefix("./").removeprefix("usr/")
    if inner.startswith("boot/config-"):
        return True
    inner = inner.removeprefix(f"lib/modules/{release}/")
    return inner.startswith("modules.") or KEPT.match(inner) is not None


def _unpack_kernel(package: Path, release: str, into: Path) -> None:
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE
    ) as source:
        with tarfile.open(fileobj=source.stdout, mode="r|") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is None:
                    continue
                if member.name.endswith(f"boot/vmlinuz-{release}"):
                    (into / "vmlinux").write_bytes(unpack_image(stream.read()))
                elif _keep(member.name, release):
                    data = stream.read()
                    name = member.name.removeprefix("./").removeprefix("usr/")
                    if name.endswith(".ko.xz"):
                        name, data = name.removesuffix(".xz"), lzma.decompress(data)
                    (into / name).parent.mkdir(parents=True, exist_ok=True)
                    (into / name).write_bytes(data)
    if source.returncode != 0:
        raise VmError(f"dpkg-deb cannot read {package}")
    if not (into / "vmlinux").exists():
        raise VmError(f"{package.name} holds no boot/vmlinuz-{release}")
    modules.depmod(into, release)


def fetch(series: str) -> Kernel:
    """The newest kernel of a series that apt knows, from the cache when it is there."""
    package = _package(series)
    release = _release(package)
    target = _root() / release

    def build(work: Path) -> None:
        files = _download([package], work / "packages")
        _unpack_kernel(files[0], release, work)
        shutil.rmtree(work / "packages")

    if not _complete(target):
        _build(target, build)
    return Kernel(target, release)


def _cached(series: str) -> Kernel | None:
    pattern = IMAGES[series].removeprefix("^linux-image-").removesuffix("-unsigned$") + "$"
    names = [
        path.name for path in _root().iterdir() if re.match(pattern, path.name) and _complete(path)
    ]
    name = newest(names)
    return Kernel(_root() / name, name) if name else None


def fetch_or_cached(series: str) -> Kernel:
    """The newest; when it cannot be had now, the newest that was fetched before."""
    try:
        return fetch(series)
    except Unavailable as error:
        kernel = _cached(series)
        if kernel is None:
            raise
        say(f"{error}\nkeeping {kernel.release}")
        return kernel


def find(which: str) -> Kernel:
    """A kernel by series ("6.1", "6.12": the newest in the cache, else fetched) or by folder."""
    if not which.count("/") and which not in IMAGES and not Path(which).is_dir():
        raise VmError(f"{which} is no kernel series: there are {' and '.join(IMAGES)}")
    if which in IMAGES:
        return _cached(which) or fetch(which)
    base = Path(which).resolve()
    releases = [path.name for path in (base / "lib" / "modules").glob("*") if path.is_dir()]
    if not (base / "vmlinux").exists() or len(releases) != 1:
        raise VmError(
            f"{which} is neither {' nor '.join(IMAGES)} nor a folder with vmlinux and "
            "lib/modules/RELEASE"
        )
    return Kernel(base, releases[0])


def _headers_packages(release: str) -> list[str]:
    first = f"linux-headers-{release}"
    depends = _run(["apt-cache", "depends", first])
    others = re.findall(r"Depends: (linux-(?:headers|kbuild)-\S+)", depends)
    if len(others) < 2:
        raise Unavailable(f"apt knows no headers of {release}: run apt-get update")
    return [first, *others]


def headers(kernel: Kernel) -> Path:
    """The folder to give to make as KDIR, with the headers of just this kernel."""
    release = kernel.release
    for built in (kernel.modules / "build", Path("/lib/modules") / release / "build"):
        if (built / "Makefile").is_file():
            return built
    target = _root() / f"{release}-headers"
    folder = f"usr/src/linux-headers-{release}"

    def build(work: Path) -> None:
        for package in _download(_headers_packages(release), work / "packages"):
            _run(["dpkg", "-x", str(package), str(work)])
        shutil.rmtree(work / "packages")
        # The other files refer to each other relatively; this one line is absolute.
        common = re.sub(r"-amd64$", "-common", release)
        makefile = work / folder / "Makefile"
        makefile.write_text(f"include {target}/usr/src/linux-headers-{common}/Makefile\n")

    if not _complete(target):
        _build(target, build)
    return target / folder
