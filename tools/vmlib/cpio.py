"""Archives in the "newc" format that the kernel unpacks as its first root file system.

Source: the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

MAGIC = b"070701"
TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """One inode. `content`: a file's bytes, a host file to copy, or a link's target."""

    mode: int
    content: bytes | Path = b""
    mtime: int = 0
    device: tuple[int, int] = (0, 0)

    def size(self) -> int:
        return self.content.stat().st_size if isinstance(self.content, Path) else len(self.content)


def _padding(length: int) -> bytes:
    return b"\0" * (-length % 4)


def header(name: bytes, entry: Entry, inode: int, size: int) -> bytes:
    """A header with its name, padded; `size` in bytes is that of the content that follows."""
    fields = (
        *(inode, entry.mode, 0, 0, 1, entry.mtime, size, 0, 0),
        *(*entry.device, len(name) + 1, 0),
    )
    text = MAGIC + b"".join(b"%08x" % field for field in fields) + name + b"\0"
    return text + _padding(len(text))


class Archive:
    """A tree of entries by absolute guest path; folders on the way are made when missing.

    Debian's merged /usr is part of it: /bin, /sbin, /lib and /lib64 lead to /usr.
    """

    MERGED = ("bin", "sbin", "lib", "lib64")

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __contains__(self, path: str) -> bool:
        return self._name(path) in self._entries

    def _name(self, path: str) -> str:
        parts = [part for part in PurePosixPath(path).parts if part != "/"]
        if ".." in parts or not parts:
            raise ValueError(f"no place in an archive: {path!r}")
        if parts[0] in self.MERGED and len(parts) > 1:
            parts.insert(0, "usr")
        return "/".join(parts)

    def _add(self, path: str, entry: Entry) -> None:
        name = self._name(path)
        parent = name.rpartition("/")[0]
        if parent and parent not in self._entries:
            self.folder("/" + parent)
        self._entries[name] = entry

    def folder(self, path: str, mode: int = 0o755) -> None:
        self._add(path, Entry(stat.S_IFDIR | mode))

    def file(self, path: str, content: bytes | str, mode: int = 0o644) -> None:
        data = content.encode() if isinstance(content, str) else content
        self._add(path, Entry(stat.S_IFREG | mode, data))

    def copy(self, path: str, source: Path) -> None:
        """A host file with its mode and time (Python's compiled modules depend on the latter)."""
        status = source.stat()
        mode = stat.S_IFREG | stat.S_IMODE(status.st_mode) & 0o755
        self._add(path, Entry(mode, source, int(status.st_mtime)))

    def symlink(self, path: str, target: str) -> None:
        self._add(path, Entry(stat.S_IFLNK | 0o777, target.encode()))

    def character_device(self, path: str, major: int, minor: int, mode: int = 0o600) -> None:
        self._add(path, Entry(stat.S_IFCHR | mode, device=(major, minor)))

    def paths(self) -> Iterator[str]:
        return (f"/{name}" for name in sorted(self._entries))

    def sources(self) -> list[Path]:
        """The host files that it copies."""
        return [e.content for e in self._entries.values() if isinstance(e.content, Path)]

    def listing(self) -> list[str]:
        """One line for each entry that changes when the entry does; contents by size and time."""
        lines = []
        for name, entry in sorted(self._entries.items()):
            content: object = entry.content
            if isinstance(content, Path):
                status = content.stat()
                content = (str(content), status.st_size, status.st_mtime_ns)
            lines.append(f"{name} {entry.mode:o} {entry.device} {content!r}")
        return lines

    def write(self, out: BinaryIO) -> None:
        """Archives may follow each other in one file; the length is a multiple of four."""
        # A folder stands before what is in it, since the kernel makes none by itself.
        for inode, (name, entry) in enumerate(sorted(self._entries.items()), start=1):
            content = entry.content
            data = content.read_bytes() if isinstance(content, Path) else content
            out.write(header(name.encode(), entry, inode, len(data)))
            out.write(data)
            out.write(_padding(len(data)))
        out.write(header(TRAILER.encode(), Entry(0), 0, 0))
