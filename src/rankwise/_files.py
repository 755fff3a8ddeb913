"""Opening what is read and replacing what is written.

:func:`opened` takes a path, ``"-"`` (standard input) or a binary file object, plain or compressed,
and hands out its text in blocks without ever holding it whole. :func:`atomic_write` writes a
temporary file beside the target and renames it at the end, so that a killed run leaves either the
old file or the new one.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Source = str | os.PathLike[str] | IO[bytes]
# consume(text, start, stop, last) parses whole lines of text[start:stop] and says how many bytes
# it used; `last` means that nothing follows.
Consume = Callable[[NDArray[np.uint8], int, int, bool], int]

_BLOCK = 4 << 20
_PADDING = 64  # readable bytes the native parsers want behind a block
_LONGEST_LINE = 1 << 28
_MAGIC = {
    "gzip": b"\x1f\x8b",
    "xz": b"\xfd7zXZ\x00",
    "bzip2": b"BZh",
    "zstd": b"\x28\xb5\x2f\xfd",
}
COMPRESSED = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "zstd"}


# ---------------------------------------------------------------- reading


class _Found(Exception):
    """Ends the reading early."""


class Input:
    """An opened source: its name for messages, its size where known, and its text in blocks."""

    def __init__(self, name: str, stream: IO[bytes] | None, mapped: mmap.mmap | None) -> None:
        self.name = name
        self._stream = stream
        self._mapped = mapped
        #: Bytes of uncompressed text, 0 when unknown.
        self.size = 0 if mapped is None else len(mapped)

    def feed(self, consume: Consume) -> None:
        """Hands all text to ``consume``, whole lines at a time."""
        if self._mapped is None:
            self._feed_stream(consume)
        else:
            self._feed_mapped(self._mapped, consume)

    def _feed_mapped(self, mapped: mmap.mmap, consume: Consume) -> None:
        text = np.frombuffer(mapped, np.uint8)
        start, block, dropped = 0, _BLOCK, 0
        while start < len(text):
            stop = min(start + block, len(text))
            used = consume(text, start, stop, stop == len(text))
            block = _BLOCK if used else 2 * block
            start += used
            # Parsed pages leave our memory; they stay in the system's file cache.
            done = start // mmap.PAGESIZE * mmap.PAGESIZE
            if done > dropped and hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED, dropped, done - dropped)
                dropped = done

    def _feed_stream(self, consume: Consume) -> None:
        assert self._stream is not None
        buffer = bytearray(_BLOCK + _PADDING)
        held, last = 0, False
        while not last:
            room = len(buffer) - _PADDING
            if held == room:
                if room >= _LONGEST_LINE:
                    raise ValueError(
                        f"{self.name}: a line must be shorter than {_LONGEST_LINE >> 20} MiB; "
                        "is this a text file?"
                    )
                buffer.extend(bytes(room))
                continue
            with memoryview(buffer) as view:
                got = self._read(view[held:room])
            last = got == 0
            held += got
            if (last or held == room) and held:
                used = consume(np.frombuffer(buffer, np.uint8), 0, held, last)
                buffer[: held - used] = buffer[used:held]
                held -= used

    def _read(self, view: memoryview) -> int:
        assert self._stream is not None
        try:
            return self._stream.readinto(view) or 0  # type: ignore[attr-defined]
        except Exception as error:
            if not _is_damage(error):
                raise
            raise ValueError(
                f"{self.name}: the compressed data must be whole, got a truncated or damaged "
                f"stream ({error})"
            ) from None

    def first_line(self) -> str:
        """The first line that is not blank, for telling what a file holds."""

        def consume(text: NDArray[np.uint8], start: int, stop: int, last: bool) -> int:
            for line in bytes(text[start:stop]).splitlines():
                if line.strip():
                    raise _Found(line.decode("utf-8", "replace"))
            return stop - start

        try:
            self.feed(consume)
        except _Found as found:
            return str(found)
        return ""

    def text(self) -> NDArray[np.uint8]:
        """All of the (uncompressed) bytes as an array; those of a mapped file are not copied."""
        return np.frombuffer(self.read() if self._mapped is None else self._mapped, np.uint8)

    def read(self) -> bytes:
        """All of the (uncompressed) bytes."""
        if self._mapped is not None:
            return self._mapped[:]
        parts, block = [], bytearray(_BLOCK)
        while got := self._read(memoryview(block)):
            parts.append(bytes(block[:got]))
        return b"".join(parts)


@contextlib.contextmanager
def opened(source: Source) -> Iterator[Input]:
    """The text of a path, ``"-"`` or a binary file object, decompressed by its first bytes."""
    with contextlib.ExitStack() as stack:
        if isinstance(source, str | os.PathLike):
            name = os.fspath(source)
            if name == "-":
                raw: Any = sys.stdin.buffer
                name = "<stdin>"
            else:
                raw = stack.enter_context(open(name, "rb", buffering=0))
        elif hasattr(source, "read"):
            raw = source
            name = str(getattr(source, "name", "<file>"))
        else:
            raise TypeError(
                f"read: the source must be a path, '-' or a binary file object, "
                f"got {type(source).__name__}"
            )
        head = raw.read(6)
        if isinstance(head, str):
            raise TypeError(
                f"{name}: the file must be opened in binary mode, got text; use open(path, 'rb')"
            )
        head = head or b""
        kind = next((k for k, magic in _MAGIC.items() if head.startswith(magic)), None)
        named = COMPRESSED.get(os.path.splitext(name)[1])
        if named is not None and head and kind != named:
            raise ValueError(f"{name}: expected {named} data by its name, got other bytes")
        mapped = None
        if kind is None and raw is not source and name != "<stdin>":
            mapped = _map(raw)
        if mapped is not None:
            try:
                yield Input(name, None, mapped)
            finally:
                # An array over the map may still be alive in a traceback.
                with contextlib.suppress(BufferError):
                    mapped.close()
            return
        stream: Any = io.BufferedReader(_Rejoined(head, raw), 1 << 16)
        if kind is not None:
            stream = _decompressed(kind, stream, name)
        yield Input(name, stream, None)


def _map(raw: Any) -> mmap.mmap | None:
    """The whole of a regular file as memory; None where that is not possible."""
    info = os.fstat(raw.fileno())
    if not stat.S_ISREG(info.st_mode) or info.st_size == 0:
        return None
    try:
        return mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError:
        return None


class _Rejoined(io.RawIOBase):
    """A stream with its first bytes put back."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        if self._head:
            n = min(len(view), len(self._head))
            view[:n] = self._head[:n]
            self._head = self._head[n:]
            return n
        data = self._rest.read(len(view))
        if not data:
            return 0
        view[: len(data)] = data
        return len(data)


