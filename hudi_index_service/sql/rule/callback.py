"""What the JVM calls by py4j: questions and answers as `PythonSource.java` describes them."""

import json
import logging
from typing import TYPE_CHECKING, Any, ClassVar

from hudi_index_service.sql.rule.answers import Answers

if TYPE_CHECKING:
    from hudi_index_service.sql.rule.statements import SqlStatements

log = logging.getLogger(__name__)


class Callback:
    """Answers the JVM. Called by threads of py4j, several at a time."""

    def __init__(self, answers: Answers, statements: "SqlStatements") -> None:
        self._answers = answers
        self._statements = statements

    def apply(self, question: str, request: Any) -> Any:
        """The answer to a question. Never raises: py4j would end the thread on SystemExit, which a
        signal handler of the program may raise, and the JVM would wait for an answer."""
        try:
            match question:
                case "statement":
                    return self._statements.described(*request)
                case "run":
                    return self._statements.result(*request)
                case "rows":
                    session, text, use = request
                    rows = self._answers.rows(text, session, use)
                    return rows if isinstance(rows, str | bytes) else rows._jdf
                case "bind":
                    return self._answers.bound(request)
                case "function":
                    return self._answers.function(request)
            return self._answers.decision(request)
        except BaseException as error:
            log.exception("The JVM gets no answer.")
            return json.dumps({"failed": f"{type(error).__name__} in Python"})

    class Java:
        """An interface of Java's own: others would have to be on the class loader of the thread."""

        implements: ClassVar = ["java.util.function.BiFunction"]
