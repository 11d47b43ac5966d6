"""Discovery, states and errors of plugins, with made-up distributions: good, broken, hostile, conflicting, too old."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorplay as tp
from tensorplay import _plugins
from tensorplay._errors import ConflictError, DeviceUnavailable, PluginError, ValueRangeError
from tensorplay._manifest import read_manifest
from tensorplay._scan import Entry, normalized, scan


def message(device):
    with pytest.raises(tp.TensorPlayError) as caught:
        tp.device(device)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_good_device_is_discovered_without_import_and_works(site):
    site.device("good", probe="def probe():\n    return None\n", manifest='api = {{ written = {level}, oldest = 0 }}\n'
                'load = "{name}"\nprobe = "good_package.probe:probe"\n')
    plugin, = _plugins.plugins("devices", "good")
    assert (plugin.state, plugin.prepare().oldest, "good_package" in sys.modules) == ("discovered", 0, False)
    x = tp.tensor([[1, 2], [3, 4]], device="good:0")
    assert x.tolist() == [[1, 2], [3, 4]]
    assert plugin.state == "active"
    assert tp.device("good").driver is tp.device("good:0").driver
    assert "good" in _plugins.present_devices()


def test_an_editable_install_is_found(site, tmp_path, monkeypatch):
    source = tmp_path / "elsewhere"
    monkeypatch.setattr(sys, "path", [*sys.path, str(source)])  # what a .pth file does at start
    site.install("tp-away", {"devices": {"away": "away_package:plugin.toml"},
                             "drivers": {"away": "away_package:AwayDriver"}}, folder=source, files={
        "away_package/__init__.py": "from tensorplay.driver import MetaDriver\n"
                                    "class AwayDriver(MetaDriver):\n    name = 'away'\n",
        "away_package/plugin.toml": 'api = { written = 1, oldest = 1 }\nload = "away"\n'})
    assert tp.device("away").type == "away"


def test_an_egg_info_folder_is_read(site):
    site.device("egg")
    (site.folder / "tp_egg-1.0.dist-info").rename(site.folder / "tp_egg.egg-info")
    (site.folder / "tp_egg.egg-info/METADATA").rename(site.folder / "tp_egg.egg-info/PKG-INFO")
    assert tp.device("egg").type == "egg"
    assert _plugins.plugins("devices", "egg")[0].title == "tp-egg 1.0"


def test_installed_after_a_failure_is_found(site):
    assert "there is no device 'later'" in message("later")
    site.device("later")
    assert tp.device("later").type == "later"


UNKNOWN = [
    ("cuda", "device 'cuda' is provided by tp-cuda, which is not installed: pip install tp-cuda. Devices here: "),
    ("vulkan", "device 'vulkan' is provided by tp-vulkan, which is not installed: pip install tp-vulkan"),
    ("rocm", "pip install tp-rocm"),
    ("metta", "there is no device 'metta'; did you mean 'meta'? Devices here: "),
    ("nothing like it", "there is no device 'nothing like it'. Devices here: "),
    ("\x1b[31mred", "there is no device ' [31mred'"),
]


@pytest.mark.parametrize(("name", "expected"), UNKNOWN)
def test_unknown_devices(name, expected):
    assert expected in message(name)
    assert "meta" in message(name)


PROBES = [  # (body of the probe, state, in the message)
    ("return ('no driver', 'install acme-driver')", "unavailable",
     "is unavailable: no driver; try: install acme-driver. Devices here: "),
    ("return 'no driver'", "unavailable", "is unavailable: no driver. Devices here: "),
    ("return False", "unavailable", "its probe says no"),
    ("return ('line one\\nline two\\x1b[2J', None)", "unavailable", "line one line two [2J"),
    ("raise OSError('libacme.so: not found')", "failed", "raised OSError: libacme.so: not found"),
    ("raise SystemExit(3)", "failed", "raised SystemExit: 3"),
    ("import sys; sys.exit()", "failed", "raised SystemExit"),
    ("class E(BaseException):\n        def __str__(self): raise ValueError\n    raise E", "failed",
     "raised E: (its message cannot be shown)"),
    ("raise Exception('x' * 10000)", "failed", "xxx..."),
    ("class A:\n        def __str__(self): raise ValueError('no text')\n    return (A(), '')", "failed", "no text"),
    ("def f(): f()\n    f()", "failed", "RecursionError"),
]


@pytest.mark.parametrize(("body", "state", "expected"), PROBES)
def test_probes_that_say_no_or_raise(site, body, state, expected):
    name = f"probed{PROBES.index((body, state, expected))}"
    site.device(name, probe=f"def probe():\n    {body}\n", manifest='api = {{ written = 1, oldest = 1 }}\n'
                f'load = "{{name}}"\nprobe = "{name}_package.probe:probe"\n')
    text = message(name)
    plugin, = _plugins.plugins("devices", name)
    assert (plugin.state, plugin.title) == (state, f"tp-{name} 1.0")
    assert expected in text
    assert f"tp-{name} 1.0" in text
    assert message(name) == text  # the stored reason is told again
    assert message("cuad").startswith("there is no device")  # and everything else goes on
    assert tp.device("meta").type == "meta"


def test_an_unavailable_device_is_asked_again(site):
    site.device("moody", state="ready = False\n", probe="from . import state\ndef probe():\n"
                "    return None if state.ready else ('asleep', 'wake it')\n",
                manifest='api = {{ written = 1, oldest = 1 }}\nload = "{name}"\nprobe = "moody_package.probe:probe"\n')
    assert "asleep; try: wake it" in message("moody")
    sys.modules["moody_package.state"].ready = True
    assert tp.device("moody").type == "moody"


MANIFESTS = [  # (text, in the message)
    ("api = [", "its manifest cannot be used: TOMLDecodeError"),
    ("", "it has no `api = { written = ..., oldest = ... }`"),
    ("api = 1\n", "it has no `api ="),
    ("api = { written = '1', oldest = 1 }\n", "api.written must be a non-negative integer, it is '1'"),
    ("api = { written = true, oldest = 1 }\n", "api.written must be a non-negative integer, it is True"),
    ("api = { written = 1 }\n", "api.oldest must be a non-negative integer, it is None"),
    ("api = { written = 1, oldest = 2 }\n", "api.oldest = 2 is above api.written = 1"),
    ("api = { written = 1, oldest = 1 }\nload = 3\n", "load must be a non-empty string, it is 3"),
    ("api = { written = 1, oldest = 1 }\nprovides = 'x'\n", "provides must be a list of strings, it is 'x'"),
    ("api = { written = 1, oldest = 1 }\nload = 'other'\n", "load = 'other', and it has no such entry"),
    ("api = { written = 1, oldest = 1 }\nprobe = 'nowhere'\nload = 'NAME'\n", "ModuleNotFoundError: No module named"),
    ("x = " + "[" * 30_000, "RecursionError"),
    ("#" * 70_000, "70000 bytes, more than the 65536"),
    ("api = { written = 3, oldest = 2 }\n", "it is written to API level 3 and accepts 2 at the oldest; tp-core "
                                            f"{tp.__version__} has level 1 and accepts 0; try: pip install --upgrade "
                                            "tp-core."),
]


@pytest.mark.parametrize(("text", "expected"), MANIFESTS)
def test_bad_manifests(site, text, expected):
    name = f"listed{MANIFESTS.index((text, expected))}"
    site.device(name)
    (site.folder / f"{name}_package/plugin.toml").write_text(text.replace("NAME", name))
    assert expected in message(name)
    assert _plugins.plugins("devices", name)[0].state == "failed"


def test_a_plugin_of_an_old_level_names_its_own_upgrade(site, monkeypatch):
    monkeypatch.setattr(_plugins, "API_LEVEL", 3)
    site.device("ancient", level=1)
    site.device("recent", level=2)
    assert "has level 3 and accepts 2; try: pip install --upgrade tp-ancient." in message("ancient")
    assert tp.device("recent").type == "recent"


VALUES = [  # (value of the entry point, in the error)
    ("shape_package", "expected top_package:file.toml"),
    ("a.b:plugin.toml", "expected top_package:file.toml"),
    ("shape_package:driver.py", "expected top_package:file.toml"),
    ("shape_package:../../secret.toml", "lies outside the package"),
    ("shape_package:/etc/secret.toml", "lies outside the package"),
    ("shape_package:absent.toml", "absent.toml is not in the package shape_package"),
    ("nowhere_at_all:plugin.toml", "the package 'nowhere_at_all' is not on sys.path"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_bad_entry_points(site, value, expected):
    site.device("shape")
    with pytest.raises(ValueError) as caught:
        read_manifest(Entry("tensorplay.devices", "shape", value, "tp-shape", "1.0", str(site.folder)))
    assert expected in str(caught.value)
    assert "shape_package" not in sys.modules


DRIVERS = [  # (code of the driver module, in the message)
    ("raise ImportError('cannot load libacme')", "raised ImportError: cannot load libacme"),
    ("raise SystemExit('bye')", "raised SystemExit: bye"),
    ("raise AssertionError", "raised AssertionError"),
    ("syntax error here", "raised SyntaxError"),
    ("x = 1", "raised AttributeError"),
    ("HeapDriver = 3", "3 is not a subclass of tensorplay.driver.Driver"),
    ("class HeapDriver: pass", "is not a subclass of tensorplay.driver.Driver"),
    ("from tensorplay.driver import Driver\nclass HeapDriver(Driver): pass",
     "HeapDriver does not define allocate, copy_from_host, copy_to_host"),
    ("from tensorplay.driver import MetaDriver\nclass HeapDriver(MetaDriver): pass", "HeapDriver.name is 'meta'"),
    ("from tensorplay.driver import MetaDriver\nclass HeapDriver(MetaDriver):\n    name = '{name}'\n"
     "    def __init__(self): raise RuntimeError('no memory')", "raised RuntimeError: no memory"),
    ("from tensorplay.driver import MetaDriver\nclass HeapDriver(MetaDriver):\n    name = '{name}'\n"
     "    def device_count(self): return 'many'", "device_count() is 'many', it must be at least 1"),
]


@pytest.mark.parametrize(("code", "expected"), DRIVERS)
def test_bad_drivers(site, code, expected):
    name = f"driven{DRIVERS.index((code, expected))}"
    site.device(name, driver=code)
    text = message(name)
    assert expected in text
    assert f"try: pip install --upgrade --force-reinstall tp-{name}" in text
    assert name not in text.partition("Devices here:")[2]
    assert tp.tensor([1.0, 2.0], device="meta").shape == (2,)


def test_the_original_exception_is_chained(site):
    site.device("chained", driver="raise OSError(5, 'device busy')")
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            tp.device("chained")
        assert isinstance(caught.value.__cause__, OSError)


def test_two_providers_are_a_conflict_until_one_is_preferred(site, monkeypatch):
    site.device("twin", "acme-one", package="one_package")
    site.device("twin", "acme-two", package="two_package", driver="raise SystemExit('the other one was imported')")
    with pytest.raises(ConflictError) as caught:
        tp.device("twin")
    for part in ("acme-one 1.0", "acme-two 1.0", "TP_PREFER=twin:acme-"):
        assert part in caught.value.message
    monkeypatch.setenv("TP_PREFER", "cuda:tp-cuda, twin:acme-three")
    with pytest.raises(PluginError, match="TP_PREFER chooses acme-three for device 'twin', which is provided by acme-"):
        tp.device("twin")
    monkeypatch.setenv("TP_PREFER", "twin:Acme_One")
    assert tp.device("twin").type == "twin"
    assert "two_package" not in sys.modules


@pytest.mark.parametrize("value", ["nonsense", "cuda:", ":tp-cuda", "cuda:tp-cuda,x"])
def test_nonsense_in_tp_prefer_is_named(monkeypatch, value):
    monkeypatch.setenv("TP_PREFER", value)
    with pytest.raises(ValueRangeError, match=r"TP_PREFER=.* in the environment: expected name:distribution"):
        tp.device("no_such_device")


def test_an_error_later_does_not_hide_the_device(site):
    site.device("two_faced", driver="""
