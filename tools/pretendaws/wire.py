"""Requests and answers of AWS as they go over the wire, read and written by botocore's models of the services.

Four protocols are enough: `ec2` and `query` (forms in, XML out), `json`, and `rest-json`.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import botocore.session
from botocore import xform_name

XML, JSON = "text/xml", "application/json"


class Request(NamedTuple):
    """A request that was understood."""

    service: str
    operation: Any
    """The model of the operation."""
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        """What boto3 calls the operation."""
        return str(xform_name(self.operation.name))


class Reply(NamedTuple):
    """What is sent back."""

    status: int
    content: str
    body: str
    headers: Mapping[str, str] = {}


class NotUnderstood(Exception):
    """A request that no model describes."""


@cache
def model(service: str) -> Any:
    """The model of a service."""
    return botocore.session.get_session().get_service_model(service)


def read(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Request:
    """The operation that is asked for, and its parameters. Raises `NotUnderstood`."""
    scope = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/", headers.get("Authorization", ""))
    if scope is None:
        raise NotUnderstood("the request is not signed, so it does not say which service it is for")
    service = model(scope[1])
    protocol = service.metadata["protocol"]
    if protocol in ("ec2", "query"):
        form = dict(parse_qsl(body.decode(), keep_blank_values=True))
        operation = _operation(service, form.get("Action", ""))
        parameters = _of_form(operation.input_shape, _tree(form), protocol) if operation.input_shape else {}
        return Request(scope[1], operation, parameters)
    if protocol == "json":
        operation = _operation(service, headers.get("X-Amz-Target", "").rpartition(".")[2])
        return Request(scope[1], operation, json.loads(body or b"{}"))
    for name in service.operation_names:
        operation = service.operation_model(name)
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.http["requestUri"].partition("?")[0])
        found = re.fullmatch(pattern, path)
        if found is not None and operation.http["method"] == method:
            named = {key: unquote(value) for key, value in found.groupdict().items()}
            return Request(scope[1], operation, {**json.loads(body or b"{}"), **named})
    raise NotUnderstood(f"{scope[1]} has no operation {method} {path}")


def _operation(service: Any, name: str) -> Any:
    if name not in service.operation_names:
        raise NotUnderstood(f"{service.service_name} has no operation {name!r}")
    return service.operation_model(name)


# -- forms ---------------------------------------------------------------------------------------------------------------


def _tree(form: Mapping[str, str]) -> dict[str, Any]:
    """Names with dots as a tree: `Filter.1.Name`."""
    made: dict[str, Any] = {}
    for name, value in form.items():
        *path, last = name.split(".")
        place = made
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return made


def _of_form(shape: Any, found: Any, protocol: str) -> Any:
    if shape.type_name == "structure":
        named = ((name, member, _form_name(member, name, protocol)) for name, member in shape.members.items())
        return {name: _of_form(member, found[key], protocol) for name, member, key in named if key in found}
    if shape.type_name == "list":
        flat = protocol == "ec2" or shape.serialization.get("flattened")
        items = found if flat else found.get(shape.member.serialization.get("name", "member"), {})
        return [_of_form(shape.member, items[key], protocol) for key in sorted(items, key=int)]
    return _scalar(shape.type_name, found)


def _form_name(member: Any, name: str, protocol: str) -> str:
    said = member.serialization
    if protocol == "ec2":
        written = said.get("name", name)
        return str(said.get("queryName") or written[:1].upper() + written[1:])
    if member.type_name == "list" and said.get("flattened"):
        return str(member.member.serialization.get("name") or said.get("name", name))
    return str(said.get("name", name))


def _scalar(kind: str, text: str) -> Any:
    if kind == "boolean":
        return text == "true"
    if kind in ("integer", "long"):
        return int(text)
    if kind in ("float", "double"):
        return float(text)
    if kind == "timestamp":
        return datetime.fromisoformat(text)
    return base64.b64decode(text) if kind == "blob" else text


# -- answers -------------------------------------------------------------------------------------------------------------


def write(request: Request, answer: Mapping[str, Any]) -> Reply:
    """The answer to a request."""
    operation, shape = request.operation, request.operation.output_shape
    metadata = model(request.service).metadata
    if metadata["protocol"] in ("json", "rest-json"):
        body = {} if shape is None else _json(shape, answer)
        version = metadata.get("jsonVersion", "1.1")
        content = JSON if metadata["protocol"] == "rest-json" else f"application/x-amz-json-{version}"
        return Reply(200, content, json.dumps(body))
    inner = "" if shape is None else "".join(_members(shape, answer))
    space = f' xmlns="{metadata.get("xmlNamespace", "")}"'
    if metadata["protocol"] == "ec2":
        body = f"<requestId>req</requestId>{inner}"
    else:
        wrapper = None if shape is None else shape.serialization.get("resultWrapper")
        result = f"<{wrapper}>{inner}</{wrapper}>" if wrapper else inner
        body = f"{result}<ResponseMetadata><RequestId>req</RequestId></ResponseMetadata>"
    return Reply(200, XML, f"<{operation.name}Response{space}>{body}</{operation.name}Response>")


def refuse(service: str, code: str, message: str, status: int = 400) -> Reply:
    """An error, as the protocol of the service writes it."""
    protocol = model(service).metadata["protocol"]
    if protocol in ("json", "rest-json"):
        headers = {"x-amzn-errortype": code, "x-amzn-query-error": f"{code};Sender"}
        return Reply(status, JSON, json.dumps({"__type": code, "message": message}), headers)
    error = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if protocol == "ec2":
        return Reply(
            status, XML, f"<Response><Errors><Error>{error}</Error></Errors><RequestID>req</RequestID></Response>"
        )
    return Reply(
        status,
        XML,
        f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error><RequestId>req</RequestId></ErrorResponse>",
    )


def _json(shape: Any, value: Any) -> Any:
    if shape.type_name == "structure":
        return {
            member.serialization.get("name", name): _json(member, value[name])
            for name, member in shape.members.items()
            if value.get(name) is not None
        }
    if shape.type_name == "list":
        return [_json(shape.member, each) for each in value]
    if shape.type_name == "map":
        return {key: _json(shape.value, each) for key, each in value.items()}
    return value.timestamp() if isinstance(value, datetime) else value


def _members(shape: Any, value: Mapping[str, Any]) -> Iterator[str]:
    for name, member in shape.members.items():
        if value.get(name) is not None:
            yield from _xml(member, value[name], member.serialization.get("name", name))


def _xml(shape: Any, value: Any, tag: str) -> Iterator[str]:
    if shape.type_name == "structure":
        yield f"<{tag}>{''.join(_members(shape, value))}</{tag}>"
    elif shape.type_name == "list":
        item = shape.member.serialization.get("name", "member")
        if shape.serialization.get("flattened"):
            for each in value:
                yield from _xml(shape.member, each, tag)
        else:
            yield f"<{tag}>{''.join(part for each in value for part in _xml(shape.member, each, item))}</{tag}>"
    else:
        yield f"<{tag}>{escape(_text(value))}</{tag}>"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
