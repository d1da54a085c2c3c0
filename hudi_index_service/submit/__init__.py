"""The build as an application for spark-submit.

>>> from hudi_index_service.submit import APPLICATION
>>> APPLICATION.name
'spark.py'
"""

from pathlib import Path

APPLICATION = Path(__file__).with_name("spark.py")
"""The file to pass to spark-submit. Spark puts its folder on the path; it must be alone there."""
