"""The two commands of this repository, for a machine with nothing but Python, g++ and git.

    python3 run.py train [options of examples/tiny_lm.py]    trains, saves and uses a small language model
    python3 run.py test  [options of pytest]                 runs the whole test suite
    python3 run.py env                                       only makes or updates the environment in .venv

Standard library only, and old syntax: a too old Python must get as far as the message that says so.
"""

import os
import shutil
import subprocess
import sys
import sysconfig

ROOT = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
OLDEST, NEWEST = (3, 10), (3, 13)
# CMake and Ninja from the start: a build that finds others on PATH the next time would compile everything again.
FIRST = ["uv>=0.9,<0.14", "cmake>=3.21,<5", "ninja>=1.11,<2"]
TINY_LM = os.path.join(ROOT, "examples", "tiny_lm.py")


class Stop(Exception):
    """A message for the person at the keyboard; no traceback."""


def python_package(suffix):
    """Debian's package that completes the running Python, e.g. python3-venv or python3.12-venv."""
    running = "python%d.%d" % sys.version_info[:2]
    systems = os.path.basename(os.path.realpath("/usr/bin/python3"))
    return ("python3" if running == systems else running) + "-" + suffix


def missing():
    """What this machine lacks, as (what, Debian package) pairs."""
    found = []
    try:
        import ensurepip
        import venv

        assert ensurepip and venv
    except ImportError:
        found.append(("the Python modules venv and ensurepip", python_package("venv")))
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        found.append(("Python's headers (Python.h)", python_package("dev")))
    if not shutil.which((os.environ.get("CXX") or "g++").split()[0]):
        found.append(("a C++ compiler (g++, or what CXX names)", "g++"))
    if not shutil.which("git"):
        found.append(("git", "git"))
    return found


def check_machine():
    version = sys.version_info[:2]
    if not OLDEST <= version <= NEWEST:
        raise Stop(
            "TensorPlay needs Python %d.%d to %d.%d; this is Python %d.%d (%s).\n"
            "Run this script with one of those, e.g.: python3.11 %s"
            % (OLDEST + NEWEST + version + (sys.executable, " ".join(sys.argv)))
        )
    lacks = missing()
    if lacks:
        lines = ["  %-42s Debian/Ubuntu package: %s" % pair for pair in lacks]
        packages = " ".join(package for _, package in lacks)
        raise Stop("This machine lacks:\n%s\nInstall with: sudo apt-get install %s" % ("\n".join(lines), packages))


def call(command, **options):
    """Run a command; a failure stops the script with its name (the command has said why)."""
    status = subprocess.call(command, **options)
    if status:
        raise Stop("failed with status %d: %s" % (status, " ".join(command)))


def answers(*command):
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    except OSError:
        return None
    return process.stdout.strip() if process.returncode == 0 else None


def uv_environment():
    """Variables for uv: this .venv, no other Python, and the package index and certificates that pip is set up with."""
    environment = dict(os.environ)
    environment.pop("VIRTUAL_ENV", None)
    environment.update(UV_PROJECT_ENVIRONMENT=VENV, UV_PYTHON_DOWNLOADS="never")
    environment["PATH"] = os.path.dirname(PYTHON) + os.pathsep + environment.get("PATH", "")
    settings = {}
    for line in (answers(PYTHON, "-m", "pip", "config", "list") or "").splitlines():
        name, _, value = line.partition("=")
        settings[name.rsplit(".", 1)[-1]] = value.strip("'\"")
    own_index = {"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX"} & set(environment)
    if settings.get("index-url") and not own_index:
        environment["UV_DEFAULT_INDEX"] = settings["index-url"]
    if settings.get("cert"):
        environment.setdefault("SSL_CERT_FILE", settings["cert"])
    return environment


def make_environment():
    """Create .venv, put uv into it, and let uv install the workspace with every tool."""
    wanted = "%d.%d" % sys.version_info[:2]
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    if answers(PYTHON, "-c", show) != wanted:
        print("run.py: making %s with Python %s" % (VENV, wanted), flush=True)
        call([sys.executable, "-m", "venv", "--clear", VENV])
    if answers(PYTHON, "-m", "uv", "--version") is None:
        if answers(PYTHON, "-m", "pip", "--version") is None:
            call([PYTHON, "-m", "ensurepip"])
        # pip may be told by its configuration to install for the user, which a virtual environment refuses
        call([PYTHON, "-m", "pip", "install", "--quiet"] + FIRST, env=dict(os.environ, PIP_USER="0"))
    print("run.py: updating the environment (the first time compiles the CPU kernels: some minutes)", flush=True)
    call([PYTHON, "-m", "uv", "sync", "--quiet", "--all-packages", "--python", PYTHON], cwd=ROOT, env=uv_environment())


def absolute(argument):
    """A path given to pytest, seen from the caller's folder; anything else stays as it is."""
    path, separator, case = argument.partition("::")
    return os.path.abspath(path) + separator + case if os.path.exists(path) else argument


def become(command):
    """Replace this process: Ctrl-C and the exit status are the program's own business."""
    sys.stdout.flush()
    os.execv(command[0], command)


def test(arguments):
    arguments = [absolute(argument) for argument in arguments]
    os.chdir(ROOT)
    become([PYTHON, "-m", "pytest", "-n", "2", "--dist", "loadgroup"] + arguments)


def train(arguments):
    become([PYTHON, TINY_LM] + arguments)


def main(arguments):
    commands = {"train": train, "test": test, "env": lambda arguments: None}
    if not arguments or arguments[0] not in commands:
        print(__doc__.strip())
        return 0 if arguments in (["-h"], ["--help"]) else 2
    try:
        check_machine()
        make_environment()
        commands[arguments[0]](arguments[1:])
        return 0
    except Stop as reason:
        print("run.py: %s" % reason, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
