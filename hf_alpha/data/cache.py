"""Where `datasets` keeps its copies of data, and what is said when there is no room for them."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from datasets import config

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where there is no room for a file."""


class CacheFullError(OSError):
    """There is no room for a copy of data; the message names the folder and says what to do."""


@contextmanager
def filling_cache() -> Iterator[None]:
    """Say where `datasets` finds no room for its copy of data: its own errors name no file.

    Functions may be decorated with it.

    Raises:
        CacheFullError: there is none.
    """
    try:
        yield
    except Exception as error:
        causes = [cause for cause in _causes(error) if getattr(cause, "errno", None) in FULL]
        if not causes or isinstance(error, CacheFullError):
            raise
        raise CacheFullError(
            f"the cache of datasets, {config.HF_DATASETS_CACHE}, has no room for a copy of the "
            f"data: {causes[0]}; free some space, or name another folder in the environment "
            "variable HF_DATASETS_CACHE"
        ) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it, each once: a cause may be the error itself."""
    yielded: set[int] = set()
    while error is not None and id(error) not in yielded:
        yielded.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


__all__ = ["CacheFullError", "filling_cache"]
