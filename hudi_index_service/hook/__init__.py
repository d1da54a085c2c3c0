"""The door by which Hudi's own writes wake the service: its commit callback."""

from hudi_index_service.hook.hook import IndexHook

__all__ = ["IndexHook"]
