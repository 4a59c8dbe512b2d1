"""What one run adds to the base image: the build, the tests, a module, files, the command."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import modules
from .cpio import Archive
from .errors import VmError
from .image import PYTHON, Image
from .kernels import Kernel
from .libraries import is_elf

ROOT = Path(__file__).resolve().parents[2]
GUEST_ROOT = "/adit"
GUEST_BUILD = f"{GUEST_ROOT}/build"
# Of the source tree, what runs in the guest.
SOURCES = ("tests/netns", "tests/vm", "kmod/uapi", "scripts/demo.py", "tools/bench-user")
# Of the build tree, the folders whose programs run in the guest.
BUILT = ("ctl", "tests/peers", "tools")
SKIPPED = {"__pycache__", "CMakeFiles"}
PASSED_ON = ("ADIT_TEST_", "ADIT_LAB_")
# udev would load these for the CPU that QEMU shows.
CPU_MODULES = (
    *("crct10dif_pclmul", "crc32_pclmul", "ghash_clmulni_intel", "aesni_intel"),
    *("sha512_ssse3", "chacha_x86_64", "poly1305_x86_64"),
)


@dataclass
class Run:
    """One run's wishes. Times in seconds; paths of the host unless they say otherwise."""

    kernel: Kernel
    command: Sequence[str] = ()
    script: Path | None = None
    build_dir: Path | None = None
    module: Path | None = None
    load_module: bool = True
    includes: Sequence[tuple[Path, str]] = ()
    fetch: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: int = 0
    shell: bool = False
    ports: str = ""


