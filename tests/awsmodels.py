"""botocore's models of AWS look at every request to the pretend account, and at every answer, in whatever test it is made."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from joiner.cloud.aws.api import Answer

FOUND: Final[list[str]] = []
"""What was wrong with requests and answers of the test that runs."""


def judge(service: str, operation: str, parameters: Mapping[str, Any], answer: Answer | None) -> str:
    """What is wrong with a request or, where there is one, with the answer."""
    model = _operations(service).get(operation)
    if model is None:
        return _noted(f"{service} has no operation {operation}")
    if answer is None:
        return _noted(_wrong(parameters, model.input_shape, f"request of {operation}"))
    return _noted(_wrong(answer, model.output_shape, f"answer of {operation}"))


def _noted(problem: str) -> str:
    if problem:
        FOUND.append(problem)
    return problem


def _wrong(value: Mapping[str, Any], shape: Any, what: str) -> str:
    from botocore.validate import ParamValidator

    if shape is None:
        return f"{what}: there is none" if value else ""
    report = ParamValidator().validate(value, shape)
    return f"{what}: {report.generate_report()}" if report.has_errors() else ""


@cache
def _operations(service: str) -> dict[str, Any]:
    import botocore.session
    from botocore import xform_name

    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(name): model.operation_model(name) for name in model.operation_names}
