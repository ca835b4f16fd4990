"""Generate the package's code from the schema: messages, services and reasons.

Usage: python generate.py SCHEMA SERVICES OUT. SCHEMA is a FileDescriptorSet with comments, SERVICES is the list of
services that clients have, and OUT is the source folder.
"""

import json
import re
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

NO_SIDE_EFFECTS = descriptor_pb2.MethodOptions.NO_SIDE_EFFECTS
REASONS = "rollcall/node/v1/error_reason.proto"
# The client attribute of each service, and the name of its address. All languages share this list.
SERVICES: dict[str, tuple[str, str]] = {}


def main(schema: str, services: str, out: str) -> None:
    """Generate everything, or exit with a message."""
    listed = json.loads(Path(services).read_text(encoding="utf-8"))
    SERVICES.update({name: (entry["name"], entry["at"]) for name, entry in listed.items()})
    files = descriptor_pb2.FileDescriptorSet.FromString(Path(schema).read_bytes())
    ours = [file for file in files.file if file.name.startswith("rollcall/")]
    arguments = ["protoc", f"--descriptor_set_in={schema}", f"--python_out={out}", f"--pyi_out={out}"]
    if protoc.main([*arguments, *(file.name for file in ours)]) != 0:
        sys.exit("protoc failed")
    for folder in {Path(out, file.name).parent for file in ours}:
        for package in (folder, folder.parent):
            package.joinpath("__init__.py").touch()
    target = Path(out, "rollcall")
    target.joinpath("services.py").write_text(services_module(ours), encoding="utf-8")
    target.joinpath("reasons.py").write_text(reasons_module(ours), encoding="utf-8")


def services_module(files: list) -> str:
    """The classes of all services, for threads and for asyncio."""
    found = [(file, index, service) for file in files for index, service in enumerate(file.service)]
    listed = [it for it in found if f"{it[0].package}.{it[2].name}" in SERVICES]
    unknown = {f"{file.package}.{service.name}" for file, _, service in found} - set(SERVICES)
    # Clients call neither the service for agents nor the service for the console's pages.
    if unknown != {"rollcall.health.v1.HealthService", "rollcall.console.v1.ConsoleService"}:
        sys.exit(f"services missing from clients: {sorted(unknown)}")
    messages = {
        f".{file.package}.{message.name}": (module_of(file), message) for file in files for message in file.message_type
    }
    lines = [
        '"""The services of the API. Generated from the schema."""',
        "",
        "from __future__ import annotations",
        "",
        "import grpc",
        "import grpc.aio",
        "",
        *sorted({f"from {package_of(file)} import {module_of(file)}" for file in files if file.message_type}),
        "from .calls import (",
        *(f"    {name}," for name in IMPORTS),
        ")",
        "from .connection import Connection",
    ]
    for prefix, connection in (("", "Connection[grpc.Channel]"), ("Async", "Connection[grpc.aio.Channel]")):
        for file, index, service in listed:
            lines += ["", "", f"class {prefix}{service.name}:"]
            lines += docstring(comment_at(file, [6, index]), 4)
            lines += ["", f"    def __init__(self, connection: {connection}, options: CallOptions) -> None:"]
            for number, method in enumerate(service.method):
                lines += method_lines(prefix, file, service, method, messages)
                lines += docstring(comment_at(file, [6, index, 2, number]), 8)
        lines += ["", "", f"class {prefix}Services:", '    """Every service of one control plane."""', ""]
        lines.append(
            f"    def __init__(self, connections: dict[str, {connection}], options: dict[str, CallOptions]) -> None:"
        )
        for file, _, service in listed:
            attribute, address = SERVICES[f"{file.package}.{service.name}"]
            lines.append(
                f'        self.{attribute} = {prefix}{service.name}(connections["{address}"], options["{address}"])'
            )
    return "\n".join(lines) + "\n"


IMPORTS = [
    "AsyncPagedMethod",
    "AsyncStreamMethod",
    "AsyncUnaryMethod",
    "CallOptions",
    "MethodInfo",
    "PagedMethod",
    "StreamMethod",
    "UnaryMethod",
]


def method_lines(prefix: str, file: object, service: object, method: object, messages: dict) -> list[str]:
    """Return the declaration of a method as an attribute."""
    types = [f"{messages[name][0]}.{name.rsplit('.', 1)[1]}" for name in (method.input_type, method.output_type)]
    is_read = method.options.idempotency_level == NO_SIDE_EFFECTS
    items = page_items(messages[method.output_type][1]) if is_read else None
    kind = f"{prefix}StreamMethod" if method.server_streaming else f"{prefix}UnaryMethod"
    info = [f'"/{file.package}.{service.name}/{method.name}"', *types, f"is_read={is_read}"]
    if items is not None:
        kind = f"{prefix}PagedMethod"
        info.append(f'items="{items.name}"')
        module, message = messages[items.type_name]
        parameters = [*types, f"{module}.{message.name}"]
    else:
        parameters = types
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method.name).lower()
    return [
        f"        self.{name}: {kind}[",
        f"            {', '.join(parameters)}",
        f"        ] = {kind}(connection, MethodInfo({', '.join(info)}), options)",
    ]


def page_items(answer: object) -> object | None:
    """Return the field with the items of a page, or None if the response is not a page."""
    if all(field.name != "next_page_token" for field in answer.field):
        return None
    repeated = [field for field in answer.field if field.label == field.LABEL_REPEATED and field.type_name]
    if len(repeated) != 1:
        sys.exit(f"{answer.name} is a page without exactly one list of items")
    return repeated[0]


def reasons_module(files: list) -> str:
    """Return the reasons of errors, as constants."""
    file = next(file for file in files if file.name == REASONS)
    lines = ['"""Reasons of errors. Generated from the schema."""', "", "", "class Reason:"]
    lines.append('    """The values of ``RollcallError.reason``. A server of a later release can send others."""')
    for index, value in enumerate(file.enum_type[0].value[1:], start=1):
        name = value.name.removeprefix("ERROR_REASON_")
        lines += ["", f'    {name} = "{name}"', *docstring(comment_at(file, [5, 0, 2, index]), 4)]
    return "\n".join(lines) + "\n"


def docstring(text: str, indent: int) -> list[str]:
    """Format a comment of the schema as a wrapped docstring."""
    words, lines = text.replace("\\", "\\\\").replace('"""', "'''").split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) + indent > 112:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    pad = " " * indent
    if len(lines) == 1:
        return [f'{pad}"""{lines[0]}"""']
    return [f'{pad}"""{lines[0]}', *(f"{pad}{line}" for line in lines[1:]), f'{pad}"""']


def comment_at(file: object, path: list[int]) -> str:
    """Return the comment above a declaration."""
    for location in file.source_code_info.location:
        if list(location.path) == path:
            return location.leading_comments.strip()
    return ""


def package_of(file: object) -> str:
    """Return the package of a file's module, as services.py imports it."""
    return "." + ".".join(Path(file.name).parts[1:-1])


def module_of(file: object) -> str:
    """Return the name of a file's Python module."""
    return f"{Path(file.name).stem}_pb2"


if __name__ == "__main__":
    main(*sys.argv[1:])
