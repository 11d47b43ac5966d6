"""Writing a file so that a failure leaves the old one: a temporary file beside it, flushed, then renamed over it."""
from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress

from tensorplay.library import TensorPlayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO


class WriteError(TensorPlayError, OSError):
    """A file could not be written; what was there before is untouched."""


@contextmanager
def atomic_write(path: Any) -> Iterator[BinaryIO]:
    """Open a file for writing that appears under `path` only when the block ends without an error.

    >>> from tensorplay.io import atomic_write
    >>> import os, pathlib, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x")
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"done")
    >>> pathlib.Path(path).read_bytes()
    b'done'

    An existing file keeps its permissions, a new one gets those of the process's umask; a symbolic link stays and its
    target is written. Raises WriteError naming the path and the reason (no such folder, no permission, disk full).
    """
    target = os.path.realpath(os.fspath(path))
    temporary = f"{target}.{os.urandom(4).hex()}.tmp"  # another thread or process may be writing the same file
    try:
        mode = _mode(target)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
    except OSError as problem:
        raise _failure(f"cannot write {path}", problem) from problem
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.chmod(temporary, mode)  # what the umask took away
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as problem:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(problem, OSError) and not isinstance(problem, WriteError):
            raise _failure(f"writing {path} failed", problem, "nothing was written" if mode is None else
                           "the old file is unchanged") from problem
        raise
    _sync_folder(os.path.dirname(target))


def _failure(what: str, problem: OSError, result: str = "") -> WriteError:
    error = WriteError(f"{what}: {problem.strerror or problem}" + (f"; {result}" if result else ""))
    error.errno = problem.errno
    return error


def _mode(target: str) -> int | None:
    """The permissions of an existing file, None if there is none. Renaming over anything else would destroy it."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a folder" if stat.S_ISDIR(mode) else "it is a device, pipe or socket")
    return stat.S_IMODE(mode)


def _sync_folder(folder: str) -> None:
    """Make the rename itself durable, where folders can be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
