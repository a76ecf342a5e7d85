"""The start of a judge: loads its modules from text or from the folder of this file, then serves.

``python boot.py`` serves framed requests, as a resident; ``python -c <this text> lines`` reads the modules' texts
from the first line of standard input and jobs from the lines after it. The modules import each other under their
package's name, which is forgotten again before any job, so that a repository of that name can be tested.
Standard library only; Python 3.6 and later.
"""

import sys

_HERE = __file__.rpartition("/")[0] if "__file__" in globals() else ""
if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".", _HERE)]

import json  # noqa: E402
import types  # noqa: E402
from typing import Any, Dict  # noqa: E402

MODULES = ("files", "cage", "judge", "probe")
_PACKAGE = "frognano.tasks.inside"


def texts_beside() -> Dict[str, str]:
    """The modules' texts from the folder of this file."""
    found = {}
    for name in MODULES:
        with open("%s/%s.py" % (_HERE, name), encoding="utf-8") as stream:
            found[name] = stream.read()
    return found


def load(texts: Dict[str, str]) -> Dict[str, Any]:
    """The modules, made from their texts."""
    made = {}
    parents = ["frognano", "frognano.tasks", _PACKAGE]
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "frognano"}
    for name in parents:
        sys.modules[name] = types.ModuleType(name)
    for name in MODULES:
        module = types.ModuleType("%s.%s" % (_PACKAGE, name))
        sys.modules[module.__name__] = module
        setattr(sys.modules[_PACKAGE], name, module)
        exec(compile(texts[name], "<%s>" % name, "exec"), module.__dict__)
        made[name] = module
    for name in [name for name in sys.modules if name.split(".")[0] == "frognano"]:
        del sys.modules[name]
    sys.modules.update(hidden)
    return made


def main(mode: str = "") -> None:
    """Serve."""
    if mode == "lines":
        first = json.loads(sys.stdin.buffer.readline().decode("ascii"))
        made = load(first)
        made["judge"].serve(made["probe"], first["path"])
        return
    made = load(texts_beside())
    made["judge"].reside(made["probe"])


if __name__ == "__main__":
    main(*sys.argv[1:2])