class Contents:
    def __init__(self, run: Run, base: Archive, scratch: Path):
        self.run = run
        self.scratch = scratch
        self.image = Image(below=base)
        self._sources: list[tuple[Path, str]] = []

    def write(self) -> Path:
        """All of it as an archive in the scratch folder."""
        for source in SOURCES:
            if (ROOT / source).exists():
                self.tree(ROOT / source, f"{GUEST_ROOT}/{source}")
        if self.run.build_dir is not None:
            self.build(self.run.build_dir)
        for path, guest in self.run.includes:
            self.tree(path, guest)
        if self.run.module is not None:
            self.module(self.run.module)
        self.compiled()
        self.settings()
        path = self.scratch / "run.cpio"
        with path.open("wb") as out:
            self.image.finish().write(out)
        return path

    def tree(self, source: Path, guest: str) -> None:
        """A file, or a folder with everything in it."""
        if not source.is_dir():
            if not source.exists():
                raise VmError(f"{source} does not exist")
            self.image.add(source.resolve(), guest)
            return
        self.image.archive.folder(guest)
        for folder, folders, files in os.walk(source):
            folders[:] = [name for name in folders if name not in SKIPPED]
            inside = Path(folder).relative_to(source)
            for name in files:
                path = Path(folder, name)
                if path.is_file():
                    self.image.add(path.resolve(), str(Path(guest) / inside / name))
                if path.suffix == ".py":
                    self._sources.append((path, str(Path(guest) / inside / name)))

    def compiled(self) -> None:
        """Python's own compiled form beside its sources: the guest would take seconds for it."""
        plan = []
        for number, (path, guest) in enumerate(self._sources):
            plan.append((str(path), str(self.scratch / f"{number}.pyc"), guest))
        script = (
            "import sys, json, py_compile, importlib.util as u\n"
            "for path, out, guest in json.load(sys.stdin):\n"
            "    py_compile.compile(path, out, guest, doraise=True)\n"
            "    print(u.cache_from_source(guest))\n"
        )
        done = subprocess.run(
            [PYTHON, "-Ic", script],
            input=json.dumps(plan),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise VmError(f"Python files do not compile:\n{done.stderr}")
        for (_, output, _), cached in zip(plan, done.stdout.splitlines(), strict=True):
            self.image.archive.copy(cached, Path(output))

    def build(self, build: Path) -> None:
        """The programs of a build tree at the same places below GUEST_BUILD, without symbols."""
        found = False
        for part in BUILT:
            for folder, folders, files in os.walk(build / part):
                folders[:] = [name for name in folders if name not in SKIPPED]
                for name in files:
                    path = Path(folder, name)
                    if os.access(path, os.X_OK) and path.is_file() and is_elf(path):
                        found = True
                        inside = path.relative_to(build)
                        self.image.add(self.stripped(path, inside), f"{GUEST_BUILD}/{inside}")
        if not found:
            raise VmError(f"{build} holds no programs: run scripts/build, or give --build-dir")
        self.image.archive.symlink("/usr/local/bin/adit", f"{GUEST_BUILD}/ctl/cli/adit")
        self.image.archive.symlink("/usr/local/sbin/aditd", f"{GUEST_BUILD}/ctl/daemon/aditd")

    def stripped(self, path: Path, inside: Path) -> Path:
        target = self.scratch / "stripped" / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["strip", "-o", target, path], check=True, timeout=60)
        except (FileNotFoundError, subprocess.SubprocessError):
            return path
        return target

    def module(self, path: Path) -> None:
        """A module built outside of the kernel, where modprobe finds it by name and by alias."""
        release = self.run.kernel.release
        built_for = modules.release_of(path)
        if built_for != release:
            raise VmError(f"{path} was built for {built_for}, the guest runs {release}")
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            tree = Path(name) / "lib" / "modules" / release
            (tree / "updates").mkdir(parents=True)
            shutil.copy(path, tree / "updates" / path.name)
            (tree / "kernel").symlink_to(self.run.kernel.modules / "kernel")
            for index in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
                shutil.copy(self.run.kernel.modules / index, tree / index)
            modules.depmod(Path(name), release)
            for made in tree.glob("modules.*"):
                guest = f"/usr/lib/modules/{release}/{made.name}"
                self.image.archive.file(guest, made.read_bytes())
        self.image.archive.copy(f"/usr/lib/modules/{release}/updates/{path.name}", path.resolve())

    def settings(self) -> None:
        """What guest-init reads."""
        run = self.run
        load = run.module is not None and run.load_module
        values = {
            "VM_TIMEOUT": str(run.timeout),
            "VM_SHELL": "1" if run.shell else "",
            "VM_PORTS": run.ports,
            "VM_MODULE": run.module.stem if run.module is not None and load else "",
            "VM_CPU_MODULES": " ".join(CPU_MODULES),
            "VM_FETCH": " ".join(shlex.quote(path.lstrip("/")) for path in run.fetch),
            "VM_WORK": GUEST_ROOT,
            "VM_HOSTNAME": "vm",
        }
        text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
        self.image.archive.folder(GUEST_ROOT)
        self.image.archive.file("/vm/settings", text)
        self.image.archive.file("/vm/command", self.command())

    def command(self) -> str:
        argv = list(self.run.command)
        if self.run.script is not None:
            argv.insert(0, self.ship(self.run.script))
        elif argv and "/" in argv[0]:
            argv[0] = self.place(Path(argv[0]))
        if not argv:
            return ""
        passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        passed["ADIT_BUILD_DIR"] = GUEST_BUILD
        passed["ADIT_VM"] = self.run.kernel.release
        passed.update(self.run.environment)
        exports = "".join(f"export {n}={shlex.quote(v)}\n" for n, v in sorted(passed.items()))
        return f"{exports}exec {shlex.join(argv)}\n"

    def place(self, path: Path) -> str:
        """The guest's path of a program: shipped with the sources, with the image, or now."""
        absolute = Path(os.path.abspath(path))
        if absolute.is_relative_to(ROOT):
            guest = f"{GUEST_ROOT}/{absolute.relative_to(ROOT)}"
            if guest in self.image.archive:
                return guest
        system = any(absolute.is_relative_to(top) for top in ("/usr", "/bin", "/sbin"))
        return str(path) if system or not absolute.is_file() else self.ship(absolute)

    def ship(self, path: Path) -> str:
        if not path.is_file():
            raise VmError(f"{path} does not exist")
        guest = f"/vm/script/{path.name}"
        self.image.add(path.resolve(), guest)
        if not os.access(path, os.X_OK):
            raise VmError(f"{path} is not executable: chmod +x, with a #! line")
        return guest
