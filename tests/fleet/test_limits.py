"""There are no more children than memory and processors allow."""

import os

from hudi_index_service.fleet.builds.pool import fitting
from hudi_index_service.fleet.builds.process import Limits

TERABYTES = 2**24


def test_slots_fit_into_memory_and_processors():
    processors = len(os.sched_getaffinity(0))
    assert fitting(Limits(memory_mb=1), most=1).slots == 1
    assert fitting(Limits(memory_mb=1), most=1_000).slots == processors
    small = fitting(Limits(memory_mb=TERABYTES, builds=7), most=1_000)
    assert (small.slots, small.builds) == (1, 7)


def test_builds_without_a_limit_share_the_memory():
    assert fitting(Limits(memory_mb=1), most=1).memory_mb == 1
    assert fitting(Limits(memory_mb=1), most=1, is_least=True).memory_mb > 1
    assert fitting(Limits(memory_mb=TERABYTES), most=1, is_least=True).memory_mb == TERABYTES