from tensorplay.driver import MetaDriver
class HeapDriver(MetaDriver):
    name = "{name}"
    def copy_to_host(self, storage): raise OSError("bus error")
""")
    x = tp.tensor([1.0], device="two_faced")
    with pytest.raises(OSError, match="bus error"):
        x.tolist()
    assert tp.tensor([1.0], device="two_faced").shape == (1,)


HOSTILE = [  # (file below the dist-info folder's parent, content as bytes; None: a folder; "fifo")
    ("bad_bytes-1.dist-info/entry_points.txt", b"[tensorplay.devices]\nx\xff\xfe = \xfa:plugin.toml\n"),
    ("nothing-1.dist-info", b"a file where a folder belongs"),
    ("folder-1.dist-info/entry_points.txt/x", b""),
    ("huge-1.dist-info/entry_points.txt", b"[tensorplay.devices]\n" + b"a = b:c.toml\n" * 200_000),
    ("lines-1.dist-info/entry_points.txt", b"[tensorplay.devices\n= x\n===\n[]\n\0\n[tensorplay.devices]\n=\nx\n=y"),
    ("named-1.dist-info/entry_points.txt", b"[tensorplay.devices]\na b:c \x1b[2J = x:y.toml\n__class__ = x:y.toml\n"),
    ("-.dist-info/entry_points.txt", b"[tensorplay.devices]\nnameless = x:y.toml\n"),
    (".dist-info/entry_points.txt", b"[tensorplay.tools]\nt = x:y.toml\n"),
    ("pipe-1.dist-info/entry_points.txt", "fifo"),
    ("own-1.dist-info/entry_points.txt", b"[tensorplay.devices]\nmeta = x:y.toml\n[tensorplay.namespaces]\n"
                                         b"driver = x:y.toml\n_plugins = x:y.toml\n"),
]


@pytest.fixture
def hostile(site):
    for path, content in HOSTILE:
        file = site.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if content == "fifo":
            os.mkfifo(file)
        else:
            file.write_bytes(content)
    return site


def test_hostile_metadata_does_not_break_the_scan(hostile):
    hostile.device("survivor")
    found = scan()
    problems = " ".join([f"{file}: {problem}" for file, problem in found.problems])
    for part in ("huge-1.dist-info", "folder-1.dist-info", "pipe-1.dist-info"):
        assert part in problems
    assert "a b:c \x1b[2J" in [entry.name for entry in found.entries]
    assert tp.device("survivor").type == "survivor"
    for name in ("__class__", "nameless", "bad\ufffd"):
        assert message(name)
    import tensorplay.driver as driver

    assert driver.__name__ == "tensorplay.driver"


def test_import_and_meta_work_beside_hostile_plugins(hostile):
    hostile.device("aggressor", init="raise SystemExit('never imported')",
                   manifest='api = {{ written = 1, oldest = 1 }}\nload = "{name}"\nprobe = "aggressor_package:probe"\n')
    code = """
