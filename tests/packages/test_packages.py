#!/usr/bin/env python3
"""The packages in a fresh Debian 12 tree: install, upgrade, remove, purge; lintian; the tarball; the
units under a systemd of their own (test_service.py).

    test_packages.py [NAME...]     all, or the tests named: test_packages, test_service.Service.test_...

Needs root and debootstrap. The tree is made once and kept, packed, in the user's cache folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

from debian import CONFIG, PackageTest, ROOT, packages, run, scratch


class Packages(PackageTest):
    def test_lintian_has_no_errors(self) -> None:
        for file in packages(2).values():
            done = subprocess.run(
                ["lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", str(file)],
                text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_life_of_the_package(self) -> None:
        """Configuration and keys survive upgrade and removal; purge removes them."""
        tree = self.tree()
        begin = time.monotonic()
        tree.install(packages(1)["adit"])
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
        for unit in ("adit@", "adit-helper@"):
            text = (tree / f"usr/lib/systemd/system/{unit}.service").read_text()
            self.assertIn("ExecStart=/usr/sbin/aditd ", text)
            self.assertNotIn("DIR@", text)

        tree.install(packages(2)["adit"])
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
        done = tree.install(*packages(1).values())
        self.assertIn("adit-dkms: there is no module for the kernel that runs", done.stderr)
        self.assertIn(f"linux-headers-{os.uname().release}", done.stderr)
        self.assertIn("ii", tree.command("dpkg -l adit-dkms | tail -1").stdout)
        self.assertIn("adit/0.1.0", tree.command("dkms status").stdout)
        tree.command("apt-get -q -y purge adit-dkms")
        self.assertFalse((tree / "usr/src/adit-0.1.0").exists())
        self.assertFalse((tree / "var/lib/dkms/adit").exists())

    def test_the_tarball(self) -> None:
        """On a system that has none of the libraries, without a package manager's help."""
        done = run(str(ROOT / "scripts" / "package"), "--tarball", str(scratch() / "tar"),
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
    unittest.main(module=None, verbosity=2,
                  argv=sys.argv if sys.argv[1:] else [sys.argv[0], "test_packages", "test_service"])
