"""`tensorplay.<name>` is another distribution's package: one module object under both names."""
from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tensorplay as tp
from tensorplay import _namespaces
from tensorplay._errors import ConflictError, MissingAttributeError, MissingModuleError, MissingPluginError, PluginError

PACKAGE = {
    "{0}/__init__.py": "from tensorplay.{1}.layers import Layer\nimport tensorplay.{1}.deep.cache\nVALUE = 7\n",
    "{0}/layers.py": "class Layer: pass\n",
    "{0}/deep/__init__.py": "",
    "{0}/deep/cache.py": "from {0}.layers import Layer\nclass Cache(Layer): pass\n",
    "{0}/broken.py": "raise ImportError('libacme is missing')\n",
    "{0}/plugin.toml": "api = {{ written = 1, oldest = 1 }}\n",
}


@pytest.fixture
def package(site, monkeypatch):
    """Install a namespace package and return its name below tensorplay; forgotten afterwards."""
    made = []

    def install(name, distribution="", package="", group=True):
        package = package or f"ns_{name}"
        files = {path.format(package): text.format(package, name) for path, text in PACKAGE.items()}
        groups = {"namespaces": {name: f"{package}:plugin.toml"}} if group else {}
        site.install(distribution or f"tp-{name}", groups, files)
        made.append(name)
        return package

    yield install
    for name in made:
        for module in [m for m in sys.modules if m == f"tensorplay.{name}" or m.startswith(f"tensorplay.{name}.")]:
            del sys.modules[module]
        vars(tp).pop(name, None)


WAYS = [  # (first import, second import): whichever path comes first, the modules are the same
    ("tensorplay.{0}.deep.cache", "{1}.deep.cache"),
    ("{1}.deep.cache", "tensorplay.{0}.deep.cache"),
    ("tensorplay.{0}", "{1}"),
    ("{1}", "tensorplay.{0}"),
]


@pytest.mark.parametrize(("first", "second"), WAYS)
def test_both_names_are_one_module(package, first, second):
    name = f"alias{WAYS.index((first, second))}"
    real = package(name)
    one, two = (importlib.import_module(path.format(name, real)) for path in (first, second))
    assert one is two
    assert one.__name__.partition(".")[0] == real
    assert one.__spec__.name == one.__name__  # the real module keeps its own spec
    layers = importlib.import_module(f"tensorplay.{name}.layers")
    cache = importlib.import_module(f"tensorplay.{name}.deep.cache")
    assert cache.Cache.__mro__[1] is layers.Layer is sys.modules[f"{real}.layers"].Layer
    assert getattr(tp, name) is sys.modules[real]
    assert getattr(tp, name).deep.cache is cache
    assert importlib.reload(cache) is cache


def test_from_imports(package):
    package("forms")
    scope = {}
    exec("from tensorplay.forms import Layer, deep\nfrom tensorplay.forms.deep.cache import Cache\n"
         "from tensorplay import forms\nimport tensorplay.forms.layers as layers", scope)
    assert scope["Layer"] is scope["layers"].Layer
    assert scope["forms"].VALUE == 7
    assert issubclass(scope["Cache"], scope["Layer"])


def test_threads_get_one_module(package, site):
    real = package("threaded")
    (site.folder / real / "__init__.py").write_text("from .deep import cache\nfrom .layers import Layer\n")
    names = ["tensorplay.threaded.deep.cache", f"{real}.deep.cache"] * 4
    start, found = threading.Barrier(len(names)), []

    def load(name):
        start.wait()
        found.append(importlib.import_module(name))

    threads = [threading.Thread(target=load, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == len(names)
    assert len({id(module) for module in found}) == 1


def test_an_in_tree_name_needs_no_entry_point(package, monkeypatch):
    package("optional", package="tp_optional", group=False)
    monkeypatch.setitem(_namespaces.IN_TREE, "optional", ("tp_optional", "tp-optional"))
    assert tp.optional.VALUE == 7


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setitem(_namespaces.IN_TREE, "absent", ("tp_absent", "tp-absent"))
    return "tensorplay.absent is provided by tp-absent, which is not installed: pip install tp-absent"


FORMS = [  # (statement, class of the error)
    ("import tensorplay.absent", MissingModuleError),
    ("import tensorplay.absent.cache", MissingModuleError),
    ("from tensorplay.absent import x", MissingModuleError),
    ("from tensorplay import absent", MissingModuleError),
    ("import tensorplay as tp; tp.absent", MissingAttributeError),
    ("import tensorplay as tp; tp.absent.Linear(2, 3)", MissingAttributeError),
]


@pytest.mark.parametrize(("statement", "error"), FORMS)
def test_a_missing_one_says_what_to_install(absent, statement, error):
    with pytest.raises(MissingPluginError) as caught:
        exec(statement, {"__name__": "users_program"})
    assert (type(caught.value), caught.value.message) == (error, absent)
    assert isinstance(caught.value, (ImportError, AttributeError))
    assert "importlib" not in str(caught.value)  # it names the user's line, not the import system's


def test_asking_for_a_missing_one_is_harmless(absent):
    assert not hasattr(tp, "absent")
    assert getattr(tp, "absent", 5) == 5
    try:
        import tensorplay.absent  # type: ignore # noqa: F401
    except ImportError as error:
        assert error.name == "tp_absent"


def test_a_module_that_fails_raises_its_own_error(package):
    package("cracked")
    with pytest.raises(ImportError, match="libacme is missing"):
        importlib.import_module("tensorplay.cracked.broken")
    assert "tensorplay.cracked.broken" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        importlib.import_module("tensorplay.cracked.nowhere")
    assert importlib.util.find_spec("tensorplay.cracked.layers") is not None
    assert importlib.util.find_spec("tensorplay.cracked.nowhere") is None


def test_names_that_nobody_provides():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tensorplay\.no_such_namespace'"):
        importlib.import_module("tensorplay.no_such_namespace")
    assert not hasattr(tp, "no_such_namespace")


@pytest.mark.parametrize("name", ["driver", "library", "_plugins", "__main__"])
def test_cores_own_modules_cannot_be_replaced(site, name):
    site.install("tp-thief", {"namespaces": {name: "thief_package:plugin.toml"}},
                 {"thief_package/__init__.py": "", "thief_package/plugin.toml": "api = { written = 1, oldest = 1 }\n"})
    assert _namespaces.finder.find_spec(f"tensorplay.{name}") is None
    assert importlib.util.find_spec(f"tensorplay.{name}").origin.startswith(str(Path(tp.__file__).parent))


def test_two_providers_conflict(package, monkeypatch):
    package("doubled", "acme-one", "one_namespace")
    package("doubled", "acme-two", "two_namespace")
    with pytest.raises(ConflictError, match="namespace 'doubled' is provided by acme-"):
        importlib.import_module("tensorplay.doubled")
    monkeypatch.setenv("TP_PREFER", "doubled:acme-two")
    assert importlib.import_module("tensorplay.doubled").__name__ == "two_namespace"


def test_api_levels_hold_for_namespaces_too(package, site):
    real = package("futuristic")
    (site.folder / real / "plugin.toml").write_text("api = { written = 9, oldest = 9 }\n")
    with pytest.raises(PluginError, match="it is written to API level 9"):
        importlib.import_module("tensorplay.futuristic")


def test_importing_tensorplay_loads_no_namespace():
    code = ("import sys, tensorplay\nfrom tensorplay._namespaces import IN_TREE, finder\n"
            "assert sys.meta_path[0] is finder\n"
            "print([p for p, _ in IN_TREE.values() if p in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.stdout, done.stderr) == ("[]\n", "")
