"""aiogram's models as the judge of everything that crosses the wire."""

import functools

from pydantic import BaseModel, TypeAdapter, ValidationError

from .refusal import Violation


def import_models():
    """Imports aiogram without building its 400 models, which takes seconds; a few are needed here."""
    names = {}
    rebuild = BaseModel.model_rebuild
    BaseModel.model_rebuild = lambda _types_namespace: names.update(_types_namespace)
    try:
        import aiogram.methods
        import aiogram.types
    finally:
        BaseModel.model_rebuild = rebuild
    return aiogram, names


aiogram, NAMES = import_models()


def validator(kind):
    built = TypeAdapter(kind)
    built.rebuild(_types_namespace=NAMES)
    return built


UPDATE = validator(aiogram.types.Update)


@functools.cache
def methods():
    """aiogram's methods by their lower-case API names."""
    kinds = [getattr(aiogram.methods, name) for name in aiogram.methods.__all__]
    named = [kind for kind in kinds if isinstance(getattr(kind, "__api_method__", None), str)]
    return {kind.__api_method__.lower(): kind for kind in named}


@functools.cache
def returning(method):
    return validator(methods()[method.lower()].__returning__)


@functools.cache
def parameters(method):
    fields = methods()[method.lower()].model_fields
    return {field.alias or name for name, field in fields.items()}


def judge_update(raw):
    """Raises unless aiogram takes the update and knows every field of it."""
    try:
        update = UPDATE.validate_python(raw)
    except ValidationError as error:
        raise Violation(f"aiogram refuses an update of ours: {error}") from error
    unknown = list(strangers(update, "update"))
    if unknown:
        raise Violation(f"aiogram does not know {unknown} in an update of ours")


def judge_result(method, result):
    """The same for the result of a method."""
    try:
        value = returning(method).validate_python(result)
    except ValidationError as error:
        raise Violation(f"aiogram refuses our result of {method}: {error}") from error
    unknown = list(strangers(value, method))
    if unknown:
        raise Violation(f"aiogram does not know {unknown} in our result of {method}")


def judge_request(method, given):
    """A parameter that the method does not have is a slip of the client, and Telegram would not tell."""
    unknown = sorted(set(given) - parameters(method))
    if unknown:
        raise Violation(f"{method} has no parameter {unknown}")


def strangers(value, where):
    if isinstance(value, BaseModel):
        for name in value.model_extra or {}:
            yield f"{where}.{name}"
        for name in value.model_fields_set:
            yield from strangers(getattr(value, name, None), f"{where}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from strangers(item, where)
