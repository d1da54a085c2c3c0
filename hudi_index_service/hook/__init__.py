"""The trigger for Hudi's own writes: Hudi's commit callback wakes the service."""

from hudi_index_service.hook.hook import IndexHook

__all__ = ["IndexHook"]
