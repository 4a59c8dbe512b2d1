#!/usr/bin/env python3
"""The parts of tools/vm that need no machine: archives, dependencies, versions, the log."""

from __future__ import annotations

import io
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from vmlib import cache, cli, kernels, kmsg, libraries, modules  # noqa: E402
from vmlib.cpio import Archive  # noqa: E402
from vmlib.errors import VmError  # noqa: E402
from vmlib.machine import Outcome  # noqa: E402


def written(archive: Archive) -> bytes:
    out = io.BytesIO()
    archive.write(out)
    return out.getvalue()


class Cpio(unittest.TestCase):
    def test_cpio_reads_it(self) -> None:
        archive = Archive()
        archive.file("/etc/deep/er/file", "content", 0o640)
        archive.symlink("/etc/link", "deep/er/file")
        archive.folder("/tmp", 0o1777)
        archive.file("/bin/tool", b"\x00\x01\x02", 0o755)
        with tempfile.TemporaryDirectory() as name:
            subprocess.run(
                ["cpio", "-i", "--quiet", "--no-absolute-filenames"],
                input=written(archive),
                cwd=name,
                check=True,
            )
            root = Path(name)
            self.assertEqual((root / "etc/deep/er/file").read_text(), "content")
            self.assertEqual(stat.S_IMODE((root / "etc/deep/er/file").stat().st_mode), 0o640)
            self.assertEqual((root / "etc/link").read_text(), "content")
            self.assertEqual(stat.S_IMODE((root / "tmp").stat().st_mode), 0o1777)
            self.assertEqual((root / "usr/bin/tool").read_bytes(), b"\x00\x01\x02")

    def test_folders_come_first_and_lengths_are_aligned(self) -> None:
        archive = Archive()
        archive.file("/a-b", "x")
        archive.file("/a/b/c", "xyz")
        data = written(archive)
        self.assertEqual(len(data) % 4, 0)
        places = [data.index(name + b"\0") for name in (b"a", b"a/b", b"a/b/c")]
        self.assertEqual(places, sorted(places))

    def test_no_way_out(self) -> None:
        for path in ("/", "/etc/../../x", ""):
            with self.assertRaises(ValueError):
                Archive().file(path, "")

    def test_listing_follows_changes(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            source = Path(name) / "source"
            source.write_text("one")
            archive = Archive()
            archive.copy("/copy", source)
            before = archive.listing()
            self.assertEqual(before, archive.listing())
            source.write_text("three")
            self.assertNotEqual(before, archive.listing())


class Modules(unittest.TestCase):
    TEXT = (
        "kernel/a.ko: kernel/b.ko kernel/c.ko\nkernel/b.ko: kernel/c.ko\nkernel/c.ko:\nkernel/d.ko:"
    )

    def test_closure(self) -> None:
        dependencies = modules.parse_dependencies(self.TEXT)
        self.assertEqual(
            modules.closure(dependencies, ["kernel/b.ko"]), ["kernel/b.ko", "kernel/c.ko"]
        )
        self.assertEqual(len(modules.closure(dependencies, ["kernel/a.ko", "kernel/c.ko"])), 3)
        with self.assertRaises(KeyError):
            modules.closure(dependencies, ["kernel/e.ko"])

    def test_what_the_guest_gets(self) -> None:
        for path in (
            "drivers/net/wireguard/wireguard.ko",
            "net/netfilter/nft_nat.ko",
            "net/ipv4/esp4.ko",
        ):
            self.assertTrue(modules.matches(f"kernel/{path}"), path)
        for path in ("drivers/net/ethernet/intel/e1000.ko", "net/netfilter/ipvs/ip_vs.ko"):
            self.assertFalse(modules.matches(f"kernel/{path}"), path)

    def test_release(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\x7fELF..\0license=GPL\0vermagic=6.1.0-57-amd64 SMP preempt \0")
            file.flush()
            self.assertEqual(modules.release_of(Path(file.name)), "6.1.0-57-amd64")
        with self.assertRaises(VmError):
            modules.release_of(Path("/bin/true"))


class Kernels(unittest.TestCase):
    def test_newest(self) -> None:
        names = [f"linux-image-6.12.{n}+deb12-amd64-unsigned" for n in (9, 117, 20)]
        self.assertEqual(kernels.newest(names), names[1])
        self.assertIsNone(kernels.newest([]))

    def test_payload(self) -> None:
        image = bytearray(4096)
        image[0x1F1] = 1
        image[0x202:0x206] = b"HdrS"
        struct.pack_into("<II", image, 0x248, 16, 5)
        image[1040:1045] = b"hello"
        self.assertEqual(kernels.payload(bytes(image)), b"hello")
        with self.assertRaises(VmError):
            kernels.payload(bytes(4096))


class Log(unittest.TestCase):
    def test_troubles(self) -> None:
        for line in (
            "[    1.0] BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "[    1.0] WARNING: CPU: 1 PID: 2 at net/core/dev.c:1 f+0x1/0x2",
            "[    1.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[    1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
            "[    1.0] unregister_netdevice: waiting for lo to become free. Usage count = 2",
            "[    1.0] INFO: task ip:12 blocked for more than 120 seconds.",
            "[    1.0] WARNING: possible circular locking dependency detected",
            "[    1.0] refcount_t: underflow; use-after-free.",
        ):
            self.assertEqual(len(kmsg.troubles(f"[ 0.9] fine\n{line}\n{line}\n")), 1, line)

    def test_harmless(self) -> None:
        log = "adit: loading out-of-tree module taints kernel.\nwireguard: WireGuard 1.0.0 loaded."
        self.assertEqual(kmsg.troubles(log), [])

    def test_emulator_failed(self) -> None:
        defect = "[    8.2] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI"
        self.assertTrue(kmsg.emulator_failed(f"fine\n{defect}\nKernel panic - not syncing"))
        self.assertTrue(kmsg.emulator_failed("[    3.0] int3: 0000 [#1] PREEMPT SMP NOPTI"))
        self.assertFalse(kmsg.emulator_failed(f"WARNING: CPU: 0\n{defect}"))
        double = "[ 62.5] Oops: double fault: 0000 [#1] PREEMPT SMP\n[ 62.6] RSP: 0018:ff EFLAGS: "
        self.assertTrue(kmsg.emulator_failed(double + "3d53e242"))
        self.assertFalse(kmsg.emulator_failed(double + "00010246"))
        self.assertFalse(kmsg.emulator_failed("Kernel panic - not syncing: sysrq"))

    def test_excerpt_begins_at_the_trouble(self) -> None:
        log = "\n".join([*map(str, range(100)), "Oops: 1", *map(str, range(100))])
        self.assertTrue(kmsg.excerpt(log).startswith("97\n98\n99\nOops"))


class Boot(unittest.TestCase):
    """What becomes of a machine whose emulator failed."""

    DEFECT = Outcome(console="[    8.2] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI")

    def ran(self, *outcomes: Outcome) -> tuple[Outcome, int]:
        """The last outcome, and how many machines it took."""
        left = list(outcomes)
        machine = mock.Mock(side_effect=lambda: mock.Mock(run=lambda: left.pop(0)))
        with mock.patch.object(cli, "say"):
            return cli._boot(machine), machine.call_count

    def test_starts_again(self) -> None:
        good = Outcome(status=0)
        self.assertEqual(self.ran(self.DEFECT, good), (good, 2))

    def test_gives_up(self) -> None:
        self.assertEqual(self.ran(*[self.DEFECT] * cli.ATTEMPTS), (self.DEFECT, cli.ATTEMPTS))

    def test_a_panic_of_its_own_is_the_result(self) -> None:
        panic = Outcome(console="Kernel panic - not syncing: sysrq")
        self.assertEqual(self.ran(panic), (panic, 1))


class Files(unittest.TestCase):
    def test_replacing_leaves_no_half(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "file"
            with self.assertRaises(RuntimeError), cache.replacing(path) as out:
                out.write(b"half")
                raise RuntimeError
            self.assertEqual(list(Path(name).iterdir()), [])
            with cache.replacing(path) as out:
                out.write(b"whole")
            self.assertEqual(path.read_bytes(), b"whole")

    def test_lock_gives_up(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "lock"
            with cache.locked(path, 1), self.assertRaises(VmError), cache.locked(path, 0.2):
                pass

    def test_libraries(self) -> None:
        found = [path.name for path in libraries.needed([Path("/usr/bin/python3").resolve()])]
        self.assertIn("libc.so.6", found)
        self.assertTrue(any(name.startswith("ld-linux") for name in found))


if __name__ == "__main__":
    unittest.main()