def _decompressed(kind: str, stream: Any, name: str) -> Any:
    if kind == "gzip":
        import gzip

        return gzip.GzipFile(fileobj=stream, mode="rb")
    if kind == "xz":
        import lzma

        return lzma.LZMAFile(stream)
    if kind == "bzip2":
        import bz2

        return bz2.BZ2File(stream)
    return io.BufferedReader(_Zstd(stream, name), 1 << 17)


class _Zstd(io.RawIOBase):
    """Zstandard frames one after the other; a frame that stops early is an error."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._new = _zstandard(name).ZstdDecompressor().decompressobj
        self._frame = self._new()
        self._begun = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        while not self._ready:
            rest = self._frame.unused_data if self._frame.eof else b""
            data = rest or self._stream.read(1 << 16)
            if not data:
                if self._begun and not self._frame.eof:
                    raise EOFError("the last frame has no end")
                return 0
            if self._frame.eof:
                self._frame = self._new()
            self._begun = True
            self._ready = memoryview(self._frame.decompress(data))
        n = min(len(view), len(self._ready))
        view[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n


def _zstandard(name: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            f"{name}: .zst files need the zstandard package; pip install 'rankwise[zstd]'"
        ) from None
    return zstandard


def _is_damage(error: Exception) -> bool:
    """Whether a decompressor raised this for its data; an OSError with a number is the system's."""
    if isinstance(error, OSError):
        return error.errno is None
    names = {"zlib": "error", "lzma": "LZMAError", "zstandard": "ZstdError"}
    kinds = [getattr(sys.modules[m], n) for m, n in names.items() if m in sys.modules]
    return isinstance(error, (EOFError, *kinds))


# ---------------------------------------------------------------- writing


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: str = "wb", **options: Any
) -> Iterator[IO[Any]]:
    """A file that takes its name only when the block ends without an exception.

    Until then the bytes are in a temporary file beside it. ``"-"`` is standard output; devices
    and pipes are written directly. A path that ends in .gz, .xz, .bz2 or .zst is compressed.

    Raises
    ------
    OSError
        With a sentence that names the path, when it cannot be written.
    """
    name = os.fspath(path)
    if name == "-":
        stream: IO[Any] = sys.stdout.buffer if "b" in mode else sys.stdout
        yield stream
        stream.flush()
        return
    import tempfile  # loads a dozen modules that reading does without

    # Through a symbolic link the file behind it is replaced, not the link.
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        if os.path.isdir(target):
            raise IsADirectoryError(f"{name}: the output must be a file, got a directory")
        with open(target, mode, **options) as stream:
            yield stream
        return
    folder, base = os.path.split(target)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{base[:60]}.", suffix=".part", dir=folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(f"{name}: the output cannot be written: {reason}") from None
    try:
        with os.fdopen(handle, "wb") as raw, _compressing(raw, name) as packed:
            if "b" in mode:
                yield packed
            else:
                with io.TextIOWrapper(packed, encoding="utf-8", **options) as text:
                    yield text
        os.chmod(temporary, _mode_for(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode_for(target: str) -> int:
    """Permissions of the file to be replaced, or those a new file gets."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(os.stat(target).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextlib.contextmanager
def _compressing(raw: IO[bytes], name: str) -> Iterator[Any]:
    kind = COMPRESSED.get(os.path.splitext(name)[1])
    if kind is None:
        yield raw
    elif kind == "gzip":
        import gzip

        # No time and no name inside: equal contents give equal files.
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
            yield stream
    elif kind == "xz":
        import lzma

        with lzma.LZMAFile(raw, "wb") as stream:
            yield stream
    elif kind == "bzip2":
        import bz2

        with bz2.BZ2File(raw, "wb") as stream:
            yield stream
    else:
        with _zstandard(name).ZstdCompressor().stream_writer(raw, closefd=False) as stream:
            yield stream
