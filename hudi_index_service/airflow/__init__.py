"""The door for Airflow 3 (extra ``airflow``): a sensor and tasks; ``dags/`` puts them together."""
