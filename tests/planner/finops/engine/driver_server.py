"""Lets another interpreter ask a database through a driver of this one; it needs the standard library alone.

    python driver_server.py MODULE FUNCTION [ARGUMENT...]

Statements come in pickled, (description, rows) or the text of an error goes out.
"""

from __future__ import annotations

import importlib
import pickle
import sys


def main() -> None:
    module, function, *arguments = sys.argv[1:]
    connection = getattr(importlib.import_module(module), function)(*arguments)
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # what a driver prints is no answer
    while True:
        try:
            text = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        cursor = connection.cursor()
        try:
            cursor.execute(text)
            found = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            names = [(str(column[0]), str(column[1])) for column in cursor.description or ()]
            answer: object = (names, found)
        except Exception as error:  # noqa: BLE001  whatever a driver raises
            answer = f"{type(error).__name__}: {error}"
        finally:
            cursor.close()
        pickle.dump(answer, out)
        out.flush()
    connection.close()


if __name__ == "__main__":
    main()
