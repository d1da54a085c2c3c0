"""The trigger for Airflow 3 (extra ``airflow``): a sensor and tasks, which ``dags/`` combines."""
