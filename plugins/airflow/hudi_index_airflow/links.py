"""Links from a task to the service's page."""

from typing import Any

from airflow.providers.common.compat.sdk import BaseOperatorLink, XCom


class TablePageLink(BaseOperatorLink):
    """The page of the table, with its builds. The operator stores it when it submits."""

    name = "Index service"

    @property
    def xcom_key(self) -> str:
        """Where the operator stores it."""
        return "hudi_index_page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The address; "" if it was not run by a service."""
        return XCom.get_value(key=self.xcom_key, ti_key=ti_key) or ""
