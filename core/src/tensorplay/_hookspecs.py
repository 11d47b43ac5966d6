"""Hooks for tools: what a plugin of the group `tensorplay.tools` can take part in. Operators never go through here.

A tool's package (or the object that its manifest's `load` names) defines functions with these names:

    from tensorplay._hookspecs import hookimpl

    @hookimpl
    def tensorplay_doctor_rows():
        return [("acme driver", "5.1")]

Parameters that a hook does not need can be left out. A hook that raises is switched off with its plugin, which
`tp doctor` then shows as failed.
"""
from __future__ import annotations

import pluggy

from ._errors import PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._explain import Chain
    from ._plugins import Plugin
    from .driver import Driver

hookspec = pluggy.HookspecMarker("tensorplay")
hookimpl = pluggy.HookimplMarker("tensorplay")


@hookspec
def tensorplay_device_activated(device: str, driver: Driver) -> None:  # type: ignore[empty-body]
    """A device's driver has been made. Devices that were active before the tools were loaded are reported then."""


@hookspec
def tensorplay_doctor_rows() -> list[tuple[str, str]]:  # type: ignore[empty-body]
    """More lines for `tp doctor`: (name, text) pairs."""


@hookspec
def tensorplay_cli_commands(commands: Any) -> None:
    """Add commands to `tp`: `commands.add_parser("mine").set_defaults(run=function)`, with `function(arguments)`
    returning the exit status. `commands` is argparse's object for subcommands."""


@hookspec
def tensorplay_explain(op: str, device: str, chain: Chain) -> str | None:
    """More text below `tp explain`, or None."""


_manager: pluggy.PluginManager | None = None
_registered: dict[str, Plugin] = {}  # pluggy's name of a plugin -> its record


def manager() -> pluggy.PluginManager:
    """The plugin manager with all working tools registered; made on first use."""
    global _manager
    if _manager is None:
        from ._plugins import plugins

        _manager = pluggy.PluginManager("tensorplay")
        _manager.add_hookspecs(__import__(__name__, fromlist=["_"]))
        for plugin in plugins("tools"):
            name = f"{plugin.entry.name} ({plugin.entry.distribution})"
            try:
                plugin.run("registering its hooks", _manager.register, plugin.load(), name)
                plugin.state = "active"
                _registered[name] = plugin
            except PluginError:
                pass  # recorded in the plugin; `tp doctor` shows it
        _replay_activations()
    return _manager


def call(hook: str, **arguments: Any) -> list:
    """The results of a hook that are not None. Each plugin is called on its own, so that one cannot break another."""
    results: list = []
    everyone = [plugin for _, plugin in manager().list_name_plugin() if plugin is not None]
    for name, record in list(_registered.items()):
        others = [plugin for plugin in everyone if plugin is not manager().get_plugin(name)]
        try:
            results += record.run(f"its hook {hook}", manager().subset_hook_caller(hook, others), **arguments)
        except PluginError:
            manager().unregister(name=name)
            del _registered[name]
    return results


def device_activated(device: str, driver: Driver) -> None:
    if _manager is None:
        manager()  # reports every active device, this one too
    else:
        call("tensorplay_device_activated", device=device, driver=driver)


def _replay_activations() -> None:
    from ._device import _drivers

    for device, driver in list(_drivers.items()):
        call("tensorplay_device_activated", device=device, driver=driver)
