"""Long computations in a process of their own, so that leases are renewed and watches heard while they last.

The child is a copy of this process: it has every object already, none is sent to it, and only the answer comes back. Where the
answer names objects that the caller shares, these come back as the very same. The child lives as long as one computation, so
what it needed of memory is given back.
"""

import asyncio
import copyreg
import ctypes
import gc
import io
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar

T = TypeVar("T")

_PARENT_DEATH_SIGNAL: Final = 1


def _read_only(content: Mapping[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


copyreg.pickle(MappingProxyType, lambda proxy: (_read_only, (dict(proxy),)))
"""Answers hold such mappings, and pickle does not know them by itself."""


class ChildFailed(RuntimeError):
    """The computation failed, or the child was ended before it had an answer."""


async def in_child(work: Callable[[], T], shared: Iterable[object] = ()) -> T:
    """What the function gives, computed in a copy of this process. Raises ChildFailed."""
    known = {id(thing): thing for thing in shared}  # the copy has them at the same addresses
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The child only computes, and takes no lock that a thread of the parent could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _compute(work, known, reading, writing)
    os.close(writing)
    try:
        answer = await _read(reading)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if not answer:
        raise ChildFailed(f"the process ended without an answer (status {os.waitstatus_to_exitcode(status)})")
    worked, said = _Unpickler(io.BytesIO(answer), known).load()
    if not worked:
        raise ChildFailed(str(said))
    return said  # type: ignore[no-any-return]


class _Pickler(pickle.Pickler):
    """Writes where shared objects are, and not what they hold."""

    def __init__(self, file: Any, known: Mapping[int, object]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._known = known

    def persistent_id(self, thing: object) -> int | None:
        """The address of a shared object."""
        return id(thing) if id(thing) in self._known else None


class _Unpickler(pickle.Unpickler):
    """Puts the shared objects where their addresses are."""

    def __init__(self, file: Any, known: Mapping[int, object]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, address: int) -> object:
        """The shared object of an address."""
        return self._known[address]


async def _read(descriptor: int) -> bytes:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=1 << 24)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        return await reader.read()
    finally:
        transport.close()


def _compute(work: Callable[[], Any], known: Mapping[int, object], reading: int, writing: int) -> NoReturn:
    """The life of the child. It never returns: nothing of the parent's, least of all its event loop, may go on here."""
    code = 1
    try:
        gc.disable()  # looking at every object would copy all memory
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        _end_with_parent()
        os.close(reading)
        try:
            answer = (True, work())
        except Exception as error:
            answer = (False, f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            _Pickler(pipe, known).dump(answer)
        code = 0
    finally:
        os._exit(code)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
