"""Other implementations of WireGuard in userspace: the packaged one, and the newest ones, built from
their registries into the cache where a toolchain is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

GO_MODULE = "golang.zx2c4.com/wireguard"
CRATE = "boringtun-cli"
# A first build of the crate takes a minute or two of CPU time.
BUILD_SECONDS = 1200


@dataclass(frozen=True)
class Reference:
    name: str
    version: str
    # The command line, to which the interface's name is added. It stays in the foreground and makes
    # WireGuard's socket.
    program: tuple[str, ...]


@dataclass(frozen=True)
class Absent:
    """One that is left out, and why."""

    name: str
    why: str


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "adit" / "bench-user"


def _run(*argv: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        argv,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise OSError(f"{argv[0]} {argv[1]}: {said[-1] if said else 'failed'}")
    return done.stdout


def packaged_wireguard_go() -> Reference | Absent:
    name = "wireguard-go (packaged)"
    program = shutil.which("wireguard-go")
    if program is None:
        return Absent(name, "wireguard-go is not installed")
    version = _run(program, "--version").splitlines()[0].split()[-1]
    return Reference(name, version, (program, "-f"))


def newest_wireguard_go() -> Reference | Absent:
    go = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
    if go is None:
        return Absent("wireguard-go", "no Go toolchain")
    bin_dir = cache() / "go"
    try:
        _run(go, "install", f"{GO_MODULE}@latest", env={"GOBIN": str(bin_dir)})
        # `path`, `mod` and `dep` lines; the version is the third word of `mod`.
        lines = _run(go, "version", "-m", str(bin_dir / "wireguard")).splitlines()
    except (OSError, subprocess.TimeoutExpired) as error:
        return Absent("wireguard-go", f"the newest cannot be built: {error}")
    version = next(words[2] for words in map(str.split, lines) if words[:1] == ["mod"])
    return Reference("wireguard-go", version, (str(bin_dir / "wireguard"), "-f"))


def newest_boringtun() -> Reference | Absent:
    cargo = shutil.which("cargo", path=os.environ.get("PATH", "") + f":{Path.home()}/.cargo/bin")
    if cargo is None:
        return Absent("boringtun", "no Rust toolchain")
    root = cache() / "cargo"
    try:
        _run(
            *(cargo, "install", "--quiet", "--locked", "--root", str(root), CRATE),
            env={"CARGO_TARGET_DIR": str(root / "target")},
        )
        installed = json.loads((root / ".crates2.json").read_text())["installs"]
    except (OSError, subprocess.TimeoutExpired) as error:
        return Absent("boringtun", f"the newest cannot be built: {error}")
    version = next(key.split()[1] for key in installed if key.split()[0] == CRATE)
    return Reference(
        "boringtun",
        version,
        (str(root / "bin" / CRATE), "--foreground", "--disable-drop-privileges"),
    )


# By the name that --reference takes, in the order of preference as what ratios refer to.
FINDERS = {
    "wireguard-go": newest_wireguard_go,
    "packaged": packaged_wireguard_go,
    "boringtun": newest_boringtun,
}
