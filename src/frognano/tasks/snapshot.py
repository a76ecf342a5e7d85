"""A content-addressed store of repository trees.

A snapshot is named by the hash of its files. Adding the same files twice gives the same name; deriving a mutated
copy stores only what changed. ``path`` gives a sealed tree on disk: the files and one git commit, nothing else,
nothing of any other version. Trees are made beside their place and moved in, so several processes may share a
store. File modes are 0644 and 0755 because the solver sees them: a tree must be mounted read-only or copied,
never handed out as a working folder. Who can write to the store can damage it; ``verify`` tells.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from frognano.records import Record
from frognano.tasks.patch import FILE, Changes, Entry, check_name
from frognano.tasks.seal import seal
from frognano.tasks.tree import read_tree, tree_digest, write_tree


class SnapshotError(RuntimeError):
    """The store does not hold this snapshot, or holds a damaged one."""


class StoredFile(Record):
    """Where one file of a snapshot is kept."""

    mode: int
    content: str
    """SHA-256 of the bytes."""


class SnapshotStore:
    """Repository trees below ``root``, shared by every process that names the same folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        for sub in ("blobs", "manifests", "trees", "partial"):
            (self.root / sub).mkdir(parents=True, exist_ok=True)
        self._manifests: dict[str, dict[str, StoredFile]] = {}

    def add(self, folder: Path) -> str:
        """Store the source files of ``folder``; the snapshot's digest. Raises TreeError."""
        return self.add_files(read_tree(folder))

    def add_files(self, files: Mapping[str, Entry]) -> str:
        """Store the given files as one snapshot; its digest."""
        return self._keep({name: self._put(name, entry) for name, entry in files.items()})

    def derive(self, digest: str, changes: Mapping[str, bytes | Entry | None]) -> str:
        """Store a changed copy: new bytes keep the file's mode, None removes the file; the new digest."""
        manifest = dict(self.manifest(digest))
        for name, change in changes.items():
            if change is None:
                if manifest.pop(name, None) is None:
                    raise SnapshotError(f"{name}: not in snapshot {digest[:12]}")
                continue
            mode = manifest[name].mode if name in manifest else FILE
            entry = change if isinstance(change, Entry) else Entry(mode, change)
            manifest[name] = self._put(name, entry)
        return self._keep(manifest)

    def manifest(self, digest: str) -> Mapping[str, StoredFile]:
        """Path → stored file, in sorted order."""
        if digest not in self._manifests:
            try:
                raw = json.loads((self.root / "manifests" / f"{digest}.json").read_bytes())
            except FileNotFoundError:
                raise SnapshotError(f"no snapshot {digest[:12]} in {self.root}") from None
            self._manifests[digest] = {
                name: StoredFile(mode=mode, content=content) for name, (mode, content) in raw.items()
            }
        return self._manifests[digest]

    def __contains__(self, digest: str) -> bool:
        return digest in self._manifests or (self.root / "manifests" / f"{digest}.json").exists()

    def entry(self, digest: str, name: str) -> Entry | None:
        """One file of a snapshot; None when it has no such file."""
        stored = self.manifest(digest).get(name)
        return None if stored is None else Entry(stored.mode, self._blob(stored.content).read_bytes())

    def read(self, digest: str, name: str) -> bytes:
        """The bytes of one file. Raises SnapshotError when there is no such file."""
        found = self.entry(digest, name)
        if found is None:
            raise SnapshotError(f"{name}: not in snapshot {digest[:12]}")
        return found.data

    def files(self, digest: str) -> dict[str, Entry]:
        """Every file of a snapshot."""
        return {
            name: Entry(stored.mode, self._blob(stored.content).read_bytes())
            for name, stored in self.manifest(digest).items()
        }

    def path(self, digest: str) -> Path:
        """Folder of the sealed tree (files and one commit), made at the first call."""
        place = self.root / "trees" / digest
        if not place.exists():
            self._materialise(place, digest)
        return place

    def verify(self, digest: str) -> None:
        """Raise SnapshotError unless the tree on disk is exactly the snapshot."""
        if self._digest_on_disk(self.path(digest)) != digest:
            raise SnapshotError(f"the tree of snapshot {digest[:12]} was changed on disk: delete {self.path(digest)}")

    def restore(self, changes: Mapping[str, object], digest: str) -> Changes:
        """For each named path its state in the snapshot: the entry, or None where the snapshot has no such file."""
        return {name: self.entry(digest, name) for name in changes}

    def _digest_on_disk(self, place: Path) -> str:
        files = read_tree(place)
        return tree_digest((name, e.mode, hashlib.sha256(e.data).hexdigest()) for name, e in files.items())

    def _materialise(self, place: Path, digest: str) -> None:
        files = self.files(digest)
        made = Path(tempfile.mkdtemp(prefix=f"{digest[:12]}-", dir=self.root / "partial"))
        try:
            made.chmod(0o755)
            write_tree(made, files)
            seal(made, files)
            os.rename(made, place)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            # Another process may have put the same tree there first; then that one serves.
            if not place.exists():
                raise

    def _blob(self, content: str) -> Path:
        return self.root / "blobs" / content[:2] / content[2:]

    def _put(self, name: str, entry: Entry) -> StoredFile:
        check_name(name)
        content = hashlib.sha256(entry.data).hexdigest()
        place = self._blob(content)
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            self._write(place, entry.data)
        return StoredFile(mode=entry.mode, content=content)

    def _keep(self, files: Mapping[str, StoredFile]) -> str:
        ordered = {name: files[name] for name in sorted(files, key=os.fsencode)}
        digest = tree_digest((name, stored.mode, stored.content) for name, stored in ordered.items())
        place = self.root / "manifests" / f"{digest}.json"
        if not place.exists():
            rows = {name: [stored.mode, stored.content] for name, stored in ordered.items()}
            self._write(place, json.dumps(rows).encode())
        self._manifests[digest] = ordered
        return digest

    def _write(self, place: Path, data: bytes) -> None:
        handle, partial = tempfile.mkstemp(dir=self.root / "partial")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(partial, 0o444)
        os.replace(partial, place)