import sys
import tensorplay as tp
assert tp.tensor([[1.0, 2.0]], device="meta").shape == (1, 2)
heavy = {"numpy", "pluggy", "stevedore", "typing", "dataclasses", "importlib.metadata", "re", "enum", "tomllib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
try:
    tp.device("aggressor")
except tp.TensorPlayError as error:
    assert "raised SystemExit: never imported" in error.message, error
print("fine")
"""
    # -S: what a site's .pth files import is not ours to answer for; the site packages come by hand, for stevedore
    core = str(Path(tp.__file__).parents[1])
    path = os.pathsep.join([str(hostile.folder), core, *[p for p in sys.path if "site-packages" in p]])
    done = subprocess.run([sys.executable, "-S", "-c", code], env={**os.environ, "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("fine\n", "")


@pytest.mark.parametrize(("name", "expected"), [("tp_cpu", "tp-cpu"), ("TP.Cpu", "tp-cpu"), ("a--b__c", "a-b-c")])
def test_distribution_names_are_normalized(name, expected):
    assert normalized(name) == expected


def test_the_first_of_two_versions_counts(site, tmp_path, monkeypatch):
    site.device("layered")
    later = tmp_path / "later/tp_layered-9.dist-info"
    later.mkdir(parents=True)
    (later / "entry_points.txt").write_text("[tensorplay.devices]\nlayered = elsewhere:plugin.toml\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(later.parent)])
    assert [p.entry.version for p in _plugins.plugins("devices", "layered")] == ["1.0"]


def test_without_tp_cpu_the_error_says_so(monkeypatch):
    monkeypatch.setitem(_plugins.BUILT_IN, "cpu", ("tp_cpu_absent", "CpuDriver", "tp-cpu"))
    monkeypatch.setattr(_plugins, "plugins", lambda group, name=None: [])
    with pytest.raises(DeviceUnavailable) as caught:
        _plugins.activate_device("cpu")
    assert caught.value.message == ("device 'cpu' is provided by tp-cpu, which is not installed: pip install tp-cpu; "
                                    "'meta' works without it")


def test_a_broken_tp_cpu_says_what_happened(site, monkeypatch):
    site.install("tp-cpu-broken", {}, {"tp_cpu_broken/__init__.py": "raise ImportError('libtpk.so: cannot open')"})
    monkeypatch.setitem(_plugins.BUILT_IN, "cpu", ("tp_cpu_broken", "CpuDriver", "tp-cpu"))
    with pytest.raises(PluginError) as caught:
        _plugins.activate_device("cpu")
    assert "device 'cpu' (tp-cpu) failed: ImportError: libtpk.so: cannot open; try: pip" in caught.value.message
    assert "Devices here: meta" in caught.value.message


TOOL = """
from tensorplay._hookspecs import hookimpl
seen = []
@hookimpl
def tensorplay_device_activated(device):
    {first}
    seen.append(device)
@hookimpl
def tensorplay_doctor_rows():
    return [("acme", "5.1")]
"""


def test_hooks_are_called_each_on_its_own(site, monkeypatch):
    from tensorplay import _hookspecs

    monkeypatch.setattr(_hookspecs, "_manager", None)
    monkeypatch.setattr(_hookspecs, "_registered", {})
    for name, code in (("steady", TOOL.format(first="pass")), ("raising", TOOL.format(first="raise SystemExit(1)")),
                       ("misspelt", "from tensorplay._hookspecs import hookimpl\n@hookimpl\n"
                                    "def tensorplay_doctor_rows(no_such_argument): pass\n")):
        site.install(f"tp-{name}", {"tools": {name: f"{name}_tool:plugin.toml"}},
                     {f"{name}_tool/__init__.py": code,
                      f"{name}_tool/plugin.toml": "api = { written = 1, oldest = 1 }\n"})
    site.device("heard")
    tp.device("heard")
    assert "heard" in sys.modules["steady_tool"].seen
    states = {p.entry.name: (p.state, p.reason) for p in _plugins.plugins("tools")}
    assert states["steady"] == ("active", "")
    assert states["raising"] == ("failed", "its hook tensorplay_device_activated raised SystemExit: 1")
    assert states["misspelt"][0] == "failed"
    assert "no_such_argument" in states["misspelt"][1]
    assert _hookspecs.call("tensorplay_doctor_rows") == [[("acme", "5.1")]]


OPERATOR_SET = {
    "wares/__init__.py": "FUNCTIONS = {'wares_double': 'wares.double'}\n"
                         "METHODS = {'wares_doubled': ('wares.double', 'wares_double')}\n",
    "wares/double.py": "def wares_double(x):\n    return x.tolist() * 2\n",
    "wares/plugin.toml": "api = { written = 1, oldest = 1 }\n",
    "shoddy/__init__.py": "FUNCTIONS = {}\n",
    "shoddy/plugin.toml": "api = { written = 1, oldest = 1 }\n",
}


def test_operator_sets_of_others_are_loaded_when_a_name_is_not_known(site, monkeypatch):
    from tensorplay import _ops

    monkeypatch.setattr(_ops, "_sources", list(_ops.sources()))
    site.install("tp-wares", {"ops": {"wares": "wares:plugin.toml", "shoddy": "shoddy:plugin.toml"}}, OPERATOR_SET)
    assert "wares" not in sys.modules
    x = tp.tensor([1, 2], device="meta")
    assert not hasattr(tp, "no_such_function")
    assert {p.entry.name: p.state for p in _plugins.plugins("ops") if p.entry.distribution == "tp-wares"} == {
        "wares": "active", "shoddy": "failed"}
    assert "wares.double" not in sys.modules
    assert tp.wares_double.__module__ == "wares.double"
    assert x.wares_doubled.__func__ is tp.wares_double  # the methods are on Tensor once the set is loaded
    del tp.Tensor.wares_doubled, tp.wares_double


def test_threads_get_one_driver(site):
    import threading

    site.device("contested")
    start, found = threading.Barrier(8), []

    def use():
        start.wait()
        found.append(tp.device("contested").driver)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len({id(driver) for driver in found}) == 1


@pytest.mark.parametrize(("group", "text"), [("autograd", "autograd 'engine' (tp-engine 1.0) failed: "),
                                             ("compilers", "compiler 'engine' (tp-engine 1.0) failed: "),
                                             ("ops", "ops 'engine' (tp-engine 1.0) failed: ")])
def test_other_groups_name_themselves(site, group, text):
    site.install("tp-engine", {group: {"engine": "nowhere:plugin.toml"}})
    plugin, = _plugins.plugins(group, "engine")
    with pytest.raises(PluginError) as caught:
        plugin.load()
    assert caught.value.message.startswith(text)
    assert "Devices here" not in caught.value.message
