"""A lock in shared memory that the kernel releases as soon as its holder begins to die.

The kernel reports the end of a killed process once all its memory is freed. For a training process that takes tens of
milliseconds on a busy host, and far longer if a GPU's context is torn down. The kernel releases robust locks earlier:
get_robust_list(2), pthread_mutexattr_setrobust(3).
"""

import ctypes
import errno
import mmap
import os
import platform
from pathlib import Path

# PTHREAD_PROCESS_SHARED and PTHREAD_MUTEX_ROBUST in glibc's pthread.h.
_SHARED = _ROBUST = 1
_BYTES = mmap.PAGESIZE
# The tag lies behind the mutex. ctypes does not know the mutex's size; in glibc it has at most 48 bytes.
_TAG_AT = 1024


def make(path: Path) -> bool:
    """Make the file of a lock that no process holds; return false if this system does not support such locks.

    Raises:
        OSError: the file cannot be written.
    """
    tag = _tag()
    if not tag:
        return False
    path.unlink(missing_ok=True)  # a process may still hold a lock of this name, and keeps the old file
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.ftruncate(descriptor, _BYTES)
        memory = mmap.mmap(descriptor, _BYTES)
    finally:
        os.close(descriptor)
    libc, attributes = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_mutexattr_init(attributes)
    libc.pthread_mutexattr_setpshared(attributes, _SHARED)
    libc.pthread_mutexattr_setrobust(attributes, _ROBUST)
    libc.pthread_mutex_init(ctypes.byref(ctypes.c_char.from_buffer(memory)), attributes)
    memory[_TAG_AT : _TAG_AT + len(tag)] = tag
    return True


def hold(path: Path) -> bool:
    """Hold a lock while the calling thread lives; return false if it cannot be held.

    The lock is released when the thread ends or executes another program. A forked process does not hold it.
    """
    lock = _mapped(path)
    if lock is None or ctypes.CDLL(None).pthread_mutex_trylock(ctypes.byref(lock)) != 0:
        return False
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(lock))  # the lock's memory must outlive the interpreter
    return True


def breaks(path: Path) -> bool:
    """Wait until the holder of a lock dies; return false at once if no process holds the lock or it cannot be read."""
    lock = _mapped(path)
    if lock is None:
        return False
    libc = ctypes.CDLL(None)
    found = libc.pthread_mutex_lock(ctypes.byref(lock))  # other Python threads run meanwhile
    if found == errno.EOWNERDEAD:
        # Without this, the unlock makes the lock unusable for ever: pthread_mutex_consistent(3).
        libc.pthread_mutex_consistent(ctypes.byref(lock))
    if found in {0, errno.EOWNERDEAD}:
        libc.pthread_mutex_unlock(ctypes.byref(lock))
    return bool(found == errno.EOWNERDEAD)


def _mapped(path: Path) -> ctypes.c_char | None:
    """The lock in a file; ``None`` if another C library made it or it cannot be read."""
    tag = _tag()
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        memory = mmap.mmap(descriptor, _BYTES)
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    if not tag or memory[_TAG_AT : _TAG_AT + len(tag) + 1] != tag + b"\0":
        return None
    return ctypes.c_char.from_buffer(memory)


def _tag() -> bytes:
    """An id of this C library, which defines the layout of a lock."""
    try:
        return f"{os.confstr('CS_GNU_LIBC_VERSION')} {platform.machine()} {ctypes.sizeof(ctypes.c_void_p)}".encode()
    except (OSError, ValueError):
        return b""
