"""Worker processes for chunks. One that dies is replaced, and no chunk that is done is lost."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_all_start_methods, get_context, parent_process
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .chunk import Chunk, run_chunk

logger = logging.getLogger(__name__)

_MAX_DEATHS = 3
"""So many deaths of workers in a row without a chunk done end the run."""

Executor = Callable[[Sequence[Chunk]], Iterable[pa.Table]]


class WorkersDiedError(RuntimeError, ChildProcessError):
    """Worker processes died again and again; the message says what to do."""


@contextmanager
def executor(folder: Path, num_workers: int) -> Iterator[Executor]:
    """Give a function from chunks to their tables, in the order of the chunks.

    Args:
        folder: where the chunks' files lie.
        num_workers: processes; with 1 the work is done in this one.

    The function raises WorkersDiedError if worker processes keep dying.
    """
    if num_workers == 1:
        yield lambda chunks: (pq.read_table(run_chunk(chunk, str(folder))) for chunk in chunks)
        return
    workers = _Workers(folder, num_workers)
    try:
        yield workers.execute
    finally:
        workers.stop()


class _Workers:
    """A pool of processes that is made anew when one of them dies."""

    def __init__(self, folder: Path, num_workers: int):
        self._folder, self._num_workers = folder, num_workers
        self._pool = self._start()

    def execute(self, chunks: Sequence[Chunk]) -> Iterator[pa.Table]:
        """Run the chunks and yield the table of each, in their order."""
        work = partial(run_chunk, folder=str(self._folder))
        num_done = deaths = 0
        finished = self._chunks_done()
        while num_done < len(chunks):
            try:
                for path in self._pool.map(work, chunks[num_done:]):
                    yield pq.read_table(path)
                    num_done += 1
            except BrokenProcessPool:
                before, finished = finished, self._chunks_done()
                deaths = 1 if finished > before else deaths + 1
                if deaths >= _MAX_DEATHS:
                    raise WorkersDiedError(
                        f"worker processes died {deaths} times in a row without finishing a "
                        f"chunk (out of memory?); what is done is kept in {self._folder.parent}: "
                        "start again, with fewer workers"
                    ) from None
                logger.warning(
                    "a worker process died; a new one goes on, %d of %d chunks are done",
                    *(num_done, len(chunks)),
                )
                self.stop()
                self._pool = self._start()

    def stop(self) -> None:
        """End the processes; work that has not begun is dropped."""
        self._pool.shutdown(cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
        context = get_context(method)
        if method == "forkserver":  # imports this module once, not in every worker
            context.set_forkserver_preload([__name__])
        return ProcessPoolExecutor(self._num_workers, context, initializer=_end_with_parent)

    def _chunks_done(self) -> int:
        return len(list(self._folder.glob("*.parquet")))


def _end_with_parent() -> None:
    """Make this worker end when its run is killed; it would wait for work forever."""

    def wait() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


__all__ = ["Executor", "WorkersDiedError", "executor"]
