"""One side of a benchmark: builds cases and runs them on request, one JSON line each way.

Requests: {"build": name}, {"check": name}, {"run": name, "n": count}, {"memory": true}.
"""
from __future__ import annotations

import json
import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))


def main() -> None:
    side = sys.argv[1]
    api = __import__(side)
    api.set_num_threads(1)
    from cases import CASES

    built: dict = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "build" in request:
            built = {request["build"]: CASES[request["build"]][0](api)}
            answer: object = "built"
        elif "check" in request:
            answer = built[request["check"]][1]()
        elif "run" in request:
            run = built[request["run"]][0]
            start = time.process_time_ns()
            run(request["n"])
            answer = time.process_time_ns() - start
        else:
            answer = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
